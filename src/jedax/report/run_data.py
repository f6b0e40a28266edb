"""All that the page of a run shows: texts, and JSON values whose arrays are packed as `jedax.store.packing` does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import jax
import numpy as np
from matplotlib import colormaps

from jedax.errors import jedax_command
from jedax.imports import is_custom
from jedax.repertoire.cells import Cells
from jedax.report import plots
from jedax.report.episodes import episodes, lines_of, packed_lines
from jedax.report.numbers import decimals_for, fitness_text, share_text
from jedax.search.failures import ALL_FAILED
from jedax.store.history import History
from jedax.store.packing import pack
from jedax.store.run import ONLY_REEVALUATION, Run
from jedax.tasks.base import Task, reaches
from jedax.tasks.drawing import drawing_of
from jedax.tasks.registry import title_of

# Points of all paths in a page: 5.4 bytes each.
_MOST_POINTS = 400_000
_MOST_RANKED = 20_000
_MOST_EXACT = 100_000
_MOST_PARAMETERS = 50
# Values of all snapshots of the cells: 2.7 bytes each.
_MOST_KEPT = 400_000
_MAPS = ("viridis", "magma", "cividis")
_STATUS = {
    "running": "has not ended",
    "finished": "budget spent",
    "goal": "stopped: reached its stop fitness",
    "time": "stopped: its time was over",
    "interrupted": "was interrupted",
    "callback": "stopped by a callback",
}


def run_data(found: Run, trace_seconds: float = 0.0, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Return what the scripts of a run's page need; policies act again for `trace_seconds`, `say` shows progress."""
    scene, method = drawing_of(found.task).scene(), found.method
    data: dict[str, Any] = {
        "scene": None if scene is None else jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), asdict(scene)),
        "budget": found.config.run.evaluations,
        "evaluations": found.evaluations,
        "generation": None if method is None else method.evaluations_per_generation,
        "seed": found.config.run.seed,
        "goal": None if found.task is None else found.task.goal_fitness,
        "rows": {name: [_number(row.get(name)) for row in found.rows] for name in (found.rows or [{}])[0]},
        "phases": found.summary.get("phase_seconds", {}),
        "maps": {name: _colours(name) for name in _MAPS},
        "episodes": None,
        "replay": _replay_command(found),
        "space": None,
        "replicas": [],
        "best_replica": 0,
    }
    if found.cells is None or found.repertoire is None:
        return data
    data["best_replica"] = found.best_replica
    data["space"] = _space(found.cells, found.task)
    data["episodes"], shown = episodes(found, trace_seconds, say)
    data["replicas"] = [_replica(found, replica) | (shown[replica] or {}) for replica in range(found.replicas)]
    return data


