"""What solutions do, on a page: lines, such as a path through a maze, and episodes of policies, step by step."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.report.numbers import agrees
from jedax.store.packing import pack
from jedax.store.run import Run
from jedax.tasks.drawing import FEET, WAY, Episodes, TaskDrawing, Trace, drawing_of
from jedax.types import Float, Int, Shaped

MOST_POINTS = 120
"""Steps of an episode whose return, and place, a page holds; feet are kept of every step."""

_MOST_BYTES = 2_500_000  # of all episodes in a page
_BYTES = 8 / 3  # of a packed number
_SECONDS_BETWEEN_LINES = 5.0


class Rollout(NamedTuple):
    """One episode of a cell's solution: rewards, and what was seen, as in `jedax.tasks.drawing.Episodes`."""

    cell: int
    rewards: Float[np.ndarray, " steps"]
    seen: Shaped[np.ndarray, "steps seen"]


def episodes(found: Run, seconds: float, say: Callable[[str], None] | None) -> tuple[dict[str, Any] | None, list]:
    """Return what a page shows of the episodes of a run's solutions, simulated for some seconds as in `rollouts`.

    The first value holds for all replicas, None for tasks without episodes: `why` is why an episode may differ from the
    search, `missing` why none can be simulated. The second holds for each replica what `packed` returns, or None.
    """
    nothing = [None] * found.replicas
    drawing, stored = drawing_of(found.task), found.repertoire
    acting = drawing.episodes()
    if acting is None or stored is None:
        return None, nothing
    about = {"kind": acting.kind, "feet": acting.feet, "most_points": MOST_POINTS, "why": drawing.why_different}
    if seconds <= 0:
        return about | {"missing": ""}, nothing
    fitness, descriptors = np.asarray(stored.fitness, float), np.asarray(stored.descriptors, float)
    orders = [spread(d, f, drawing.task.descriptor_bounds) for d, f in zip(descriptors, fitness, strict=True)]
    try:
        acted = rollouts(acting, stored.genotypes, orders, seconds=seconds, most_bytes=_MOST_BYTES, say=say)
    except JedaxError as error:
        return about | {"missing": str(error)}, nothing
    return about | {"missing": ""}, [packed(acting, mine, its) for mine, its in zip(acted, fitness, strict=True)]


def episode(found: Run, replica: int, cell: int) -> dict[str, Any]:
    """Return what a page shows of the episode of one solution, as `packed` does of many."""
    acting, stored = drawing_of(found.task).episodes(), found.repertoire
    known = stored is not None and 0 <= replica < found.replicas and 0 <= cell < stored.fitness.shape[1]
    if acting is None or stored is None or not known or not np.isfinite(stored.fitness[replica, cell]):
        raise fail("episode", expected="a cell with a policy", received=f"cell {cell}", remedy="choose another")
    genotypes = stored.genotypes[replica : replica + 1]
    (acted,) = rollouts(acting, genotypes, [np.array([cell])], seconds=0, most_bytes=np.inf)
    return packed(acting, acted, np.asarray(stored.fitness[replica], float))


def spread(
    descriptors: Float[np.ndarray, "cells descriptor"], fitness: Float[np.ndarray, " cells"],
    bounds: tuple[Sequence[float], Sequence[float]],
) -> Int[np.ndarray, " filled"]:  # fmt: skip
    """Return the filled cells, such that every beginning of the list is good and spread over the descriptor space.

    The best comes first; then the best that is left in each quarter of the space (of two descriptors), then in each
    sixteenth, and so on. Cells whose fitness is not finite are empty.
    """
    filled = np.flatnonzero(np.isfinite(fitness))
    left = filled[np.argsort(-fitness[filled], kind="stable")]
    lows, highs = np.asarray(bounds[0], float), np.asarray(bounds[1], float)
    places = np.clip((descriptors[left] - lows) / (highs - lows), 0, 1 - 1e-9)
    chosen = [left[:0]]
    pieces = 1
    while len(left):
        firsts = np.sort(np.unique((places * pieces).astype(np.int64), axis=0, return_index=True)[1])
        chosen.append(left[firsts])
        left, places = np.delete(left, firsts), np.delete(places, firsts, axis=0)
        pieces = min(2 * pieces, 2**40)
    return np.concatenate(chosen)


