"""How a task's behaviour space and its solutions are drawn, replayed and described.

Figures, pages and `jedax replay` ask `Task.drawing` and know no task by name. A task of your own names a subclass of
`TaskDrawing` as its `drawing_class`; the class itself fits every task, and lets the task's `draw(ax, genotype)` draw.
"""

from __future__ import annotations

import abc
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from jedax.space import Choice, Integer, Real, Space
from jedax.tasks.motion import MOST_FRAMES, Act, Motion, every
from jedax.tasks.mujoco import render
from jedax.types import Float

_MOST_PARAMETERS = 20
WALL = "#222222"
PATH = "#0072b2"  # colours of Okabe & Ito, safe for colour-blind readers
TARGET = "#009e73"
STOP = "#d55e00"

FEET, WAY, RETURN = "feet", "way", "return"
"""What an episode shows beside its return: when each foot touches the floor, where the robot goes, nothing else."""


@dataclass(frozen=True)
class Scene:
    """What surrounds the solutions on a page, in the plane of the first two descriptors and in their unit."""

    limits: tuple[Sequence[float], Sequence[float]]  # lower left and upper right corner
    walls: Sequence[Sequence[float]] = ()  # lines, each (x1, y1, x2, y2)
    wall_width: float = 0.0  # 0: thin lines
    start: Sequence[float] | None = None  # x and y
    target: Sequence[float] | None = None  # x and y of the goal
    target_radius: float = 0.0
    note: str = ""  # a sentence below every solution


class Trace(NamedTuple):
    """What one solution does, as a line."""

    points: Float[np.ndarray, "points 2"]
    caption: str  # a sentence without its full stop; {cost} stands for minus the fitness
    mark: str = "dot"  # at the line's end: "star", "cross" or "dot"


@dataclass(frozen=True, eq=False)
class Episodes:
    """How policies act again.

    `act` takes at most `batch` policies `(n, params)`. It returns for each the rewards `(steps,)` of the steps that
    count, and what was seen after each of them, `(steps, seen)`: whether each foot touches the floor, where the robot
    is, or nothing, by the kind.
    """

    kind: str  # FEET, WAY or RETURN
    batch: int
    act: Act
    feet: tuple[str, ...] = ()  # names of the feet, for FEET
    start: tuple[float, float] | None = None  # x and y before the first step, for WAY, where they are known


@dataclass(frozen=True, eq=False)
class Recording:
    """What one solution did in a replay."""

    figure: Figure
    fitness: float  # in this replay
    frames: Sequence[np.ndarray] = ()  # of a film, each (height, width, 3) bytes
    seconds: float = 0.0  # duration of the film
    arrays: Mapping[str, Any] = field(default_factory=dict)  # the numbers behind the picture
    remarks: tuple[str, ...] = ()  # sentences for the user, such as why there is no film


class TaskDrawing:
    """How a task is drawn, replayed and described. A subclass replaces what it knows better.

    Genotypes are NumPy arrays; `seed` is that of the run, for tasks with noise.
    """

    solution = "solution"  # noun for a solution
    place = "behaviours, places on this map"  # words for the behaviours that a search can be sent to
    wanted = "the solution with the highest fitness"  # what the search is to find
    marks_points = False  # whether the points of a `Trace` are marked, such as the joints of an arm

    def __init__(self, task: Any):
        self.task = task

    @property
    def map_text(self) -> str:
        """How to read the map of cells, in a sentence or two."""
        return "Each cell of the map stands for one way to behave and holds the best solution that behaved so."

    @property
    def why_different(self) -> str:
        """Why a replay may achieve another fitness than the run recorded."""
        return "evaluations are noisy, or another program rounds differently"

    def outcome(self, fitness: float, *, reached: bool) -> str | None:
        """Return what the best solution achieves, as a predicate; None: reports name its fitness instead."""
        return None

    def draw_space(self, ax: Axes) -> None:
        """Draw what fills the behaviour space, such as walls, over the cells of a map."""

    def draw_solution(self, ax: Axes, genotype: Float[np.ndarray, " params"], seed: int) -> bool:
        """Draw what a solution does on empty axes, and return True.

        Without a method `draw` of the task, its parameters are drawn if it has a space. False: it draws nothing.
        Figures then mark the solution's place among the cells.
        """
        if hasattr(self.task, "draw"):
            self.task.draw(ax, genotype)
        elif self._has_space:
            draw_parameters(ax, self.task.space, genotype)
        else:
            return False
        return True

    def scene(self) -> Scene | None:
        """Return what surrounds the solutions on a page; None: nothing."""
        return None

    def traces(self, genotypes: Float[np.ndarray, "n params"], seed: int) -> Sequence[Trace] | None:
        """Return a line for each genotype; None: the task's solutions are not lines.

        The genotypes are those of all cells, so that one shape is compiled; empty cells hold zeros.
        """
        return None

    def episodes(self) -> Episodes | None:
        """Return how policies act again; None: the task's solutions are not policies, or cannot act step by step."""
        return None

    @property
    def can_replay(self) -> bool:
        """Whether `replay` returns anything."""
        return self._has_space or self.has_own_code

    @property
    def has_own_code(self) -> bool:
        """Whether solutions are drawn by code of the task's own, and not only as the values of its parameters."""
        mine, base = type(self), TaskDrawing
        draws = hasattr(self.task, "draw") or mine.draw_solution is not base.draw_solution
        return draws or mine.replay is not base.replay

    @property
    def _has_space(self) -> bool:
        return getattr(self.task, "space", None) is not None

    def replay(self, genotype: Float[np.ndarray, " params"], fitness: float, seed: int) -> Recording | None:
        """Return what a solution does, whose recorded fitness is given; None: the task draws nothing."""
        figure, ax = plt.subplots(figsize=(4.6, 4.6))
        if not draw_or_explain(ax, self.draw_solution, genotype, seed):
            plt.close(figure)
            return None
        ax.set_title(plain(f"{self.task.name}: fitness {fitness:.5g}"), fontsize=10)
        return Recording(figure, fitness)


