"""Searches whose evaluations run in worker processes: the same search, whatever happens to the workers."""

import hashlib
import json
import os
import re
import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits, assert_same_run, seal
from tests.search.workers.work import WAYS_TO_FAIL

import jedax
from jedax.report.replay import in_cell
from jedax.report.run_data import run_data
from jedax.search.compiled import Programs
from jedax.store import files
from jedax.store.directory import RunDirectory
from jedax.tasks import Task, make

WORK = "tests.search.workers.work"


class Twin(Task):
    """`work.sphere` in JAX."""

    name = "twin"
    num_params = 3
    descriptor_bounds = ((-1.0, -1.0), (1.0, 1.0))

    def init(self, key):
        return jax.random.normal(key, (3,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(-jnp.abs(genotype).max(), jnp.clip(genotype[:2], -1, 1))


TASK = f"{WORK}:naps"
SETTINGS = {"evaluations": 8 * 13, "seed": 3, "replicas": 2, "report_every": 5}


@pytest.fixture
def nap(tmp_path, monkeypatch):
    """While this file is there, evaluations go on and on."""
    monkeypatch.setenv("JEDAX_TEST_NAP", str(tmp_path / "nap"))
    return tmp_path / "nap"


@pytest.fixture(scope="module")
def method(small):
    """A method whose loops begin with what cannot be done twice: the GP starts where it ended."""
    return small.replace(targets="pareto")


@pytest.fixture(scope="module")
def whole(method):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JEDAX_TEST_NAP", "/nowhere/at/all")
        return jedax.run(method, TASK, workers=2, **SETTINGS)


def test_the_same_search_as_within_jax(nap, monkeypatch):
    """In float64, as searches outside JAX are."""
    monkeypatch.setattr(Programs, "in_float64", True)
    settings = {"evaluations": 8 * 13, "seed": 3, "replicas": 2, "report_every": 3, "offspring": 8, "cells": 64}
    twin = jedax.run("map-elites", Twin(), **settings)
    run = jedax.run("map-elites", TASK, workers=2, **settings)
    assert [row["evaluations"] for row in run.rows] == [row["evaluations"] for row in twin.rows]
    np.testing.assert_allclose(run.repertoire.genotypes, twin.repertoire.genotypes, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(run.repertoire.counts, twin.repertoire.counts)
    assert run.summary["evaluations"] == 8 * 13
    assert run.summary["num_failed"] == [0, 0]


def test_descriptors_that_float32_cannot_tell_apart():
    """The search computes in float64, and so does whatever looks at its results."""
    run = jedax.run("map-elites", "tests.search.workers.work:distant", evaluations=160, cells=16, workers=1)
    assert run.summary["coverage"] > 0.5
    (again,) = jedax.reevaluate(run).replicas
    assert again.num_kept == again.num_elites
    best = run.elites()[0]
    assert in_cell(run, 0, tuple(best.descriptor)).fitness == best.fitness
    shown = run_data(run)["replicas"][0]["best"]["cell"]
    assert run.repertoire.fitness[0, shown] == pytest.approx(best.fitness)


def test_the_number_of_workers_changes_nothing(method, whole, nap):
    assert_same_run(jedax.run(method, TASK, workers=1, **SETTINGS), whole)


def test_resumed_runs_equal_whole_ones(tmp_path, method, whole, nap):
    path = tmp_path / "run"
    jedax.run(method, TASK, out=path, checkpoint_seconds=0, max_seconds=1e-3, **SETTINGS)
    evaluations = []
    while jedax.load(path).summary["status"] == "time":
        evaluations.append(jedax.resume(path, draw=None).summary["evaluations"])
    assert evaluations == sorted(set(evaluations))
    assert len(evaluations) > 3
    assert_same_run(jedax.load(path), whole)


def test_ctrl_c_gives_up_a_generation_and_nothing_else(tmp_path, method, whole, nap):
    """The first generation of a loop, after targets were chosen, takes too long; it is as if it had not begun."""
    path = tmp_path / "run"

    def stop_later(report):
        if report.evaluations == 8 * 6:
            nap.touch()
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(jedax.Interrupted, match="Stopped after 48 evaluations; all of them are saved"):
        jedax.run(method, TASK, workers=2, out=path, callbacks=[stop_later], **SETTINGS)
    assert jedax.load(path).summary["status"] == "interrupted"
    assert [row["evaluations"] for row in RunDirectory(path).read_metrics()] == [8, 8, 48, 48]
    nap.unlink()
    assert_same_run(jedax.resume(path, draw=None), whole)


def test_ctrl_c_during_the_first_generation(tmp_path, method, whole, nap):
    """The evaluations, which would go on and on, are given up; the run can be begun again."""
    path = tmp_path / "run"

    def stop_later():
        while not (path / "environment.json").exists():
            time.sleep(0.01)
        nap.touch()
        time.sleep(3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=stop_later, daemon=True).start()
    with pytest.raises(jedax.Interrupted, match=rf"before the first generation .*; .* jedax run --resume {path}$"):
        jedax.run(method, TASK, workers=2, out=path, **SETTINGS)
    nap.unlink()
    assert_same_run(jedax.resume(path, draw=None), whole)


def test_workers_do_not_import_jax(here):
    (here / "spy.py").write_text(
        "import sys\n\nimport numpy as np\n\n\ndef spy(genotypes):\n"
        "    heavy = {'jax', 'scipy', 'matplotlib', 'pandas', 'pydantic'} & set(sys.modules)\n"
        "    return np.full(len(genotypes), len(heavy)), genotypes[:, :2]\n\n\n"
        "spy.num_params, spy.descriptor_lows, spy.descriptor_highs = 2, (-1, -1), (1, 1)\n"
    )
    run = jedax.run("map-elites", "spy:spy", evaluations=8, offspring=8, cells=16, workers=1)
    assert run.best().fitness == 0


def test_failures_are_counted_logged_and_never_stored(tmp_path):
    bounds = {"descriptor_lows": (-1, -1), "descriptor_highs": (1, 1)}
    task = make(f"{WORK}:partly", num_params=3, initial_std=2, chunk=16, **bounds)
    run = jedax.run("map-elites", task, evaluations=32, offspring=8, cells=64, workers=2, out=tmp_path / "run")
    filled = run.repertoire.fitness[0] > -np.inf
    assert (run.repertoire.genotypes[0][filled][:, :2] <= 0).any(axis=1).all()
    assert 0 < run.summary["num_failed"] < 32
    assert run.repertoire.counts.sum() == 32 - run.summary["num_failed"]
    log = (tmp_path / "run" / "log.txt").read_text()
    reason = r"the evaluation raised ArithmeticError: out of reach \(work\.py, line \d+\)"
    assert re.search(f"8 evaluations will be run again: {reason}\\.", log)
    assert re.search(f"failed 3 times: {reason}\\.", log)


def test_every_way_to_fail_is_survived_and_counted(tmp_path):
    given = np.zeros((7, 3), np.float32)
    given[:6, 0] = 100 + np.arange(6)
    run = jedax.run(
        "map-elites", f"{WORK}:fails_in_every_way", evaluations=32, offspring=8, cells=16, workers=2, report_every=1,
        evaluation_timeout=2.0, start_genotypes=given, out=tmp_path / "run",
    )  # fmt: skip
    assert run.summary["failures"] == dict.fromkeys(WAYS_TO_FAIL, 1)
    assert run.summary["num_failed"] == 6
    assert run.summary["evaluations"] == 32
    assert run.repertoire.counts.sum() == 26
    assert [row[f"failed_{kind}"] for row in jedax.load(tmp_path / "run").rows for kind in WAYS_TO_FAIL] == [1] * 24
    log = (tmp_path / "run" / "log.txt").read_text()
    for said in ("raised ArithmeticError: out of reach", "got (1, 1)", "took more than 2 s", "was killed by SIGKILL"):
        assert any(said in line and "failed 3 times" in line for line in log.splitlines())


def test_bench_knows_its_runs_by_measured_bounds_too(tmp_path):
    from jedax.bench.bench import bench
    from jedax.bench.grids import Grid, parse_entry

    grid = Grid("", (f"{WORK}:measured",), (parse_entry("map-elites,offspring=16,cells=16"),), 2, evaluations=33)
    outcome = bench(grid, tmp_path)
    assert (outcome.done, outcome.failed) == (1, ())
    again = bench(grid, tmp_path)  # bounds measured anew are the same, or the runs would not belong together
    assert (again.done, again.before) == (0, 2)


def test_bench_keeps_the_bounds_that_it_measured_first(tmp_path):
    """Those of a noisy task are others each time; all methods of a bench must have the same."""
    from jedax.bench.bench import bench
    from jedax.bench.grids import Grid, parse_entry

    def grid(*methods):
        return Grid("", (f"{WORK}:noisily",), tuple(map(parse_entry, methods)), 1, evaluations=33)

    first = "map-elites,offspring=16,cells=16"
    assert bench(grid(first), tmp_path).done == 1
    outcome = bench(grid(first, "map-elites,offspring=8,cells=16"), tmp_path)
    assert (outcome.done, outcome.before, outcome.failed) == (1, 1, ())
    assert len(jedax.compare(tmp_path, formats=()).tables[0].entries) == 2


def test_descriptors_on_the_borders_of_cells_are_resumed(tmp_path):
    """In float32 some of them are in other cells than in float64, as which the search computes."""
    settings = {"evaluations": 400, "offspring": 50, "dims": (10, 10), "workers": 1, "checkpoint_seconds": 0}

    def stop(report):
        raise KeyError("killed")

    with pytest.raises(KeyError, match="killed"):
        jedax.run("map-elites", f"{WORK}:tenths", out=tmp_path / "run", callbacks=[stop], **settings)
    resumed = jedax.resume(tmp_path / "run", draw=None)
    assert_same_bits(resumed.repertoire, jedax.run("map-elites", f"{WORK}:tenths", **settings).repertoire)


def test_a_run_of_an_earlier_version_in_float32_is_refused(tmp_path):
    settings = {"evaluations": 80, "offspring": 8, "cells": 16, "workers": 1, "checkpoint_seconds": 0, "draw": None}
    jedax.run("map-elites", f"{WORK}:sphere", out=tmp_path / "run", **settings)
    for folder in RunDirectory(tmp_path / "run").checkpoints():
        arrays, facts = files.read_tree(folder), files.read_facts(folder)
        old = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in arrays.items()}
        (folder / "state.safetensors").unlink()
        files.write_tensors(folder / "state.safetensors", old)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["sha256"] = hashlib.sha256((folder / "state.safetensors").read_bytes()).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))
        assert facts["evaluations"] > 0
    seal(tmp_path / "run")
    message = r"expected \.repertoire\.\w+ as float64\(.*\), got float32.* from another run or version"
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.resume(tmp_path / "run", draw=None)
    assert jedax.load(tmp_path / "run").evaluations == 80  # it can be read


