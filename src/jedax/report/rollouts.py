"""Episodes of policies once more: what each step earned, which feet touched the floor, where the robot went."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.tasks.base import Task
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.control.base import ControlTask
from jedax.tasks.control.locomotion import Locomotion
from jedax.tasks.gym.task import Gym
from jedax.tasks.playground.task import Playground
from jedax.types import Float, Int, Shaped

FEET, WAY, RETURN = "feet", "way", "return"

MOST_POINTS = 120
"""Steps of an episode whose return, and place, a page holds; feet are kept of every step."""

# Playground's robots that act side by side; Brax's are as many as a part of a batch in a search, to round alike.
_PLAYGROUND = 16
_BYTES = 8 / 3  # of a packed number
_SECONDS_BETWEEN_LINES = 5.0

_Watch = Callable[[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]


@dataclass(frozen=True, eq=False)
class Rollout:
    """One episode of a cell's solution.

    Attributes:
        cell: Whose solution it is.
        rewards: `(steps,)`, of the steps that count.
        seen: After each of them: `(steps, feet)`, whether each foot touches the floor; `(steps, 2)`, where the robot
            is; or `(steps, 0)`; by the kind of the task.
    """

    cell: int
    rewards: Float[np.ndarray, " steps"]
    seen: Shaped[np.ndarray, "steps seen"]


def kind_of(task: Task | None) -> str | None:
    """Return what an episode shows beside its return, or None for tasks without episodes.

    Returns:
        `FEET`: contacts; `WAY`: x and y; `RETURN`: nothing else.
    """
    if isinstance(task, Locomotion):
        return FEET
    if isinstance(task, AntMaze):
        return WAY
    if isinstance(task, Gym | Playground):
        return {"feet-contact": FEET, "final-xy": WAY}.get(task.config.descriptor, RETURN)
    return RETURN if isinstance(task, ControlTask) else None


def spread(
    descriptors: Float[np.ndarray, "cells descriptor"], fitness: Float[np.ndarray, " cells"],
    bounds: tuple[Sequence[float], Sequence[float]],
) -> Int[np.ndarray, " filled"]:  # fmt: skip
    """Return the filled cells, such that every beginning of the list is good and spread over the descriptor space.

    The best comes first; then the best that is left in each quarter of the space (of two descriptors), then in each
    sixteenth, and so on.

    Args:
        descriptors: Of the cells' solutions.
        fitness: Not finite: empty.
        bounds: Lows and highs of the descriptors.
    """
    filled = np.flatnonzero(np.isfinite(fitness))
    left = filled[np.argsort(-fitness[filled], kind="stable")]
    lows, highs = np.asarray(bounds[0], float), np.asarray(bounds[1], float)
    places = np.clip((descriptors[left] - lows) / (highs - lows), 0, 1 - 1e-9)
    chosen: list[np.ndarray] = []
    pieces = 1
    while len(left):
        firsts = np.sort(np.unique((places * pieces).astype(np.int64), axis=0, return_index=True)[1])
        chosen.append(left[firsts])
        left, places = np.delete(left, firsts), np.delete(places, firsts, axis=0)
        pieces = min(2 * pieces, 2**40)
    return np.concatenate(chosen) if chosen else filled


def rollouts(
    task: Task, genotypes: Any, orders: Sequence[np.ndarray], *, seconds: float, most_bytes: float,
    say: Callable[[str], None] | None = None,
) -> list[list[Rollout]]:  # fmt: skip
    """Let solutions act again, batch by batch, until all have or there is no more time or room; nothing is searched.

    Args:
        task: One whose `kind_of` is not None.
        genotypes: `(replicas, cells, params)`.
        orders: For each replica its cells, the first first; the replicas take turns.
        seconds: No batch begins that would end later, compilation included, as far as the last batch tells; at least
            one is done.
        most_bytes: Of all episodes in a page.
        say: What shows progress, a line now and then.

    Returns:
        Episodes of each replica, in order.

    Raises:
        JedaxError: What simulates the task is not installed.
    """
    size, watch = _watcher(task)
    found: list[list[Rollout]] = [[] for _ in orders]
    total, done, room = sum(map(len, orders)), 0, most_bytes
    began = shown = time.monotonic()
    for replica, cells in _turns(orders, size):
        before = time.monotonic()
        episodes = watch(np.asarray(genotypes[replica][cells], np.float32))
        for cell, (rewards, seen) in zip(cells, episodes, strict=True):
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


def _turns(orders: Sequence[np.ndarray], size: int) -> Iterator[tuple[int, np.ndarray]]:
    for first in range(0, max(map(len, orders), default=0), size):
        for replica, order in enumerate(orders):
            if len(order) > first:
                yield replica, order[first : first + size]


def _size(length: int, seen: np.ndarray) -> float:
    points = min(length, MOST_POINTS) + 1
    return _BYTES * points + (seen.size / 6 if seen.dtype == bool else 2 * _BYTES * points)


def _watcher(task: Task) -> tuple[int, _Watch]:
    """Return how many solutions act side by side, and what lets them."""
    if isinstance(task, ControlTask):
        return task.part, _compiled(_brax(task), task.part)
    if isinstance(task, Playground):
        return _PLAYGROUND, _compiled(jax.vmap(task.record), _PLAYGROUND)
    assert isinstance(task, Gym)
    return task.config.chunk, task.record


def _compiled(program: Callable[[Any], tuple[Any, Any, Any]], size: int) -> _Watch:
    """Return a program from genotypes to rewards `(n, steps)`, lengths `(n,)` and what was seen, cut at the ends."""
    compiled = jax.jit(program)

    def watch(genotypes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        number = len(genotypes)
        same_shape = np.concatenate([genotypes, np.repeat(genotypes[-1:], size - number, axis=0)])
        rewards, lengths, seen = (np.asarray(values)[:number] for values in compiled(jnp.asarray(same_shape)))
        return [(r[:length], s[:length]) for r, s, length in zip(rewards, seen, lengths, strict=True)]

    return watch


def _brax(task: ControlTask) -> Callable[[Any], tuple[Any, Any, Any]]:
    def program(genotypes: Any) -> tuple[Any, Any, Any]:
        steps = task.rollout_batch(jax.random.key(0), genotypes)
        if isinstance(task, Locomotion):
            seen = task.touches(steps.positions, steps.rotations)
        else:
            seen = steps.positions[:, :, 0, : 2 if isinstance(task, AntMaze) else 0]
        return steps.rewards, steps.length, seen

    return program
