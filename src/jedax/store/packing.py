"""Arrays of numbers as short text: 16-bit steps between the smallest and the largest number, in base64.

A few numbers far from all others stand beside them, since they would make the steps too large for the others.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_LARGEST, _NAN = 65_534, 65_535
_FAR = 20  # from the middle half of the numbers, in times of its width


def pack(values: ArrayLike) -> dict[str, Any]:
    """Return numbers as text, with an error of at most 1/131,068 of their range; their shape is not kept.

    "low" and "high" are the smallest and the largest number, null if no number is finite; "data" is the base64 of
    little-endian 16-bit numbers: 0 for the smallest, 65534 for the largest, 65535 for those that are not finite. Where
    numbers are far from the middle half of all, "others" has their "places" and "values", and the rest holds for the
    other numbers.
    """
    numbers = np.asarray(values, np.float64).ravel()
    known = np.isfinite(numbers)
    codes = np.full(len(numbers), _NAN, "<u2")
    far = np.zeros(len(numbers), bool)
    far[known] = _is_far(numbers[known])
    known &= ~far
    low = high = None
    if known.any():
        low, high = float(numbers[known].min()), float(numbers[known].max())
        span = high / 2 - low / 2  # half of it, because the whole range may overflow
        shares = (numbers[known] / 2 - low / 2) / span if span > 0 else np.zeros(known.sum())
        codes[known] = np.rint(shares * _LARGEST)
    packed = {"low": low, "high": high, "data": base64.b64encode(codes.tobytes()).decode()}
    if far.any():
        packed["others"] = {"places": np.flatnonzero(far).tolist(), "values": numbers[far].tolist()}
    return packed


def _is_far(numbers: np.ndarray) -> np.ndarray:
    """Return which numbers lie far below or above the middle half of all."""
    if not len(numbers):
        return np.zeros(0, bool)
    first, third = np.percentile(numbers, (25, 75), method="lower")
    with np.errstate(over="ignore"):
        room = _FAR * (third - first)
        return (numbers < first - room) | (numbers > third + room) if room > 0 else np.zeros(len(numbers), bool)


def unpack(packed: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers that `pack` was given, `(n,)`; a `ValueError` refuses anything else."""
    try:
        codes = np.frombuffer(base64.b64decode(packed["data"], validate=True), "<u2")
        if packed["low"] is None:
            return np.full(len(codes), np.nan)
        low, high = float(packed["low"]), float(packed["high"])
        others = packed.get("others", {"places": [], "values": []})
        places, far = np.array(others["places"], int), np.array(others["values"], float)
        if not np.isfinite([low, high, *far]).all() or (places < 0).any():
            raise TypeError("numbers that are not finite, or places below 0")
        shares = np.minimum(codes, _LARGEST) / _LARGEST
        numbers = np.where(codes == _NAN, np.nan, low * (1 - shares) + high * shares)
        numbers[places] = far
    except (LookupError, TypeError, OverflowError, ValueError, AttributeError) as error:
        raise ValueError(f"no packed numbers: {error!r}") from None
    return numbers
