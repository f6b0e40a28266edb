"""Ranks over tasks: against Demšar's tables, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jedax.bench.ranks import alike, critical_difference, mean_ranks
from jedax.errors import JedaxError


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


@pytest.mark.parametrize(("methods", "tasks"), [(1, 5), (3, 0)])
def test_too_little(methods, tasks):
    with pytest.raises(JedaxError, match="ranks: expected at least 2 methods and 1 task"):
        critical_difference(methods, tasks)


def test_mean_ranks():
    values = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 1.0]])
    np.testing.assert_allclose(mean_ranks(values), [(1 + 1.5) / 2, (3 + 1.5) / 2, (2 + 3) / 2])


@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_ranks_share_what_there_is(tasks, methods, seed):
    values = np.random.default_rng(seed).integers(0, 4, (tasks, methods)).astype(float)
    assert mean_ranks(values).sum() == pytest.approx(methods * (methods + 1) / 2)


def test_runs_of_methods_that_are_alike():
    assert alike([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert alike([1.0, 1.2, 1.4], 1.0) == [(0, 2)]
    assert alike([1.0, 3.0], 1.0) == []
