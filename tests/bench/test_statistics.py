"""Statistics against hand computation, published numbers, enumeration and other formulas."""

import itertools
import math

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, mannwhitneyu, rankdata

from jedax import JedaxError
from jedax.bench import statistics

samples = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=12)


def enumerated_p(first, second):
    """Two-sided p-value, twice the smaller tail, by going through every way to deal the values out."""
    values = [*first, *second]

    def u(chosen):
        one = [values[i] for i in chosen]
        two = [values[i] for i in range(len(values)) if i not in chosen]
        return sum((a > b) + (a == b) / 2 for a in one for b in two)

    ours = u(range(len(first)))
    us = np.array([u(chosen) for chosen in itertools.combinations(range(len(values)), len(first))])
    return min(1.0, 2 * min(np.mean(us <= ours), np.mean(us >= ours)))


def normal_p(first, second):
    """Two-sided p-value of the normal approximation, with corrections for ties and continuity."""
    n, m = len(first), len(second)
    u = sum((a > b) + (a == b) / 2 for a in first for b in second)
    _, ties = np.unique([*first, *second], return_counts=True)
    total = n + m
    variance = n * m / 12 * ((total + 1) - (ties**3 - ties).sum() / (total * (total - 1)))
    z = (abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


@pytest.mark.parametrize("seed", range(4))
def test_mann_whitney_is_exact_for_small_samples(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=4), rng.normal(0.7, size=5)
    assert statistics.mann_whitney(first, second).p == pytest.approx(enumerated_p(first, second))


@pytest.mark.parametrize(("first", "second"), [(3, 3), (3, 4), (2, 5), (4, 4)])
def test_least_p_is_that_of_samples_apart(first, second):
    low, high = np.arange(first, dtype=float), 100 + np.arange(second, dtype=float)
    assert statistics.least_p(first, second) == pytest.approx(enumerated_p(low, high))
    assert statistics.mann_whitney(low, high) == (pytest.approx(statistics.least_p(first, second)), 0)


def test_mann_whitney_of_small_samples_with_ties():
    assert statistics.mann_whitney([0.0] * 3, [1.0] * 3).p == pytest.approx(2 / 20)  # 0.047 if approximated
    assert statistics.mann_whitney([0.0] * 4, [1.0] * 4).p == pytest.approx(2 / 70)
    assert statistics.mann_whitney([0.0, 0, 1], [0.0, 1, 1]).p == 1


@given(*[st.lists(st.sampled_from([-math.inf, 0.0, 1.0, 2.0]), min_size=2, max_size=5)] * 2)
def test_mann_whitney_with_ties_is_exact_for_small_samples(first, second):
    assert statistics.mann_whitney(first, second).p == pytest.approx(enumerated_p(first, second))


@pytest.mark.parametrize("sizes", [(8, 8), (8, 30), (40, 2)])
def test_mann_whitney_without_ties_is_that_of_scipy(sizes):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=sizes[0]), rng.normal(0.4, size=sizes[1])
    assert statistics.mann_whitney(first, second).p == pytest.approx(mannwhitneyu(first, second, method="exact").pvalue)


def test_mann_whitney_with_ties_and_unequal_sizes():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, 10).astype(float), rng.integers(2, 11, 14).astype(float)
    assert statistics.mann_whitney(first, second).p == pytest.approx(normal_p(first, second))


def test_mann_whitney_of_equal_values_and_of_minus_infinity():
    assert statistics.mann_whitney([3.0] * 5, [3.0] * 7) == (1.0, 0.5)
    assert statistics.mann_whitney([-math.inf, -math.inf], [-math.inf, -math.inf]) == (1.0, 0.5)
    assert statistics.mann_whitney([-math.inf, 1, 2], [3, 4, 5]) == (pytest.approx(0.1), 0)


def test_one_seed_has_no_p_value_and_no_interval():
    assert statistics.mann_whitney([1.0], [1.0, 2.0]) is None
    assert statistics.mann_whitney([1.0, 2.0], [1.0]) is None
    assert statistics.median_interval([1.0]) is None


@given(samples, samples)
def test_mann_whitney_depends_on_ranks_only(first, second):
    p, effect = statistics.mann_whitney(first, second)
    assert 0 <= p <= 1
    assert statistics.mann_whitney(second, first) == pytest.approx((p, 1 - effect))
    assert statistics.mann_whitney(np.exp(np.array(first) / 10), np.exp(np.array(second) / 10)) == pytest.approx(
        (p, effect)
    )
    ranks = rankdata([*first, *second])[: len(first)].sum()  # Vargha & Delaney 2000, equation 14
    assert effect == pytest.approx((ranks / len(first) - (len(first) + 1) / 2) / len(second))


