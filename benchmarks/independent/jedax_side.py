"""How these benchmarks call jedax: the only file of this folder that knows its interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import jedax
import jedax.optuna
from jedax.bench.statistics import holm as holm
from jedax.store import environment

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Takes genotypes `(n, params)`; returns fitness `(n,)` and descriptors `(n, d)`."""
Box = tuple[Any, Any]
"""Lower and upper bounds, each a number or one number per dimension."""


def search(
    evaluate: Evaluate,
    num_params: int | None,
    descriptor_bounds: Box,
    evaluations: int,
    seed: int,
    *,
    method: str = "jedi-x",
    minimise: bool = False,
    **settings: Any,
) -> None:
    """Run one search; `evaluate` keeps what it needs of the results and may end the search by an exception.

    `settings` are those of the method, and `bounds`, `x0`, `sigma0` and `space`, see `jedax.Optimizer`.
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
        solutions = optimizer.ask()
        optimizer.tell(solutions, *evaluate(solutions))


def search_constrained(
    evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    num_params: int,
    descriptor_bounds: Box,
    evaluations: int,
    seed: int,
    **settings: Any,
) -> None:
    """Run one search that minimises with constraints; `evaluate` returns their values, above 0 where violated, too."""
    optimizer = jedax.Optimizer(
        num_params, descriptor_bounds, evaluations=evaluations, seed=seed, minimise=True, **settings
    )
    while not optimizer.done:
        solutions = optimizer.ask()
        fitness, descriptors, violations = evaluate(solutions)
        optimizer.tell(solutions, fitness, descriptors, violations=violations)


def mixed_space(lows: np.ndarray, highs: np.ndarray, num_integers: int) -> jedax.Space:
    """Return a space whose first parameters are integers."""
    bounds = list(zip(lows.tolist(), highs.tolist(), strict=True))
    whole = {f"x{i}": jedax.Integer(int(low), int(high)) for i, (low, high) in enumerate(bounds[:num_integers])}
    return jedax.Space(whole | {f"x{i}": bounds[i] for i in range(num_integers, len(bounds))})


def optuna_sampler(seed: int) -> jedax.optuna.Sampler:
    """Return a sampler for a study of Optuna, with its defaults."""
    return jedax.optuna.Sampler(seed=seed)


def describe() -> dict[str, Any]:
    """Return jedax' record of versions, git revision, command and machine."""
    return environment.describe()
