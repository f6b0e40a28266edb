"""Arrays that come from a user's code."""

from __future__ import annotations

from typing import Any

import numpy as np

from jedax.errors import fail

_NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "durations", "S": "bytes", "U": "text"}
"""Kinds of arrays that NumPy turns into floats without an error, and what they hold."""


def as_floats(name: str, values: Any, shape: tuple[int | None, ...], remedy: str) -> np.ndarray:
    """Return `values` as a float64 array of the given shape, in which None stands for any size of at least 1.

    Complex numbers, dates, text and masked values are refused; None becomes NaN, a failed evaluation.
    """
    names = [("n" if place == 0 else "d") if size is None else str(size) for place, size in enumerate(shape)]
    wanted = "(" + ", ".join(names) + ",)"[len(shape) > 1 :]
    try:
        received = _strange(values)
        if received is None:
            array = np.asarray(values, np.float64)
    except (TypeError, ValueError, RuntimeError):  # such as of tensors with gradients
        received = type(values).__name__
    except OverflowError:
        received = "a number beyond all floats"
    if received is not None:
        raise fail(name, expected=f"numbers of shape {wanted}", received=received, remedy=remedy)
    fits = array.ndim == len(shape) and all(
        size > 0 if required is None else size == required for size, required in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise fail(name, expected=f"shape {wanted}", received=array.shape, remedy=remedy)
    return array


def refuse_truth_values(name: str, values: Any) -> None:
    """Raise an error if values of constraints are truth values, which do not tell by how much a limit is exceeded."""
    if any(isinstance(one, bool | np.bool_) for one in np.asarray(values, object).flat):
        remedy = "return how far the limit is exceeded, such as 2 - x[0] for x[0] > 2"
        raise fail(name, expected="numbers, above 0 where violated", received="truth values", remedy=remedy)


def _strange(values: Any) -> str | None:
    """Return what an array or a nested list holds that is no real number; None: nothing."""
    parts = values if isinstance(values, list | tuple) else [values]
    if any(np.ma.is_masked(part) for part in parts):
        return "masked values"
    array = np.asarray(values)
    kinds = {np.asarray(item).dtype.kind for item in array.flat} if array.dtype == object else {array.dtype.kind}
    return next((_NO_NUMBERS[kind] for kind in kinds if kind in _NO_NUMBERS), None)
