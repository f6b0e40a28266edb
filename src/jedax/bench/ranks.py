"""Methods ranked over several tasks, and the difference of mean ranks that is significant.

References:
- Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006: ranks, Nemenyi's test.
- Friedman, "The use of ranks to avoid the assumption of normality implicit in the analysis of variance", 1937.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas

from jedax.bench.comparison import Comparison

_LEVEL = 0.05


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over tasks.

    Attributes:
        labels: The methods, best mean rank first.
        ranks: Mean rank of each; 1: best on every task. Equal medians share their ranks.
        tasks: The tasks.
        difference: Difference of two mean ranks that is significant at the 5 % level (Nemenyi).
        p: P-value of Friedman's test that all methods are alike; None for two methods, or if all medians are equal.
        groups: First and last label of each longest series of methods without a significant difference.
    """

    labels: tuple[str, ...]
    ranks: tuple[float, ...]
    tasks: tuple[str, ...]
    difference: float
    p: float | None
    groups: tuple[tuple[str, str], ...]


def ranking(comparison: Comparison) -> Ranking | None:
    """Return the methods ranked by their median final fitness on each task.

    Methods that lack a task are left out; None with fewer than two methods or tasks.
    """
    medians = pandas.DataFrame({t.task: {e.label: e.median for e in t.entries} for t in comparison.tables})
    medians = medians.reindex(comparison.labels).dropna()
    if min(medians.shape) < 2:
        return None
    ranks = medians.rank(ascending=False).mean(axis=1).sort_values(kind="stable")
    labels, values = tuple(ranks.index), tuple(map(float, ranks))
    difference = critical_difference(*medians.shape)
    groups = tuple((labels[first], labels[last]) for first, last in alike(values, difference))
    return Ranking(labels, values, tuple(medians.columns), difference, _friedman(medians), groups)


def critical_difference(num_methods: int, num_tasks: int) -> float:
    """Return the difference of mean ranks that is significant at the 5 % level (Demšar 2006, section 3.2.2)."""
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - _LEVEL, num_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(num_methods * (num_methods + 1) / (6 * num_tasks)))


def alike(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return first and last place of each longest series of rising ranks (two or more) within `difference`."""
    series: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(place for place, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not series or last > series[-1][1]):
            series.append((first, last))
    return series


def _friedman(medians: pandas.DataFrame) -> float | None:
    from scipy.stats import friedmanchisquare

    if len(medians) < 3 or (medians.nunique() == 1).all():
        return None
    return float(friedmanchisquare(*medians.to_numpy()).pvalue)
