"""The run directory: all that is promised is there, and `load` gives it all back."""

import json
import os

import numpy as np
import pytest
import yaml
from tests.conftest import assert_same_bits, forget_checksums

import jedax
from jedax.tasks import Maze, PlanarArm, make


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "run"


@pytest.fixture(scope="module")
def run(path):
    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=64, gp_max_steps=5, targets="uniform")
    return jedax.run(config, "maze-a", evaluations=8 * 40, seed=4, replicas=2, report_every=10, out=path)


def test_files(run, path):
    assert sorted(p.name for p in path.iterdir()) == [
        "checkpoint", "config.yaml", "environment.json", "figures", "history.jsonl", "log.txt", "manifest.json",
        "metrics.csv", "repertoire.safetensors", "summary.json",
    ]  # fmt: skip
    assert sorted(p.name for p in (path / "figures").iterdir()) == [
        "best.png", "convergence.png", "evaluations.png", "gp_mean.png", "gp_std.png", "repertoire.png",
    ]  # fmt: skip


def test_config_says_all_that_ran(run, path):
    config = yaml.safe_load((path / "config.yaml").read_text())
    assert config["task"] == "maze-a"
    assert config["task_config"]["walls"] == [[0, 0.25, 0.75, 0.25], [0.25, 0.6, 1, 0.6], [0, 0.25, 0, 1]]
    assert config["method_config"]["population"] == 4
    assert config["run"]["seed"] == 4
    assert config["run"]["evaluations"] == 320


def test_metrics(run, path):
    lines = (path / "metrics.csv").read_text().splitlines()
    assert lines[0].split(",") == [
        "evaluations", "replica", "max_fitness", "coverage", "qd_score", "alpha", "num_failed", "failed_nan",
        "failed_infinite", "num_outside", "seconds",
    ]  # fmt: skip
    evaluations = [int(line.split(",")[0]) for line in lines[1:]]
    assert evaluations == [e for e in (8, 88, 168, 248, 320) for _ in range(2)]
    metrics = jedax.load(path).metrics
    assert np.isfinite(metrics.to_numpy()).all()
    for replica in range(2):
        last = metrics[metrics.replica == replica].iloc[-1]
        fitness = run.repertoire.fitness[replica]
        filled = np.isfinite(fitness)
        assert last.max_fitness == fitness.max()
        assert last.coverage == filled.mean()
        assert last.qd_score == pytest.approx((fitness[filled] + 250 + 100 * 2**0.5).sum(), rel=1e-6)


def test_summary(run, path):
    summary = json.loads((path / "summary.json").read_text())
    assert summary == {**run.summary, "checksums": "manifest.json"}
    wanted = {
        "task",
        "method",
        "seed",
        "replicas",
        "evaluations",
        "max_fitness",
        "coverage",
        "qd_score",
        "wall_seconds",
        "evaluations_per_second",
        "phase_seconds",
    }
    assert wanted <= summary.keys()
    assert {"compile", "simulate+es", "gp", "io", "import", "figures"} <= summary["phase_seconds"].keys()
    assert sum(summary["phase_seconds"].values()) == pytest.approx(summary["wall_seconds"], abs=0.02)
    assert summary["evaluations"] == 320
    assert len(summary["max_fitness"]) == 2


def test_environment(run, path):
    environment = json.loads((path / "environment.json").read_text())
    assert environment["jedax"] == jedax.__version__
    assert environment["packages"]["jax"]
    assert environment["cores"] >= 1


def test_a_command_with_bytes_that_are_no_text_can_be_read(tmp_path, small, arm, undrawn, monkeypatch):
    monkeypatch.setattr("sys.argv", ["jedax", "run", "--out", os.fsdecode(b"r\xff\xc3\xa9")])
    jedax.run(small, arm, evaluations=16, out=tmp_path / "run")
    assert jedax.load(tmp_path / "run").environment["command"] == "jedax run --out 'r?é'"


def test_load_gives_it_all_back(run, path):
    loaded = jedax.load(path)
    assert_same_bits(loaded.repertoire, run.repertoire)
    assert loaded.config == run.config
    assert loaded.task == run.task
    assert loaded.cells == run.cells
    assert loaded.summary == run.summary
    assert loaded.rows == run.rows
    for name in ("gp_mean", "gp_std", "targets"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(run, name))
    assert loaded.gp_mean.shape == loaded.gp_std.shape == (2, 64)
    assert (loaded.gp_std > 0).all()


def test_improved_at_is_within_the_budget(run):
    improved, filled = run.repertoire.improved_at, np.isfinite(run.repertoire.fitness)
    assert (improved[~filled] == -1).all()
    assert (improved[filled] >= 8).all()
    assert improved.max() <= 320
    assert (improved[filled] % 8 == 0).all()


def test_policy_is_the_best_controller(run, path):
    policy = jedax.load(path).policy()
    genotype = run.best().genotype
    kernel, bias = genotype[:40].reshape(5, 8), genotype[40:48]
    output, output_bias = genotype[48:64].reshape(8, 2), genotype[64:]
    observation = np.array([0.1, 0.2, 0.15, -1, 1], np.float32)
    expected = np.tanh(np.maximum(observation @ kernel + bias, 0) @ output + output_bias)
    np.testing.assert_allclose(policy(observation), expected, rtol=1e-5, atol=1e-6)


