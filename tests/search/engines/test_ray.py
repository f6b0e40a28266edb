"""Benches and evaluations on Ray: the same results as on this machine, in the same directories."""

import json
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import assert_same_bits, seal
from tests.search.engines.conftest import assert_same_bench, layout
from tests.search.workers.work import sphere

import jedax
from jedax.bench.bench import bench
from jedax.bench.grids import Entry, Grid
from jedax.search import engines
from jedax.search.engines import Job
from jedax.search.engines.ray import RayEngine, _connect, _environment
from jedax.search.workers.pool import Stopped
from jedax.tasks.work import Work

TINY = {"cells": 16, "offspring": 8}
JAX = Grid("", ("arm",), (Entry("map-elites", "map-elites", None, TINY),), seeds=2, evaluations=80)


@pytest.fixture(scope="module")
def engine(ray_settings):
    with RayEngine(settings=ray_settings, may_share=False) as made:
        yield made


def test_a_bench_on_ray_is_that_of_one_machine(engine, tmp_path):
    """Its files come back from the node; a job that fails is recorded and does not stop the others."""
    broken = Entry("broken", "map-elites", None, {"offspring": 100})  # more than the budget has room for
    grid = Grid("", ("arm",), (*JAX.entries, broken), seeds=2, evaluations=80)
    outcome = bench(grid, tmp_path / "ray", engine=engine)
    expected = bench(grid, tmp_path / "local")
    assert (outcome.done, outcome.before) == (expected.done, expected.before) == (1, 0)
    ((path, message),) = outcome.failed
    assert path == tmp_path / "ray/arm/broken/seeds-0-1"
    assert message == expected.failed[0][1]
    assert message.startswith("evaluations: expected at least one generation")
    assert_same_bench(tmp_path / "ray", tmp_path / "local")
    facts = json.loads((tmp_path / "ray/arm/map-elites/seeds-0-1/environment.json").read_text())
    assert (facts["engine"], facts["node"]) == ("ray", platform.node())
    assert engine.describe().items() <= facts.items()
    assert {"node_id", "node_address"} <= facts.keys()
    assert facts["node_address"] == engine.ray.nodes()[0]["NodeManagerAddress"]
    assert "default_worker" not in facts["command"]
    again = bench(grid, tmp_path / "ray", engine=engine)
    assert (again.done, again.before) == (0, 2)


@pytest.mark.nightly
def test_searches_outside_jax_on_ray(engine, tmp_path):
    """Two searches with workers at a time, on fewer cores than they ask for."""
    entries = tuple(Entry(f"map-elites {n}", "map-elites", None, TINY | {"cells": n}) for n in (16, 64))
    grid = Grid("", ("tests.search.workers.work:measured",), entries, seeds=2, evaluations=80)
    assert bench(grid, tmp_path / "ray", engine=engine).failed == ()
    bench(grid, tmp_path / "local")
    assert_same_bench(tmp_path / "ray", tmp_path / "local")


@pytest.mark.nightly
def test_a_shared_directory_is_written_to_directly(ray_settings, engine, tmp_path):
    shared = RayEngine()
    assert shared.ray is engine.ray
    assert bench(JAX, tmp_path / "ray", engine=shared).failed == ()
    shared.close()
    assert engine.ray.is_initialized()  # the other engine has started it
    bench(JAX, tmp_path / "local")
    assert_same_bench(tmp_path / "ray", tmp_path / "local")
    assert [name for name in layout(tmp_path / "ray") if "/." in name] == []


@pytest.mark.nightly
def test_files_of_an_unfinished_run_go_to_the_node(engine, tmp_path):
    method = Entry("map-elites", "map-elites", None, TINY)
    config = jedax.run("map-elites", "arm", evaluations=80, replicas=2, out=tmp_path / "r", max_seconds=1e-9,
                       **TINY).config  # fmt: skip
    path = tmp_path / "ray/arm/map-elites/seeds-0-1"
    jedax.search.api.start(config.replace(label=method.label, run=config.run.replace(max_seconds=None)), out=path,
                         callbacks=[lambda report: report.evaluations >= 24])  # fmt: skip
    summary = json.loads((path / "summary.json").read_text())
    (path / "summary.json").write_text(json.dumps(summary | {"status": "interrupted"}))
    for manifest in path.glob("checkpoint/*/manifest.json"):
        manifest.write_text(manifest.read_text().replace('"callback"', '"interrupted"'))
    seal(path)
    assert bench(JAX, tmp_path / "ray", engine=engine).failed == ()
    bench(JAX, tmp_path / "local")
    assert "Resumed." in (path / "log.txt").read_text()
    assert_same_bench(tmp_path / "ray", tmp_path / "local")


