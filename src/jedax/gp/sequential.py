"""One replica after the other for programs that call LAPACK, to avoid a deadlock.

On the CPU a batched LAPACK call of jaxlib (at least 0.10.2) hands its batch to a thread pool and blocks one of the
pool's threads until the batch is done. As many simultaneous calls as there are threads wait for each other for ever:
three independent batched Cholesky factorisations in one program hang on two cores. Calls without a batch do not block.
Running replicas one by one costs little: matrix products use all cores, and each replica stops its own loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax

R = TypeVar("R")


def one_by_one(function: Callable[..., R]) -> Callable[..., R]:
    """Return `function` such that `vmap` maps it with a loop and so makes no batched LAPACK calls."""
    return jax.custom_batching.sequential_vmap(function)
