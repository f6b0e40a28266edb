"""Statistics of a few seeds: a test, corrected p-values, intervals, ranks over tasks, curves on a common grid.

References:
- Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", 1947.
- Vargha & Delaney, "A critique and improvement of the CL common language effect size statistics", 2000.
- Holm, "A simple sequentially rejective multiple test procedure", 1979.
- Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
- Efron & Tibshirani, "An introduction to the bootstrap", 1993, chapter 13 (percentile interval).
- Friedman, "The use of ranks to avoid the assumption of normality implicit in the analysis of variance", 1937.
- Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006: ranks, Nemenyi's test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas

from jedax.errors import check_choice
from jedax.types import Float

BANDS = ("quartiles", "std")
FEWEST_FOR_INTERVAL = 5

_MOST_EXACT = 8
_LEVEL = 0.95
_RESAMPLES = 10_000
_MOST_POINTS = 1000


class MannWhitney(NamedTuple):
    """Result of `mann_whitney`."""

    p: float  # two-sided
    effect: float  # Vargha and Delaney's A: probability that a value of the first sample is the greater, ties half


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> MannWhitney | None:
    """Return the Mann-Whitney U test of two samples; None where a sample has fewer than 2 values.

    The p-value is exact, ties included, where a sample has at most 8 values, otherwise from the normal approximation,
    corrected for ties and continuity.
    """
    from scipy.stats import mannwhitneyu

    if min(len(first), len(second)) < 2:
        return None
    found = mannwhitneyu(first, second, alternative="two-sided", method="asymptotic")
    p = _exact_p(first, second) if min(len(first), len(second)) <= _MOST_EXACT else float(found.pvalue)
    return MannWhitney(p, float(found.statistic) / (len(first) * len(second)))


def _exact_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the exact two-sided p-value: twice the smaller tail of the rank sum, over all ways to divide the values.

    Of SciPy's ways, `method="exact"` ignores ties, and `PermutationMethod` takes 0.1 s for 8 against 8.
    """
    from scipy.stats import rankdata

    small, large = sorted((first, second), key=len)
    ranks = np.rint(2 * rankdata([*small, *large])).astype(int)  # doubled: equal values share a mean rank
    ways = np.zeros((len(small) + 1, np.sort(ranks)[-len(small) :].sum() + 1))  # to choose k values with rank sum s
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank]
    of_sum, ours = ways[-1], ranks[: len(small)].sum()
    return float(min(1.0, 2 * min(of_sum[: ours + 1].sum(), of_sum[ours:].sum()) / of_sum.sum()))


def least_p(first: int, second: int) -> float:
    """Return the smallest exact two-sided p-value of the Mann-Whitney U test for samples of these sizes."""
    return 2 / math.comb(first + second, first)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for multiple tests by Holm's step-down method (SciPy has none); None stays None."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, place) in enumerate(known):
        corrected[place] = least = max(least, min(1.0, (len(known) - rank) * p))
    return corrected


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap percentile interval of the median; None for fewer than 2 values.

    Of fewer than `FEWEST_FOR_INTERVAL` values it is the range, least to greatest, which holds the true median with a
    probability of 50, 75 and 88 % for 2, 3 and 4 values; a bootstrap interval can be no wider.

    `scipy.stats.bootstrap` interpolates between medians, which gives NaN next to a fitness of -inf.
    """
    if len(values) < 2:
        return None
    if len(values) < FEWEST_FOR_INTERVAL:
        return float(min(values)), float(max(values))
    draws = np.random.default_rng(0).choice(np.asarray(values, float), (_RESAMPLES, len(values)))
    ends = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
    low, high = np.quantile(np.median(draws, axis=1), ends, method="inverted_cdf")
    return float(low), float(high)


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a success rate."""
    from scipy.stats import binomtest

    found = binomtest(successes, trials).proportion_ci(_LEVEL, method="wilson")
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over tasks."""

    labels: tuple[str, ...]  # the methods, best mean rank first
    ranks: tuple[float, ...]  # mean rank of each; 1: best on every task; equal medians share their ranks
    tasks: tuple[str, ...]
    difference: float  # of two mean ranks, significant at the 5 % level (Nemenyi)
    p: float | None  # Friedman's test that all methods are alike; None for two methods, or if all medians are equal
    groups: tuple[tuple[str, str], ...]  # first and last label of each longest series without a significant difference


def ranking(medians: pandas.DataFrame) -> Ranking | None:
    """Return the methods, a row of medians each, ranked on each task, a column each.

    Methods that lack a task (NaN) are left out; None with fewer than two methods or tasks.
    """
    from scipy.stats import friedmanchisquare

    medians = medians.dropna()
    if min(medians.shape) < 2:
        return None
    ranks = medians.rank(ascending=False).mean(axis=1).sort_values(kind="stable")
    labels, values = tuple(ranks.index), tuple(map(float, ranks))
    difference = critical_difference(*medians.shape)
    groups = tuple((labels[first], labels[last]) for first, last in alike(values, difference))
    p = None
    if len(medians) > 2 and (medians.nunique() > 1).any():
        p = float(friedmanchisquare(*medians.to_numpy()).pvalue)
    return Ranking(labels, values, tuple(medians.columns), difference, p, groups)


def critical_difference(num_methods: int, num_tasks: int) -> float:
    """Return the difference of mean ranks that is significant at the 5 % level (Demšar 2006, section 3.2.2)."""
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(_LEVEL, num_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(num_methods * (num_methods + 1) / (6 * num_tasks)))


def alike(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the first and the last index of each longest group of two or more sorted ranks within `difference`."""
    series: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(place for place, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not series or last > series[-1][1]):
            series.append((first, last))
    return series


def on_common_grid(curves: Iterable[Any], budget: float) -> pandas.DataFrame:
    """Return curves with different reports on one grid; each value holds until the next report or the budget.

    Each curve is a series of one seed, indexed by evaluations; -inf is the value of a seed without a solution. NaN is
    dropped, and so are seeds without another value. The table has a column per seed and a row per number of
    evaluations, at most 1,000, from the first at which every seed has a value to the budget; it is empty where no seed
    has a value.
    """
    kept = [curve[~np.isnan(curve) & (curve.index <= budget)] for curve in curves]
    kept = [curve for curve in kept if len(curve)]
    if not kept:
        return pandas.DataFrame()
    table = pandas.concat(kept, axis=1, keys=range(len(kept)))
    table = table.reindex(table.index.union([budget])).ffill().dropna()
    return table.iloc[np.linspace(0, len(table) - 1, _MOST_POINTS).astype(int)] if len(table) > _MOST_POINTS else table


def median_band(
    values: Float[np.ndarray, "grid seeds"], band: str = "quartiles"
) -> tuple[Float[np.ndarray, " grid"], Float[np.ndarray, " grid"], Float[np.ndarray, " grid"]]:
    """Return the low end, the median over seeds, and the high end of a band; NaN where they are not finite.

    The band is "quartiles", or "std": one sample standard deviation below and above the median, as in the paper's
    figures (0 for a single seed).
    """
    check_choice("band", band, BANDS)
    with np.errstate(invalid="ignore"):  # of seeds without a solution
        median = np.median(values, axis=1)
        if band == "quartiles":
            low, high = np.quantile(values, [0.25, 0.75], axis=1)
        else:
            spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros_like(median)
            low, high = median - spread, median + spread
    low, median, high = (np.where(np.isfinite(edge), edge, np.nan) for edge in (low, median, high))
    return low, median, high
