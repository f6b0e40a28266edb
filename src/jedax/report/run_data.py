"""All that the page of a run shows, as JSON values; arrays are packed as `jedax.store.packing` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from matplotlib import colormaps

from jedax.repertoire.cells import Cells
from jedax.report import plots
from jedax.report.episode_data import episodes, replay_command
from jedax.report.traces import can_trace, traces
from jedax.store.history import History
from jedax.store.packing import pack
from jedax.store.run import Run
from jedax.targets.pareto import pareto_rank
from jedax.tasks.base import Task
from jedax.tasks.control import layout
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.maze.task import Maze

# Points of all paths in a page: 5.4 bytes each.
_MOST_POINTS = 400_000
_MOST_RANKED = 20_000
_MOST_EXACT = 100_000
# Values of all snapshots of the cells: 2.7 bytes each.
_MOST_KEPT = 400_000
_ANT_LIMITS = ((-6.0, -6.0), (41.0, 41.0))  # with the walls around
_MAPS = ("viridis", "magma", "cividis")


def run_data(found: Run, trace_seconds: float = 0.0, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Return what the scripts of a run's page need; nothing is searched.

    Args:
        found: The run.
        trace_seconds: How long policies may act again, where a solution is an episode; 0: they do not.
        say: What shows how far they are.
    """
    data: dict[str, Any] = {
        "task": _task(found.task),
        "budget": found.config.run.evaluations,
        "evaluations": found.evaluations,
        "generation": found.config.method_config.evaluations_per_generation,  # type: ignore[attr-defined]
        "seed": found.config.run.seed,
        "goal": None if found.task is None else found.task.goal_fitness,
        "rows": _columns(found.rows),
        "phases": found.summary.get("phase_seconds", {}),
        "maps": {name: _colours(name) for name in _MAPS},
        "episodes": None,
        "replay": replay_command(found),
        "space": None,
        "replicas": [],
        "best_replica": 0,
    }
    if found.cells is None or found.repertoire is None:
        return data
    best = np.asarray(found.repertoire.best_fitness)
    order = np.argsort(-best, kind="stable")
    room = _MOST_POINTS // found.replicas
    data["best_replica"] = int(order[0])
    data["space"] = _space(found.cells, found.task)
    data["episodes"], shown = episodes(found, trace_seconds, say)
    data["replicas"] = [_replica(found, replica, room) | (shown[replica] or {}) for replica in range(found.replicas)]
    return data


def _task(task: Task | None) -> dict[str, Any] | None:
    """Return walls, start and target of a maze."""
    if isinstance(task, AntMaze):
        return {"walls": _capsules(), "wall_width": 2 * layout.RADIUS, "limits": _ANT_LIMITS, "start": (0.0, 0.0),
                "target": layout.TARGET, "target_radius": 0.0, "noisy": False}  # fmt: skip
    if not isinstance(task, Maze):
        return None
    config = task.config
    return {
        "walls": config.all_walls,
        "wall_width": 0.0,
        "limits": config.limits,
        "start": config.start,
        "target": config.target,
        "target_radius": config.target_radius,
        "noisy": config.wheel_noise > 0 or config.laser_noise > 0,
    }


def _capsules() -> list[tuple[float, float, float, float]]:
    """Return the lines in the middle of the ant's walls, without their caps."""
    radius = layout.RADIUS
    return [(x1 + radius * (x2 > x1), y1 + radius * (y2 > y1), x2 - radius * (x2 > x1), y2 - radius * (y2 > y1))
            for x1, y1, x2, y2 in layout.WALLS]  # fmt: skip


def _columns(rows: list[dict[str, float]]) -> dict[str, list]:
    """Return the metrics by column; what is not finite is null."""
    names = rows[0] if rows else {}
    return {name: [_number(row.get(name)) for row in rows] for name in names}


def _number(value: Any) -> Any:
    return value if value is not None and np.isfinite(value) else None


def _colours(name: str) -> list[str]:
    shades = (colormaps[name](np.linspace(0, 1, 64))[:, :3] * 255).round().astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*shade) for shade in shades]


def _space(cells: Cells, task: Task | None) -> dict[str, Any]:
    lows, highs = cells.bounds
    names = tuple(getattr(task, "descriptor_names", ()))
    space = {
        "lows": lows,
        "highs": highs,
        "names": [names[axis] if axis < len(names) else f"descriptor {axis + 1}" for axis in range(len(lows))],
        "centroids": [pack(axis) for axis in cells.centroids.T],
        "outlines": None,
    }
    if len(lows) <= 2:
        outlines = _boxes(cells) if cells.shape is not None and len(lows) == 2 else plots.cell_outlines(cells)
        corners = np.concatenate(outlines)
        space["outlines"] = {
            "sizes": [len(outline) for outline in outlines], "x": pack(corners[:, 0]), "y": pack(corners[:, 1])
        }  # fmt: skip
    return space


def _boxes(cells: Cells) -> list[np.ndarray]:
    """Return the corners of a grid's cells, without the detour of a Voronoi diagram."""
    assert cells.shape is not None
    half = np.subtract(cells.bounds[1], cells.bounds[0]) / cells.shape / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    return [centroid + corners for centroid in cells.centroids.astype(float)]


