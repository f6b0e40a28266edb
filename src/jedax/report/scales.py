"""Scales of colours and axes that leave out a few very low values."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

# `lowestShown` and `cutAxis` in common.js are the same.
_FLAT = 10.0
_FLAT_CURVE = 1000.0  # a curve may jump far when a search finds its goal; only values of broken solutions are cut off


def lowest_shown(values: ArrayLike, ratio: float = _FLAT) -> float:
    """Return the lower end of a scale: the lowest value, or the lowest above those far below all others.

    Values are far below if the gap above them is more than `ratio` times the range of all higher values. At least half
    of the values stay on the scale, and the highest always do. Values that are not finite do not count; at least one
    must be finite.
    """
    known = np.sort(np.asarray(values, float)[np.isfinite(values)])
    ranges = known[-1] - known[1:]
    far = (np.diff(known) > ratio * ranges) & (ranges > 0)
    lower = np.flatnonzero(far[: len(known) // 2])
    return float(known[lower[-1] + 1] if len(lower) else known[0])


def colour_limits(values: ArrayLike, *, log: bool) -> tuple[float, float]:
    """Return the values at the ends of the colours: `lowest_shown` (the lowest for logarithmic colours), the highest.

    All values must be finite, and there must be one.
    """
    known = np.asarray(values, float)
    return float(known.min()) if log else lowest_shown(known), float(known.max())


def cut_axis(ax: Axes, values: ArrayLike) -> None:
    """Let the y axis begin at `lowest_shown` of all drawn values; a line in the axes says so if any lie below."""
    known = np.asarray(values, float)[np.isfinite(values)]
    if not len(known) or (low := lowest_shown(known, _FLAT_CURVE)) == known.min():
        return
    span = known.max() - low
    ax.set_ylim(low - 0.15 * span, known.max() + 0.05 * span)
    ax.text(0.02, 0.03, f"cut off below: down to {known.min():.3g}", transform=ax.transAxes, fontsize=7,
            color="#555555", zorder=6, bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1})  # fmt: skip