def _replay_command(found: Run) -> str:
    """Return the command, without the cell, that shows a solution of a run; empty: its task has none."""
    known = drawing_of(found.task).can_replay and not is_custom(found.config.task)
    return jedax_command("replay", found.path) if known else ""


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
    best = np.asarray(repertoire.best_descriptor[replica])
    layers: dict[str, Any] = {
        "fitness": _exact(fitness, found.replicas),
        "counts": _exact(repertoire.counts[replica], found.replicas),
        "improved": _exact(repertoire.improved_at[replica], found.replicas),
    }
    if found.gp_mean is not None and found.gp_std is not None and filled.any():
        mean, std = found.gp_mean[replica], found.gp_std[replica]
        layers |= {"gp_mean": pack(mean), "gp_std": pack(std)}
        if len(mean) <= _MOST_RANKED:
            layers["rank"] = plots.pareto_ranks(mean, std).astype(int).tolist()
    seed = found.config.run.seed + replica
    genotypes, room = np.asarray(repertoire.genotypes[replica]), _MOST_POINTS // found.replicas
    drawing = drawing_of(found.task)
    lines, every = lines_of(drawing, genotypes, fitness, seed, room)
    shown = packed_lines(lines, every=every, whole=next(iter(lines), None), joints=drawing.marks_points)
    return {
        "seed": seed,
        "layers": layers,
        "descriptors": [_exact(axis, found.replicas) for axis in descriptors.T],
        "best": {
            "fitness": _number(float(repertoire.best_fitness[replica])),
            "descriptor": [_number(value) for value in best.tolist()],
            "cell": int(cells.assign_on_host(best)) if filled.any() else None,
        },
        "traces": shown if lines else None,
        "parameters": None if lines else _parameters(found.task, genotypes, fitness, _MOST_EXACT // found.replicas),
        "episodes": None,
        **_history(found.history if filled.any() else None, replica),
    }


def _parameters(task: Task | None, genotypes: np.ndarray, fitness: np.ndarray, room: int) -> dict[str, Any] | None:
    """Return the parameters of solutions by cell, in the units of the task's space; None: too many to read.

    Where not all numbers have room, the worst solutions are left out.
    """
    number, space = genotypes.shape[1], getattr(task, "space", None)
    if number > _MOST_PARAMETERS:
        return None
    filled = np.flatnonzero(np.isfinite(fitness))
    cells = np.sort(filled[np.argsort(-fitness[filled], kind="stable")][: room // number])
    names = [f"parameter {n + 1}" for n in range(number)] if space is None else list(space.names)
    rows = genotypes[cells].tolist()
    if space is not None:
        rows = [list(named.values()) for named in space.dicts(genotypes[cells])]
    short = [[_number(float(f"{v:.7g}")) if isinstance(v, float) else v for v in row] for row in rows]
    return {"names": names, "cells": cells.tolist(), "rows": short}


def _exact(values: Any, replicas: int) -> Any:
    """Return numbers as they are, to seven digits, where that does not take too much room; else packed.

    Packed ones are exact to a share of their range.
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


def head_of(found: Run) -> dict[str, Any]:
    """Return the top of a run's page, as texts; the kind of the badge is "good", "warn" or ""."""
    config, run = found.config, found.config.run
    best = _best(found)
    goal = None if found.task is None else found.task.goal_fitness
    reached = [] if goal is None else reaches(best, goal).tolist()
    badge, kind = _badge(best, reached, found.status == "running")
    several = run.replicas > 1
    seeds = f"{run.seed} to {run.seed + run.replicas - 1}" if several else str(run.seed)
    # Name, value and a remark of each number that a reader looks for first.
    facts = [
        *_results(found, best, goal),
        ("evaluations", f"{found.evaluations:,}", f"of {run.evaluations:,}{' each' if several else ''}"),
        ("duration", _duration(found), _STATUS.get(found.status, found.status)),
        ("method", config.method, "" if config.label in ("", config.method) else config.label),
        ("seeds" if several else "seed", seeds, ""),
    ]
    return {
        "task": title_of(config.task, config.task_config),
        "method": config.label or config.method,
        "badge": badge,
        "badge_kind": kind,
        "lead": _lead(found, best, reached),
        "facts": facts,
        "command": _command(found.environment),
        "missing": found.missing,
        "is_whole": all(sentence.startswith(ONLY_REEVALUATION) for sentence in found.missing),
    }


def _best(found: Run) -> list[float]:
    """Return the best fitness of each replica, as far as is known."""
    if found.repertoire is not None:
        return np.asarray(found.repertoire.best_fitness, float).tolist()
    last = {row.get("replica", 0): row.get("max_fitness", np.nan) for row in found.rows}
    return [value for _, value in sorted(last.items())]


def _badge(best: list[float], reached: list[bool], is_running: bool) -> tuple[str, str]:
    """Return whether the goal was reached, in a few words, and the kind of the badge."""
    if best and not np.isfinite(best).any():
        return "no solution", "warn"
    if not reached:
        return "has not ended" if is_running else "ended", ""
    if any(reached) and len(reached) > 1:
        return f"{sum(reached)} of {len(reached)} seeds reached the goal", "good" if all(reached) else ""
    if any(reached):
        return "reached the goal", "good"
    return ("has not reached the goal so far", "") if is_running else ("did not reach the goal", "warn")


def _results(found: Run, best: list[float], goal: float | None) -> list[tuple[str, str, str]]:
    if not best:
        return []
    facts = [("best fitness", _fitness(max(best)), "" if goal is None else f"goal {goal:g}")]
    if len(best) > 1:
        facts.append(("median of the seeds", _fitness(float(np.median(best))), ""))
    if found.repertoire is not None:
        filled = np.isfinite(np.asarray(found.repertoire.fitness))
        coverage = share_text(float(np.median(filled.mean(axis=1))))
        facts.append(("coverage", coverage, f"of {filled.shape[1]:,} cells"))
    return facts


def _fitness(value: float) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{value:.2g}" if 0 < abs(value) < 1e-4 else fitness_text(value, decimals_for([value]))


def _duration(found: Run) -> str:
    seconds = found.summary.get("wall_seconds") or (found.rows[-1].get("seconds") if found.rows else None)
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return "unknown"
    if seconds < 120:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _command(environment: dict[str, Any]) -> str:
    command = str(environment.get("command") or "")
    return "jedax" + command.removeprefix("__main__.py") if command.startswith("__main__.py") else command


def _lead(found: Run, best: list[float], reached: list[bool]) -> str:
    drawing = drawing_of(found.task)
    parts = [f"Wanted: {drawing.wanted}."]
    if best and not math.isfinite(max(best)):
        parts.append(ALL_FAILED)
    elif best:
        achieved = drawing.outcome(max(best), reached=any(reached))
        if achieved is None:
            ending = "" if not reached else ", which reaches the goal" if any(reached) else ", short of the goal"
            achieved = f"has fitness {_fitness(max(best))}{ending}"
        seeds = f" of {found.replicas} seeds" if found.replicas > 1 else ""
        tried = f"After {found.evaluations:,} evaluations (solutions that were tried)"
        parts.append(f"{tried}, the best {drawing.solution}{seeds} {achieved}.")
    if found.method is not None:
        parts.append(found.method.lead())
    return " ".join(filter(None, parts))


def how_to_read(found: Run) -> str:
    """Return how the map is read, in a few sentences."""
    use = "Brighter is better. Point at a cell to see its values, choose it to see what its solution does."
    return f"{drawing_of(found.task).map_text} {use}"


def how_it_searched(found: Run) -> str:
    """Return how the method searched, in a few sentences."""
    drawing, method = drawing_of(found.task), found.method
    return "How the cells filled." if method is None else method.describe_search(drawing.solution, drawing.place)


def words(found: Run) -> list[tuple[str, str]]:
    """Return the words of the page and what they mean."""
    offset = "an offset" if found.task is None else f"{found.task.qd_offset:g}"
    return [
        ("fitness", "How good a solution is; higher is better."),
        ("descriptor, behaviour", "How a solution behaves, as a few numbers; the axes of the map."),
        ("cell", "A piece of the behaviour space. It keeps the best solution that fell into it."),
        ("coverage", "The share of cells that hold a solution."),
        ("QD score", f"Fitness above {offset}, summed over all filled cells."),
        ("evaluations here", "How often a solution that was tried fell into the cell, whether it was kept or not."),
        *(found.method.glossary() if found.method else ()),
    ]
