"""Each figure as a function of a matplotlib `Axes` and a `Run`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize

from jedax.errors import check_choice, fail
from jedax.repertoire.cells import Cells
from jedax.report.numbers import evaluations_text
from jedax.report.run_plots import distances, gp_parameters, paper_style, phase_times, replay, save
from jedax.report.scales import colour_limits, cut_axis
from jedax.store.run import Run
from jedax.targets.pareto import pareto_rank
from jedax.tasks.drawing import PATH, STOP, TARGET, draw_or_explain, drawing_of, frame, legend_below

__all__ = [
    "LAYERS",
    "best",
    "cell_outlines",
    "cell_values",
    "convergence",
    "distances",
    "gp_parameters",
    "layer",
    "paper_style",
    "phase_times",
    "replay",
    "save",
    "targets",
]

LAYERS: dict[str, dict[str, Any]] = {
    "fitness": {"label": "fitness"},
    "counts": {"label": "evaluations", "log": True, "cmap": "magma"},
    "gp_mean": {"label": "GP mean of fitness"},
    "gp_std": {"label": "GP standard deviation", "cmap": "cividis"},
    "rank": {"label": "Pareto rank", "cmap": "viridis_r"},
    "improved": {"label": "evaluations when last improved", "cmap": "cividis"},
}
"""Values by which the cells of a run can be coloured, and arguments of `cell_values` for each."""

_EMPTY = "#ececec"


def convergence(ax: Axes, run: Run, column: str = "max_fitness", label: str = "best fitness") -> None:
    """Draw a column of the metrics against evaluations: a thin line per replica, a thick one for their median.

    The median is drawn from three replicas on. A dotted line marks the goal of the task. The axis leaves out a few
    values far below all others, but for coverage.
    """
    lines = run.metrics.pivot_table(index="evaluations", columns="replica", values=column)
    several = lines.shape[1] > 1
    style: dict[str, Any] = {"color": PATH, "drawstyle": "steps-post"}
    thin: dict[str, Any] = {"alpha": 0.4, "linewidth": 0.9} if several else {"linewidth": 1.8}
    for number, replica in enumerate(lines):
        ax.plot(lines.index, lines[replica], **style, **thin, label="each replica" if several and not number else None)
    if lines.shape[1] > 2:
        ax.plot(lines.index, lines.median(axis=1), **style, linewidth=1.8, label="median")
    goal = run.task.goal_fitness if column == "max_fitness" else None
    if goal is not None:
        ax.axhline(goal, color=TARGET, linestyle=":", linewidth=1.5, label=f"goal ({goal:g})")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="lower right")
    ax.set(xlabel="evaluations", ylabel=label)
    ax.margins(x=0)
    if column != "coverage":
        cut_axis(ax, [*run.metrics[column], np.nan if goal is None else goal])
    if not np.isfinite(run.metrics[column]).any():
        _say_nothing_was_stored(ax)
    ax.grid(alpha=0.25)
    ax.xaxis.set_major_formatter(lambda x, _: evaluations_text(x))


def cell_values(
    ax: Axes,
    run: Any,
    values: np.ndarray,
    label: str,
    *,
    log: bool = False,
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
) -> None:
    """Colour every cell of the descriptor space; cells without a finite value are grey.

    Args:
        ax: Where to draw.
        run: A `Run`, or another object with `cells` and `task`; what fills the task's behaviour space, such as the
            walls of a maze, is drawn as well.
        values: `(cells,)`.
        label: Text beside the colour bar.
        log: Whether the colours are logarithmic.
        cmap: Matplotlib's name of a colour map.
        limits: Values at the ends of the colours; None: the lowest and the highest of `values`. A few values far below
            all others are then left out, and the colour bar says so.
    """
    cells, values = run.cells, np.asarray(values, float)
    known = np.isfinite(values) & (values > 0 if log else True)
    shown = values[known] if known.any() else np.array([1.0])
    low, high = limits or colour_limits(shown, log=log)
    high = max(high, low + 1e-9)
    style: dict[str, Any] = {"cmap": cmap, "norm": LogNorm(low, max(high, low * 1.01)) if log else Normalize(low, high)}
    if cells.centroids.shape[1] > 2:
        ax.scatter(*cells.centroids[~known, :2].T, color=_EMPTY, s=6)
        image: Any = ax.scatter(*cells.centroids[known, :2].T, c=values[known], s=8, **style)
    else:
        outlines = cell_outlines(cells)
        empty, filled = ([outlines[cell] for cell in np.flatnonzero(which)] for which in (~known, known))
        ax.add_collection(PolyCollection(empty, facecolor=_EMPTY, edgecolor="white", linewidth=0.2))
        image = ax.add_collection(PolyCollection(filled, array=values[known], edgecolor="face", linewidth=0.2, **style))
    draw_or_explain(ax, drawing_of(run.task).draw_space)
    frame(ax, cells.bounds, run.task.descriptor_names)
    if not known.all():
        ax.plot([], [], "s", color=_EMPTY, markeredgecolor="#bbbbbb", label="empty")
    legend_below(ax)
    if not known.any():
        _say_nothing_was_stored(ax)
        return
    cut = shown.min() < low
    label = f"{label} (cut off below: down to {shown.min():.3g})" if cut else label
    ax.figure.colorbar(image, ax=ax, label=label, fraction=0.046, pad=0.03, extend="min" if cut else "neither")


def _say_nothing_was_stored(ax: Axes) -> None:
    ax.text(0.5, 0.5, "no solution:\nno evaluation succeeded", transform=ax.transAxes, ha="center", va="center",
            zorder=6, bbox={"facecolor": "white", "edgecolor": "#999999"})  # fmt: skip


def layer(ax: Axes, run: Run, name: str = "fitness", replica: int | None = None) -> None:
    """Colour every cell by one of `LAYERS`.

    Args:
        ax: Where to draw.
        run: The run.
        name: Of the layer; "rank" is that of the Pareto front of the GP's mean and variance, from 1.
        replica: None: the one that found the best solution.

    Raises:
        JedaxError: An unknown layer, or one of a GP that was not computed.
    """
    check_choice("layer", name, LAYERS)
    which = run.best_replica if replica is None else replica
    if name in ("gp_mean", "gp_std", "rank"):
        if run.gp_mean is None or run.gp_std is None:
            raise fail("layer", expected="one that the run has", received=name, remedy="take fitness")
        mean, std = run.gp_mean[which], run.gp_std[which]
        if name == "rank":
            values = 1.0 + np.asarray(pareto_rank(jnp.asarray(mean), jnp.asarray(std) ** 2, len(mean)))
        else:
            values = mean if name == "gp_mean" else std
    else:
        field = {"improved": "improved_at"}.get(name, name)
        values = np.asarray(getattr(run.repertoire, field)[which], float)
        values = np.where(np.isfinite(values) & ((values != -1) | (name != "improved")), values, np.nan)
    cell_values(ax, run, values, **LAYERS[name])


def targets(ax: Axes, run: Run, replica: int) -> None:
    """Mark the last targets of the evolution strategies; a run of a method without targets gets no marks."""
    if run.targets is None:
        return
    points = run.targets[replica]
    if points.shape[1] < 2:
        points = np.column_stack([points[:, 0], np.full(len(points), 0.5)])
    choice = getattr(run.config.method_config, "targets", "")
    ax.scatter(*points[:, :2].T, marker="X", s=55, linewidth=0.9, color="white", edgecolor="black", zorder=5,
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

    # Mirrored at the four sides, every cell of the box is bounded, and the sides are its border.
    mirrored = [centroids]
    for axis in range(2):
        for side in (lows[axis], highs[axis]):
            copy = centroids.copy()
            copy[:, axis] = 2 * side - copy[:, axis]
            mirrored.append(copy)
    diagram = Voronoi(np.concatenate(mirrored))
    return [diagram.vertices[diagram.regions[diagram.point_region[i]]] for i in range(len(centroids))]


def best(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw what the best solution does, as its task draws it, else mark its place among the cells.

    Where all evaluations failed, the axes say so.
    """
    which = run.best_replica if replica is None else replica
    solution = run.best(which)
    if not np.isfinite(solution.fitness):
        cell_values(ax, run, np.full(run.cells.num_cells, np.nan), "fitness")
        ax.set_title("no solution", fontsize=10)
        return
    draw = drawing_of(run.task).draw_solution
    if not draw_or_explain(ax, draw, solution.genotype, run.config.run.seed + which):
        place = solution.descriptor if len(solution.descriptor) > 1 else [solution.descriptor[0], 0.5]
        ax.plot(*place[:2], "*", color=STOP, markersize=16, markeredgecolor="white", label="best", zorder=5)
        layer(ax, run, "fitness", which)
    ax.set_title(f"best solution: fitness {solution.fitness:.5g}", fontsize=10)
