"""Arrays of numbers as short text: 16-bit steps between the smallest and the largest number, in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_LARGEST, _NAN = 65_534, 65_535


def pack(values: ArrayLike) -> dict[str, Any]:
    """Return numbers as text, with an error of at most 1/131,068 of their range; their shape is not kept.

    "low" and "high" are the smallest and the largest number, null if no number is finite; "data" is the base64 of
    little-endian 16-bit numbers: 0 for the smallest, 65534 for the largest, 65535 for those that are not finite.
    """
    numbers = np.asarray(values, np.float64).ravel()
    known = np.isfinite(numbers)
    codes = np.full(len(numbers), _NAN, "<u2")
    low = high = None
    if known.any():
        low, high = float(numbers[known].min()), float(numbers[known].max())
        span = high / 2 - low / 2  # half of it, because the whole range may overflow
        shares = (numbers[known] / 2 - low / 2) / span if span > 0 else np.zeros(known.sum())
        codes[known] = np.rint(shares * _LARGEST)
    return {"low": low, "high": high, "data": base64.b64encode(codes.tobytes()).decode()}


def unpack(packed: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers that `pack` was given, `(n,)`; a `ValueError` refuses anything else."""
    try:
        codes = np.frombuffer(base64.b64decode(packed["data"], validate=True), "<u2")
        if packed["low"] is None:
            return np.full(len(codes), np.nan)
        low, high = float(packed["low"]), float(packed["high"])
        if not np.isfinite(low) or not np.isfinite(high):
            raise TypeError("bounds that are not finite")
    except (KeyError, TypeError, OverflowError, binascii.Error) as error:
        raise ValueError(f"no packed numbers: {error!r}") from None
    shares = np.minimum(codes, _LARGEST) / _LARGEST
    return np.where(codes == _NAN, np.nan, low * (1 - shares) + high * shares)
