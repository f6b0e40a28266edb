"""What the loop notes of evaluations: failures by kind (`docs/guides/reliability.md`), and the first at the goal.

Only tasks in worker processes have kinds other than NaN and infinite; a failure within a program of JAX gives NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jedax.search.workers.pool import FAILURES
from jedax.tasks.base import reaches
from jedax.types import Array, Evaluation, Float, Int

KINDS = ("nan", "infinite")
HOST_KINDS = (*KINDS, *FAILURES)  # of tasks in worker processes

ALL_FAILED = (
    "All evaluations failed, so there is no solution: no evaluation had a finite fitness and a finite descriptor. "
    "Evaluate one genotype by hand, and correct the task where a number is not finite."
)


class Noted(NamedTuple):
    """What the loop notes of the evaluations of a chunk."""

    failed: Int[Array | np.ndarray, "*replicas kinds"]  # failures by kind
    arrived: Int[Array | np.ndarray, "*replicas"]  # first solution at the task's goal, from 1; 0: none


def count_nan(evaluation: Evaluation) -> Int[Array, "*replicas"]:
    """Return the number of evaluations of a batch with a NaN; traced."""
    parts = (evaluation.fitness, *jnp.moveaxis(evaluation.descriptor, -1, 0))
    # XLA compiles this to one kernel; `any` over the descriptors would be a second one.
    return functools.reduce(jnp.logical_or, map(jnp.isnan, parts)).sum(axis=-1, dtype=jnp.int32)


def first_at(goal: float | None, fitness: Float[Array | np.ndarray, "*replicas batch"]) -> Int[Array, "*replicas"]:
    """Return the place in a batch, from 1, of the first fitness of at least `goal`; 0: there is none. Traced."""
    batch = fitness.shape[-1]
    if goal is None:
        return jnp.zeros(fitness.shape[:-1], jnp.int32)
    reached = reaches(fitness, goal) if isinstance(fitness, np.ndarray) else fitness >= goal
    first = jnp.where(reached, jnp.arange(1, batch + 1), batch + 1).min(axis=-1)
    return jnp.where(first > batch, 0, first).astype(jnp.int32)


def first_arrival(so_far: Any, place: Any, before: Any) -> Any:
    """Return which solution was the first at the goal: `so_far`, or `before + place` where so far none was (0).

    `place` is that of `first_at` in a batch before which `before` solutions came; whole numbers of NumPy or JAX.
    """
    return so_far + ((so_far == 0) & (place > 0)) * (before + place)


def by_kind(num_nan: Int[Array, "*replicas"], num_failed: Int[Array, "*replicas"]) -> Int[Array, "*replicas kinds"]:
    """Return the number of failures of each of `KINDS`; failures without a NaN are infinite. Traced."""
    return jnp.stack([num_nan, num_failed - num_nan], axis=-1)


def count_on_host(
    fitness: np.ndarray, descriptors: np.ndarray, failed: Mapping[int, str], replicas: int
) -> Int[np.ndarray, "replicas kinds"]:
    """Return the number of failures of each of `HOST_KINDS` by replica, from rows of replicas one after the other.

    `failed` holds the kind of failure of each row without a result.
    """
    values = np.column_stack([fitness, descriptors])
    kinds = np.select([np.isnan(values).any(axis=1), np.isinf(values).any(axis=1)], [0, 1], -1)
    for row, kind in failed.items():
        kinds[row] = HOST_KINDS.index(kind)
    return np.stack([(kinds.reshape(replicas, -1) == kind).sum(axis=1) for kind in range(len(HOST_KINDS))], axis=1)
