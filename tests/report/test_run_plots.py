"""Figures of what a search did."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import jedax
from jedax.report import plots


@pytest.fixture(scope="module")
def run(maze_run):
    return jedax.load(maze_run)


@pytest.fixture
def ax():
    with plots.paper_style():
        figure, ax = plt.subplots()
        yield ax
        plt.close(figure)


def test_layers_show_their_values(run, ax):
    filled = np.isfinite(run.repertoire.fitness[1])
    expected = {
        "fitness": run.repertoire.fitness[1][filled], "counts": run.repertoire.counts[1][filled],
        "improved": run.repertoire.improved_at[1][filled], "gp_mean": run.gp_mean[1], "gp_std": run.gp_std[1],
    }  # fmt: skip
    for name, values in expected.items():
        ax.clear()
        plots.layer(ax, run, name, replica=1)
        shown = [c for c in ax.collections if c.get_array() is not None]
        np.testing.assert_allclose(np.sort(shown[-1].get_array()), np.sort(values), rtol=1e-6)


def test_rank_one_is_dominated_by_nobody(run, ax):
    plots.layer(ax, run, "rank", replica=0)
    ranks = next(c for c in ax.collections if c.get_array() is not None).get_array()
    mean, std = run.gp_mean[0], run.gp_std[0]
    free = [not ((mean >= mean[c]) & (std >= std[c]) & ((mean > mean[c]) | (std > std[c]))).any() for c in range(64)]
    assert (ranks == 1).tolist() == free


def test_a_loop_is_drawn_where_it_was(run, ax):
    loop = run.history.loops[2]
    plots.replay(ax, run, 2, replica=1)
    marks = {line.get_label(): line.get_xydata()[0] for line in ax.lines if not line.get_label().startswith("_")}
    for name, places in (("ES target", loop.targets), ("ES start", loop.starts), ("ES end", loop.ends)):
        np.testing.assert_allclose(marks[name], places[1, 0])


def test_distances(run, ax):
    plots.distances(ax, run, replica=0)
    loops = run.history.loops
    expected = [np.linalg.norm(loop.ends[0] - loop.targets[0], axis=1).mean() for loop in loops]
    shown = next(line for line in ax.lines if line.get_label() == "its end")
    np.testing.assert_allclose(shown.get_ydata(), expected)
    np.testing.assert_allclose(shown.get_xdata(), [loop.evaluations for loop in loops])


def test_gp_parameters(run, ax):
    plots.gp_parameters(ax, run, replica=0)
    assert [line.get_label() for line in ax.lines] == ["signal", "length scale", "noise"]
    expected = [loop.gp["length_scale"][0] for loop in run.history.loops]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), expected)


def test_phases_fill_the_bar(run, ax):
    plots.phase_times(ax, run)
    assert sum(patch.get_width() for patch in ax.patches) == pytest.approx(run.summary["wall_seconds"], abs=0.02)


def test_files_for_a_paper(run, ax, tmp_path):
    plots.convergence(ax, run)
    pdf, png = plots.save(ax.figure, tmp_path / "figure")
    assert pdf.read_bytes().startswith(b"%PDF")
    pixels = plt.imread(png)
    assert pixels.shape[1] == pytest.approx(3.33 * 300, rel=0.12)


def test_a_figure_in_one_format(run, ax, tmp_path):
    plots.convergence(ax, run)
    assert plots.save(ax.figure, tmp_path / "figure.png") == [tmp_path / "figure.png"]
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_cells_of_an_optimizer_are_in_its_units(ax):
    found = []
    for minimise in (False, True):
        optimizer = jedax.Optimizer(
            bounds=([-1] * 3, [1] * 3), descriptor_bounds=([-1, -1], [1, 1]), minimise=minimise, method="map-elites",
            offspring=16, cells=32,
        )  # fmt: skip
        for _ in range(3):
            x = np.asarray(optimizer.ask())
            loss = (x**2).sum(axis=1)
            optimizer.tell(x, loss if minimise else -loss, x[:, :2], violations=x[:, 0] - 0.5)
        ax.figure.clear()
        plots.layer(axes := ax.figure.subplots(), optimizer)
        found.append(axes.collections[1].get_array())
        feasible = [elite for elite in optimizer.elites() if elite.violation == 0]
        assert len(found[-1]) == len(feasible) > 0
        assert sorted(found[-1]) == pytest.approx(sorted(elite.fitness for elite in feasible))
    np.testing.assert_allclose(found[0], -found[1])
    plots.layer(ax.figure.subplots(), optimizer, "counts")
    with pytest.raises(jedax.JedaxError, match="layer: expected one that the run has, got gp_mean; take fitness"):
        plots.layer(axes, optimizer, "gp_mean")


def test_what_cannot_be_drawn_is_said(run, ax, small, arm, tmp_path):
    with pytest.raises(jedax.JedaxError, match="loop: expected one of the 8 that were kept, got 8"):
        plots.replay(ax, run, 8)
    with pytest.raises(jedax.JedaxError, match="layer: unknown name 'fitnes'; did you mean 'fitness'"):
        plots.layer(ax, run, "fitnes")
    lone = jedax.run(small, arm, evaluations=8 * 3)
    with pytest.raises(jedax.JedaxError, match=r"run: expected one with a directory that holds history.jsonl"):
        plots.distances(ax, lone)
    with pytest.raises(jedax.JedaxError, match="run: expected one that has ended"):
        plots.phase_times(ax, replace(run, summary={}))