def test_a_function_with_named_parameters(tmp_path):
    """It gets dicts; the run says the best by name, also where its code is not imported."""
    name, settings = "tests.search.workers.work:spring", {"population": 4, "pool": 1, "scouts": 2, "cells": 16}
    run = jedax.run("jedi-x", name, evaluations=400, workers=1, out=tmp_path / "run", **settings)
    best = run.best()
    assert set(best.parameters) == {"gain", "teeth", "metal"}
    assert (best.parameters["teeth"], best.parameters["metal"]) == (1, "steel")
    assert best.fitness == -abs(best.parameters["gain"] - 7) - 1
    assert 6 < best.parameters["gain"] < 8
    genotypes = run.repertoire.genotypes
    assert genotypes.dtype == np.float64
    assert ((genotypes >= 0) & (genotypes <= 1)).all()
    assert jedax.load(tmp_path / "run").best().parameters == best.parameters
    space = {"gain": [1, 10], "teeth": {"low": 1, "high": 3, "integer": True}, "metal": ["steel", "brass"]}
    assert make(name, space=space).space.dict_of(np.zeros(4)) == {"gain": 1.0, "teeth": 1, "metal": "steel"}
    with pytest.raises(jedax.JedaxError, match="gain"):
        make(name, space={"gain": [10, 1]})
