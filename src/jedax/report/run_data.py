"""All that the page of a run shows, as JSON values; arrays are packed as `jedax.store.packing` does."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib import colormaps

from jedax.imports import is_custom
from jedax.repertoire.cells import Cells
from jedax.report import plots
from jedax.report.episodes import episodes
from jedax.report.traces import lines_of, packed_lines
from jedax.store.history import History
from jedax.store.packing import pack
from jedax.store.run import Run
from jedax.targets.pareto import pareto_rank
from jedax.tasks.base import Task
from jedax.tasks.drawing import drawing_of

# Points of all paths in a page: 5.4 bytes each.
_MOST_POINTS = 400_000
_MOST_RANKED = 20_000
_MOST_EXACT = 100_000
# Values of all snapshots of the cells: 2.7 bytes each.
_MOST_KEPT = 400_000
_MAPS = ("viridis", "magma", "cividis")


def run_data(found: Run, trace_seconds: float = 0.0, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Return what the scripts of a run's page need.

    Args:
        found: The run.
        trace_seconds: How long policies may act again, where a solution is an episode; 0: they do not.
        say: What shows progress, a line now and then.
    """
    scene, method = drawing_of(found.task).scene(), found.method
    data: dict[str, Any] = {
        "scene": None if scene is None else asdict(scene),
        "budget": found.config.run.evaluations,
        "evaluations": found.evaluations,
        "generation": None if method is None else method.evaluations_per_generation,
        "seed": found.config.run.seed,
        "goal": None if found.task is None else found.task.goal_fitness,
        "rows": {name: [_number(row.get(name)) for row in found.rows] for name in (found.rows or [{}])[0]},
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
    data["best_replica"] = int(np.argmax(found.repertoire.best_fitness))
    data["space"] = _space(found.cells, found.task)
    data["episodes"], shown = episodes(found, trace_seconds, say)
    data["replicas"] = [_replica(found, replica) | (shown[replica] or {}) for replica in range(found.replicas)]
    return data


def replay_command(found: Run) -> str:
    """Return the command that shows a solution of a run, but for the cell; empty: there is none for its task."""
    known = drawing_of(found.task).can_replay and not is_custom(found.config.task)
    return f"jedax replay {shlex.quote(str(found.path))}" if known else ""


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
        outlines = plots.cell_outlines(cells)
        corners = np.concatenate(outlines)
        space["outlines"] = {
            "sizes": [len(outline) for outline in outlines], "x": pack(corners[:, 0]), "y": pack(corners[:, 1])
        }  # fmt: skip
    return space


def _replica(found: Run, replica: int) -> dict[str, Any]:
    repertoire, cells = found.repertoire, found.cells
    assert repertoire is not None
    assert cells is not None
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
            layers["rank"] = np.asarray(pareto_rank(jnp.asarray(mean), jnp.asarray(std) ** 2, len(mean))).tolist()
    seed = found.config.run.seed + replica
    genotypes, room = np.asarray(repertoire.genotypes[replica]), _MOST_POINTS // found.replicas
    drawing = drawing_of(found.task)
    lines, every = lines_of(drawing, genotypes, fitness, seed, room)
    shown = packed_lines(lines, every=every, whole=next(iter(lines), None), joints=drawing.marks_points)
    return {
        "seed": seed,
        "layers": layers,
        "descriptors": [pack(axis) for axis in descriptors.T],
        "best": {
            "fitness": _number(float(repertoire.best_fitness[replica])),
            "descriptor": best.tolist(),
            "cell": int(np.asarray(cells.assign(jnp.asarray(best, jnp.float32)))) if filled.any() else None,
        },
        "traces": shown if lines else None,
        "episodes": None,
        **_history(found.history if filled.any() else None, replica),
    }


def _exact(values: Any, replicas: int) -> Any:
    """Return numbers as they are, to seven digits, where that does not take too much room; else packed.

    Packed ones are exact to a share of their range, which is too little where one of them is far below the others.
    """
    array = np.asarray(values).ravel()
    if array.size * replicas > _MOST_EXACT:
        return pack(array)
    if array.dtype.kind == "i":
        return array.tolist()
    return [_number(float(f"{value:.7g}")) for value in array.tolist()]


def _some(kept: Sequence[Any], values: Callable[[Any], np.ndarray]) -> Sequence[Any]:
    """Return as many, evenly spaced, as a page has room for with the values of all replicas."""
    size = values(kept[0]).size if kept else 0
    return kept[:: max(1, -(-len(kept) * size // _MOST_KEPT))]


def _history(history: History | None, replica: int) -> dict[str, Any]:
    if history is None:
        return {"loops": None, "snapshots": [], "gp_snapshots": []}
    loops = history.loops
    snapshots = [
        {"evaluations": s.evaluations, "fitness": pack(s.fitness[replica])}
        for s in _some(history.snapshots, lambda snapshot: snapshot.fitness)
    ]
    with_gp = _some([loop for loop in loops if loop.gp_mean is not None], lambda loop: loop.gp_mean)
    gp_snapshots = [
        {"evaluations": loop.evaluations, "gp_mean": pack(loop.gp_mean[replica]), "gp_std": pack(loop.gp_std[replica])}
        for loop in with_gp
    ]
    shown = None
    if loops:
        shown = _loops(history, replica)
    elif snapshots:
        at = [snapshot["evaluations"] for snapshot in snapshots]
        shown = {"pool": 0, "evaluations": at, "until": at, "gp": {}}
    return {"snapshots": snapshots, "gp_snapshots": gp_snapshots, "loops": shown}


def _loops(history: History, replica: int) -> dict[str, Any]:
    loops, first = history.loops, history.loops[0]

    def all_of(name: str, like: np.ndarray) -> np.ndarray:
        """Return an array of every loop, stacked; NaN for a loop without it."""
        values = (getattr(loop, name) for loop in loops)
        return np.stack([np.full_like(like[replica], np.nan) if v is None else v[replica] for v in values])

    # One array per descriptor, loop by loop and ES by ES.
    places = {
        name: [pack(axis) for axis in np.moveaxis(all_of(name, first.targets), -1, 0)]
        for name in ("targets", "starts", "ends")
    }
    fitness = {
        name: _exact(all_of(name, first.start_fitness), len(first.targets)) for name in ("start_fitness", "end_fitness")
    }
    return {
        "every": history.every,
        "pool": first.targets.shape[1],
        "evaluations": [loop.evaluations for loop in loops],
        "until": [loop.until for loop in loops],
        "alpha": [_number(float(f"{loop.alpha[replica]:.4g}")) for loop in loops],
        "gp": {
            name: [_number(loop.gp[name][replica]) if name in loop.gp else None for loop in loops] for name in first.gp
        },
        **places,
        **fitness,
    }
