"""Each figure as a function of a matplotlib `Axes` and a `Run`."""

from __future__ import annotations

from typing import Any, Protocol

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import BoxStyle, Circle, FancyBboxPatch, Rectangle

from jedax.errors import check_choice, fail
from jedax.repertoire.cells import Cells
from jedax.report.numbers import evaluations_text
from jedax.report.run_plots import distances, gp_parameters, legend_below, paper_style, phase_times, replay, save
from jedax.report.scales import colour_limits, cut_axis
from jedax.store.run import Run
from jedax.targets.pareto import pareto_rank
from jedax.tasks.base import Task
from jedax.tasks.control import layout
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.functions.task import PlanarArm
from jedax.tasks.maze.settings import MazeConfig
from jedax.tasks.maze.task import Maze

__all__ = [
    "LAYERS",
    "best",
    "cell_outlines",
    "cell_values",
    "convergence",
    "distances",
    "gp_parameters",
    "layer",
    "maze",
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
"""What the cells of a run can be coloured by, and how."""

_EMPTY = "#ececec"
WALL = "#222222"
PATH = "#0072b2"  # colours of Okabe & Ito, safe for colour-blind readers
TARGET = "#009e73"
STOP = "#d55e00"


def convergence(ax: Axes, run: Run, column: str = "max_fitness", label: str = "best fitness") -> None:
    """Draw a column of the metrics against evaluations: each replica thin, their median strong.

    The median is drawn from three replicas on. For fitness, the task's goal is a dotted line. But for coverage, a
    few values far below all others are cut off.
    """
    metrics = run.metrics
    lines = metrics.pivot_table(index="evaluations", columns="replica", values=column)
    several = lines.shape[1] > 1
    style: dict[str, Any] = {"color": PATH, "drawstyle": "steps-post"}
    for number, replica in enumerate(lines):
        label_once = "each replica" if several and number == 0 else None
        ax.plot(lines.index, lines[replica], **style, alpha=0.4 if several else 1, linewidth=0.9 if several else 1.8,
                label=label_once)  # fmt: skip
    if lines.shape[1] > 2:
        ax.plot(lines.index, lines.median(axis=1), **style, linewidth=1.8, label="median")
    goal = run.task.goal_fitness if column == "max_fitness" else None
    if goal is not None:
        ax.axhline(goal, color=TARGET, linestyle=":", linewidth=1.5, label=f"goal ({goal:g})")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="lower right")
    ax.set_ylabel(label)
    ax.set_xlabel("evaluations")
    ax.margins(x=0)
    if column != "coverage":
        cut_axis(ax, [*metrics[column], np.nan if goal is None else goal])
    if not np.isfinite(metrics[column]).any():
        _say_nothing_was_stored(ax)
    ax.grid(alpha=0.25)
    ax.xaxis.set_major_formatter(lambda x, _: evaluations_text(x))


class Celled(Protocol):
    """What has cells that can be drawn: a `Run`, or as much of one."""

    @property
    def cells(self) -> Cells:
        """How the descriptor space is cut."""
        ...

    @property
    def task(self) -> Task:
        """Whose descriptor space it is."""
        ...


