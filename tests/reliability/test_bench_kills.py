"""A bench whose workers, or whose own process, are killed ends with the results of an undisturbed bench."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import jedax
from jedax.bench.bench import bench
from jedax.bench.grids import Grid, parse_entry, slug
from jedax.search.workers.pool import WorkerPool
from jedax.store.directory import RunDirectory

METHODS = ("map-elites,offspring=8,cells=16",)
TASKS = ("tests.search.workers.work:sphere", "arm")
GRID = Grid("", TASKS, tuple(parse_entry(text) for text in METHODS), 2, evaluations=8 * 60)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    assert bench(GRID, out).failed == ()
    return out


def assert_same_results(out, other):
    runs = [path.parent.relative_to(other) for path in sorted(other.rglob("config.yaml"))]
    assert runs == [path.parent.relative_to(out) for path in sorted(out.rglob("config.yaml"))]
    assert len(runs) == 2
    for run in runs:
        ours, theirs = jedax.load(out / run), jedax.load(other / run)
        assert ours.summary["status"] == "finished"
        for name in ("genotypes", "fitness", "descriptors", "counts", "improved_at", "num_failed"):
            np.testing.assert_array_equal(getattr(ours.repertoire, name), getattr(theirs.repertoire, name), name)
        assert [row["qd_score"] for row in ours.rows] == [row["qd_score"] for row in theirs.rows]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kills"), [(0, 5), pytest.param(1, 50, marks=pytest.mark.nightly)])
def test_workers_that_are_killed(tmp_path, undisturbed, monkeypatch, seed, kills):
    chance, evaluate, left = random.Random(seed), WorkerPool.evaluate, [kills]

    def evaluate_and_kill(pool, genotypes):
        if pool._workers and left[0] and chance.random() < kills / 20:
            left[0] -= 1
            os.kill(chance.choice(pool._workers).process.pid, signal.SIGKILL)
        return evaluate(pool, genotypes)

    monkeypatch.setattr(WorkerPool, "evaluate", evaluate_and_kill)
    assert bench(GRID, tmp_path).failed == ()
    assert left[0] == 0
    assert_same_results(tmp_path, undisturbed)
    assert "worker was killed by SIGKILL" in "".join(path.read_text() for path in tmp_path.rglob("log.txt"))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kills"), [(0, 1), pytest.param(1, 10, marks=pytest.mark.nightly)])
def test_the_bench_itself_is_killed(tmp_path, undisturbed, seed, kills):
    chance, out = random.Random(seed), tmp_path / "bench"
    command = [sys.executable, "-m", "jedax", "bench", *TASKS, "--methods", *METHODS, "--seeds", "2", "--evaluations",
               "480", "--out", str(out)]  # fmt: skip
    killed = 0
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        written = sum(1 for _ in out.rglob("metrics.csv"))
        limit = time.monotonic() + 300
        while sum(1 for _ in out.rglob("metrics.csv")) <= min(written, 1) and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), err
        killed += process.returncode != 0
    assert killed > 0  # the others came when all was done
    outcome = bench(GRID, out)
    assert (outcome.failed, outcome.elsewhere) == ((), ())
    assert_same_results(out, undisturbed)


def test_a_run_that_another_process_works_on_is_left_to_it(tmp_path):
    grid = Grid("", ("arm",), (parse_entry(METHODS[0]),), 2, evaluations=8 * 40)
    other = RunDirectory.create(tmp_path / "arm" / slug(grid.entries[0].label) / "seeds-0-1")
    outcome = bench(grid, tmp_path)
    assert (outcome.done, outcome.failed, outcome.elsewhere) == (0, (), (other.path,))
    assert not list(tmp_path.rglob("*.error.txt"))
    other.release()
    assert bench(grid, tmp_path).done == 1
    assert bench(grid, tmp_path).before == 2
