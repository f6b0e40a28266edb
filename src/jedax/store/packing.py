"""Numbers as short text: 16 bits each between the least and the greatest, in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_MOST = 65_534
_MISSING = 65_535


def pack(values: ArrayLike, log: bool = False) -> dict[str, Any]:
    """Return numbers as text, exact to 1/131,068 of their range.

    Args:
        values: Of any shape, which is not kept; what is not finite becomes NaN.
        log: Keep logarithms; numbers that are not above 0 become NaN.

    Returns:
        The least ("low") and the greatest ("high") of the numbers, null where there is none, and "data": base64 of
        little-endian 16-bit numbers, 0 for the least, 65534 for the greatest, 65535 for NaN; "log" where so.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if log:
        numbers = np.log(np.where(numbers > 0, numbers, np.nan))
    known = np.isfinite(numbers)
    codes = np.full(len(numbers), _MISSING, "<u2")
    low = high = None
    if known.any():
        low, high = float(numbers[known].min()), float(numbers[known].max())
        # Halved, so that the span of the largest numbers is finite.
        span = high / 2 - low / 2
        shares = (numbers[known] / 2 - low / 2) / span if span > 0 else np.zeros(known.sum())
        codes[known] = np.rint(shares * _MOST)
    packed = {"low": low, "high": high, "data": base64.b64encode(codes.tobytes()).decode()}
    return {**packed, "log": True} if log else packed


def unpack(packed: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers that `pack` was given, `(n,)`.

    Raises:
        ValueError: It is not what `pack` returns.
    """
    try:
        codes = np.frombuffer(base64.b64decode(packed["data"], validate=True), "<u2")
        if packed["low"] is None:
            return np.full(len(codes), np.nan)
        low, high = float(packed["low"]), float(packed["high"])
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"no packed numbers: {error!r}") from None
    shares = np.minimum(codes, _MOST) / _MOST
    numbers = np.where(codes == _MISSING, np.nan, low * (1 - shares) + high * shares)
    return np.exp(numbers) if packed.get("log") else numbers
