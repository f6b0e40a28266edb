"""Figures of a comparison: what is drawn is what was compared."""

import math

import numpy as np
import pytest
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from tests.bench.synthetic import BASELINE, write_run

from jedax import JedaxError
from jedax.bench.comparison import compare
from jedax.errors import NotImportableError
from jedax.report import cell_maps, comparisons
from jedax.report.plots import COLOURS
from jedax.report.styles import METHODS, ablations, styles

GOAL = -250


@pytest.fixture
def bench(tmp_path):
    curves = [[-300.0, -200, -120], [-290, -190, -130], [-295, -290, -285]]
    coverage = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.1, 0.1, 0.9]]
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((3, 16)) < 0.5, -np.inf, rng.uniform(-300, -100, (3, 16))), rng.integers(0, 99, (3, 16))
    write_run(tmp_path / "a", curves, reports=[10, 20, 30], budget=40, coverage=coverage, cells=cells)
    write_run(tmp_path / "b", [[-310.0, -305]] * 2, reports=[15, 40], label="$x$_b", method=BASELINE)
    write_run(tmp_path / "c", [-1.0], task="custom:t", label="c", method=BASELINE, cells=None)
    return compare(tmp_path)


@pytest.fixture
def ax():
    return Figure().subplots()


def lines_of(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines}