def rollouts(
    acting: Episodes, genotypes: Any, orders: Sequence[np.ndarray], *, seconds: float, most_bytes: float,
    say: Callable[[str], None] | None = None,
) -> list[list[Rollout]]:  # fmt: skip
    """Return episodes of each replica: solutions act again, batch by batch, while there is time and room.

    `genotypes` are `(replicas, cells, params)`; `orders` are the cells of each replica, and the replicas take turns. A
    batch begins only if it would end within so many seconds, judged by the batch before; at least one batch acts.
    """
    found: list[list[Rollout]] = [[] for _ in orders]
    total, done, room = sum(map(len, orders)), 0, most_bytes
    began = shown = time.monotonic()
    firsts = range(0, max(map(len, orders), default=0), acting.batch)
    turns = [(replica, order[at : at + acting.batch]) for at in firsts for replica, order in enumerate(orders)]
    for replica, cells in turns:
        if not len(cells):
            continue
        before = time.monotonic()
        acted = acting.act(np.asarray(genotypes[replica][cells], np.float32))
        for cell, (rewards, seen) in zip(cells, acted, strict=True):
            points = min(len(rewards), MOST_POINTS) + 1
            room -= _BYTES * points + (seen.size / 6 if seen.dtype == bool else 2 * _BYTES * points)
            if room >= 0 or not done:
                found[replica].append(Rollout(int(cell), rewards, seen))
                done += 1
        now = time.monotonic()
        over = now - began + (now - before) > seconds or room < 0
        if say is not None and (over or done == total or now - shown >= _SECONDS_BETWEEN_LINES):
            shown = now
            more = "; more with a higher --trace-seconds" if over and room >= 0 and done < total else ""
            say(f"episodes of {done:,} of {total:,} solutions acted again in {now - began:.0f} s{more}")
        if over:
            break
    return found


def packed(acting: Episodes, acted: Sequence[Rollout], fitness: Float[np.ndarray, " cells"]) -> dict[str, Any]:
    """Return the episodes of a replica as JSON values; `fitness` is what the run recorded for each cell.

    `returns` are the sums of rewards up to the steps that `kept` names, `departs` the cells whose return is not the
    recorded fitness. For `FEET`, `contacts` holds a bit for each foot of each step, the lowest bit of a byte first.
    """
    returns = [np.cumsum(one.rewards, dtype=np.float64) for one in acted]
    cells = np.array([one.cell for one in acted], int)
    departs = ~agrees([sums[-1] for sums in returns], fitness[cells], fitness)
    shown: dict[str, Any] = {
        "cells": cells.tolist(),
        "lengths": [len(one.rewards) for one in acted],
        "returns": pack(_joined([sums[kept(len(sums))] for sums in returns])),
        "departs": cells[departs].tolist(),
    }
    if acting.kind == FEET:
        bits = np.packbits(_joined([one.seen.ravel() for one in acted]).astype(bool), bitorder="little")
        shown["contacts"] = base64.b64encode(bits.tobytes()).decode()
    if acting.kind != WAY:
        return {"episodes": shown}
    start = np.reshape(acting.start or (), (-1, 2))
    ways = {one.cell: Trace(np.concatenate([start, one.seen[kept(len(one.seen))]]), "The way of the robot")
            for one in acted}  # fmt: skip
    return {"episodes": shown, "traces": packed_lines(ways)}


def kept(length: int) -> Int[np.ndarray, " points"]:
    """Return the indices of the steps that a page shows: evenly spread, and the last."""
    every = max(1, -(-length // MOST_POINTS))
    return np.append(np.arange(every - 1, length - 1, every), length - 1)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *arrays])


def packed_lines(
    lines: Mapping[int, Trace], *, every: int = 1, whole: int | None = None, joints: bool = False
) -> dict[str, Any]:
    """Return the line of each cell as JSON values.

    One point in `every` was kept, and always the last; the line of the cell `whole` has all its points; `joints`: the
    points are marked.
    """
    points = np.concatenate([np.zeros((0, 2)), *(line.points for line in lines.values())])
    endings = list(dict.fromkeys(line[1:] for line in lines.values()))
    return {
        "cells": [int(cell) for cell in lines],
        "sizes": [len(line.points) for line in lines.values()],
        "x": pack(points[:, 0]),
        "y": pack(points[:, 1]),
        "endings": [{"caption": caption, "mark": mark} for caption, mark in endings],
        "ends": [endings.index(line[1:]) for line in lines.values()],
        "every": every,
        "whole": whole,
        "joints": joints,
    }


def lines_of(
    drawing: TaskDrawing, genotypes: Float[np.ndarray, "cells params"], fitness: Float[np.ndarray, " cells"], seed: int,
    most_points: int,
) -> tuple[dict[int, Trace], int]:  # fmt: skip
    """Return a line for each filled cell, the best first, and that one point in so many was kept.

    With more than `most_points` in all, points in between are left out, and then the lines of the worst cells; the best
    line stays whole. Tasks that draw no lines give none.
    """
    best_first = [cell for cell in np.argsort(-fitness, kind="stable").tolist() if np.isfinite(fitness[cell])]
    found = drawing.traces(genotypes, seed) if best_first else None
    if found is None:
        return {}, 1
    total = sum(len(found[cell].points) for cell in best_first)
    every = 1 if drawing.marks_points else min(8, max(1, -(-total // max(1, most_points))))
    lines: dict[int, Trace] = {}
    for cell in best_first:
        points = found[cell].points
        if lines and every > 1:
            points = np.concatenate([points[:-1:every], points[-1:]])
        most_points -= len(points)
        if lines and most_points < 0:
            break
        lines[cell] = found[cell]._replace(points=points)
    return lines, every
