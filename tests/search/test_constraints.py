"""Constraints in closed form."""

import numpy as np
import pytest

from jedax.search.constraints import INFEASIBLE, first_level, level_at, stored, violation_of


@pytest.mark.parametrize(
    ("violations", "level"),
    [
        (np.arange(10.0), 2.0),
        (np.arange(10.0)[::-1], 2.0),
        (np.arange(9.0), 1.0),
        ([5.0], 5.0),
        ([0, 0, 0, 7, 8], 0.0),
        ([np.nan, 3, 2, 1, 5, 4, np.inf], 2.0),
        ([np.nan, np.inf], 0.0),
    ],
)
def test_the_first_level_is_that_of_a_fifth(violations, level):
    assert first_level(np.array(violations, float)) == level


@pytest.mark.parametrize(
    ("progress", "share"), [(0, 1), (0.1, 0.32768), (0.25, 0.03125), (0.4, 0.00032), (0.5, 0), (0.9, 0), (1, 0)]
)
def test_the_level_falls_by_the_fifth_power_until_half_of_the_budget(progress, share):
    assert level_at(3.0, progress) == pytest.approx(3 * share, abs=1e-15)


def test_stored_fitness():
    """Infeasible: -1e30 (1 + v / (1 + v)), whatever the fitness is."""
    found = stored(np.array([5.0, 6, 7, 8, 9]), np.array([0, 1, 3, np.inf, np.nan]))
    np.testing.assert_allclose(found, [5, -1.5e30, -1.75e30, -2e30, 9], rtol=1e-15)
    found = stored(np.array([5.0, 6, 7, 8]), np.array([0, 1, 3, np.inf]), level=1.0)
    np.testing.assert_allclose(found, [5, 6, -1.75e30, -2e30], rtol=1e-15)


def test_the_order_is_that_of_violations():
    violations = np.array([0, 1e-9, 1e-3, 1, 7, 1e6, np.inf])
    found = stored(np.arange(7) * 1e3, violations)
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("violation", [1e-12, 1e-6, 0.3, 1, 1e3, 1e9])
def test_the_violation_comes_back(violation):
    found = violation_of(float(stored(np.array(3.0), np.array(violation))))
    assert found == pytest.approx(violation, rel=max(1e-3 * (violation < 1e-9), 1e-6))


def test_extremes_come_back_as_infeasible():
    assert violation_of(float(stored(np.array(3.0), np.array(1e-300)))) == pytest.approx(2.2e-16, rel=0.01)
    assert violation_of(float(stored(np.array(3.0), np.array(np.inf)))) == np.inf
    assert violation_of(2 * INFEASIBLE) == np.inf


@pytest.mark.parametrize("fitness", [0.0, -1e29, 1e300, -np.inf, np.inf, np.nan])
def test_feasible_and_empty_have_no_violation(fitness):
    assert violation_of(fitness) == 0
