"""Several devices share a search: where its parts go, and that its results stay what they are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits

import jedax
from jedax._checks import JedaxError
from jedax.config.maze import MazeConfig
from jedax.config.run import FullConfig, RunConfig
from jedax.runs import devices
from jedax.runs.compiled import replica_roots
from jedax.runs.programs import programs_for
from jedax.runs.results import make_algorithm
from jedax.tasks import Maze, make

SCRIPT = Path(__file__).with_name("on_eight_devices.py")


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """What a program with eight devices saw."""
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("devices") / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_replicas_come_first_and_the_rest_shares_the_population(eight):
    assert eight["devices"] == 8
    assert eight["meshes"] == {
        "1 on 8": [1, 8], "8 on 8": [8, 1], "4 on 8": [4, 2], "10 on 8": [2, 4], "5 on 8": [1, 8], "3 on 2": [1, 2],
        "6 on 4": [2, 2], "2 on 3": [1, 3],
    }  # fmt: skip


def test_a_shared_population_keeps_the_bits(eight):
    """Also of a noisy maze, whose members draw random numbers, and of a batch that the devices do not divide."""
    one, many = eight["population"]
    assert one == many


def test_replicas_apart_are_the_same_up_to_rounding(eight):
    one, all_eight, four = (search["best"] for search in eight["replicas"])
    assert len(set(one)) == 4
    np.testing.assert_allclose(all_eight, one, rtol=1e-4)
    np.testing.assert_allclose(four, one, rtol=1e-4)


def test_states_are_used_up_and_stay_with_their_replicas(eight):
    assert eight["donated"]["used"]
    assert eight["donated"]["parts"] == [[r, 1] for r in range(4) for _ in range(2)]


def test_a_run_goes_on_with_another_number_of_devices(eight):
    resumed = eight["resumed"]
    assert resumed["status"] == "finished"
    assert len(resumed["used"]) > 2
    assert set(resumed["used"]) == {1, 8}
    assert resumed["digest"] == eight["population"][0]["digest"]


def test_the_run_directory_says_which_devices_were_used(eight):
    resumed = eight["resumed"]
    assert resumed["environment"] == {"replicas": 1, "population": 8}
    assert resumed["config"] == 8
    assert "on 8 devices, 1 for replicas by 8 for the population." in resumed["log"]
    assert "Resumed.\n" in resumed["log"]


def test_one_device_means_a_program_that_knows_no_other(arm, small):
    """Whatever asks for one device shares the programs of a run that asks for nothing, and these are not spread."""
    algorithm = make_algorithm(small, arm)
    programs = programs_for(algorithm, arm, 2)
    assert programs is programs_for(algorithm, arm, 2, 1) is programs_for(algorithm, arm, 2, "all")
    assert programs.mesh is None
    assert devices.describe(None) == {"replicas": 1, "population": 1}
    roots = replica_roots(0, 2)
    given = jnp.zeros((0, arm.num_params))
    text = jax.jit(devices.spread(programs._jitted_begin, None, 2, (1,))).lower(roots, given).as_text()
    assert text == jax.jit(programs._jitted_begin).lower(roots, given).as_text()
    assert "num_partitions = 1" in text
    assert "all_gather" not in text
    assert "manual" not in text


@pytest.mark.parametrize("transitions", [False, True])
def test_a_part_of_a_batch_has_the_random_numbers_of_the_whole(transitions):
    task = Maze(MazeConfig(steps=20, laser_noise=0.1, wheel_noise=0.1))
    evaluate = jax.jit(task.evaluate_with_transitions if transitions else task.evaluate_batch)
    key = jax.random.key(3)
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 6))
    whole = evaluate(key, genotypes)
    part = evaluate(jax.random.split(key, 6)[2:5], genotypes[2:5])
    assert_same_bits(part, jax.tree.map(lambda leaf: leaf[2:5], whole))


def test_a_task_without_a_batch_of_its_own_takes_keys_of_members(arm):
    genotypes = jax.vmap(arm.init)(jax.random.split(jax.random.key(0), 3))
    key = jax.random.key(1)
    assert_same_bits(arm.evaluate_batch(key, genotypes), arm.evaluate_batch(jax.random.split(key, 3), genotypes))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, r"devices: expected 'all' or greater than or equal to 1, got 0"),
        ("some", r"devices: expected 'all' or a valid integer, got 'some'"),
        (2, r"devices: expected at most 1, the cpu devices that JAX has, got 2; give fewer, or all .*XLA_FLAGS"),
    ],
)
def test_devices_that_are_not_there_are_refused(small, arm, value, message, tmp_path):
    with pytest.raises(JedaxError, match=message):
        jedax.run(small, arm, evaluations=80, devices=value, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_task_in_worker_processes_takes_one_device(small):
    task = make("tests.workers.work:sphere", num_params=3, descriptor_lows=(-1, -1), descriptor_highs=(1, 1))
    algorithm = make_algorithm(small, task)
    assert programs_for(algorithm, task, 1, "all").mesh is None
    with pytest.raises(JedaxError, match=r"devices: expected 1 for tests.workers.work:sphere, .* --workers instead"):
        programs_for(algorithm, task, 1, 2)


def test_settings_differ_by_devices_but_checkpoints_do_not():
    one, two, other = (FullConfig(task="maze-a", run=RunConfig(**run)) for run in ({}, {"devices": 2}, {"seed": 1}))
    assert one.digest() == two.digest() != other.digest()
    assert FullConfig.parse(two.dump(), where="here").run.devices == 2
