"""Episodes as a page shows them: JSON values, arrays packed as `jedax.store.packing` does."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.report.rollouts import FEET, MOST_POINTS, WAY, Rollout, kind_of, rollouts, spread
from jedax.store.packing import pack
from jedax.store.run import Run
from jedax.tasks.base import Task
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.control.base import ControlTask
from jedax.tasks.maze.task import Maze
from jedax.tasks.registry import is_custom
from jedax.types import Float, Int

# Bytes of all episodes in a page.
_MOST_BYTES = 2_500_000


def episodes(found: Run, seconds: float, say: Callable[[str], None] | None) -> tuple[dict[str, Any] | None, list]:
    """Return what a page shows of the episodes of a run's solutions.

    Args:
        found: The run.
        seconds: As in `jedax.report.rollouts.rollouts`; 0: no episodes.
        say: As there.

    Returns:
        What holds for all replicas, None for tasks without episodes: `kind`, `feet` (their names), `most_points`, and
        `missing`, what is lacking to simulate the task; and for each replica None or `episodes` and `traces`.
    """
    kind = kind_of(found.task)
    nothing: list[dict[str, Any] | None] = [None] * found.replicas
    if kind is None or found.repertoire is None:
        return None, nothing
    assert found.task is not None
    about = {"kind": kind, "feet": _feet(found.task), "most_points": MOST_POINTS, "missing": ""}
    if seconds <= 0:
        return about, nothing
    stored = found.repertoire
    fitness, descriptors = np.asarray(stored.fitness, float), np.asarray(stored.descriptors, float)
    orders = [spread(d, f, found.task.descriptor_bounds) for d, f in zip(descriptors, fitness, strict=True)]
    try:
        acted = rollouts(found.task, stored.genotypes, orders, seconds=seconds, most_bytes=_MOST_BYTES, say=say)
    except JedaxError as error:
        return {**about, "missing": str(error)}, nothing
    return about, [_shown(found.task, mine, kind, its) for mine, its in zip(acted, fitness, strict=True)]


def episode(found: Run, replica: int, cell: int) -> dict[str, Any]:
    """Return what a page shows of the episode of one solution, as `episodes` does of many.

    Raises:
        JedaxError: There is no such solution, or no way to let it act.
    """
    kind, stored = kind_of(found.task), found.repertoire
    known = stored is not None and 0 <= replica < found.replicas and 0 <= cell < stored.fitness.shape[1]
    if kind is None or stored is None or not known or not np.isfinite(stored.fitness[replica, cell]):
        raise fail("episode", expected="a cell with a policy", received=f"cell {cell}", remedy="choose another")
    assert found.task is not None
    genotypes = stored.genotypes[replica : replica + 1]
    (acted,) = rollouts(found.task, genotypes, [np.array([cell])], seconds=0, most_bytes=np.inf)
    return _shown(found.task, acted, kind, np.asarray(stored.fitness[replica], float))


def replay_command(found: Run) -> str:
    """Return the command that shows a solution of a run, but for the cell; empty: there is none for its task."""
    known = isinstance(found.task, Maze | ControlTask) and not is_custom(found.config.task)
    return f"jedax replay {shlex.quote(str(found.path))}" if known else ""


def _shown(task: Task, acted: Sequence[Rollout], kind: str, fitness: Float[np.ndarray, " cells"]) -> dict[str, Any]:
    start = (0.0, 0.0) if isinstance(task, AntMaze) else None
    return {"episodes": _packed(acted, kind, fitness), "traces": _ways(acted, start) if kind == WAY else None}


def _feet(task: Task) -> list[str]:
    if kind_of(task) != FEET:
        return []
    names = getattr(task, "descriptor_names", ())
    return [name.removesuffix(" on the floor").removeprefix("share of ") for name in names]


def kept(length: int) -> Int[np.ndarray, " points"]:
    """Return the numbers, from 0, of the steps whose return, and place, a page holds: evenly spread, and the last."""
    every = max(1, -(-length // MOST_POINTS))
    return np.append(np.arange(every - 1, length - 1, every), length - 1)


def _packed(acted: Sequence[Rollout], kind: str, fitness: Float[np.ndarray, " cells"]) -> dict[str, Any]:
    """Return the episodes of a replica.

    Returns:
        `cells`, `lengths` (steps of each), `returns` (packed, the sum of rewards up to the steps that `kept` names),
        `departs` (cells whose return is not the fitness that the run recorded), and for `FEET` `contacts` (base64, a
        bit for each foot of each step, the lowest bit of a byte first).
    """
    returns = [np.cumsum(one.rewards, dtype=np.float64) for one in acted]
    recorded = [fitness[one.cell] for one in acted]
    finals = [sums[-1] for sums in returns]
    packed: dict[str, Any] = {
        "cells": [one.cell for one in acted],
        "lengths": [len(one.rewards) for one in acted],
        "returns": pack(_joined([sums[kept(len(sums))] for sums in returns])),
        "departs": [
            one.cell
            for one, final, fit in zip(acted, finals, recorded, strict=True)
            if not np.isclose(final, fit, rtol=1e-3, atol=1e-2)
        ],
    }
    if kind == FEET:
        bits = _joined([one.seen.ravel() for one in acted]).astype(bool)
        packed["contacts"] = base64.b64encode(np.packbits(bits, bitorder="little").tobytes()).decode()
    return packed


def _ways(acted: Sequence[Rollout], start: Sequence[float] | None) -> dict[str, Any]:
    """Return the ways of robots as `traces` in `jedax.report.run_data`, from their start on where it is known."""
    first = np.zeros((0, 2)) if start is None else np.asarray([start], float)
    lines = [np.concatenate([first, one.seen[kept(len(one.seen))]]) for one in acted]
    points = np.concatenate([np.zeros((0, 2)), *lines])
    return {
        "kind": WAY,
        "cells": [one.cell for one in acted],
        "sizes": [len(line) for line in lines],
        "x": pack(points[:, 0]),
        "y": pack(points[:, 1]),
        "ends": [],
        "every": max((-(-len(one.rewards) // MOST_POINTS) for one in acted), default=1),
        "whole": None,
    }


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *arrays])
