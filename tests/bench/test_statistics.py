"""Statistics against hand computation, published numbers, enumeration and other formulas."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jedax import JedaxError
from jedax.bench import statistics

samples = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=12)


def enumerated_p(first, second):
    """Two-sided p-value by going through every way to deal the values out."""
    values = [*first, *second]
    ours = sum(a > b for a in first for b in second)
    middle = len(first) * len(second) / 2
    us = []
    for chosen in itertools.combinations(range(len(values)), len(first)):
        one = [values[i] for i in chosen]
        two = [values[i] for i in range(len(values)) if i not in chosen]
        us.append(sum(a > b for a in one for b in two))
    return np.mean([abs(u - middle) >= abs(ours - middle) for u in us])


def normal_p(first, second):
    """Two-sided p-value of the normal approximation, with corrections for ties and continuity."""
    n, m = len(first), len(second)
    u = sum((a > b) + (a == b) / 2 for a in first for b in second)
    _, ties = np.unique([*first, *second], return_counts=True)
    total = n + m
    variance = n * m / 12 * ((total + 1) - (ties**3 - ties).sum() / (total * (total - 1)))
    z = (abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def test_mann_whitney_of_samples_apart():
    assert statistics.mann_whitney([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20)
    assert statistics.mann_whitney(range(5), range(5, 10)) == pytest.approx(2 / 252)


@pytest.mark.parametrize("seed", range(4))
def test_mann_whitney_is_exact_for_small_samples(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=4), rng.normal(0.7, size=5)
    assert statistics.mann_whitney(first, second) == pytest.approx(enumerated_p(first, second))


@pytest.mark.parametrize(("first", "second"), [(3, 3), (3, 4), (2, 5), (4, 4)])
def test_least_p_is_that_of_samples_apart(first, second):
    low, high = np.arange(first, dtype=float), 100 + np.arange(second, dtype=float)
    assert statistics.least_p(first, second) == pytest.approx(enumerated_p(low, high))
    assert statistics.least_p(first, second) == pytest.approx(statistics.mann_whitney(low, high))


def test_mann_whitney_with_ties_and_unequal_sizes():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, 10).astype(float), rng.integers(2, 11, 14).astype(float)
    assert statistics.mann_whitney(first, second) == pytest.approx(normal_p(first, second))


def test_mann_whitney_of_equal_values_and_of_minus_infinity():
    assert statistics.mann_whitney([3.0] * 5, [3.0] * 7) == 1.0
    assert statistics.mann_whitney([-math.inf, -math.inf], [-math.inf, -math.inf]) == 1.0
    assert statistics.mann_whitney([-math.inf, 1, 2], [3, 4, 5]) == pytest.approx(0.1)


def test_one_seed_has_no_p_value_and_no_interval():
    assert statistics.mann_whitney([1.0], [1.0, 2.0]) is None
    assert statistics.mann_whitney([1.0, 2.0], [1.0]) is None
    assert statistics.median_interval([1.0]) is None


@given(samples, samples)
def test_mann_whitney_knows_only_ranks(first, second):
    p = statistics.mann_whitney(first, second)
    assert 0 <= p <= 1
    assert statistics.mann_whitney(second, first) == pytest.approx(p)
    assert statistics.mann_whitney(np.exp(np.array(first) / 10), np.exp(np.array(second) / 10)) == pytest.approx(p)


def test_vargha_delaney_by_hand():
    # 1 beats none, 2 ties with two, 3 beats two: (0 + 2/2 + 2) of 9 pairs.
    assert statistics.vargha_delaney([1, 2, 3], [2, 2, 4]) == pytest.approx(3 / 9)
    assert statistics.vargha_delaney([5, 6], [1, 2, 3]) == 1
    assert statistics.vargha_delaney([5.0], [5.0]) == 0.5


@given(samples, samples)
def test_vargha_delaney_both_ways_is_one(first, second):
    a = statistics.vargha_delaney(first, second)
    assert a + statistics.vargha_delaney(second, first) == pytest.approx(1)
    from scipy.stats import rankdata

    ranks = rankdata([*first, *second])[: len(first)].sum()  # Vargha & Delaney 2000, equation 14
    assert a == pytest.approx((ranks / len(first) - (len(first) + 1) / 2) / len(second))


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.holm([0.6, None, 0.5]) == [1.0, None, 1.0]
    assert statistics.holm([None, 0.02]) == [None, 0.02]
    assert statistics.holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_never_helps(p_values):
    corrected = statistics.holm(p_values)
    assert all(p <= c <= min(1, len(p_values) * p) for p, c in zip(p_values, corrected, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_p_value(bad):
    with pytest.raises(JedaxError, match="p_values: expected numbers from 0 to 1"):
        statistics.holm([0.5, bad])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_median_interval_against_the_exact_bootstrap_distribution(level):
    values = np.array([3.0, -1, 7, 7.5, 2, 11, 20, -4, 0, 5, 6])
    n, ordered = len(values), np.sort(values)

    def below(k):  # The bootstrap median is at most the k-th value if 6 of 11 draws are.
        return sum(math.comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j) for j in range((n + 1) // 2, n + 1))

    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        exact = [below(k) for k in range(1, n + 1)]
        assert min(abs(e - share) for e in exact) > 0.004  # far enough for 10,000 resamples
        ends.append(ordered[next(k for k, e in enumerate(exact) if e >= share)])
    assert statistics.median_interval(values, level=level) == tuple(ends)
    assert statistics.median_interval(values[::-1], level=level) == tuple(ends)


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


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_what_is_no_count(successes, trials):
    with pytest.raises(JedaxError, match="successes: expected a count"):
        statistics.wilson_interval(successes, trials)


@pytest.mark.parametrize("level", [0, 1, -1, 95])
def test_level_is_a_share(level):
    with pytest.raises(JedaxError, match="level: expected a number between 0 and 1"):
        statistics.wilson_interval(1, 2, level=level)
    with pytest.raises(JedaxError, match="level: expected a number between 0 and 1"):
        statistics.median_interval([1, 2], level=level)


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [[1.0, 2.0]], 3.0])
def test_bad_samples(bad):
    for function in (statistics.median_interval, statistics.ecdf):
        with pytest.raises(JedaxError, match="expected one number per seed"):
            function(bad)
    for function in (statistics.mann_whitney, statistics.vargha_delaney):
        with pytest.raises(JedaxError, match="first: expected one number per seed"):
            function(bad, [1.0])
        with pytest.raises(JedaxError, match="second: expected one number per seed"):
            function([1.0], bad)


def test_evaluations_to_reach():
    curve = [100, 200, 300], [-9.0, -5.0, -5.0]
    assert statistics.evaluations_to_reach(*curve, -9.0) == 100
    assert statistics.evaluations_to_reach(*curve, -6.0) == 200
    assert statistics.evaluations_to_reach(*curve, -5.0) == 200
    assert statistics.evaluations_to_reach(*curve, -4.9) == math.inf


def test_ecdf_counts_those_that_never_came():
    steps, shares = statistics.ecdf([30, 10, math.inf, 30])
    np.testing.assert_array_equal(steps, [10, 30])
    np.testing.assert_array_equal(shares, [0.25, 0.75])
    assert [len(part) for part in statistics.ecdf([math.inf])] == [0, 0]


def test_value_at_holds_the_last_report():
    found = statistics.value_at([10, 20, 40], [1.0, 3.0, 4.0], [45, 5, 10, 19, 20, 39.9, 40])
    np.testing.assert_array_equal(found, [4, np.nan, 1, 1, 3, 3, 4])


@pytest.mark.parametrize(
    ("evaluations", "values", "message"),
    [
        ([1, 2], [1.0], "values: expected one for each"),
        ([], [], "values: expected one for each"),
        ([2, 1], [1.0, 2.0], "evaluations: expected rising numbers"),
        ([1, 1], [1.0, 2.0], "evaluations: expected rising numbers"),
        ([1, math.nan], [1.0, 2.0], "evaluations: expected rising numbers"),
    ],
)
def test_bad_curves(evaluations, values, message):
    with pytest.raises(JedaxError, match=message):
        statistics.value_at(evaluations, values, [1])
    with pytest.raises(JedaxError, match=message):
        statistics.evaluations_to_reach(evaluations, values, 0)
    with pytest.raises(JedaxError, match=message):
        statistics.on_common_grid([(evaluations, values)], 10)


def test_common_grid_of_different_reports():
    curves = [([10, 20, 30], [1.0, 2.0, 3.0]), ([15, 30, 60], [-math.inf, 5.0, 6.0]), ([5], [math.nan])]
    grid, values = statistics.on_common_grid(curves, 50)
    np.testing.assert_array_equal(grid, [30, 50])  # the second has no value before 30; 60 is after the budget
    np.testing.assert_array_equal(values, [[3, 3], [5, 5]])
    grid, values = statistics.on_common_grid([*curves[:1], ([15, 30], [4.0, 5.0])], 30)
    np.testing.assert_array_equal(grid, [15, 20, 30])
    np.testing.assert_array_equal(values, [[1, 2, 3], [4, 4, 5]])
    grid, values = statistics.on_common_grid(curves[2:], 50)
    assert (grid.size, values.size) == (0, 0)


def test_common_grid_is_thinned_but_keeps_its_ends():
    steps = np.arange(1, 5001)
    grid, values = statistics.on_common_grid([(steps, steps * 2.0)], 5000)
    assert (len(grid), grid[0], grid[-1]) == (1000, 1, 5000)
    np.testing.assert_array_equal(values[0], grid * 2)


def test_bands():
    values = np.array([[1.0, 0], [2, 0], [4, 0], [9, 0]])
    low, median, high = statistics.median_band(values)
    assert (low[0], median[0], high[0]) == (1.75, 3, 5.25)
    low, median, high = statistics.median_band(values, "std")
    spread = math.sqrt((9 + 4 + 0 + 25) / 3)
    assert (low[0], median[0], high[0]) == pytest.approx((3 - spread, 3, 3 + spread))
    assert (low[1], high[1]) == (0, 0)
    np.testing.assert_array_equal(statistics.median_band(values[:1], "std")[2], values[0])
    with pytest.raises(JedaxError, match="band: unknown name 'sdt'; did you mean 'std'"):
        statistics.median_band(values, "sdt")


def test_imports_stay_light():
    code = (
        "import sys, jedax, jedax.bench.statistics\n"
        "print([m for m in ('scipy', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