@pytest.mark.nightly
class TestWorkers:
    """Actors behave as processes do."""

    GENOTYPES = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)

    def pool(self, engine, chunk=3, seconds=60.0, factory="make", **settings):
        notes = []
        work = Work(f"tests.search.workers.work:{factory}", settings, chunk)
        return engine.open_pool(work, 2, seconds, note=notes.append), notes

    def test_order(self, engine):
        pool, notes = self.pool(engine)
        for genotypes in (self.GENOTYPES, self.GENOTYPES[::-1]):
            assert_same_bits(pool.evaluate(genotypes), [np.float64(values) for values in sphere(genotypes)])
        pool.close()
        assert notes == []

    @pytest.mark.parametrize(
        ("how", "reason"),
        [
            ("raise", "the evaluation raised ArithmeticError: out of reach"),
            ("kill", "a worker or its node was lost (ActorDiedError)"),
            ("hang", "a worker took more than 3 s"),
        ],
    )
    def test_a_failure_is_retried(self, engine, tmp_path, how, reason):
        pool, notes = self.pool(engine, marker=str(tmp_path / "marker"), how=how, seconds=3.0, bad=-100.0)
        genotypes = self.GENOTYPES[:3]
        assert_same_bits(pool.evaluate(genotypes), [np.float64(values) for values in sphere(genotypes)])
        pool.close()
        (note,) = notes
        place = r" \(work\.py, line \d+\)" if "raised" in reason else ""
        assert re.fullmatch(f"3 evaluations will be run again: {re.escape(reason)}{place}\\.", note)

    def test_mistakes(self, engine):
        pool, _ = self.pool(engine, factory="nothing_like_it")
        with pytest.raises(
            jedax.JedaxError, match=r"expected 'nothing_like_it' in tests.search.workers.work, got none"
        ):
            pool.evaluate(self.GENOTYPES)

    def test_should_stop(self, engine):
        pool, _ = self.pool(engine, how="hang", bad=-100.0)
        pool.should_stop = lambda: bool(pool._workers and pool._workers[0].chunks)
        with pytest.raises(Stopped):
            pool.evaluate(self.GENOTYPES)
        assert pool._workers == []

    def test_a_run(self, engine):
        settings = {"evaluations": 80, "replicas": 2, "offspring": 8, "cells": 16}
        run = jedax.run("map-elites", "tests.search.workers.work:sphere", engine=engine, **settings)
        assert_same_bits(
            run.repertoire, jedax.run("map-elites", "tests.search.workers.work:sphere", **settings).repertoire
        )


def cluster_of(*nodes, **settings):
    """Return an engine for a cluster that has these nodes."""
    engine = RayEngine("head:6379", **settings)
    engine.nodes = lambda: list(nodes)
    return engine


BIG = {"CPU": 32.0, "GPU": 4.0, "memory": 64e9}
SMALL = {"CPU": 4.0, "memory": 16e9}
IN_JAX = Job("", Path("x"), "", {})
BY_WORKERS = Job("", Path("x"), "", {}, uses_workers=True)


@pytest.mark.parametrize(
    ("nodes", "settings", "job", "cores", "gpus"),
    [
        ([SMALL], {}, IN_JAX, 1, 0),
        ([SMALL, BIG], {}, IN_JAX, 1, 1),
        ([SMALL, BIG], {"gpus_per_trial": 0.0, "cpus_per_trial": 2.0}, IN_JAX, 2, 0),
        ([BIG], {"gpus_per_trial": 0.25, "cpus_per_trial": 0.5}, IN_JAX, 0.5, 0.25),
        ([BIG], {"cpus_per_trial": 4.0}, BY_WORKERS, 0, 0),
        ([BIG], {"gpus_per_trial": 0.5}, BY_WORKERS, 0, 0.5),
    ],
)
def test_resources_of_a_job(nodes, settings, job, cores, gpus):
    assert cluster_of(*nodes, **settings).resources(job) == {"num_cpus": cores, "num_gpus": gpus}


def test_memory_of_a_job_is_that_of_the_fullest_node():
    assert cluster_of(BIG, SMALL).memory() == 2e9
    assert cluster_of(BIG, SMALL, cpus_per_trial=4.0).memory() == 8e9
    assert cluster_of(BIG, cpus_per_trial=1.0, gpus_per_trial=1.0).memory() == 16e9
    assert cluster_of(BIG, SMALL, cpus_per_trial=0.0).memory() == 16e9
    assert cluster_of({"CPU": 4.0}).memory() is None
    assert cluster_of(BIG, SMALL).num_cores() == 36


def test_environment_of_a_job_limits_its_memory_on_a_gpu():
    assert _environment(0.0) == {"JAX_PLATFORMS": "cpu"}
    assert float(_environment(0.25)["XLA_PYTHON_CLIENT_MEM_FRACTION"]) * 4 <= 0.76
    assert _environment(1.0) == _environment(2.0) == {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.750"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"address": "ray://head:10001"}, r"address: expected host:port.*got ray://head:10001; give the command on"),
        ({"cpus_per_trial": -1.0}, r"cpus-per-trial: expected 0, a fraction of one, or a whole number, got -1"),
        ({"gpus_per_trial": 1.5}, r"gpus-per-trial: .*got 1.5"),
        ({"gpus_per_trial": float("nan")}, r"gpus-per-trial: .*got nan"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(jedax.JedaxError, match=message):
        engines.make("ray", **settings)


def test_what_no_node_has_is_refused(engine, tmp_path):
    assert engine.ray.is_initialized()
    with pytest.raises(jedax.JedaxError, match=r"gpus-per-trial: expected no more than a node has, got 1 CPU, 64 GPU"):
        bench(JAX, tmp_path / "out", engine=RayEngine(gpus_per_trial=64.0))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", [None, "there:6379"])
def test_usage_reports_are_off_and_a_cluster_of_our_own_has_a_token(monkeypatch, tmp_path, address):
    """What Ray finds in the environment when it starts."""
    (tmp_path / "ray.py").write_text(
        "import os\nseen = {}\ndef is_initialized(): return False\n"
        "def init(**settings): seen.update(os.environ, settings=settings)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    names = ("RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    ray, is_ours = _connect(address, {})
    assert is_ours
    usage, mode, token = (ray.seen.get(name) for name in names)
    assert usage == "0"
    assert (mode, token is None) == (("token", False) if address is None else (None, True))
    assert address or len(bytes.fromhex(token)) == 32
    assert ray.seen["settings"]["address"] == (address or "local")
