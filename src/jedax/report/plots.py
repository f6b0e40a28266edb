"""Each figure as a function of a matplotlib `Axes` and a `Run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from jedax.errors import JedaxError, check_choice, fail
from jedax.repertoire.cells import Cells
from jedax.repertoire.repertoire import Repertoire
from jedax.report.numbers import (
    colour_limits,
    cut_axis,
    evaluations_axis,
    evaluations_format,
    evaluations_text,
    log_ticks,
)
from jedax.report.pictures import write_figure
from jedax.search.optimizer import Optimizer
from jedax.store import history
from jedax.store.history import Loop
from jedax.store.run import Run
from jedax.targets import pareto_rank
from jedax.tasks.drawing import PATH, STOP, TARGET, draw_or_explain, drawing_of, frame, legend_below

__all__ = [
    "LAYERS", "best", "cell_outlines", "cell_values", "convergence", "distances", "gp_parameters", "layer",
    "paper_style", "phase_times", "replay", "save", "targets",
]  # fmt: skip

LAYERS: dict[str, dict[str, Any]] = {
    "fitness": {"label": "fitness"},
    "counts": {"label": "evaluations", "log": True, "cmap": "magma"},
    "gp_mean": {"label": "GP mean of fitness"},
    "gp_std": {"label": "GP standard deviation", "cmap": "cividis"},
    "rank": {"label": "Pareto rank", "cmap": "viridis_r"},
    "improved": {"label": "evaluations when last improved", "cmap": "cividis"},
}
"""Values by which the cells of a run can be coloured, and arguments of `cell_values` for each."""

_OF_GP = ("gp_mean", "gp_std", "rank")

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222")
"""Those of Okabe & Ito, safe for colour-blind readers, without their yellow, which is too pale on white; then black."""

_EMPTY = "#ececec"
_COLUMN = 3.33  # width of a column of the paper, in inches
_DPI = 300


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw in the paper's style: figures one column wide, small type, fonts that stay text in a PDF."""
    style: dict[Any, Any] = {
        "figure.figsize": (_COLUMN, 2.5), "figure.dpi": 100, "savefig.dpi": _DPI, "font.size": 8, "axes.labelsize": 8,
        "axes.titlesize": 8, "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7, "lines.linewidth": 1.2,
        "axes.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False, "pdf.fonttype": 42,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        yield


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure and return its files: PDF and PNG, of 300 dots per inch, or only that which `path` ends in."""
    endings = [""] if Path(path).suffix in (".pdf", ".png", ".svg") else [".pdf", ".png"]
    return [write_figure(Path(f"{path}{ending}"), figure, _DPI) for ending in endings]


def convergence(ax: Axes, run: Run, column: str = "max_fitness", label: str = "best fitness") -> None:
    """Draw a column of the metrics against evaluations: a thin line per replica, a thick one for their median.

    The median is drawn from three replicas on. A dotted line marks the goal of the task. Except for coverage, the axis
    leaves out a few values that are far below all others.
    """
    evaluations, row_of = np.unique([row["evaluations"] for row in run.rows], return_inverse=True)
    lines = np.full((len(evaluations), run.config.run.replicas), np.nan)
    for row, line in zip(run.rows, row_of, strict=True):
        lines[line, int(row["replica"])] = row[column]
    several = lines.shape[1] > 1
    style: dict[str, Any] = {
        "color": PATH,
        "drawstyle": "steps-post",
        "marker": "o",
        "markersize": 3,
        "markevery": [-1],
    }
    thin: dict[str, Any] = {"alpha": 0.4, "linewidth": 0.9} if several else {"linewidth": 1.8}
    for replica, values in enumerate(lines.T):
        ax.plot(evaluations, values, **style, **thin, label="each replica" if several and not replica else None)
    if lines.shape[1] > 2:
        ax.plot(evaluations, np.nanmedian(lines, axis=1), **style, linewidth=1.8, label="median")
    goal = run.task.goal_fitness if column == "max_fitness" else None
    if goal is not None:
        ax.axhline(goal, color=TARGET, linestyle=":", linewidth=1.5, label=f"goal ({goal:g})")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="lower right")
    ax.set(xlabel="evaluations", ylabel=label)
    ax.margins(x=0.02)
    if column != "coverage":
        cut_axis(ax, [*lines.ravel(), np.nan if goal is None else goal])
    if not np.isfinite(lines).any():
        _say_nothing_was_stored(ax)
    ax.grid(alpha=0.25)
    ax.xaxis.set_major_formatter(evaluations_format)


def cell_values(
    ax: Axes, run: Any, values: np.ndarray, label: str, *, log: bool = False, cmap: str = "viridis",
    limits: tuple[float, float] | None = None, empty_colour: str = _EMPTY,
) -> None:  # fmt: skip
    """Colour every cell of the descriptor space; cells without a finite value are grey.

    Args:
        ax: Where to draw.
        run: A `Run`, an `Optimizer`, or another object with `cells` and `task`, which also draws its space, such as
            walls.
        values: `(cells,)`.
        label: Text beside the colour bar.
        log: Whether the colours are logarithmic.
        cmap: Matplotlib's name of a colour map.
        limits: Values at the ends of the colours; None: the lowest and the highest of `values`, without a few that are
            far below all others. The colour bar says what is left out.
        empty_colour: Colour of cells without a value.
    """
    cells, values = run.cells, np.asarray(values, float)
    known = np.isfinite(values) & (values > 0 if log else True)
    shown = values[known] if known.any() else np.array([1.0])
    low, high = limits or colour_limits(shown, log=log)
    ticks = None
    if not low < high:  # all are equal
        ticks, log, margin = [low], False, 1e-3 * abs(low) or 1.0
        low, high = low - margin, low + margin
    style: dict[str, Any] = {"cmap": cmap, "norm": LogNorm(low, high) if log else Normalize(low, high)}
    if cells.centroids.shape[1] > 2:
        ax.scatter(*cells.centroids[~known, :2].T, color=empty_colour, s=6)
        image: Any = ax.scatter(*cells.centroids[known, :2].T, c=values[known], s=8, **style)
    else:
        outlines = cell_outlines(cells)
        empty, filled = ([outlines[cell] for cell in np.flatnonzero(which)] for which in (~known, known))
        ax.add_collection(PolyCollection(empty, facecolor=empty_colour, edgecolor="white", linewidth=0.2))
        image = ax.add_collection(PolyCollection(filled, array=values[known], edgecolor="face", linewidth=0.2, **style))
    draw_or_explain(ax, drawing_of(run.task).draw_space)
    frame(ax, cells.bounds, run.task.descriptor_names)
    if not known.all():
        ax.plot([], [], "s", color=empty_colour, markeredgecolor="#bbbbbb", label="empty")
    legend_below(ax)
    if not known.any():
        _say_nothing_was_stored(ax)
        return
    extend = "neither"
    if shown.min() < low:
        label, extend = f"{label} (cut off below: down to {shown.min():.3g})", "min"
    elif shown.max() > high:
        label, extend = f"{label} (cut off above: up to {shown.max():.3g})", "max"
    bar = ax.figure.colorbar(image, ax=ax, label=label, fraction=0.046, pad=0.03, extend=extend, ticks=ticks)
    bar.ax.yaxis.set_offset_position("left")  # at the right, a factor such as 1e6 would reach over the map
    if log:
        log_ticks(bar.ax.yaxis, low, high)


def _say_nothing_was_stored(ax: Axes) -> None:
    ax.text(0.5, 0.5, "no solution:\nno evaluation succeeded", transform=ax.transAxes, ha="center", va="center",
            zorder=6, bbox={"facecolor": "white", "edgecolor": "#999999"})  # fmt: skip


def layer(ax: Axes, run: Run | Optimizer, name: str = "fitness", replica: int | None = None) -> None:
    """Colour every cell by one of `LAYERS`; "rank" is that of the Pareto front of the GP's mean and variance, from 1.

    Args:
        ax: Where to draw.
        run: A run, or an `Optimizer`, whose fitness is that in your units, of feasible solutions. An optimizer has no
            layers of a GP.
        name: One of `LAYERS`.
        replica: Which replica of the run; None: the one that found the best solution.

    Raises:
        JedaxError: An unknown layer, one of a GP that was not computed, or an optimizer that has no solutions yet.
    """
    check_choice("layer", name, LAYERS)
    if isinstance(run, Optimizer):
        values, style = _of_optimizer(run, name)
    else:
        values, style = _of_run(run, name, replica), {}
    cell_values(ax, run, values, **LAYERS[name] | style)


def _of_optimizer(optimizer: Optimizer, name: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the values of the cells, and what differs from the style of the layer."""
    if name in _OF_GP:
        raise _not_there(name)
    values = _stored(optimizer.repertoire, name)
    if name != "fitness":
        return values, {}
    feasible = optimizer.feasible
    values = np.where(feasible, values, np.nan)
    if not (optimizer.minimise and feasible.any()):
        return values, {}
    low, high = colour_limits(values[feasible], log=False)
    return -values, {"label": "fitness, minimised", "cmap": "viridis_r", "limits": (-high, -low)}


def _of_run(run: Run, name: str, replica: int | None) -> np.ndarray:
    which = run.best_replica if replica is None else replica
    if name not in _OF_GP:
        return _stored(run.repertoire, name)[which]
    if run.gp_mean is None or run.gp_std is None:
        raise _not_there(name)
    mean, std = run.gp_mean[which], run.gp_std[which]
    if name == "rank":
        return pareto_ranks(mean, std)
    return mean if name == "gp_mean" else std


def pareto_ranks(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return the Pareto rank of each cell by mean and standard deviation of the GP, from 1 on."""
    return 1.0 + np.asarray(pareto_rank(jnp.asarray(mean), jnp.asarray(std) ** 2, len(mean)))


def _stored(repertoire: Repertoire, name: str) -> np.ndarray:
    values = np.asarray(getattr(repertoire, {"improved": "improved_at"}.get(name, name)), float)
    return np.where(np.isfinite(values) & ((values != -1) | (name != "improved")), values, np.nan)


def _not_there(name: str) -> JedaxError:
    return fail("layer", expected="one that the run has", received=name, remedy="take fitness")


def targets(ax: Axes, run: Run, replica: int) -> None:
    """Mark the last targets of the evolution strategies; a run of a method without targets gets no marks."""
    if run.targets is None:
        return
    points = np.array([_flat(target) for target in run.targets[replica]])
    choice = getattr(run.config.method_config, "targets", "")
    ax.scatter(*points.T, marker="X", s=55, linewidth=0.9, color="white", edgecolor="black", zorder=5,
               label=f"last targets ({choice})")  # fmt: skip
    legend_below(ax)


def cell_outlines(cells: Cells) -> list[np.ndarray]:
    """Return each cell's corners, `(corners, 2)`, cut off at the bounds; for one or two descriptors.

    Cells of one descriptor are drawn as a strip between 0 and 1.
    """
    lows, highs = (np.array(b) for b in cells.bounds)
    centroids = cells.centroids.astype(float)
    if cells.shape is not None and len(lows) == 2:
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (highs - lows) / cells.shape / 2
        return [centroid + corners for centroid in centroids]
    if len(lows) == 1:
        order = np.argsort(centroids[:, 0])
        middles = (centroids[order][1:, 0] + centroids[order][:-1, 0]) / 2
        edges = np.concatenate([lows, middles, highs])
        rank = np.argsort(order)
        return [np.array([[a, 0], [b, 0], [b, 1], [a, 1]]) for a, b in zip(edges[rank], edges[rank + 1], strict=True)]
    from scipy.spatial import Voronoi

    # In the unit box, where distances are measured. Mirrored at its four sides, every cell is bounded, and the sides
    # are the border.
    unit = (centroids - lows) / (highs - lows)
    mirrored = [unit]
    for axis in range(2):
        for side in (0, 1):
            copy = unit.copy()
            copy[:, axis] = 2 * side - copy[:, axis]
            mirrored.append(copy)
    diagram = Voronoi(np.concatenate(mirrored))
    corners = lows + diagram.vertices * (highs - lows)
    return [corners[diagram.regions[diagram.point_region[i]]] for i in range(len(centroids))]


def best(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw what the best solution does, as its task draws it, else mark its place among the cells.

    Where all evaluations failed, the axes say so.
    """
    which = run.best_replica if replica is None else replica
    if not np.isfinite(run.repertoire.best_fitness[which]):
        cell_values(ax, run, np.full(run.cells.num_cells, np.nan), "fitness")
        ax.set_title("no solution", fontsize=10)
        return
    solution = run.best(which)
    draw = drawing_of(run.task).draw_solution
    if not draw_or_explain(ax, draw, solution.genotype, run.config.run.seed + which):
        place = np.clip(solution.descriptor, *run.cells.bounds)  # beyond them its cell is at the edge
        ax.plot(*_flat(place), "*", color=STOP, markersize=16, markeredgecolor="white", label="best", zorder=5)
        layer(ax, run, "fitness", which)
    ax.set_title(f"best solution: fitness {solution.fitness:.5g}", fontsize=10)


def _loops(run: Run, replica: int | None) -> tuple[tuple[Loop, ...], int]:
    """Return the loops of a run, at least one, and a replica: the given one, else the one with the best solution."""
    recorded = run.history
    if recorded is None:
        expected, received = f"one with a directory that holds {history.FILE}", run.path or "one without a directory"
        raise fail("run", expected=expected, received=received, remedy="run it with out=..., and without history=False")
    if not recorded.loops:
        received = f"{run.config.method}, which has none"
        raise fail("run", expected="a method with loops", received=received, remedy="draw a run of JEDi")
    return recorded.loops, run.best_replica if replica is None else replica


def replay(ax: Axes, run: Run, loop: int = -1, replica: int | None = None) -> None:
    """Draw one loop over a map of cells: from where to where each ES went, and its target.

    A ring is where an ES started, a dot where it got to, a cross its target; the first two descriptors are shown.

    Args:
        ax: Where to draw, such as after `layer`.
        run: A run of JEDi.
        loop: Which of the recorded loops, from 0; -1 is the last.
        replica: None: the one that found the best solution.

    Raises:
        JedaxError: No history, no loops, or not so many.
    """
    loops, which = _loops(run, replica)
    if not -len(loops) <= loop < len(loops):
        raise fail("loop", expected=f"one of the {len(loops)} that were kept", received=loop, remedy="change it")
    chosen = loops[loop]
    for es in range(chosen.targets.shape[1]):
        colour = COLOURS[es % len(COLOURS)]
        target, start = (_flat(values[which, es]) for values in (chosen.targets, chosen.starts))
        end = start if chosen.ends is None else _flat(chosen.ends[which, es])
        outline: dict[str, Any] = {"markeredgecolor": "white", "zorder": 7, "linestyle": ""}
        ax.plot(*zip(start, end, strict=True), color="white", linewidth=3.2, zorder=5)
        ax.plot(*zip(start, end, strict=True), color=colour, linewidth=1.6, zorder=6)
        ax.plot(*zip(end, target, strict=True), color=colour, linewidth=1.1, linestyle=":", zorder=6)
        names = ("ES target", "ES start", "ES end") if es == 0 else (None,) * 3
        ax.plot(*target, "X", color=colour, markersize=6, label=names[0], **outline)
        ax.plot(*start, "o", markersize=4.5, zorder=7, label=names[1], linestyle="", markerfacecolor="white",
                markeredgecolor=colour, markeredgewidth=1.5)  # fmt: skip
        if chosen.ends is not None:
            ax.plot(*end, "o", color=colour, markersize=5.5, label=names[2], **outline)
    legend_below(ax)
    alpha = chosen.alpha[which]
    weight = f", alpha {alpha:.2f}" if np.isfinite(alpha) else ""
    ax.set_title(f"loop at {evaluations_text(chosen.evaluations)} evaluations{weight}")


def _flat(descriptor: np.ndarray) -> tuple[float, float]:
    """Return the first two descriptors; one descriptor lies in the middle of its strip of cells."""
    return (float(descriptor[0]), float(descriptor[1]) if len(descriptor) > 1 else 0.5)


def distances(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw how far from their targets the ES started and ended, loop by loop: means over the pool.

    Distances are Euclidean, in the units of the descriptors, not in the unit box as in the score of JEDi.

    Raises:
        JedaxError: No history, or no loops.
    """
    loops, which = _loops(run, replica)
    for name, label, style, colour in (
        ("starts", "start of a loop", ":", COLOURS[1]), ("ends", "its end", "-", COLOURS[0])
    ):  # fmt: skip
        chosen = [loop for loop in loops if getattr(loop, name) is not None]
        far = [np.linalg.norm(getattr(loop, name)[which] - loop.targets[which], axis=-1) for loop in chosen]
        means = [np.nanmean(values) if np.isfinite(values).any() else np.nan for values in far]
        ax.plot([loop.evaluations for loop in chosen], means, style, color=colour, label=label)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("mean distance to the targets")
    evaluations_axis(ax)
    ax.legend(frameon=False)


def gp_parameters(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw signal, length scale and noise of the Gaussian process, loop by loop, on a logarithmic axis.

    Raises:
        JedaxError: No history, or a run whose targets no Gaussian process guided.
    """
    loops, which = _loops(run, replica)
    names = [name for name in loops[0].gp if name != "noise_floor"]
    if not names:
        expected = "one whose targets a Gaussian process guided"
        raise fail("run", expected=expected, received=run.config.method, remedy="run JEDi with --targets pareto")
    for name, line, colour in zip(names, ("-", "--", ":"), COLOURS, strict=False):
        values = [loop.gp[name][which] for loop in loops]
        ax.plot([loop.evaluations for loop in loops], values, line, color=colour, label=name.replace("_", " "))
    ax.set_yscale("log")
    ax.set_ylabel("parameters of the GP")
    evaluations_axis(ax)
    ax.legend(frameon=False)


def phase_times(ax: Axes, run: Run) -> None:
    """Draw where the seconds went, one bar, the longest phase first.

    Raises:
        JedaxError: A run that has not ended.
    """
    phases = {name: seconds for name, seconds in run.summary.get("phase_seconds", {}).items() if seconds > 0}
    if not phases:
        raise fail("run", expected="one that has ended", received="no phase_seconds", remedy="finish it")
    left = 0.0
    for number, (name, seconds) in enumerate(sorted(phases.items(), key=lambda item: -item[1])):
        colour = COLOURS[number % len(COLOURS)]
        ax.barh(0, seconds, left=left, height=0.5, color=colour, edgecolor="white", label=f"{name} {seconds:.3g} s")
        left += seconds
    ax.set(yticks=[], xlabel="seconds", xlim=(0, left), ylim=(-0.4, 0.4))
    ax.spines["left"].set_visible(False)
    ax.legend(frameon=False, ncol=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
