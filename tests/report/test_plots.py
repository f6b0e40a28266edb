"""Figures: the geometry behind them, and that they show what they should."""

import dataclasses

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from tests.failing import Failing

import jedax
from jedax.repertoire.cells import make_cells
from jedax.report import figures, plots
from jedax.report.figures import write_figures


def area(polygon):
    x, y = polygon.T
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


@pytest.mark.parametrize("layout", ["cvt", "grid"])
def test_outlines_tile_the_box(layout):
    cells = make_cells(((-1.0, 0.0), (1.0, 5.0)), 49, layout)
    outlines = plots.cell_outlines(cells)
    assert sum(area(o) for o in outlines) == pytest.approx(10, rel=1e-6)
    rng = np.random.default_rng(0)
    for number, (outline, centroid) in enumerate(zip(outlines, cells.centroids, strict=True)):
        assert (outline >= [-1 - 1e-6, -1e-6]).all()
        assert (outline <= [1 + 1e-6, 5 + 1e-6]).all()
        # Points of a cell, drawn as mixtures of its corners, belong to it.
        points = rng.dirichlet(np.ones(len(outline)), 5) @ outline * 0.99 + 0.01 * centroid
        np.testing.assert_array_equal(cells.assign(points), np.full(5, number))


def test_outlines_of_one_descriptor():
    cells = make_cells(((0.0,), (2.0,)), 4, "grid")
    widths = [np.ptp(o[:, 0]) for o in plots.cell_outlines(cells)]
    np.testing.assert_allclose(widths, 0.5)


@pytest.fixture(scope="module")
def runs(plain):
    """A run of each kind of task, one of them by a method with a Gaussian process."""
    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=64, gp_max_steps=4)
    methods = {"maze-c": plain, "arm": config, "sphere": plain}
    return {name: jedax.run(method, name, evaluations=8 * 12) for name, method in methods.items()}


def test_best_path_starts_at_the_start_and_passes_the_descriptor(runs):
    run = runs["maze-c"]
    figure, ax = plt.subplots()
    plots.best(ax, run)
    path = next(line for line in ax.lines if line.get_label() == "path").get_xydata()
    np.testing.assert_allclose(path[0], [0.15, 0.15])
    assert np.linalg.norm(path - run.best().descriptor, axis=1).min() < 1e-5
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels == {"goal", "start", "path", "end"}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    plt.close(figure)


def test_best_arm_ends_at_its_descriptor(runs):
    figure, ax = plt.subplots()
    plots.best(ax, runs["arm"])
    links = ax.lines[0].get_xydata()
    np.testing.assert_allclose(links[-1], runs["arm"].best().descriptor, atol=1e-5)
    plt.close(figure)


def test_cells_show_their_values(runs):
    run = runs["sphere"]
    fitness = run.repertoire.fitness[0]
    figure, ax = plt.subplots()
    plots.cell_values(ax, run, np.where(np.isfinite(fitness), fitness, np.nan), "fitness")
    shown = [c for c in ax.collections if c.get_array() is not None]
    np.testing.assert_array_equal(shown[0].get_array(), fitness[np.isfinite(fitness)])
    plt.close(figure)


def test_every_task_gets_every_figure(runs, tmp_path):
    for name, run in runs.items():
        paths = write_figures(run, tmp_path / name)
        of_the_model = ["gp_mean", "gp_std"] if name == "arm" else []
        assert [p.stem for p in paths] == ["convergence", "best", "repertoire", "evaluations", *of_the_model]
        for path in paths:
            pixels = plt.imread(path)[..., :3]
            assert min(pixels.shape[:2]) > 400
            assert pixels.std() > 0.05