def test_curves_are_medians_over_seeds(bench, ax):
    comparisons.curves(ax, bench, bench.tables[0], styles(bench.labels))
    lines = lines_of(ax)
    np.testing.assert_array_equal(lines["jedi"], [[10, -295], [20, -200], [30, -130], [40, -130]])
    np.testing.assert_array_equal(lines[r"\$x\$_b"], [[15, -310], [40, -305]])
    assert [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"] == [GOAL]
    assert len(ax.collections) == 2  # a band for each method that has results
    corners = ax.collections[0].get_paths()[0].vertices
    assert (corners[:, 1].min(), corners[:, 1].max()) == (-297.5, -125)
    assert (ax.get_xlim(), ax.get_title(), ax.get_xlabel()) == ((0, 40), "maze-a", "evaluations")


def test_a_very_bad_start_does_not_flatten_the_curves(tmp_path, ax):
    write_run(tmp_path / "a", [[-1e7, -300.0, -270, -255]])
    comparisons.curves(ax, compare(tmp_path), compare(tmp_path).tables[0], styles(["jedi"]))
    assert ax.get_ylim() == (-307.5, GOAL + 2.5)
    assert [text.get_text() for text in ax.texts] == ["cut off below: down to -1e+07"]
    assert all(line.get_clip_on() for line in ax.lines)  # else the picture would be a mile high


def test_bands_of_the_paper_and_no_bands(bench, ax):
    comparisons.curves(ax, bench, bench.tables[0], styles(["jedi"]), band="std")
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx(-130 + np.std([-120, -130, -285], ddof=1))
    other = Figure().subplots()
    comparisons.curves(other, bench, bench.tables[0], styles(["jedi"]), band=None)
    assert len(other.collections) == 0
    with pytest.raises(JedaxError, match="band: unknown name"):
        comparisons.curves(other, bench, bench.tables[0], styles(["jedi"]), band="iqr")


def test_coverage_has_no_goal_line(bench, ax):
    comparisons.curves(ax, bench, bench.tables[0], styles(bench.labels), "coverage")
    np.testing.assert_array_equal(lines_of(ax)["jedi"], [[10, 0.1], [20, 0.2], [30, 0.5], [40, 0.5]])
    assert not [line for line in ax.lines if line.get_linestyle() == ":"]
    assert ax.yaxis.get_major_formatter()(0.25, 0) == "25%"


def test_final_fitness_shows_each_seed_and_the_median(bench, ax):
    comparisons.final_fitness(ax, bench.tables[0], styles(bench.labels))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["jedi", r"\$x\$_b", "c"]
    points = [c.get_offsets()[:, 0] for c in ax.collections if len(c.get_offsets()) > 1]
    np.testing.assert_array_equal(points[0], [-120, -130, -285])
    np.testing.assert_array_equal(points[1], [-305, -305])
    medians = [tuple(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "-"]
    assert medians == [(-130, -130), (-305, -305)]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"] == [GOAL]
    assert not [c for c in ax.collections if len(c.get_offsets()) == 1]  # no violin of three seeds


def test_seeds_without_a_solution_count(tmp_path, ax):
    """For the median, in both figures; their number is written."""
    write_run(tmp_path / "a", [[-math.inf, -300.0], [-math.inf, -math.inf], [-280.0, -260.0]])
    found = compare(tmp_path)
    comparisons.final_fitness(ax, found.tables[0], styles(["jedi"]))
    medians = [tuple(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "-"]
    assert medians == [(-300, -300)]
    assert [text.get_text() for text in ax.texts] == ["1 of 3 seeds: no solution"]
    ax.clear()
    comparisons.curves(ax, found, found.tables[0], styles(["jedi"]))
    assert lines_of(ax)["jedi"][-1].tolist() == [10_000, -300]


def test_violins_of_ten_seeds_bridge_no_gap(tmp_path, ax):
    low, high = [-300.0 + n for n in range(6)], [-120.0 + n for n in range(4)]
    write_run(tmp_path / "a", [[value] for value in (*low, *high)])
    write_run(tmp_path / "b", [[-200.0]] * 10, label="equal", method=BASELINE)
    found = compare(tmp_path)
    comparisons.final_fitness(ax, found.tables[0], styles(found.labels))
    violins = [c.get_paths()[0].vertices for c in ax.collections if len(c.get_offsets()) == 1]
    assert [(v[:, 0].min(), v[:, 0].max()) for v in violins] == [(-300, -295), (-120, -117)]  # equal values: none
    assert max(np.abs(v[:, 1]).max() for v in violins) == pytest.approx(0.4)


def test_reached_steps_up_with_each_seed(bench, ax):
    comparisons.reached(ax, bench.tables[0], styles(bench.labels), GOAL)
    np.testing.assert_allclose(lines_of(ax)["jedi"], [[0, 0], [20, 2 / 3], [40, 2 / 3]])
    np.testing.assert_array_equal(lines_of(ax)[r"\$x\$_b"], [[0, 0], [40, 0]])
    assert ax.get_title() == "maze-a: fitness -250 (goal)"
    assert not ax.texts
    other = Figure().subplots()
    comparisons.reached(other, bench.tables[0], styles(["$x$_b"]), GOAL)
    assert [text.get_text() for text in other.texts] == ["reached by no seed"]


def test_shares_have_a_logarithmic_axis_where_most_arrive_early(tmp_path, ax):
    write_run(tmp_path / "a", [[-300.0, -130, -120]] * 2, reports=[10, 20, 1000], budget=1000)
    found = compare(tmp_path)
    comparisons.reached(ax, found.tables[0], styles(found.labels), GOAL)
    assert ax.get_xscale() == "log"
    assert all(line.get_clip_on() for line in ax.lines)


def test_twenty_methods_look_different_and_the_same_every_time():
    labels = [f"method {n}" for n in range(20)]
    style = styles(labels)
    assert len({(line["color"], str(line["linestyle"])) for line in style.values()}) == 20
    assert styles(labels[:3])["method 2"] == style["method 2"]


def test_methods_have_their_own_colour_and_marker():
    assert len({marker for _, marker in METHODS.values()}) == len({colour for colour, _ in METHODS.values()}) == 11
    style = styles(["mine", "jedi tuned", "es", "jedi decay"])
    assert styles(["es", "jedi decay"])["es"] == style["es"]
    assert style["jedi tuned"]["color"] == style["jedi decay"]["color"]
    assert style["jedi tuned"]["linestyle"] != style["jedi decay"]["linestyle"]


def test_no_panel_has_more_than_eight_lines(tmp_path):
    write_run(tmp_path / "ours", [[-300.0, -200]] * 2)
    for n in range(10):
        write_run(tmp_path / str(n), [[-310.0, -305]] * 2, label=f"method {n}", method=BASELINE)
    found = compare(tmp_path)
    groups = comparisons.small_groups(found)
    assert [len(group) for group in groups] == [1, 6, 6]
    assert [group[0] for group in groups] == ["jedi"] * 3
    assert {label for group in groups for label in group} == set(found.labels)


def test_each_group_of_methods_begins_a_row(tmp_path):
    for task in ("maze-a", "maze-b", "maze-c", "sphere", "arm"):
        write_run(tmp_path / task, [-300.0], task=task)
        for n in range(8):
            write_run(tmp_path / f"{task}{n}", [-310.0], task=task, label=f"method {n}", method=BASELINE)
    found = compare(tmp_path)
    assert len(comparisons.small_groups(found)) == 3
    names = [table.task for table in found.tables]
    figure = dict(comparisons._figures(found, "quartiles", []))["convergence"]
    rows = {}
    for ax in figure.axes:
        rows.setdefault(ax.get_subplotspec().rowspan.start, []).append(ax)
    assert [[ax.get_title() for ax in row] for row in rows.values()] == [names[:3], names[3:]] * 3
    assert [[bool(ax.get_ylabel()) for ax in row] for row in rows.values()] == [[True, False, False], [True, False]] * 3
    below = [[bool(ax.get_xlabel()) for ax in row] for row in rows.values()]
    assert below == [[False, False, True], [False, False]] * 2 + [[False, False, True], [True, True]]


def test_long_names_leave_room_for_the_points(tmp_path):
    def width(label):
        folder = tmp_path / str(len(label))
        for task in ("maze-a", "maze-b", "maze-c", "sphere"):
            write_run(folder / task, [-300.0], task=task, label=label)
        figure = dict(comparisons._figures(compare(folder), "quartiles", []))["final-fitness"]
        figure.draw_without_rendering()
        return figure.axes[0].get_window_extent().width / figure.dpi

    assert width("a name of sixty-four letters, which takes five inches at the axis") > width("jedi") - 0.2


def test_evaluations_are_logarithmic_where_all_happens_early(tmp_path, ax):
    write_run(tmp_path / "a", [[-300.0, -130, -120]] * 2, reports=[10, 20, 1000], budget=1000)
    found = compare(tmp_path)
    comparisons.curves(ax, found, found.tables[0], styles(found.labels))
    assert ax.get_xscale() == "log"
    assert ax.get_xlim() == (10, 1000)


def test_panels_of_a_figure_have_one_scale_of_evaluations(tmp_path):
    early, late = [-300.0, -130, -120], [-300.0, -299, -120]
    for task, curve in (("maze-a", early), ("maze-b", early), ("maze-c", late)):
        write_run(tmp_path / task, [curve] * 2, reports=[10, 20, 1000], budget=1000, task=task)
    figures = dict(comparisons._figures(compare(tmp_path), "quartiles", []))
    assert [ax.get_xscale() for ax in figures["convergence"].axes] == ["log"] * 3
    texts = [text.get_text() for text in figures["convergence"].axes[0].get_xticklabels() if text.get_text()]
    assert "100" in texts
    assert not any("^" in text for text in texts)


def test_a_logarithmic_axis_begins_at_the_second_report_where_nothing_is_known_before(tmp_path, ax):
    write_run(tmp_path / "a", [[-300.0, -130, -120]] * 2, reports=[1, 20, 1000], budget=1000)
    found = compare(tmp_path)
    comparisons.curves(ax, found, found.tables[0], styles(found.labels))
    assert ax.get_xlim() == (20, 1000)
    assert ax.get_ylim() == pytest.approx((-256, -114), abs=1)  # the goal lies at -250, the first report below


def test_shades_follow_the_order_of_the_labels():
    labels = ["a=0", "a=0.5", "a=1", "a=decay", "b a=0", "b a=1"]
    style = styles(labels)
    assert list(style) == labels
    lightness = [np.dot(to_rgb(style[f"a={v}"]["color"]), (0.2126, 0.7152, 0.0722)) for v in ("0", "0.5", "1")]
    assert lightness == sorted(lightness)
    assert {style[label]["linestyle"] for label in labels[:3]} == {"-"}
    assert style["b a=0"]["linestyle"] == style["b a=1"]["linestyle"] != "-"
    assert style["a=decay"]["color"] == COLOURS[1]
    assert styles(["a=0", "a=decay"])["a=0"]["color"] == COLOURS[0]  # one number has no order


def test_ablations_are_labels_with_one_value():
    labels = ["jedi", "alpha=0", "alpha=0.3", "alpha=decay", "pool=4", "x=1 y=2", "x=1 y=3"]
    assert ablations(labels) == {
        "alpha": ["alpha=0", "alpha=0.3", "alpha=decay"],
        "x=1 y": ["x=1 y=2", "x=1 y=3"],
    }


def test_cells_of_the_seed_nearest_to_the_median(bench):
    (found,) = cell_maps.cell_maps(bench, bench.tables[0])
    assert found.title == "jedi, seed 1 (best -130.0)"
    from jedax.store.files import read_tensors

    arrays = read_tensors(bench.records.of("maze-a", "jedi")[0].source / "repertoire.safetensors")
    np.testing.assert_array_equal(found.fitness, np.where(arrays["fitness"][1] > -np.inf, arrays["fitness"][1], np.nan))
    np.testing.assert_array_equal(found.counts, arrays["counts"][1])
    np.testing.assert_array_equal(found.cells.centroids, arrays["centroids"])
    assert cell_maps.cell_maps(bench, bench.tables[0], ["c"]) == []
    assert cell_maps.cell_maps(bench, bench.tables[1]) == []


def test_cells_of_a_grid_are_drawn_as_one_and_code_need_not_be_there(tmp_path, monkeypatch):
    write_run(
        tmp_path / "a",
        [-1.0],
        cells=(np.zeros((1, 16)), np.ones((1, 16))),
        settings={"cell_layout": "grid", "cells": 16},
    )
    found = compare(tmp_path)
    (one,) = cell_maps.cell_maps(found, found.tables[0])
    assert one.cells.shape == (4, 4)

    def absent(*given):
        raise NotImportableError("gymnasium is not installed.")

    monkeypatch.setattr(cell_maps, "task_of", absent)
    (other,) = cell_maps.cell_maps(found, found.tables[0])
    np.testing.assert_array_equal(other.fitness, one.fitness)


def test_colours_of_cells_mean_the_same_in_all_rows(bench):
    (found,) = cell_maps.cell_maps(bench, bench.tables[0])
    other = cell_maps.CellMap("other", found.task, found.cells, found.fitness - 500, found.counts * 10)
    figure = cell_maps.draw([found, other], "maze-a")
    images = [[c for c in ax.collections if c.get_array() is not None] for ax in figure.axes if ax.get_title()]
    (left, right, left_2, right_2) = [image[0] for image in images]
    assert left.norm.vmax == left_2.norm.vmax == np.nanmax(found.fitness)
    assert left.norm.vmin == left_2.norm.vmin == np.nanmin(found.fitness) - 500
    assert isinstance(right.norm, LogNorm)
    assert right.norm.vmax == right_2.norm.vmax == found.counts.max() * 10
    np.testing.assert_array_equal(right.get_array(), found.counts[found.counts > 0])


def test_cells_of_at_most_four_methods_baselines_first(tmp_path):
    cells = np.zeros((1, 4)), np.ones((1, 4))
    for number in range(3):
        write_run(tmp_path / f"j{number}", [float(-number)], label=f"j{number}", cells=cells)
        write_run(tmp_path / f"b{number}", [-5.0 - number], label=f"b{number}", method=BASELINE, cells=cells)
    found = compare(tmp_path)
    assert [m.title[:2] for m in cell_maps.cell_maps(found, found.tables[0])] == ["j0", "b0", "b1", "b2"]
    every = cell_maps.cell_maps(found, found.tables[0], found.labels)
    assert [m.title[:2] for m in every] == ["j0", "b0", "b1", "b2", "j1", "j2"]


def test_damaged_cells_are_named(bench):
    path = bench.records.of("maze-a", "jedi")[0].source / "repertoire.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(JedaxError, match=r"repertoire\.safetensors: expected a repertoire, got"):
        cell_maps.cell_maps(bench, bench.tables[0])


def test_values_of_a_setting_that_share_no_task_make_no_figure(tmp_path):
    for task, label in (("maze-a", "jedi alpha=0.3"), ("maze-b", "jedi alpha=0.7")):
        write_run(tmp_path / task, [-120.0, -130], task=task, label=label)
    found = compare(tmp_path)
    assert ablations(found.labels)
    assert not [name for name, _ in comparisons._figures(found, "quartiles", None) if name.startswith("ablation")]


@pytest.mark.parametrize("size", [1e-170, 1e-310, 1e300])
def test_violins_of_tiny_and_huge_fitness(tmp_path, ax, size):
    write_run(tmp_path / "a", size * -np.linspace(0.5, 1, 12)[:, None], reports=[10])
    found = compare(tmp_path)
    comparisons.final_fitness(ax, found.tables[0], styles(["jedi"]))
    (violin,) = [c for c in ax.collections if len(c.get_paths()[0].vertices) > 200]
    heights = violin.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((-0.4, 0.4))


def test_many_labels_of_one_method_differ():
    found = styles([f"jedi {number}" for number in range(9)])
    assert len({(line["color"], line["linestyle"]) for line in found.values()}) == 9
    assert found["jedi 0"]["color"] == METHODS["jedi"][0]
