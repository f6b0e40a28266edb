"""Calls of a Python function of the user's in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.work import checked


def make(
    function: str, num_descriptors: int | None, space: Mapping[str, Any] | None = None
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the user's `module:function` with a check of its results: fitness `(n,)` and descriptors `(n, d)`.

    The function gets genotypes, or the values that they have in a `space`.
    """
    called, shown = load_object(function, "task"), _values_in(space)

    def evaluate(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number = len(genotypes)
        found: Any = called(shown(genotypes))
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise fail(
                function,
                expected="two results, fitness and descriptors",
                received=len(found) if isinstance(found, tuple | list) else type(found).__name__,
                remedy="return both; without descriptors or with constraints, search with jedax.minimize",
            )
        fitness = checked(f"{function}: fitness", found[0], (number,))
        return fitness, checked(f"{function}: descriptors", found[1], (number, num_descriptors))

    return evaluate


def _values_in(spec: Mapping[str, Any] | None) -> Callable[[np.ndarray], Any]:
    """Return what turns genotypes into the values that a function gets."""
    if spec is None:
        return lambda genotypes: genotypes
    from jedax.space import Space

    space = Space.from_spec(spec)
    return space.dicts if space.is_named else space.values
