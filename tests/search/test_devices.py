"""Several devices share a search: where its parts go, and that its results stay what they are."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits

import jedax
from jedax.errors import JedaxError
from jedax.methods.jedi import JEDi
from jedax.search import devices
from jedax.search.compiled import replica_roots
from jedax.search.programs import programs_for
from jedax.store.config import FullConfig, RunConfig
from jedax.tasks import Maze, make
from jedax.tasks.maze.settings import MazeConfig

SCRIPT = Path(__file__).with_name("on_eight_devices.py")


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """What a program with eight devices saw, whose bits are those of the emitters that XLA takes by itself."""
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("devices") / "run")]
    flags = os.environ["XLA_FLAGS"].replace("--xla_cpu_use_fusion_emitters=false", "")
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, "XLA_FLAGS": flags})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def on_devices(number, *lines):
    """Run lines of Python where there are so many devices, and return what they call `found`."""
    script = "\n".join([*lines, "import json", "print(json.dumps(found))"])
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=900,
                          env={**os.environ, "XLA_FLAGS": flags})  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_replicas_come_first_and_the_rest_shares_the_population(eight):
    assert eight["devices"] == 8
    assert eight["meshes"] == {
        "1 on 8": [1, 8], "8 on 8": [8, 1], "4 on 8": [4, 2], "10 on 8": [2, 4], "5 on 8": [1, 8], "3 on 2": [1, 2],
        "6 on 4": [2, 2], "2 on 3": [1, 3],
    }  # fmt: skip


def test_a_shared_population_keeps_the_bits(eight):
    """Also of a batch that the devices do not divide."""
    one, many = eight["population"]
    assert one == many


def test_samples_of_a_shared_population_keep_the_bits(eight):
    """Noise is that of the solution, wherever it is evaluated."""
    one, many = eight["samples"]
    assert one == many
    assert one["digest"] != eight["population"][0]["digest"]


def test_replicas_apart_are_the_same_up_to_rounding(eight):
    one, all_eight, four = (search["best"] for search in eight["replicas"])
    assert len(set(one)) == 4
    np.testing.assert_allclose(all_eight, one, rtol=1e-4)
    np.testing.assert_allclose(four, one, rtol=1e-4)


def test_repertoires_are_used_up_and_stay_with_their_replicas(eight):
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
    method = JEDi(small, arm)
    programs = programs_for(method, arm, 2)
    assert programs is programs_for(method, arm, 2, 1) is programs_for(method, arm, 2, "all")
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
    """Programs for few and for many round the noise apart, in the last bits."""
    task = Maze(MazeConfig(steps=5, laser_noise=0.01, wheel_noise=0.1))
    evaluate = jax.jit(task.evaluate_with_transitions if transitions else task.evaluate_batch)
    keys = jax.random.split(jax.random.key(3), 6)
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 6))
    whole = evaluate(jax.random.key(3), genotypes)
    part, of_others = (evaluate(given, genotypes[2:5]) for given in (keys[2:5], keys[:3]))
    expected = jax.tree.map(lambda leaf: leaf[2:5], whole)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), part, expected)
    assert not np.allclose(of_others.descriptor, expected.descriptor, rtol=1e-4, atol=1e-5)


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
    task = make("tests.search.workers.work:sphere", num_params=3, descriptor_lows=(-1, -1), descriptor_highs=(1, 1))
    method = JEDi(small, task)
    assert programs_for(method, task, 1, "all").mesh is None
    with pytest.raises(
        JedaxError, match=r"devices: expected 1 for tests.search.workers.work:sphere, .* --workers instead"
    ):
        programs_for(method, task, 1, 2)


def test_settings_differ_by_devices_but_checkpoints_do_not():
    one, two, other = (FullConfig(task="maze-a", run=RunConfig(**run)) for run in ({}, {"devices": 2}, {"seed": 1}))
    assert one.digest() == two.digest() != other.digest()
    assert FullConfig.parse(two.dump(), where="here").run.devices == 2


@pytest.mark.nightly
def test_two_processes_search_together(tmp_path):
    """What each of them finds is what one finds alone; the first writes, and both go on from what it wrote."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name("on_two_processes.py")
    commands = [[sys.executable, str(script), str(port), str(process), str(tmp_path / "run")] for process in range(2)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands
    ]
    ended = [process.communicate(timeout=900) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended[0][1][-2000:] + ended[1][1][-2000:]
    first, second = (json.loads(re.search(r"^{.*}$", out, re.MULTILINE)[0]) for out, _ in ended)
    assert first["digest"] == second["digest"]
    together, alone = first["best"]
    np.testing.assert_allclose(together, alone, rtol=1e-4)
    assert (first["path"], second["path"]) == (str(tmp_path / "run"), "None")
    log = (tmp_path / "run" / "log.txt").read_text()
    assert log.count("on 4 devices, 1 for replicas by 4 for the population.") == log.count("Ended (") > 2
    rows = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert len(rows) == len(set(rows)) == 1 + 2 * 3


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["jedi", "pga-me"])
def test_methods_that_learn_do_so_on_several_devices(method):
    """The Gaussian process of each replica is its own; what PGA-ME learns from are the steps of the whole batch."""
    one, four = on_devices(
        4,
        "import jedax",
        "settings = dict(evaluations=192, replicas=2, cells=64)",
        f"runs = [jedax.run({method!r}, jedax.tasks.Maze(steps=20), devices=n, **settings) for n in (1, 4)]",
        "found = [run.summary['max_fitness'] for run in runs]",
    )
    assert len(set(one)) == 2
    np.testing.assert_allclose(four, one, rtol=1e-3)


@pytest.mark.nightly
def test_robots_on_several_devices_part_ways_by_rounding_alone():
    """After two steps of an episode nothing shows yet of what they magnify later."""
    one, both = on_devices(
        2,
        "import jax, numpy as np",
        "from jax.sharding import PartitionSpec as P",
        "from jedax.search import devices",
        "from jedax.tasks import make",
        "task = make('halfcheetah', steps=2, hidden=(16,))",
        "genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 5))",
        "mesh = devices.mesh_for('all', 1)",
        "share = lambda genotypes: devices.evaluate_in_shares(task.evaluate_batch, 2, jax.random.key(1), genotypes)",
        "both = jax.jit(jax.shard_map(share, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False))(genotypes)",
        "one = jax.jit(task.evaluate_batch)(jax.random.key(1), genotypes)",
        "found = [np.column_stack([e.fitness, e.descriptor]).tolist() for e in (one, both)]",
    )
    assert len({fitness for fitness, *_ in one}) == 5
    np.testing.assert_allclose(both, one, rtol=1e-3, atol=1e-3)