def test_effect_by_hand():
    # 1 exceeds none, 2 ties with two, 3 exceeds two: (0 + 2/2 + 2) of 9 pairs.
    assert statistics.mann_whitney([1, 2, 3], [2, 2, 4]).effect == pytest.approx(3 / 9)
    assert statistics.mann_whitney([5, 6], [1, 2, 3]).effect == 1


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.holm([0.6, None, 0.5]) == [1.0, None, 1.0]
    assert statistics.holm([None, 0.02]) == [None, 0.02]
    assert statistics.holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_lowers_no_p_value(p_values):
    corrected = statistics.holm(p_values)
    assert all(p <= c <= min(1, len(p_values) * p) for p, c in zip(p_values, corrected, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


def test_median_interval_against_the_exact_bootstrap_distribution():
    values = np.array([3.0, -1, 7, 7.5, 2, 11, 20, -4, 0, 5, 6])
    n, ordered = len(values), np.sort(values)

    def below(k):  # The bootstrap median is at most the k-th value if 6 of 11 draws are.
        return sum(math.comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j) for j in range((n + 1) // 2, n + 1))

    exact = [below(k) for k in range(1, n + 1)]
    assert min(abs(e - share) for e in exact for share in (0.025, 0.975)) > 0.004  # far enough for 10,000 resamples
    ends = tuple(ordered[next(k for k, e in enumerate(exact) if e >= share)] for share in (0.025, 0.975))
    assert statistics.median_interval(values) == ends
    assert statistics.median_interval(values[::-1]) == ends


@pytest.mark.parametrize(("seeds", "coverage"), [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)])
def test_median_interval_of_few_values_is_their_range(seeds, coverage):
    """The range misses the true median, here 0, only if all values lie on one side of it."""
    samples = np.random.default_rng(seeds).normal(size=(300, seeds))
    low, high = np.transpose([statistics.median_interval(sample) for sample in samples])
    np.testing.assert_array_equal(low, samples.min(axis=1))
    np.testing.assert_array_equal(high, samples.max(axis=1))
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(coverage, abs=0.08)


def test_median_interval_of_equal_and_infinite_values():
    assert statistics.median_interval([2.0, 2.0, 2.0]) == (2.0, 2.0)
    assert statistics.median_interval([-math.inf, 1.0, 2.0]) == (-math.inf, 2.0)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(successes, trials, low, high):
    """Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3."""
    assert statistics.wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def on_grid(curves, budget):
    table = statistics.on_common_grid([pandas.Series(values, steps, dtype=float) for steps, values in curves], budget)
    return table.index.tolist(), table.T.to_numpy().tolist()


def test_common_grid_of_different_reports():
    curves = [([10, 20, 30], [1.0, 2.0, 3.0]), ([15, 30, 60], [-math.inf, 5.0, 6.0]), ([5], [math.nan])]
    # The second has no solution before 30; 60 is after the budget; the third has no value.
    assert on_grid(curves, 50) == ([15, 20, 30, 50], [[1, 2, 3, 3], [-math.inf, -math.inf, 5, 5]])
    assert on_grid([*curves[:1], ([15, 30], [4.0, 5.0])], 30) == ([15, 20, 30], [[1, 2, 3], [4, 4, 5]])
    assert on_grid(curves[2:], 50) == ([], [])


def test_common_grid_is_thinned_but_keeps_its_ends():
    steps = np.arange(1, 5001)
    grid, (values,) = on_grid([(steps, steps * 2.0)], 5000)
    assert (len(grid), grid[0], grid[-1]) == (1000, 1, 5000)
    np.testing.assert_array_equal(values, np.multiply(grid, 2))


def test_bands():
    values = np.array([[1.0, 2, 4, 9], [0, 0, 0, 0]])
    low, median, high = statistics.median_band(values)
    assert (low[0], median[0], high[0]) == (1.75, 3, 5.25)
    some = np.array([[-math.inf, 1.0, 2.0], [-math.inf, -math.inf, 2.0]])  # of seeds without a solution
    np.testing.assert_array_equal(statistics.median_band(some)[1:], [[1, math.nan], [1.5, math.nan]])
    low, median, high = statistics.median_band(values, "std")
    spread = math.sqrt((9 + 4 + 0 + 25) / 3)
    assert (low[0], median[0], high[0]) == pytest.approx((3 - spread, 3, 3 + spread))
    assert (low[1], high[1]) == (0, 0)
    np.testing.assert_array_equal(statistics.median_band(values[:, :1], "std")[2], values[:, 0])
    with pytest.raises(JedaxError, match="band: unknown name 'sdt'; did you mean 'std'"):
        statistics.median_band(values, "sdt")


@pytest.mark.parametrize(
    ("methods", "quantile"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (9, 3.102), (10, 3.164)],
)
def test_critical_values_of_nemenyi(methods, quantile):
    """Demšar 2006, table 5 (a), for the 5 % level."""
    expected = quantile * np.sqrt(methods * (methods + 1) / (6 * 14))
    assert statistics.critical_difference(methods, 14) == pytest.approx(expected, rel=6e-4)


def test_demsars_example():
    """Section 3.2.2: four classifiers on 14 data sets differ by 1.25."""
    assert statistics.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def ranked(values):
    """Rank methods "0", "1", ... by medians, `(tasks, methods)`; NaN: no results."""
    columns = [f"task {n}" for n in range(len(values))]
    return statistics.ranking(pandas.DataFrame(np.transpose(values), map(str, range(len(values[0]))), columns))


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
    assert statistics.alike([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert statistics.alike([1.0, 1.2, 1.4], 1.0) == [(0, 2)]
    assert statistics.alike([1.0, 3.0], 1.0) == []
