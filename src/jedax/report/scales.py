"""Scales of colours and axes that a few very low values cannot flatten."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

# `lowestShown` and `cutAxis` in common.js are the same.
_FLAT = 10.0
# Curves may jump, as where a search comes upon its goal; what is far below for them is no part of any search.
_FLAT_CURVE = 1000.0


def lowest_shown(values: ArrayLike, ratio: float = _FLAT) -> float:
    """Return where a scale begins: at the lowest value, or above those that lie far below all others.

    Values lie far below where a gap of more than `ratio` times the range of all above it parts them from those. At
    least half of all stay on the scale. High values always do, for those are what a search is after.

    Args:
        values: Of any shape, at least one of them finite; the others do not count.
        ratio: Above 0; the default is for colours.
    """
    known = np.sort(np.asarray(values, float)[np.isfinite(values)])
    ranges = known[-1] - known[1:]
    far = (np.diff(known) > ratio * ranges) & (ranges > 0)
    lower = np.flatnonzero(far[: len(known) // 2])
    return float(known[lower[-1] + 1] if len(lower) else known[0])


def colour_limits(values: ArrayLike, *, log: bool) -> tuple[float, float]:
    """Return the values at the ends of the colours: `lowest_shown`, or the lowest where colours follow the logarithm.

    Args:
        values: Of any shape, all of them finite, at least one.
        log: Whether colours follow the logarithm, which no value flattens.
    """
    known = np.asarray(values, float)
    return float(known.min()) if log else lowest_shown(known), float(known.max())


def cut_axis(ax: Axes, values: ArrayLike) -> None:
    """Let the y axis begin where `lowest_shown` says; if anything lies below, a line in the axes says so.

    Args:
        ax: What they are drawn in.
        values: All that is drawn, lines across the axes too; what is not finite does not count.
    """
    known = np.asarray(values, float)[np.isfinite(values)]
    if not len(known) or (low := lowest_shown(known, _FLAT_CURVE)) == known.min():
        return
    span = known.max() - low
    ax.set_ylim(low - 0.15 * span, known.max() + 0.05 * span)
    ax.text(0.02, 0.03, f"cut off below: down to {known.min():.3g}", transform=ax.transAxes, fontsize=7,
            color="#555555", zorder=6, bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1})  # fmt: skip
