"""How the process is computed inside other programs: in float64, and one replica after the other.

On the CPU a batched LAPACK call of jaxlib (at least 0.10.2) hands its batch to a thread pool and blocks one of the
pool's threads until the batch is done. As many simultaneous calls as there are threads wait for each other for ever:
three independent batched Cholesky factorisations in one program hang on two cores. Calls without a batch do not block.
Running replicas one by one costs little: matrix products use all cores, and each replica stops its own loops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

R = TypeVar("R")


def one_by_one(function: Callable[..., R]) -> Callable[..., R]:
    """Return `function` such that `vmap` maps it with a loop and so makes no batched LAPACK calls."""
    return jax.custom_batching.sequential_vmap(function)


def in_float64(function: Callable[..., R]) -> Callable[..., R]:
    """Return `function` such that it may use float64, while the program around it does not.

    JAX batches and lowers the function after this scope has ended, and then takes float64 operations for float32 ones
    where it builds them anew. So `function` must be under `one_by_one`, and use indices of 32 bits.
    """

    @functools.wraps(function)
    def wide(*arguments: Any, **keywords: Any) -> R:
        with jax.enable_x64(True):
            return function(*arguments, **keywords)

    return wide
