"""Methods ranked over several tasks, and how far apart mean ranks must lie to differ.

References:
- Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006: ranks, Nemenyi's test.
- Friedman, "The use of ranks to avoid the assumption of normality implicit in the analysis of variance", 1937.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jedax.bench.comparison import Comparison
from jedax.errors import fail
from jedax.types import Float

_LEVEL = 0.05


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over tasks.

    Attributes:
        labels: The methods, best mean rank first.
        ranks: Mean rank of each, 1 for one that is best on every task.
        tasks: Over which.
        difference: How far apart two mean ranks must lie to differ at the 5 % level (Nemenyi).
        p: Of Friedman's test that all methods are alike; None where there are only two.
        groups: First and last label of each run of methods that do not differ, the longest runs only.
    """

    labels: tuple[str, ...]
    ranks: tuple[float, ...]
    tasks: tuple[str, ...]
    difference: float
    p: float | None
    groups: tuple[tuple[str, str], ...]


def mean_ranks(values: Float[np.ndarray, "tasks methods"]) -> Float[np.ndarray, " methods"]:
    """Return the mean rank of each method, 1 for the highest value of a task; equal values share their ranks."""
    from scipy.stats import rankdata

    return rankdata(-np.asarray(values, float), axis=1).mean(axis=0)


def critical_difference(num_methods: int, num_tasks: int) -> float:
    """Return how far apart two mean ranks must lie to differ at the 5 % level (Demšar 2006, section 3.2.2).

    Args:
        num_methods: At least 2.
        num_tasks: At least 1.

    Raises:
        JedaxError: Fewer.
    """
    from scipy.stats import studentized_range

    if num_methods < 2 or num_tasks < 1:
        raise fail(
            "ranks",
            expected="at least 2 methods and 1 task",
            received=f"{num_methods} and {num_tasks}",
            remedy="compare more",
        )
    quantile = studentized_range.ppf(1 - _LEVEL, num_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(num_methods * (num_methods + 1) / (6 * num_tasks)))


def ranking(comparison: Comparison) -> Ranking | None:
    """Return the methods ranked by their median final fitness on each task.

    Methods that lack a task are left out; None with fewer than two methods or tasks.
    """
    labels = [label for label in comparison.labels if all(t.entry(label) is not None for t in comparison.tables)]
    if len(labels) < 2 or len(comparison.tables) < 2:
        return None
    medians = np.array([[entry.median for label in labels if (entry := table.entry(label)) is not None]
                        for table in comparison.tables])  # fmt: skip
    ranks = mean_ranks(medians)
    order = np.argsort(ranks, kind="stable")
    difference = critical_difference(len(labels), len(comparison.tables))
    ordered = tuple(labels[place] for place in order)
    found = tuple(float(rank) for rank in ranks[order])
    groups = tuple((ordered[first], ordered[last]) for first, last in alike(found, difference))
    tasks = tuple(table.task for table in comparison.tables)
    return Ranking(ordered, found, tasks, difference, _friedman(medians), groups)


def alike(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return first and last place of each longest run of rising ranks that lie within `difference`, of two or more."""
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(place for place, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def _friedman(values: Float[np.ndarray, "tasks methods"]) -> float | None:
    from scipy.stats import friedmanchisquare

    if values.shape[1] < 3 or (values == values[:, :1]).all():
        return None
    return float(friedmanchisquare(*values.T).pvalue)
