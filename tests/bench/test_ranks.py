"""Ranks over tasks: against Demšar's tables, and by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from jedax.bench.ranks import alike, critical_difference, ranking


@pytest.mark.parametrize(
    ("methods", "quantile"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (9, 3.102), (10, 3.164)],
)
def test_critical_values_of_nemenyi(methods, quantile):
    """Demšar 2006, table 5 (a), for the 5 % level."""
    expected = quantile * np.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_difference(methods, 14) == pytest.approx(expected, rel=6e-4)


def test_demsars_example():
    """Section 3.2.2: four classifiers on 14 data sets differ by 1.25."""
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def ranked(values):
    """Rank methods "0", "1", ... by medians, `(tasks, methods)`; NaN: no results."""
    labels = [str(n) for n in range(len(values[0]))]
    tables = [
        SimpleNamespace(task=f"task {n}", entries=[SimpleNamespace(label=label, median=median) for label, median
                                                   in zip(labels, row, strict=True) if not np.isnan(median)])
        for n, row in enumerate(values)
    ]  # fmt: skip
    return ranking(SimpleNamespace(tables=tables, labels=labels))


def test_mean_ranks():
    found = ranked([[3.0, 1.0, 2.0, np.nan], [5.0, 5.0, 1.0, 9.0]])
    assert found.labels == ("0", "1", "2")
    np.testing.assert_allclose(found.ranks, [(1 + 1.5) / 2, (3 + 1.5) / 2, (2 + 3) / 2])
    assert found.tasks == ("task 0", "task 1")
    assert found.groups == (("0", "2"),)
    assert found.p == pytest.approx(friedmanchisquare([3, 5], [1, 5], [2, 1]).pvalue)


def test_too_little_to_rank():
    assert ranked([[3.0, 1.0]]) is None
    assert ranked([[3.0, np.nan], [1.0, 2.0]]) is None
    assert ranked([[1.0, 2.0], [1.0, 2.0]]).p is None
    assert ranked([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]).p is None


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_ranks_sum_to_a_constant(tasks, methods, seed):
    values = np.random.default_rng(seed).integers(0, 4, (tasks, methods)).astype(float)
    assert sum(ranked(values).ranks) == pytest.approx(methods * (methods + 1) / 2)


def test_runs_of_methods_that_are_alike():
    assert alike([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert alike([1.0, 1.2, 1.4], 1.0) == [(0, 2)]
    assert alike([1.0, 3.0], 1.0) == []
