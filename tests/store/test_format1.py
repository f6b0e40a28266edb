"""Run directories of an earlier version, kept in `tests/data/format1`, are read, reported, compared and resumed."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import assert_same_bits

import jedax
from jedax.bench.reading import read
from jedax.store.directory import runs_below

OLD = Path(__file__).parents[1] / "data" / "format1"
# Evaluations, best fitness of each replica, coverage of each replica.
RUNS = {
    "jedi-x": (640, [-333.63208, -329.56567], None),
    "jedi-paper": (640, [-265.65292], [0.3125]),
    "bench/sphere/map-elites-cells=16/seeds-0-1": (640, [-85.61673, -72.17041], None),
    "bench/sphere/es-restart-cells=16/seeds-0-1": (577, [-91.55903, -90.16266], None),
    "killed": (10304, [-28.516129], [0.4375]),
}

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.fixture
def copy(tmp_path):
    return lambda name: shutil.copytree(OLD / name, tmp_path / Path(name).name)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("partial", [False, True])
def test_load(name, partial):
    evaluations, best, coverage = RUNS[name]
    run = jedax.load(OLD / name, partial=partial)
    assert run.evaluations == evaluations
    np.testing.assert_allclose(run.repertoire.best_fitness, best, rtol=1e-6)
    np.testing.assert_allclose([row["max_fitness"] for row in run.rows[-len(best) :]], best, rtol=1e-6)
    filled = np.isfinite(run.repertoire.fitness)
    assert filled.shape == (len(best), 16)
    assert coverage is None or filled.mean(axis=1).tolist() == coverage
    assert run.environment["jedax"] == "0.1.0"
    assert run.environment["command"].startswith("jedax ")
    if name == "killed":
        assert (run.status, run.summary, run.gp_mean) == ("running", {}, None)
        assert any("summary.json" in sentence for sentence in run.missing) == partial
    else:
        assert run.status == "finished"
        assert run.missing == ()


def test_history():
    for name, alpha in (("jedi-paper", None), ("killed", 0.8)):
        run = jedax.load(OLD / name)
        loops = run.history.loops
        assert len(loops) > 3
        assert all(loop.targets.shape == (1, 4, 2) for loop in loops)
        assert alpha is None or loops[0].alpha == pytest.approx(alpha, abs=0.01)
        assert run.targets.shape == (1, 4, 2)


def test_the_repertoire_of_a_checkpoint_is_that_of_the_end(copy):
    """A finished run without its final files is read from its checkpoint."""
    for name in ("jedi-x", "jedi-paper"):
        whole, path = jedax.load(OLD / name), copy(name)
        (path / "repertoire.safetensors").unlink()
        (path / "summary.json").unlink()
        cut = jedax.load(path)
        assert_same_bits(cut.repertoire, whole.repertoire)
        assert cut.cells == whole.cells
        np.testing.assert_array_equal(cut.targets, whole.targets)


@pytest.mark.parametrize("name", RUNS)
def test_report(name, tmp_path):
    pytest.importorskip("plotly", reason="needs the extra [report]")
    page = jedax.write_report(OLD / name, out=tmp_path / "page.html", trace_seconds=0)
    assert page.stat().st_size > 100_000


def test_compare(tmp_path):
    records = read([OLD / "bench"]).records
    assert [(record.label, record.seed) for record in records] == [
        (label, seed) for label in ("es-restart cells=16", "map-elites cells=16") for seed in (0, 1)
    ]
    final = [record.curve.max_fitness.iloc[-1] for record in records]
    assert final == pytest.approx([-91.55903, -90.16266, -85.61673, -72.17041])
    jedax.compare(OLD / "bench", out=tmp_path / "compare")
    assert "map-elites" in (tmp_path / "compare" / "table.md").read_text()
    assert len(runs_below(OLD)) == 5


def test_resuming_a_finished_run_changes_nothing(copy):
    path, whole = copy("jedi-paper"), jedax.load(OLD / "jedi-paper")
    run = jedax.resume(path)
    assert_same_bits(jedax.load(path).repertoire, whole.repertoire)
    assert run.rows == whole.rows
    assert (path / "history.jsonl").read_text() == (OLD / "jedi-paper" / "history.jsonl").read_text()


def test_runs_of_jedi_x_cannot_be_resumed(copy):
    """Its evolution strategies were others. The results stay as they are."""
    path, whole = copy("jedi-x"), jedax.load(OLD / "jedi-x")
    with pytest.raises(jedax.JedaxError, match=r"expected the state of this method, got other parts .* or version of"):
        jedax.resume(path)
    assert_same_bits(jedax.load(path).repertoire, whole.repertoire)
    assert jedax.load(path).rows == whole.rows


def test_resuming_a_killed_run(copy):
    path = copy("killed")
    before = jedax.load(path)
    run = jedax.resume(path)
    assert (run.status, run.evaluations) == ("finished", 64_000)
    assert (run.repertoire.fitness >= before.repertoire.fitness).all()
    assert run.rows[: len(before.rows)] == before.rows
    loops = run.history.loops
    assert [loop.evaluations for loop in loops][: len(before.history.loops)] == [
        loop.evaluations for loop in before.history.loops
    ]
    assert loops[-1].until == 64_000
    assert not (path / ".lock").exists()
