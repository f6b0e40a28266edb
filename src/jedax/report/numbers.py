"""How numbers are written in tables and at axes."""

from __future__ import annotations

import math
from collections.abc import Iterable

_DIGITS = 4
_MOST_DECIMALS = 6


def evaluations_text(value: float) -> str:
    """Return a number of evaluations in short, such as 250 k or 1.5 M."""
    rounded = float(f"{value:.3g}")
    if rounded >= 1e6:
        return f"{rounded / 1e6:g} M"
    return f"{rounded / 1e3:g} k" if rounded >= 1e3 else f"{rounded:g}"


def decimals_for(values: Iterable[float]) -> int:
    """Return how many decimals show the largest of some values with four digits; at most 6."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0:
        return 0
    return min(_MOST_DECIMALS, max(0, _DIGITS - 1 - math.floor(math.log10(largest))))


def fitness_text(value: float, decimals: int) -> str:
    """Return a fitness with that many decimals; one that rounds to zero has no sign, -inf stays."""
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def p_text(p: float) -> str:
    """Return a p-value with three decimals."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def share_text(share: float) -> str:
    """Return a share in percent; unknown (NaN) is a dash."""
    return "-" if math.isnan(share) else f"{share:.0%}"