def _replica(found: Run, replica: int, room: int) -> dict[str, Any]:
    repertoire = found.repertoire
    assert repertoire is not None
    assert found.cells is not None
    fitness = np.asarray(repertoire.fitness[replica], float)
    filled = np.isfinite(fitness)
    descriptors = np.where(filled[:, None], np.asarray(repertoire.descriptors[replica], float), np.nan)
    best = np.asarray(repertoire.best_descriptor[replica], float)
    layers: dict[str, Any] = {
        "fitness": _exact(fitness, found.replicas),
        "counts": _exact(repertoire.counts[replica], found.replicas),
        "improved": _exact(repertoire.improved_at[replica], found.replicas),
    }
    if found.gp_mean is not None and found.gp_std is not None and filled.any():
        mean, std = found.gp_mean[replica], found.gp_std[replica]
        layers |= {"gp_mean": pack(mean), "gp_std": pack(std)}
        if len(mean) <= _MOST_RANKED:
            rank = pareto_rank(jax.numpy.asarray(mean), jax.numpy.asarray(std) ** 2, len(mean))
            layers["rank"] = np.asarray(rank).tolist()
    best_fitness = float(repertoire.best_fitness[replica])
    cell = int(np.asarray(found.cells.assign(jax.numpy.asarray(best, jax.numpy.float32)))) if filled.any() else None
    return {
        "seed": found.config.run.seed + replica,
        "layers": layers,
        "descriptors": [pack(axis) for axis in descriptors.T],
        "best": {"fitness": _number(best_fitness), "descriptor": best.tolist(), "cell": cell},
        "traces": _traces(found, replica, fitness, room),
        "episodes": None,
        **_history(found.history if filled.any() else None, replica),
    }


def _exact(values: Any, replicas: int) -> Any:
    """Return numbers as they are, to seven digits, where that does not take too much room; else packed.

    Packed ones are exact to a share of their range, which is nothing much where one of them is far below the others.
    """
    array = np.asarray(values).ravel()
    if array.size * replicas > _MOST_EXACT:
        return pack(array)
    if array.dtype.kind == "i":
        return array.tolist()
    return [_number(float(f"{value:.7g}")) for value in array.tolist()]


def _traces(found: Run, replica: int, fitness: np.ndarray, room: int) -> dict[str, Any] | None:
    if not can_trace(found.task) or not np.isfinite(fitness).any():
        return None
    assert found.task is not None
    assert found.repertoire is not None
    genotypes = np.asarray(found.repertoire.genotypes[replica])
    drawn = traces(found.task, genotypes, fitness, found.config.run.seed + replica, room)
    points = np.concatenate(drawn.lines) if drawn.lines else np.zeros((0, 2))
    return {
        "kind": drawn.kind,
        "cells": drawn.cells.tolist(),
        "sizes": [len(line) for line in drawn.lines],
        "x": pack(points[:, 0]),
        "y": pack(points[:, 1]),
        "ends": list(drawn.ends),
        "every": drawn.every,
        "whole": int(np.nanargmax(np.where(np.isfinite(fitness), fitness, np.nan))),
    }


def _some(kept: Sequence[Any], values: Callable[[Any], np.ndarray]) -> Sequence[Any]:
    """Return as many, evenly spaced, as a page has room for with the values of all replicas."""
    size = values(kept[0]).size if kept else 0
    return kept[:: max(1, -(-len(kept) * size // _MOST_KEPT))]


def _history(history: History | None, replica: int) -> dict[str, Any]:
    if history is None:
        return {"loops": None, "snapshots": [], "gp_snapshots": []}
    snapshots = [
        {"evaluations": s.evaluations, "fitness": pack(s.fitness[replica])}
        for s in _some(history.snapshots, lambda snapshot: snapshot.fitness)
    ]
    loops = history.loops
    with_gp = _some([loop for loop in loops if loop.gp_mean is not None], lambda loop: loop.gp_mean)
    found: dict[str, Any] = {
        "snapshots": snapshots,
        "gp_snapshots": [
            {
                "evaluations": loop.evaluations,
                "gp_mean": pack(loop.gp_mean[replica]),  # type: ignore[index]
                "gp_std": pack(loop.gp_std[replica]),  # type: ignore[index]
            }
            for loop in with_gp
        ],
        "loops": None,
    }
    if not loops and snapshots:
        at = [snapshot["evaluations"] for snapshot in snapshots]
        found["loops"] = {"pool": 0, "evaluations": at, "until": at, "gp": {}}
    if not loops:
        return found

    def both(of: Callable[[Any], np.ndarray | None], like: np.ndarray) -> np.ndarray:
        return np.stack([like * np.nan if (values := of(loop)) is None else values[replica] for loop in loops])

    targets, fitness = loops[0].targets[replica], loops[0].start_fitness[replica]
    places = {"targets": both(lambda loop: loop.targets, targets), "starts": both(lambda loop: loop.starts, targets),
              "ends": both(lambda loop: loop.ends, targets)}  # fmt: skip
    found["loops"] = {
        "every": history.every,
        "pool": len(targets),
        "evaluations": [loop.evaluations for loop in loops],
        "until": [loop.until for loop in loops],
        "alpha": [_number(float(f"{loop.alpha[replica]:.4g}")) for loop in loops],
        "gp": {name: [_number(loop.gp[name][replica]) if name in loop.gp else None for loop in loops]
               for name in loops[0].gp},
        # One array per descriptor, loop by loop and ES by ES.
        **{name: [pack(axis) for axis in np.moveaxis(values, -1, 0)] for name, values in places.items()},
        "start_fitness": _exact(both(lambda loop: loop.start_fitness, fitness), len(loops[0].targets)),
        "end_fitness": _exact(both(lambda loop: loop.end_fitness, fitness), len(loops[0].targets)),
    }  # fmt: skip
    return found