def drawing_of(task: Any) -> TaskDrawing:
    """Return a task's own drawing; the general one if it has none, or cannot be made here (None)."""
    return getattr(task, "drawing", None) or TaskDrawing(task)


def draw_parameters(ax: Axes, space: Space, genotype: Float[np.ndarray, " params"]) -> None:
    """Draw where the parameters of a solution lie between their bounds, with their values in the user's units.

    Parameters without two bounds have a value only, choices their options; of many parameters the first 20 are drawn.
    """
    values = list(space.dict_of(genotype).values())[:_MOST_PARAMETERS]
    size, grey = min(9.0, 150 / len(values)), "#777777"
    for row, (value, parameter) in enumerate(zip(values, space.parameters, strict=False)):
        ax.text(1.05, row, plain(_short(value)), va="center", fontsize=size, fontweight="bold")
        if isinstance(parameter, Choice):
            text = "of " + ", ".join(map(_short, parameter.options))
            ax.text(0, row, plain(textwrap.shorten(text, 50)), va="center", fontsize=0.75 * size, color=grey)
        elif np.isfinite([parameter.low, parameter.high]).all():
            ax.hlines(row, 0, 1, color="#cccccc", linewidth=2)
            ax.plot(_share(parameter, value), row, "o", color=PATH, markersize=0.75 * size)
            for x, side, end in ((0, "left", parameter.low), (1, "right", parameter.high)):
                ax.text(x, row + 0.2, _short(end), ha=side, va="top", fontsize=0.75 * size, color=grey)
    if len(space.names) > len(values):
        ax.text(0, len(values) + 0.2, f"and {len(space.names) - len(values)} more", fontsize=size, color=grey)
    ax.set(xlim=(-0.02, 1.02), ylim=(len(values) + 0.5, -0.7), xticks=[], yticks=range(len(values)))
    ax.set_yticklabels([plain(name) for name in space.names[: len(values)]], fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _share(parameter: Real | Integer, value: float) -> float:
    """Return the share of the way from the lower to the upper bound."""
    low, here, high = (parameter.low, value, parameter.high)
    if parameter.log:
        low, here, high = np.log([low, here, high])
    return float((here - low) / (high - low)) if low < high else 0.5


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: dollars are no math, and a leading underscore hides no label."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def draw_or_explain(ax: Axes, draw: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `draw(ax, *arguments)` does; if it raises an error, the axes say so and the run goes on."""
    try:
        return draw(ax, *arguments)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        said = f"drawing raised\n{type(error).__name__}: {str(error)[:200]}\n({place})"
        ax.text(0.5, 0.5, said, ha="center", va="center", wrap=True, transform=ax.transAxes)
        return True


def frame(ax: Axes, bounds: tuple[Sequence[float], Sequence[float]], names: Sequence[str]) -> None:
    """Set limits, labels and border of axes that show a descriptor space, or its first two dimensions."""
    lows, highs = (np.asarray(side, float) for side in bounds)
    labels = (*map(plain, names), *(f"descriptor {number}" for number in range(len(names) + 1, 3)))
    if len(lows) == 1:
        ax.set(xlim=(lows[0], highs[0]), ylim=(0, 1), xlabel=labels[0], yticks=[])
        ax.locator_params(axis="x", nbins=5)
        return
    size = (highs - lows)[:2]
    (left, bottom), (right, top) = lows[:2] - 0.02 * size, highs[:2] + 0.02 * size
    more = f" (first two of {len(lows)} descriptors)" if len(lows) > 2 else ""
    ax.set(xlim=(left, right), ylim=(bottom, top), xlabel=labels[0], ylabel=labels[1] + more,
           aspect="equal" if np.isclose(*size, rtol=0.5) else "auto")  # fmt: skip
    ax.add_patch(Rectangle((lows[0], lows[1]), *size, fill=False, color="#999999", linewidth=0.6))


def legend_below(ax: Axes) -> None:
    """Explain the marks, below the axes and their labels."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.4, ncol=4, frameon=False, fontsize=8,
                  columnspacing=1.2, handletextpad=0.4)  # fmt: skip


def draw_path(ax: Axes, points: Float[np.ndarray, "points 2"]) -> None:
    """Draw a way as a line, and mark its end."""
    ax.plot(*points.T, color=PATH, linewidth=1.6, zorder=5, label="path")
    ax.plot(*points[-1], "X", color=STOP, markersize=9, zorder=6, label="end", markeredgecolor="white")


def jitted(function: Callable[..., Any], *arguments: Any) -> Any:
    """Compile a function, call it, and return its result as NumPy arrays."""
    return jax.tree.map(np.asarray, jax.jit(function)(*arguments))


class EpisodeDrawing(TaskDrawing, abc.ABC):
    """A task whose solutions are policies. MuJoCo's renderer films its robots; other environments draw themselves."""

    @abc.abstractmethod
    def episodes(self) -> Episodes:
        """Return how policies act again."""

    @abc.abstractmethod
    def motion(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of a policy."""

    def replay(self, genotype: Float[np.ndarray, " params"], fitness: float, seed: int) -> Recording:
        """Return a policy's episode as a picture, a film where one can be drawn, and numbers."""
        motion = self.motion(genotype)
        steps, fitness = len(motion.rewards), float(motion.rewards.sum(dtype=np.float64))
        arrays = {name: getattr(motion, name) for name in ("rewards", "seen", "observations", "actions", "dt")}
        frames, lacking, robot = motion.frames, motion.lacking, motion.postures
        if robot is not None:
            frames, lacking = render(robot.model, robot.q[every(steps, MOST_FRAMES)])
            arrays |= {name: getattr(robot, name) for name in ("q", "positions", "rotations")}
        figure = self.draw_episode(motion, frames)
        figure.axes[0].set_title(plain(f"{self.task.name}: fitness {fitness:.5g} in {steps} steps"), fontsize=10)
        remarks = () if frames else (f"no film: {lacking}",)
        return Recording(figure, fitness, frames, motion.dt * steps, arrays | motion.more, remarks)

    def draw_episode(self, motion: Motion, frames: Sequence[np.ndarray]) -> Figure:
        """Draw some frames, or the observations where there are none; below what the descriptor sees, or the return."""
        steps, episodes = np.arange(1, len(motion.rewards) + 1), self.episodes()
        heights = (1.7, 0.3 * len(episodes.feet) or 1.0)
        size = 9, sum(heights) + 0.9
        figure, (ax, below) = plt.subplots(2, 1, figsize=size, height_ratios=heights, layout="constrained")
        if frames:
            ax.imshow(np.concatenate([frames[number] for number in every(len(frames), 5)], axis=1))
            ax.set_axis_off()
        else:
            ax.plot(steps, motion.observations, linewidth=1)
            ax.set(ylabel="observations", xlim=(0.5, len(steps) + 0.5))
        if episodes.kind == FEET:
            shares = motion.seen.mean(axis=0)
            labels = [f"{foot} {share:.0%}" for foot, share in zip(episodes.feet, shares, strict=True)]
            below.pcolormesh(motion.seen.T, cmap="Blues", vmin=0, vmax=1.3)
            below.set(xlabel="step (dark: foot on the floor)", yticks=np.arange(len(labels)) + 0.5, yticklabels=labels)
            below.invert_yaxis()
        elif episodes.kind == WAY:
            below.plot(*motion.seen.T, color=PATH, linewidth=1.6)
            below.plot(*motion.seen[-1], "X", color=STOP, markersize=8)
            below.set(**dict(zip(("xlabel", "ylabel"), map(plain, self.task.descriptor_names), strict=True)))
        else:
            below.plot(steps, np.cumsum(motion.rewards), color=PATH)
            below.set(xlabel="step", ylabel="return", xlim=(0.5, len(steps) + 0.5))
        return figure


class EnvironmentDrawing(EpisodeDrawing):
    """A policy in an environment; the task's setting `descriptor` says what is seen of it."""

    @property
    def why_different(self) -> str:
        """Why a replay may achieve another fitness than the run recorded."""
        return "a mean over several episodes, or the environment magnifies rounding"

    def episodes(self) -> Episodes:
        """Return how policies act again."""
        kind = {"feet-contact": FEET, "final-xy": WAY}.get(self.task.config.descriptor, RETURN)
        names = self.task.descriptor_names if kind == FEET else ()
        batch, act = self.task.actor()
        return Episodes(kind, batch, act, tuple(name.removeprefix("share of ") for name in names))

    def motion(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of a policy."""
        return self.task.replay(genotype)
