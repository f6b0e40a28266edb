"""The history of a run: what it says happened, and that resuming, cutting and damage leave it right."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import seal

import jedax
from jedax.methods.registry import method_named
from jedax.repertoire.cells import make_cells
from jedax.store import history
from jedax.store.directory import RunDirectory

pytestmark = pytest.mark.usefixtures("without_figures")

BATCH = 8
CELLS = make_cells(((-1, -1), (1, 1)), 64)
TALL = np.array([1.0, 100.0])


class TallArm(jedax.tasks.PlanarArm):
    """An arm whose second descriptor has another unit."""

    descriptor_bounds = ((-1.0, -100.0), (1.0, 100.0))

    def evaluate(self, key, genotype):
        found = super().evaluate(key, genotype)
        return replace(found, descriptor=found.descriptor * TALL)


@pytest.fixture(scope="module")
def guided(small):
    return small.replace(targets="pareto", gp_max_steps=2)


@pytest.fixture(scope="module")
def path(tmp_path_factory, guided, arm):
    path = tmp_path_factory.mktemp("history") / "run"
    jedax.run(guided, arm, evaluations=BATCH * 33, seed=5, replicas=2, report_every=4, out=path)
    return path


@pytest.fixture(scope="module")
def found(path):
    return jedax.load(path).history


def rows_of(path):
    return [json.loads(line) for line in (path / history.FILE).read_text().splitlines()]


def test_loops_follow_each_other(found):
    # 32 generations after the initial batch, 5 to a loop; the last is cut short.
    assert [loop.evaluations for loop in found.loops] == [BATCH * (1 + 5 * n) for n in range(7)]
    assert [loop.until for loop in found.loops] == [*(loop.evaluations for loop in found.loops[1:]), BATCH * 33]
    assert all(loop.targets.shape == loop.starts.shape == loop.ends.shape == (2, 2, 2) for loop in found.loops)


def test_alpha_falls_with_progress(found):
    for loop in found.loops:
        np.testing.assert_allclose(loop.alpha, 0.8 * (1 - loop.evaluations / (BATCH * 33)), rtol=1e-4)


def test_targets_are_centroids_and_the_last_ones_the_runs(found, path):
    run = jedax.load(path)
    for loop in found.loops:
        distance = np.abs(run.cells.centroids[:, None, None] - loop.targets).max(axis=-1).min(axis=0)
        assert (distance <= 2e-4).all()  # a ten-thousandth of the box of width 2
    np.testing.assert_allclose(found.loops[-1].targets, run.targets, atol=1.01e-4)


def test_starts_are_the_stored_solutions_nearest_to_the_targets(guided, tmp_path):
    """In the unit box, as where the ES start: the descriptors of this arm have ranges of different widths."""
    arm, seen = TallArm(joints=4), []
    jedax.run(guided, arm, evaluations=BATCH * 12, seed=5, report_every=1, out=tmp_path / "run",
              callbacks=[lambda report: seen.append((report.evaluations, np.array(report.state.repertoire.descriptors),
                                                     np.array(report.state.repertoire.fitness)))])  # fmt: skip
    found = jedax.load(tmp_path / "run", task=arm).history
    known = {evaluations: rest for evaluations, *rest in seen}
    for loop in found.loops:
        descriptors, fitness = known[loop.evaluations]
        for es in range(2):
            stored = descriptors[0][np.isfinite(fitness[0])] / TALL
            distances = np.linalg.norm(stored - loop.targets[0, es] / TALL, axis=1)
            start = np.linalg.norm((loop.starts[0, es] - loop.targets[0, es]) / TALL)
            assert start == pytest.approx(distances.min(), abs=4e-4)
            nearest = np.linalg.norm((descriptors[0] - loop.starts[0, es]) / TALL, axis=1).argmin()
            assert loop.start_fitness[0, es] == pytest.approx(fitness[0][nearest], rel=1e-4)


def test_ends_are_the_best_scored_of_the_last_generation():
    """Against the score written out in NumPy."""
    config = jedax.JediConfig(population=3, pool=2, cells=4, alpha=0.25)
    task = jedax.tasks.PlanarArm(joints=3)
    algorithm = method_named(config).method(config, task)

    class State:
        targets = np.array([[0.5, 0.0], [-0.5, 0.0]], np.float32)
        alpha = np.float32(0.25)

    fitness = np.array([-3.0, -1.0, -2.0, np.nan, np.nan, np.nan], np.float32)
    descriptor = np.array([[0.5, 0], [0, 0.9], [0.4, 0], [0, 0], [0, 0], [0, 0]], np.float32)
    ends = algorithm.loop_results(State, jedax.Evaluation(fitness, descriptor))
    distance = np.linalg.norm(descriptor[:3] - [0.5, 0], axis=1)
    score = 0.25 * (1 - distance / distance.max()) + 0.75 * np.array([0, 1, 0.5])
    best = score.argmax()
    np.testing.assert_allclose(ends["descriptor"][0], descriptor[best])
    assert ends["fitness"][0] == fitness[best]
    assert np.isnan(ends["descriptor"][1]).all()
    assert np.isnan(ends["fitness"][1])


def test_ends_were_evaluated(found, arm, path):
    """No end is better than the best solution so far, and the arm reaches it."""
    best = np.asarray(jedax.load(path).repertoire.best_fitness)
    for loop in found.loops:
        assert (loop.end_fitness <= best[:, None] + 1e-4 * np.abs(best[:, None])).all()
        assert (np.linalg.norm(loop.ends, axis=-1) <= 1 + 1e-3).all()


def test_the_gp_is_kept(found, path):
    rows = jedax.load(path).metrics
    for loop in found.loops:
        assert set(loop.gp) == {"signal", "length_scale", "noise", "noise_floor"}
        assert loop.gp_mean.shape == loop.gp_std.shape == (2, 64)
        assert (loop.gp_std > 0).all()
    last = rows[rows.evaluations == BATCH * 33].sort_values("replica")
    np.testing.assert_allclose(found.loops[-1].gp["length_scale"], last.gp_length_scale, rtol=1e-4)


def test_snapshots_show_the_cells_filling(found, path):
    metrics = jedax.load(path).metrics
    assert [s.evaluations for s in found.snapshots] == [BATCH * (1 + 4 * n) for n in range(9)]
    for snapshot in found.snapshots:
        reported = metrics[metrics.evaluations == snapshot.evaluations].sort_values("replica")
        np.testing.assert_allclose(np.isfinite(snapshot.fitness).mean(axis=1), reported.coverage)
        np.testing.assert_allclose(np.nanmax(snapshot.fitness, axis=1), reported.max_fitness, rtol=1e-6)


def test_other_methods_keep_their_cells_only(tmp_path, arm):
    config = jedax.run("map-elites", arm, evaluations=640, out=tmp_path / "run").config
    found = jedax.load(tmp_path / "run").history
    assert config.method == "map-elites"
    assert found.loops == ()
    assert len(found.snapshots) == 10


def test_a_run_can_do_without(tmp_path, small, arm):
    jedax.run(small, arm, evaluations=BATCH * 3, history=False, out=tmp_path / "run")
    assert not (tmp_path / "run" / history.FILE).exists()


def test_long_runs_leave_out_loops(tmp_path, small, arm, monkeypatch):
    monkeypatch.setattr(history, "_MOST_LOOPS", 4)
    monkeypatch.setattr(history, "_MOST_SNAPSHOTS", 3)
    jedax.run(small, arm, evaluations=BATCH * 61, report_every=5, out=tmp_path / "run")
    found = jedax.load(tmp_path / "run").history
    assert found.every == 3
    assert [loop.evaluations for loop in found.loops] == [BATCH * (1 + 15 * n) for n in range(4)]
    assert [loop.until for loop in found.loops] == [BATCH * (6 + 15 * n) for n in range(4)]
    assert len(found.snapshots) == 3


@pytest.mark.parametrize("at", [BATCH * 4, BATCH * 6, BATCH * 33])
def test_cutting_leaves_what_a_checkpoint_knows(path, tmp_path, at):
    """In the middle of a loop, at its end, at the end of the run: a loop that begins there is begun anew."""
    copy = tmp_path / history.FILE
    shutil.copy(path / history.FILE, copy)
    history.cut(copy, at)
    expected = [
        row for row in rows_of(path)
        if row["at"] == "header" or row["evaluations"] < at or (row["evaluations"] == at and row["at"] != "start")
    ]  # fmt: skip
    assert rows_of(tmp_path) == expected
    assert sum(row["at"] == "start" for row in expected) == {4: 1, 6: 1, 33: 7}[at // BATCH]
    history.cut(copy, -1)
    assert not copy.exists()


@pytest.mark.parametrize("stop", [4, 8])
def test_resume_gives_the_same_lines(tmp_path, guided, arm, path, stop):
    other = tmp_path / "run"
    jedax.run(guided, arm, evaluations=BATCH * 33, seed=5, replicas=2, report_every=4, out=other,
              callbacks=[lambda report: report.evaluations >= BATCH * (1 + stop)])  # fmt: skip
    newest = RunDirectory(other).checkpoints()[0]
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["facts"]["status"] = "running"
    (newest / "manifest.json").write_text(json.dumps(manifest))
    with open(other / history.FILE, "a") as file:
        file.write('{"at":"start","evaluations":99999}\n{"at":"en')
    seal(other)
    jedax.resume(other)
    assert rows_of(other) == rows_of(path)


def test_a_torn_or_foreign_line_is_left_out(path, tmp_path, found):
    copy = tmp_path / history.FILE
    shutil.copy(path / history.FILE, copy)
    with open(copy, "a") as file:
        file.write('[1]\nnonsense\n{"at":"start"')
    again = history.read(copy, CELLS, 2)
    assert len(again.loops) == len(found.loops)


def test_a_newer_format_is_refused(path, tmp_path):
    copy = tmp_path / history.FILE
    copy.write_text((path / history.FILE).read_text().replace('"format": 1', '"format": 2', 1))
    with pytest.raises(jedax.JedaxError, match=r"history.jsonl: format: expected the number 1, got 2; read it with"):
        history.read(copy, CELLS, 2)


def test_a_damaged_line_is_said(path, tmp_path):
    copy = tmp_path / history.FILE
    copy.write_text((path / history.FILE).read_text().replace('"starts"', '"other"', 1))
    with pytest.raises(jedax.JedaxError, match=r"expected the history of a run, got KeyError\('starts'\)"):
        history.read(copy, CELLS, 2)


def test_no_history(tmp_path):
    assert history.read(tmp_path / history.FILE, CELLS, 2) is None
    history.cut(tmp_path / history.FILE, 5)
    assert not (tmp_path / history.FILE).exists()
