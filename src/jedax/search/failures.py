"""In which ways evaluations fail, and how many did.

| kind | what happened |
|---|---|
| `nan` | the fitness or a descriptor is not a number |
| `infinite` | one of them is infinite, and none is not a number |
| `raised` | a worker's evaluation raised an error, each time it was tried |
| `misshapen` | it gave something else than one row of numbers per genotype |
| `timed_out` | it took longer than `evaluation_timeout` |
| `died` | its process ended |

The last four are known of tasks in worker processes alone: what fails within a program of JAX gives NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from jedax.search.workers.pool import FAILURES
from jedax.types import Array, Evaluation, Int

KINDS = ("nan", "infinite")
"""Of every task."""

HOST_KINDS = (*KINDS, *FAILURES)
"""Of tasks in worker processes."""

ALL_FAILED = (
    "All evaluations failed, so there is no solution: no fitness came with its descriptors as finite numbers. Evaluate "
    "one genotype by hand, and mend the task where a number stops being finite."
)
"""What is said of a run that stored nothing."""

Failures = Int[Array, "*replicas kinds"]


def count_nan(evaluation: Evaluation) -> Int[Array, "*replicas"]:
    """Return how many of a batch hold a NaN, traced."""
    parts = (evaluation.fitness, *jnp.moveaxis(evaluation.descriptor, -1, 0))
    # Part by part, XLA makes one kernel of it; `any` over the descriptors would be a second one.
    return functools.reduce(jnp.logical_or, map(jnp.isnan, parts)).sum(axis=-1, dtype=jnp.int32)


def by_kind(num_nan: Int[Array, "*replicas"], num_failed: Int[Array, "*replicas"]) -> Failures:
    """Return failures in the order of `KINDS`, traced: what failed without a NaN was infinite."""
    return jnp.stack([num_nan, num_failed - num_nan], axis=-1)


def count_on_host(
    fitness: np.ndarray, descriptors: np.ndarray, failed: Mapping[int, str], replicas: int
) -> Int[np.ndarray, "replicas kinds"]:
    """Return how many of the batches of all replicas failed, in the order of `HOST_KINDS`.

    Args:
        fitness: `(replicas * batch,)`.
        descriptors: `(replicas * batch, d)`.
        failed: The kind of each row that has no result.
        replicas: Number of replicas; their batches follow each other.
    """
    values = np.column_stack([fitness, descriptors])
    kinds = np.select([np.isnan(values).any(axis=1), np.isinf(values).any(axis=1)], [0, 1], -1)
    for row, kind in failed.items():
        kinds[row] = HOST_KINDS.index(kind)
    return np.stack([(kinds.reshape(replicas, -1) == kind).sum(axis=1) for kind in range(len(HOST_KINDS))], axis=1)
