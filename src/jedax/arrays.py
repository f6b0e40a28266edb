"""Arrays that come from a user's code."""

from __future__ import annotations

from typing import Any

import numpy as np

from jedax.errors import fail


def as_float32(name: str, values: Any, shape: tuple[int | None, ...], remedy: str) -> np.ndarray:
    """Return `values` as a float32 array of the given shape, in which None stands for any size of at least 1."""
    wanted = "(" + ", ".join("d" if size is None else str(size) for size in shape) + ",)"[len(shape) > 1 :]
    try:
        array = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        received = type(values).__name__
        raise fail(name, expected=f"numbers of shape {wanted}", received=received, remedy=remedy) from None
    fits = array.ndim == len(shape) and all(
        size > 0 if required is None else size == required for size, required in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise fail(name, expected=f"shape {wanted}", received=array.shape, remedy=remedy)
    return array