def cell_values(
    ax: Axes,
    run: Celled,
    values: np.ndarray,
    label: str,
    *,
    log: bool = False,
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
) -> None:
    """Colour every cell of the descriptor space; cells without a finite value stay grey, and all of them say so.

    Args:
        ax: Where to draw.
        run: The run whose cells, and whose maze, are drawn.
        values: `(cells,)`.
        label: What the colours mean.
        log: Whether colours follow the logarithm.
        cmap: Matplotlib's name of a colour map.
        limits: Values at the ends of the colours; None: the lowest and the highest of `values`, but for a few far below
            all others, which the colour bar speaks of.
    """
    cells, values = run.cells, np.asarray(values, float)
    known = np.isfinite(values) & (values > 0 if log else True)
    shown = values[known] if known.any() else np.array([1.0])
    low, high = limits or colour_limits(shown, log=log)
    high = max(high, low + 1e-9)
    norm = LogNorm(low, max(high, low * 1.01)) if log else Normalize(low, high)
    if cells.centroids.shape[1] > 2:
        ax.scatter(*cells.centroids[~known, :2].T, color=_EMPTY, s=6)
        image: Any = ax.scatter(*cells.centroids[known, :2].T, c=values[known], cmap=cmap, norm=norm, s=8)
    else:
        outlines = cell_outlines(cells)
        ax.add_collection(PolyCollection([o for o, k in zip(outlines, known, strict=True) if not k],
                                         facecolor=_EMPTY, edgecolor="white", linewidth=0.2))  # fmt: skip
        image = ax.add_collection(PolyCollection([o for o, k in zip(outlines, known, strict=True) if k],
                                                 array=values[known], cmap=cmap, norm=norm, edgecolor="face",
                                                 linewidth=0.2))  # fmt: skip
    _frame(ax, run)
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
    mean, std, repertoire = run.gp_mean, run.gp_std, run.repertoire
    if name in ("gp_mean", "gp_std", "rank"):
        if mean is None or std is None:
            raise fail("layer", expected="one that the run has", received=name, remedy="take fitness")
        values = {"gp_mean": mean[which], "gp_std": std[which]}.get(name)
        if values is None:
            jnp = jax.numpy
            values = 1 + np.asarray(pareto_rank(jnp.asarray(mean[which]), jnp.asarray(std[which]) ** 2, mean.shape[1]))
    else:
        values = np.asarray({"fitness": repertoire.fitness, "counts": repertoire.counts,
                             "improved": repertoire.improved_at}[name][which], float)  # fmt: skip
        values = np.where(np.isfinite(values) & (values != -1 if name == "improved" else True), values, np.nan)
    style = dict(LAYERS[name])
    cell_values(ax, run, values, style.pop("label"), **style)


def targets(ax: Axes, run: Run, replica: int) -> None:
    """Mark the last targets that the ES were sent to; nothing where there are none."""
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
    if len(lows) == 1:
        order = np.argsort(centroids[:, 0])
        middles = (centroids[order][1:, 0] + centroids[order][:-1, 0]) / 2
        edges = np.concatenate([lows, middles, highs])
        strips = np.empty(len(centroids), object)
        for place, cell in enumerate(order):
            a, b = edges[place], edges[place + 1]
            strips[cell] = np.array([[a, 0], [b, 0], [b, 1], [a, 1]])
        return list(strips)
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


def maze(ax: Axes, config: MazeConfig, *, fill_target: bool = True) -> None:
    """Draw a maze: walls, start, target."""
    walls = [((x1, y1), (x2, y2)) for x1, y1, x2, y2 in config.all_walls]
    ax.add_collection(LineCollection(walls, colors=WALL, linewidths=2, zorder=3, capstyle="round"))
    ax.add_patch(Circle(config.target, config.target_radius, facecolor=TARGET if fill_target else "none",
                        edgecolor=TARGET, linewidth=1.6, zorder=3, label="goal"))  # fmt: skip
    ax.plot(*config.start[:2], "o", color=PATH, markersize=6, zorder=4, label="start", markeredgecolor="white")


def ant_maze(ax: Axes) -> None:
    """Draw the ant's maze from above: walls as thick as they are, start, target."""
    for x1, y1, x2, y2 in layout.WALLS:
        # A capsule has its caps within its ends, and its radius on both sides of the line between them.
        rx, ry = layout.RADIUS * (x1 == x2), layout.RADIUS * (y1 == y2)
        style = BoxStyle("Round", pad=0, rounding_size=layout.RADIUS)
        ax.add_patch(FancyBboxPatch((x1 - rx, y1 - ry), x2 - x1 + 2 * rx, y2 - y1 + 2 * ry, boxstyle=style,
                                    facecolor=WALL, linewidth=0, zorder=3))  # fmt: skip
    ax.plot(*layout.TARGET, "*", color=TARGET, markersize=13, markeredgecolor="white", zorder=4, label="goal")
    ax.plot(0, 0, "o", color=PATH, markersize=6, zorder=4, label="start", markeredgecolor="white")


