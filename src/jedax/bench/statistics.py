"""Statistics of a few seeds: tests, effect sizes, intervals, and curves on a common grid.

References:
- Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", 1947.
- Vargha & Delaney, "A critique and improvement of the CL common language effect size statistics", 2000.
- Holm, "A simple sequentially rejective multiple test procedure", 1979.
- Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
- Efron & Tibshirani, "An introduction to the bootstrap", 1993, chapter 13 (percentile interval).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jedax.errors import check_choice, fail
from jedax.types import Float

Band = Literal["quartiles", "std"]
BANDS = ("quartiles", "std")

_RESAMPLES = 10_000
_SEED = 0
_MOST_POINTS = 1000


def mann_whitney(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return the two-sided p-value of the Mann-Whitney U test.

    It is exact where a sample has at most 8 values and no two values are equal, else from the normal
    approximation, corrected for ties and continuity.

    Args:
        first: `(n,)`, one value per seed.
        second: `(m,)`.

    Returns:
        0 to 1, 1 where all values are equal; None where a sample has fewer than 2 values.

    Raises:
        JedaxError: No values, or values that are not numbers.
    """
    from scipy.stats import mannwhitneyu

    one, two = _sample("first", first), _sample("second", second)
    if min(len(one), len(two)) < 2:
        return None
    if (np.concatenate([one, two]) == one[0]).all():
        return 1.0
    return float(mannwhitneyu(one, two, alternative="two-sided", method="auto").pvalue)


def least_p(first: int, second: int) -> float:
    """Return the smallest exact two-sided p-value that `mann_whitney` can give for samples of these sizes.

    Of all the ways to share ranks out to the two samples, two keep them apart.

    Args:
        first: Values in one sample, at least 1.
        second: Values in the other.
    """
    return 2 / math.comb(first + second, first)


def vargha_delaney(first: ArrayLike, second: ArrayLike) -> float:
    """Return Vargha and Delaney's A: how likely a value of `first` is above one of `second`, ties counted half.

    Args:
        first: `(n,)`, one value per seed.
        second: `(m,)`.

    Returns:
        0 to 1; 0.5: neither tends to be higher, 1: all of `first` is above all of `second`.

    Raises:
        JedaxError: No values, or values that are not numbers.
    """
    one, two = _sample("first", first)[:, None], _sample("second", second)
    return float((one > two).mean() + (one == two).mean() / 2)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for being several, by Holm's step-down method.

    Args:
        p_values: Of one family of comparisons; None where there is none: it stays None and does not count.

    Raises:
        JedaxError: A p-value is not between 0 and 1.
    """
    known = [(p, place) for place, p in enumerate(p_values) if p is not None]
    for p, _ in known:
        if not 0 <= p <= 1:
            raise fail("p_values", expected="numbers from 0 to 1", received=p, remedy="give p-values")
    corrected: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        least = max(least, min(1.0, (len(known) - rank) * p))
        corrected[place] = least
    return corrected


def median_interval(values: ArrayLike, *, level: float = 0.95) -> tuple[float, float] | None:
    """Return the bootstrap percentile interval of the median, from 10,000 resamples with a fixed seed.

    Args:
        values: `(n,)`, one value per seed.
        level: How likely such intervals hold the true median, 0 to 1.

    Returns:
        Low and high end; None for fewer than 2 values.

    Raises:
        JedaxError: No values, values that are not numbers, or a level out of range.
    """
    sample, level = _sample("values", values), _level(level)
    if len(sample) < 2:
        return None
    draws = np.random.default_rng(_SEED).integers(len(sample), size=(_RESAMPLES, len(sample)))
    medians = np.median(sample[draws], axis=1)
    # A quantile that is one of the medians, so that -inf needs no arithmetic.
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(low), float(high)


def wilson_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a success rate, without continuity correction.

    Args:
        successes: How many succeeded.
        trials: Of how many, at least 1.
        level: How likely such intervals hold the true rate, 0 to 1.

    Returns:
        Low and high end, 0 to 1.

    Raises:
        JedaxError: Numbers that are no counts, or a level out of range.
    """
    from scipy.stats import binomtest

    if trials < 1 or not 0 <= successes <= trials:
        raise fail(
            "successes",
            expected="a count from 0 to trials, trials at least 1",
            received=f"{successes} of {trials}",
            remedy="count again",
        )
    found = binomtest(successes, trials).proportion_ci(_level(level), method="wilson")
    return float(found.low), float(found.high)


def evaluations_to_reach(evaluations: ArrayLike, max_fitness: ArrayLike, fitness: float) -> float:
    """Return the evaluations at the first report whose best fitness is at least `fitness`.

    The fitness was reached somewhere between the report before and this one.

    Args:
        evaluations: `(reports,)`, rising.
        max_fitness: `(reports,)`, the best fitness so far.
        fitness: What is to be reached.

    Returns:
        Evaluations; inf where it never was.

    Raises:
        JedaxError: The arrays differ in length, are empty, or evaluations do not rise.
    """
    grid, values = _curve(evaluations, max_fitness)
    reached = values >= fitness
    return float(grid[reached.argmax()]) if reached.any() else float("inf")


