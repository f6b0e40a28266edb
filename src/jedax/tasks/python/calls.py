"""A plain Python function as what a worker does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jedax.arrays import as_float32
from jedax.errors import fail
from jedax.imports import load_object


def make(function: str, num_descriptors: int | None) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function of the user's whose results are checked.

    Args:
        function: `module:function`; takes genotypes `(n, params)`, returns fitness `(n,)` and descriptors `(n, d)`.
        num_descriptors: d; None: any.

    Raises:
        JedaxError: The function cannot be imported. What is returned raises one where the function's results are
            not of these shapes.
    """
    called = load_object(function, "task")

    def evaluate(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number = len(genotypes)
        found: Any = called(genotypes)
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise fail(
                function,
                expected="two results, fitness and descriptors",
                received=type(found).__name__,
                remedy="return fitness, descriptors",
            )
        fitness = checked(f"{function}: fitness", found[0], (number,))
        return fitness, checked(f"{function}: descriptors", found[1], (number, num_descriptors))

    return evaluate


def checked(name: str, values: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a result of the user's function as float32 of that shape; errors as in `jedax.arrays.as_float32`."""
    return as_float32(name, values, shape, "return one row per genotype, in the order of the batch")
