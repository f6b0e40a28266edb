"""How these benchmarks call jedax: the only file of this folder that knows its interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import jedax
from jedax.store import environment

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Takes genotypes `(n, params)`; returns fitness `(n,)` and descriptors `(n, d)`."""
Box = tuple[Any, Any]
"""Lower and upper bounds, each a number or one number per dimension."""


def search(
    evaluate: Evaluate,
    num_params: int,
    descriptor_bounds: Box,
    evaluations: int,
    seed: int,
    *,
    method: str = "jedi-x",
    minimise: bool = False,
    bounds: Box | None = None,
    **settings: Any,
) -> None:
    """Run one search; `evaluate` keeps what it needs of the results and may end the search by an exception.

    `bounds` are those of the parameters. The optimizer has no such argument yet, so genotypes are clipped here, and the
    optimizer is told the results of the clipped genotypes.
    """
    optimizer = jedax.Optimizer(
        num_params,
        descriptor_bounds,
        evaluations=evaluations,
        seed=seed,
        method=method,
        minimise=minimise,
        **settings,
    )
    while not optimizer.done:
        genotypes = np.asarray(optimizer.ask(), np.float64)
        optimizer.tell(*evaluate(genotypes if bounds is None else np.clip(genotypes, *bounds)))


def search_constrained(*arguments: Any, **settings: Any) -> None:
    """Run one search with constraints."""
    raise NotImplementedError("jedax.Optimizer has no constraints yet")


def search_mixed(*arguments: Any, **settings: Any) -> None:
    """Run one search whose first parameters are integers."""
    raise NotImplementedError("jedax.Optimizer has no integer parameters yet")


def describe() -> dict[str, Any]:
    """Return jedax' record of versions, git revision, command and machine."""
    return environment.describe()