def test_load_of_a_run_that_was_cut_off(run, path, tmp_path):
    import shutil

    cut = tmp_path / "cut"
    shutil.copytree(path, cut)
    for name in ("manifest.json", "repertoire.safetensors", "summary.json"):
        (cut / name).unlink()
    with open(cut / "metrics.csv", "a") as file:
        file.write("400,0,")
    loaded = jedax.load(cut)
    assert_same_bits(loaded.repertoire, run.repertoire)
    assert loaded.rows == run.rows
    assert loaded.summary == {}


@pytest.mark.parametrize("replicas_best", [0, 1])
def test_best_of_a_replica(run, replicas_best):
    best = run.best(replicas_best)
    assert best.fitness == run.repertoire.fitness[replicas_best].max()
    assert run.best().fitness == max(run.best(0).fitness, run.best(1).fitness)


@pytest.mark.parametrize("replica", [2, -1, "0"])
def test_a_replica_that_does_not_exist(run, replica):
    for read in (run.best, run.elites):
        with pytest.raises(jedax.JedaxError, match=r"^replica: expected a whole number from 0 to 1, got "):
            read(replica)


@pytest.mark.parametrize("path", [3, None])
def test_a_path_that_is_none(path, arm, plain):
    with pytest.raises(jedax.JedaxError, match=f"^directory: expected a path, got {path}; give a text or"):
        jedax.load(path)
    with pytest.raises(jedax.JedaxError, match=r"^directory: expected a path, got 3; give a text or"):
        jedax.run(plain, arm, evaluations=64, out=3)


def test_elites_are_the_filled_cells_and_the_best_comes_first(run):
    kept = run.repertoire
    elites = run.elites(1)
    filled = np.asarray(kept.fitness[1]) > -np.inf
    assert [one.fitness for one in elites] == sorted(np.asarray(kept.fitness[1])[filled].tolist(), reverse=True)
    cells = np.asarray(run.cells.assign(np.stack([one.descriptor for one in elites])))
    np.testing.assert_array_equal(np.sort(cells), np.flatnonzero(filled))
    np.testing.assert_array_equal([one.genotype for one in elites], np.asarray(kept.genotypes[1])[cells])
    assert run.elites()[0].fitness == run.best().fitness


def test_no_policy_for_an_arm(small, arm):
    with pytest.raises(jedax.JedaxError, match=r"policy: expected a task whose solutions are policies"):
        jedax.run(small, arm, evaluations=8).policy()


def test_directory_without_a_run(tmp_path):
    with pytest.raises(jedax.JedaxError, match=r"run directory: expected a directory with a config.yaml"):
        jedax.load(tmp_path)


def test_nothing_saved_yet(run, path, tmp_path):
    (tmp_path / "config.yaml").write_text((path / "config.yaml").read_text())
    with pytest.raises(jedax.JedaxError, match="expected a run that has saved something"):
        jedax.load(tmp_path)


def test_damaged_repertoire(run, path, tmp_path):
    import shutil

    cut = tmp_path / "cut"
    shutil.copytree(path, cut)
    forget_checksums(cut)
    (cut / "repertoire.safetensors").write_bytes(b"nonsense")
    with pytest.raises(jedax.JedaxError, match=r"repertoire.safetensors: expected arrays as safetensors"):
        jedax.load(cut)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (Maze(walls=[(0, 0.5, 0.7, 0.5)], hidden=(3,), name="mine"), "maze:mine"),
        (make("maze-b", hidden=(3,)), "maze-b"),
        (PlanarArm(joints=3), "arm"),
    ],
)
def test_tasks_made_in_python_are_recorded(tmp_path, plain, undrawn, task, name):
    path = tmp_path / "run"
    jedax.run(plain, task, evaluations=16, out=path)
    run = jedax.load(path)
    assert run.config.task == name
    assert run.task == task
    assert run.best().genotype.shape == (task.num_params,)


def test_a_partial_run_of_a_task_that_is_not_there(tmp_path, small, undrawn):
    class Own(PlanarArm):
        name = "own"

    path = tmp_path / "run"
    whole = jedax.run(small, Own(joints=4), evaluations=8 * 6, out=path)
    found = jedax.load(path, partial=True)
    assert (found.task.name, found.task.num_params) == ("own", 4)
    assert found.missing == ("Solutions are not drawn: the task is an object of your own, to be given as task=...",)
    assert jedax.load(path).task == found.task
    assert_same_bits(found.repertoire, whole.repertoire)
    np.testing.assert_allclose(found.cells.bounds, whole.cells.bounds, atol=0.1)
    assert type(found.method) is type(whole.method)
    assert found.method.evaluations_per_generation == 8
    assert len(found.history.loops) > 0
    forget_checksums(path)
    (path / "repertoire.safetensors").unlink()
    found = jedax.load(path, partial=True)
    assert_same_bits(found.repertoire, whole.repertoire)  # of the checkpoint, whose cells follow from the facts
    assert found.rows == whole.rows
    assert "Run(jedi" in repr(found)