def best(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw the best solution: a path in its maze, an arm's links, what the task's own `draw` does, or its cell.

    Where all evaluations failed, the axes say so.
    """
    which = run.best_replica if replica is None else replica
    solution = run.best(which)
    if not np.isfinite(solution.fitness):
        cell_values(ax, run, np.full(run.cells.num_cells, np.nan), "fitness")
        ax.set_title("no solution", fontsize=10)
        return
    if isinstance(run.task, Maze):
        _path(ax, run.task, solution.genotype, run.config.run.seed + which)
    elif isinstance(run.task, PlanarArm):
        links = np.asarray(run.task.link_positions(jax.numpy.asarray(solution.genotype)))
        ax.plot(*links.T, "-o", color=PATH, linewidth=2.5, markersize=5)
        ax.plot(*links[-1], "o", color=STOP, markersize=9, label="tip")
    elif hasattr(run.task, "draw"):
        drawn_by_task(ax, run.task, solution.genotype)
    else:
        fitness = np.asarray(run.repertoire.fitness[which], float)
        place = solution.descriptor if len(solution.descriptor) > 1 else [solution.descriptor[0], 0.5]
        ax.plot(*place[:2], "*", color=STOP, markersize=16, markeredgecolor="white", label="best", zorder=5)
        cell_values(ax, run, np.where(np.isfinite(fitness), fitness, np.nan), "fitness")
    if isinstance(run.task, Maze | PlanarArm):
        _frame(ax, run, fill_target=True)
        legend_below(ax)
    ax.set_title(f"best solution: fitness {solution.fitness:.2f}", fontsize=10)


def drawn_by_task(ax: Axes, task: Any, genotype: np.ndarray) -> None:
    """Let a task of the user's own draw a solution with its method `draw(ax, genotype)`; an error of its is shown."""
    try:
        task.draw(ax, genotype)
    except Exception as error:  # a picture is not worth a run
        ax.clear()
        said = f"{type(task).__name__}.draw raised\n{type(error).__name__}: {str(error)[:200]}"
        ax.text(0.5, 0.5, said, ha="center", va="center", wrap=True, transform=ax.transAxes)


def _path(ax: Axes, task: Maze, genotype: np.ndarray, seed: int) -> None:
    # In a batch, as the search evaluated it: another program could round a path that grazes a wall elsewhere.
    trajectory = task.rollout_batch(jax.random.key(seed), jax.numpy.asarray(genotype)[None])
    steps = np.asarray(trajectory.positions[0])[: int(trajectory.length[0])]
    positions = np.concatenate([[task.config.start[:2]], steps])
    ax.plot(*positions.T, color=PATH, linewidth=1.6, zorder=5, label="path")
    ax.plot(*positions[-1], "X", color=STOP, markersize=9, zorder=6, label="end", markeredgecolor="white")


def _frame(ax: Axes, run: Celled, *, fill_target: bool = False) -> None:
    """Set limits and labels of the descriptor space; draw the walls of a maze over it."""
    lows, highs = run.cells.bounds
    names = (*run.task.descriptor_names, "", "")
    if isinstance(run.task, Maze):
        maze(ax, run.task.config, fill_target=fill_target)
    if isinstance(run.task, AntMaze):
        ant_maze(ax)
    if len(lows) == 1:
        ax.set(xlim=(lows[0], highs[0]), ylim=(0, 1), xlabel=names[0], yticks=[])
        return
    margin = 0.02 * np.subtract(highs, lows)
    ax.set(xlim=(lows[0] - margin[0], highs[0] + margin[0]), ylim=(lows[1] - margin[1], highs[1] + margin[1]))
    ax.set_aspect("equal" if np.isclose(highs[0] - lows[0], highs[1] - lows[1], rtol=0.5) else "auto")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1] if len(lows) == 2 else f"{names[1]} (first two of {len(lows)} descriptors)")
    ax.add_patch(
        Rectangle((lows[0], lows[1]), *np.subtract(highs, lows)[:2], fill=False, color="#999999", linewidth=0.6)
    )