def ecdf(values: ArrayLike) -> tuple[Float[np.ndarray, " steps"], Float[np.ndarray, " steps"]]:
    """Return the empirical distribution function: where it steps up, and to which share of all values.

    Args:
        values: `(n,)`, one value per seed; inf never comes, but counts among the values.

    Returns:
        `(steps,)` finite values, rising, and `(steps,)` shares, 0 to 1.

    Raises:
        JedaxError: No values, or values that are not numbers.
    """
    sample = _sample("values", values)
    steps, counts = np.unique(sample[np.isfinite(sample)], return_counts=True)
    return steps, counts.cumsum() / len(sample)


def value_at(evaluations: ArrayLike, values: ArrayLike, grid: ArrayLike) -> Float[np.ndarray, " grid"]:
    """Return a curve's value at given numbers of evaluations: that of the last report up to each.

    Args:
        evaluations: `(reports,)`, rising.
        values: `(reports,)`.
        grid: `(grid,)`, in any order.

    Returns:
        `(grid,)`; NaN before the first report.

    Raises:
        JedaxError: The arrays differ in length, are empty, or evaluations do not rise.
    """
    steps, known = _curve(evaluations, values)
    last = np.searchsorted(steps, np.asarray(grid, float), side="right") - 1
    return np.where(last >= 0, known[np.maximum(last, 0)], np.nan)


def on_common_grid(
    curves: Sequence[tuple[ArrayLike, ArrayLike]], budget: float
) -> tuple[Float[np.ndarray, " grid"], Float[np.ndarray, "seeds grid"]]:
    """Bring curves with different reports onto one grid, each held from a report to the next and up to the budget.

    Args:
        curves: Evaluations, rising, and values of each seed. Reports without a finite value are left out, and so
            are seeds without any other.
        budget: Where the grid ends; later reports are left out.

    Returns:
        `(grid,)` evaluations, from the first at which every seed has a value, at most 1,000 of them; and
        `(seeds, grid)` values, finite. Both are empty where no seed has any.

    Raises:
        JedaxError: As in `value_at`.
    """
    kept = []
    for evaluations, values in curves:
        steps, known = _curve(evaluations, values)
        shown = np.isfinite(known) & (steps <= budget)
        if shown.any():
            kept.append((steps[shown], known[shown]))
    if not kept:
        return np.zeros(0), np.zeros((0, 0))
    first = max(steps[0] for steps, _ in kept)
    grid = np.unique(np.concatenate([[budget], *(steps for steps, _ in kept)]))
    grid = grid[grid >= first]
    if len(grid) > _MOST_POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, _MOST_POINTS).astype(int)]
    return grid, np.stack([value_at(steps, known, grid) for steps, known in kept])


def median_band(
    values: Float[np.ndarray, "seeds grid"], band: str = "quartiles"
) -> tuple[Float[np.ndarray, " grid"], Float[np.ndarray, " grid"], Float[np.ndarray, " grid"]]:
    """Return the median over seeds and the band around it.

    Args:
        values: `(seeds, grid)`, finite.
        band: "quartiles": from the lower to the upper one; "std": one sample standard deviation under and over
            the median, as in the paper's figures (0 for a single seed).

    Returns:
        Low end, median, high end, each `(grid,)`.

    Raises:
        JedaxError: Unknown band.
    """
    check_choice("band", band, BANDS)
    median = np.median(values, axis=0)
    if band == "quartiles":
        low, high = np.quantile(values, [0.25, 0.75], axis=0)
        return low, median, high
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(median)
    return median - spread, median, median + spread


def _sample(name: str, values: ArrayLike) -> np.ndarray:
    sample = np.asarray(values, float)
    if sample.ndim != 1 or not len(sample) or np.isnan(sample).any():
        received = "NaN among them" if sample.ndim == 1 and len(sample) else f"shape {sample.shape}"
        raise fail(name, expected="one number per seed, at least one", received=received, remedy="leave others out")
    return sample


def _curve(evaluations: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    steps, known = np.asarray(evaluations, float), np.asarray(values, float)
    if steps.ndim != 1 or steps.shape != known.shape or not len(steps):
        raise fail(
            "values",
            expected="one for each number of evaluations, at least one",
            received=f"{known.shape} for {steps.shape}",
            remedy="give a curve",
        )
    if not (np.diff(steps) > 0).all():
        raise fail("evaluations", expected="rising numbers", received=steps.tolist(), remedy="sort the reports")
    return steps, known


def _level(level: float) -> float:
    if not 0 < level < 1:
        raise fail("level", expected="a number between 0 and 1", received=level, remedy="take 0.95")
    return level