@pytest.mark.parametrize("lows", [(0.0,), (0.0, 0.0, 0.0)])
def test_other_numbers_of_descriptors(lows, tmp_path):
    class Plain(jedax.tasks.Task):
        name = "plain"
        num_params = 4
        descriptor_bounds = (lows, tuple(1.0 for _ in lows))
        descriptor_names = tuple(f"d{i}" for i in range(len(lows)))
        qd_offset = 0.0

        def init(self, key):
            return jax.random.uniform(key, (4,))

        def evaluate(self, key, genotype):
            return jedax.Evaluation(-jnp.sum(genotype**2), genotype[: len(lows)])

    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=27, gp_max_steps=4)
    run = jedax.run(config, Plain(), evaluations=8 * 12)
    assert len(write_figures(run, tmp_path)) == 6


def test_colours_of_evaluations_have_their_numbers(runs):
    def texts(low, high):
        figure, ax = plt.subplots()
        plots.cell_values(ax, runs["sphere"], np.linspace(low, high, 64), "evaluations", log=True)
        figure.canvas.draw()
        axis = figure.axes[1].yaxis
        plt.close(figure)
        assert not any(text.get_text() for text in axis.get_minorticklabels())
        return [text.get_text() for text in axis.get_ticklabels() if low <= text.get_position()[1] <= high]

    assert texts(1, 60) == ["1", "2", "5", "10", "20", "50"]
    assert texts(1, 3e6) == ["1", "10", "100", "1 k", "10 k", "100 k", "1 M"]
    assert texts(320, 350) == ["320", "325", "330", "335", "340", "345", "350"]
    assert texts(1920, 1920) == ["1920"]


def test_the_factor_of_colours_lies_beside_the_map(runs):
    figure, ax = plt.subplots()
    plots.cell_values(ax, runs["sphere"], np.linspace(-9e-11, -1e-11, 64), "fitness")
    figure.canvas.draw()
    factor, bar = figure.axes[1].yaxis.get_offset_text(), figure.axes[1].get_window_extent()
    assert factor.get_text() == "1e\N{MINUS SIGN}11"
    assert factor.get_window_extent().x0 >= bar.x0
    plt.close(figure)


def test_one_very_bad_cell_does_not_flatten_the_colours(runs):
    values = np.linspace(-100, 0, 64)
    values[0] = -1e6
    figure, ax = plt.subplots()
    plots.cell_values(ax, runs["sphere"], values, "fitness")
    cells = next(c for c in ax.collections if c.get_array() is not None)
    assert cells.get_clim() == (values[1], 0)
    bar = figure.axes[1]
    assert bar.get_ylabel() == "fitness (cut off below: down to -1e+06)"
    plots.cell_values(ax, runs["sphere"], values[1:].repeat(2)[:64], "fitness")
    assert figure.axes[2].get_ylabel() == "fitness"
    plt.close(figure)


def test_a_very_bad_start_does_not_flatten_a_curve(runs):
    rows = [dict(runs["sphere"].rows[0], evaluations=n, max_fitness=f) for n, f in enumerate([-1e6, -100, -50, -20])]
    figure, ax = plt.subplots()
    plots.convergence(ax, dataclasses.replace(runs["sphere"], rows=rows))
    low, high = ax.get_ylim()
    assert -120 < low < -100
    assert 0 < high < 10  # the goal, at -0.01, stays in sight
    plt.close(figure)


def test_coverage_begins_at_zero(runs):
    rows = [dict(runs["sphere"].rows[0], coverage=0.0)]
    figure = figures._convergence(dataclasses.replace(runs["sphere"], rows=rows))
    assert figure.axes[1].get_ylim()[0] == 0
    plt.close(figure)


def test_a_run_without_a_solution_shows_none(tmp_path):
    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=16, gp_max_steps=2)
    run = jedax.run(config, Failing(), evaluations=32)
    assert not run.has_solution
    figure, ax = plt.subplots()
    plots.best(ax, run)
    assert "best" not in {line.get_label() for line in ax.lines}
    assert [text.get_text() for text in ax.texts] == ["no solution:\nno evaluation succeeded"]
    assert len(figure.axes) == 1  # no scale of colours that mean nothing
    plt.close(figure)
    assert [path.stem for path in write_figures(run, tmp_path)] == ["convergence", "best", "repertoire", "evaluations"]
