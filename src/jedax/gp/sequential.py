"""Why replicas take turns with LAPACK.

On the CPU a batched LAPACK call of jaxlib (0.10.2 at least) hands its batch to a thread pool and blocks one
of the pool's own threads until it is done. As many such calls at the same time as there are threads wait for
each other for ever: three independent batched Cholesky factorisations in one program hang on two cores. Calls
without a batch do not, and taking turns costs little: matrix products use all cores anyway, and a loop ends
when its own replica is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax

R = TypeVar("R")


def one_by_one(function: Callable[..., R]) -> Callable[..., R]:
    """Return `function` such that `vmap` maps it with a loop, hence without batched LAPACK calls."""
    return jax.custom_batching.sequential_vmap(function)
