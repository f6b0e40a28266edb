"""Episodes of policies on a page: what each step earned, which feet touched the floor, where the robot went."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.report.traces import packed_lines
from jedax.store.packing import pack
from jedax.store.run import Run
from jedax.tasks.drawing import FEET, WAY, Episodes, Trace, drawing_of
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
    """Return what a page shows of the episodes of a run's solutions.

    Args:
        found: The run.
        seconds: As in `rollouts`; 0: no episodes.
        say: As there.

    Returns:
        What holds for all replicas, None for tasks without episodes: `kind`, `feet`, `most_points`, `why` an episode
        may differ from the search, and `missing`, why nothing can act; and for each replica what `packed` returns, or
        None.
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
    """Return what a page shows of the episode of one solution, as `packed` does of many.

    Raises:
        JedaxError: There is no such solution, or it cannot act.
    """
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
    """Let solutions act again, batch by batch, until all have or there is no more time or room.

    Args:
        acting: How policies act.
        genotypes: `(replicas, cells, params)`.
        orders: For each replica its cells, the first first; the replicas take turns.
        seconds: A batch begins only if it would end within so many seconds, compilation included, judged by the batch
            before; at least one batch acts.
        most_bytes: Room for all episodes in a page.
        say: What shows progress, a line now and then.

    Returns:
        Episodes of each replica, in order.

    Raises:
        JedaxError: What simulates the task is not installed.
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
            room -= _size(len(rewards), seen)
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


def _size(length: int, seen: np.ndarray) -> float:
    points = min(length, MOST_POINTS) + 1
    return _BYTES * points + (seen.size / 6 if seen.dtype == bool else 2 * _BYTES * points)


def packed(acting: Episodes, acted: Sequence[Rollout], fitness: Float[np.ndarray, " cells"]) -> dict[str, Any]:
    """Return the episodes of a replica as JSON values; `fitness` is what the run recorded for each cell.

    Returns:
        `episodes`: `cells`, `lengths` (steps of each), `returns` (packed, the sum of rewards up to the steps that
        `kept` names), `departs` (cells whose return is not the recorded fitness), and for `FEET` `contacts` (base64, a
        bit for each foot of each step, the lowest bit of a byte first). `traces`: for `WAY` the ways of the robots.
    """
    returns = [np.cumsum(one.rewards, dtype=np.float64) for one in acted]
    finals = [(one.cell, sums[-1]) for one, sums in zip(acted, returns, strict=True)]
    shown: dict[str, Any] = {
        "cells": [one.cell for one in acted],
        "lengths": [len(one.rewards) for one in acted],
        "returns": pack(_joined([sums[kept(len(sums))] for sums in returns])),
        "departs": [cell for cell, final in finals if not np.isclose(final, fitness[cell], rtol=1e-3, atol=1e-2)],
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
    """Return the numbers, from 0, of the steps whose return, and place, a page holds: evenly spread, and the last."""
    every = max(1, -(-length // MOST_POINTS))
    return np.append(np.arange(every - 1, length - 1, every), length - 1)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *arrays])
