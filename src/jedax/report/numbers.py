"""How tables and axes show numbers, and scales of colours and axes that leave out a few very low values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

REMARK: dict[str, Any] = {
    "fontsize": 7, "color": "#555555", "zorder": 6,
    "bbox": {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},
}  # fmt: skip
"""How figures show a remark about what they leave out."""

_LOG_STEPS = {100: (1, 2, 5), 1000: (1, 3)}  # ticks in each decade, by the largest ratio of the ends of the axis


def evaluations_text(value: float) -> str:
    """Return a number of evaluations in short, such as 250 k or 1.5 M."""
    rounded = float(f"{value:.3g}")
    if rounded >= 1e6:
        return f"{rounded / 1e6:g} M"
    return f"{rounded / 1e3:g} k" if rounded >= 1e3 else f"{rounded:g}"


def evaluations_format(value: float, _: object) -> str:
    """Return the label of a tick, as a formatter of matplotlib."""
    return evaluations_text(value)


def decimals_for(values: Iterable[float]) -> int:
    """Return the decimals with which the largest value has four digits, and different values look different.

    At most 6, and at most 8 digits.
    """
    known = {float(value) for value in values if math.isfinite(value)}
    largest = max(map(abs, known), default=0.0)
    if largest == 0:
        return 0
    digits = math.floor(math.log10(largest))
    decimals = min(6, max(0, 3 - digits))
    while decimals < min(6, 7 - digits) and len({round(value, decimals) for value in known}) < len(known):
        decimals += 1
    return decimals


def fitness_text(value: float, decimals: int) -> str:
    """Return a fitness with that many decimals; -inf stays.

    One that would round to zero has two digits, one from 1e10 on the seven digits that a float32 has.
    """
    if abs(value) >= 1e10:
        return f"{value:.7g}"
    text = f"{value:.{decimals}f}"
    if float(text) != 0:
        return text
    return f"{value:.2g}" if value else text.removeprefix("-")


def agrees(fitness: ArrayLike, recorded: ArrayLike, all_recorded: ArrayLike) -> np.ndarray:
    """Return which fitness is the recorded one but for rounding: a thousandth of it, or of the range of all."""
    known = np.asarray(all_recorded, float)
    known = known[np.isfinite(known)]
    return np.isclose(fitness, recorded, rtol=1e-3, atol=1e-3 * np.ptp(known) if known.size else 0.0)


def p_text(p: float) -> str:
    """Return a p-value with three decimals."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def share_text(share: float) -> str:
    """Return a share in percent; unknown (NaN) is a dash. Only nothing is 0 %, and only all of it 100 %."""
    if math.isnan(share):
        return "-"
    return "<1%" if 0 < share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


# `lowestShown`, `colourLimits` and `cutAxis` in common.js are the same as `lowest_shown`, `colour_limits`, `cut_axis`.
def lowest_shown(values: ArrayLike, ratio: float = 10.0) -> float:
    """Return the lower end of a scale: the lowest value that is not far below all others.

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
    """Return the values at the ends of the colours: the lowest that is not an outlier, the highest.

    Outliers are values below `lowest_shown`, and values so low that the upper three quarters of all values would share
    less than a quarter of the colours. Logarithmic colours begin at the lowest value. All values must be finite, and
    there must be one.
    """
    known = np.sort(np.asarray(values, float))
    high, quartile = float(known[-1]), known[(len(known) - 1) // 4]
    if log or quartile == high:
        return float(known[0]) if log else lowest_shown(known), high
    fence = quartile - 3 * (high - quartile)
    return max(lowest_shown(known), float(known[known >= fence][0])), high


def cut_axis(ax: Axes, values: ArrayLike) -> None:
    """Let the y axis begin at `lowest_shown` of all drawn values; a line in the axes says so if any lie below."""
    known = np.asarray(values, float)[np.isfinite(values)]
    # A curve may jump far when a search finds its goal; only values of broken solutions are cut off.
    if not len(known) or (low := lowest_shown(known, 1000.0)) == known.min():
        return
    span = known.max() - low
    ax.set_ylim(low - 0.15 * span, known.max() + 0.05 * span)
    for line in ax.lines:
        line.set_clip_on(True)  # else the figure is as high as the line
    ax.text(0.02, 0.03, f"cut off below: down to {known.min():.3g}", transform=ax.transAxes, **REMARK)


def evaluations_axis(ax: Axes) -> None:
    """Let the x axis, whose scale and limits are set, count evaluations."""
    ax.set_xlabel("evaluations")
    if ax.get_xscale() == "log":
        log_ticks(ax.xaxis, *ax.get_xlim())
    else:
        ax.locator_params(axis="x", nbins=5)
        ax.xaxis.set_major_formatter(evaluations_format)
    ax.grid(alpha=0.25)


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Let a logarithmic axis between two limits name as many evaluations as have room."""
    steps = next((steps for ratio, steps in _LOG_STEPS.items() if high <= ratio * low), (1,))
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(evaluations_format)
