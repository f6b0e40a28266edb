"""What solutions do, to be drawn: a robot's path in its maze, the links of an arm."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax.tasks.base import Task
from jedax.tasks.functions.task import PlanarArm
from jedax.tasks.maze.settings import distance_to_wall
from jedax.tasks.maze.task import Maze
from jedax.types import Float, Int

_BATCH = 4096
ARRIVED, COLLIDED, TIMED_OUT = "arrived", "collided", "time out"


@dataclass(frozen=True, eq=False)
class Traces:
    """Lines, one for each of some cells.

    Attributes:
        kind: "path": where a robot went, from its start on; "links": the joints of an arm, from the shoulder on.
        cells: `(lines,)`, whose solutions these are.
        lines: Each `(points, 2)`.
        ends: How each episode ended: `ARRIVED`, `COLLIDED` or `TIMED_OUT`; empty for "links".
        every: One point in so many was kept, and always the last; of the best cell all.
    """

    kind: str
    cells: Int[np.ndarray, " lines"]
    lines: tuple[Float[np.ndarray, "points 2"], ...]
    ends: tuple[str, ...]
    every: int


def can_trace(task: Task | None) -> bool:
    """Whether the solutions of a task can be drawn."""
    return isinstance(task, Maze | PlanarArm)


def traces(
    task: Task, genotypes: Float[np.ndarray, "cells params"], fitness: Float[np.ndarray, " cells"], seed: int,
    most_points: int,
) -> Traces:  # fmt: skip
    """Return what the solutions of all filled cells do; mazes are driven through once more, nothing is searched.

    Args:
        task: One that `can_trace` knows.
        genotypes: One per cell.
        fitness: One per cell; not finite: empty.
        seed: Of the noise of a maze that has some.
        most_points: Points of all lines together. Where there are more, points in between are left out, and then
            the lines of the worst cells.
    """
    filled = np.flatnonzero(np.isfinite(fitness))
    if isinstance(task, Maze):
        lines, ends, kind = *_paths(task, genotypes, filled, seed), "path"
    else:
        assert isinstance(task, PlanarArm)
        links = np.asarray(jax.vmap(task.link_positions)(jnp.asarray(genotypes)))
        lines, ends, kind = [links[cell] for cell in filled], [], "links"
    total = sum(map(len, lines))
    every = 1 if kind == "links" else min(8, max(1, -(-total // max(1, most_points))))
    best = filled[np.argmax(fitness[filled])]
    lines = [line if cell == best else _thinned(line, every) for cell, line in zip(filled, lines, strict=True)]
    if sum(map(len, lines)) > most_points:
        best_first = np.argsort(-fitness[filled], kind="stable")
        fits = np.cumsum([len(lines[place]) for place in best_first]) <= most_points
        fits[0] = True
        kept = np.sort(best_first[fits])
        filled, lines = filled[kept], [lines[place] for place in kept]
        ends = [ends[place] for place in kept] if ends else []
    return Traces(kind, filled, tuple(lines), tuple(ends), every)


def _thinned(line: np.ndarray, every: int) -> np.ndarray:
    return line if every == 1 else np.concatenate([line[:-1:every], line[-1:]])


def _paths(task: Maze, genotypes: np.ndarray, filled: np.ndarray, seed: int) -> tuple[list[np.ndarray], list[str]]:
    config = task.config
    lines: list[np.ndarray] = []
    ends: list[str] = []
    for first in range(0, len(genotypes), _BATCH):
        # Empty cells drive along, so that few shapes are compiled; in batches, as the search evaluated them.
        found = task.rollout_batch(jax.random.key(seed), jnp.asarray(genotypes[first : first + _BATCH]))
        positions, lengths = np.asarray(found.positions), np.asarray(found.length)
        for cell in filled[(filled >= first) & (filled < first + _BATCH)] - first:
            steps = positions[cell, : lengths[cell]]
            x, y = steps[-1].tolist()
            moving = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1))
            steps = steps[: moving[-1] + 2] if len(moving) else steps[:1]
            near = np.hypot(x - config.target[0], y - config.target[1]) < config.target_radius
            hit = min((distance_to_wall((x, y), wall) for wall in config.all_walls), default=np.inf)
            ends.append(ARRIVED if near else COLLIDED if hit <= config.robot_radius * 1.001 else TIMED_OUT)
            lines.append(np.concatenate([[config.start[:2]], steps]))
    return lines, ends
