"""What a worker process does; importing this module does not import JAX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jedax.arrays import as_floats


@dataclass(frozen=True)
class Work:
    """The evaluation that workers do.

    `factory` names a callable as `module:name`. It takes the settings by name and returns a function from genotypes
    `(n, params)`, and seeds `(n,)` where the task has them, to fitness `(n,)` and descriptors `(n, d)`.
    """

    factory: str
    settings: Mapping[str, Any]
    chunk: int  # genotypes that are evaluated together, whatever the number of workers


def checked(name: str, values: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a result of a function of the user's as float64 of this shape; errors as in `jedax.arrays.as_floats`."""
    return as_floats(name, values, shape, "return one row per genotype, in the order of the batch")
