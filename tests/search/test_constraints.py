"""Constraints in closed form."""

import cma
import numpy as np
import pytest

from jedax.search.constraints import Penalty, stored, total_violation, violation_of


def test_stored_fitness():
    """Infeasible: -1e30 (1 + log(1 + v)), whatever the fitness is."""
    found = stored(np.array([5.0, 6, 7, 8, 9]), np.array([0, 1, 3, np.inf, np.nan]))
    np.testing.assert_allclose(found, [5, -1.6931471805599453e30, -2.386294361119891e30, -7.1078271289338e32, 9])


def test_the_order_is_that_of_violations():
    violations = np.array([0, 1e-9, 1e-3, 1, 7, 1e6, 1e20, 2e20, 1e300, np.inf])
    found = stored(np.arange(10) * 1e3, violations)
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("violation", [1e-12, 1e-6, 0.3, 1, 1e3, 1e9, 1e20, 1e300])
def test_the_violation_comes_back(violation):
    found = violation_of(float(stored(np.array(3.0), np.array(violation))))
    assert found == pytest.approx(violation, rel=max(1e-3 * (violation < 1e-9), 1e-6))


def test_extremes_come_back_as_infeasible():
    assert violation_of(float(stored(np.array(3.0), np.array(1e-300)))) == pytest.approx(2.2e-16, rel=0.01)
    assert violation_of(float(stored(np.array(3.0), np.array(np.inf)))) == np.inf


@pytest.mark.parametrize("fitness", [0.0, -1e29, 1e300, -np.inf, np.inf, np.nan])
def test_feasible_and_empty_have_no_violation(fitness):
    assert violation_of(fitness) == 0


def test_total_violation():
    found = total_violation(np.array([[-1.0, 2.0, 3.0], [-5.0, 0.0, -np.inf], [np.inf, 1.0, -1.0]]))
    np.testing.assert_array_equal(found, [5, 0, np.inf])


class TestPenalty:
    def test_the_lagrangian_in_closed_form(self):
        """Active: a g + b g^2 / 2 = 2 * 3 + 4 * 9 / 2; inactive: -a^2 / (2 b) = -4 / 8; without a factor: a g or 0."""
        penalty = Penalty(np.array([2.0, 0.0]), np.array([4.0, 0.0]), np.full(3, np.nan))
        found = penalty.scores(np.array([10.0, 10.0, 10.0]), np.array([[3.0, 7.0], [-3.0, 7.0], [-np.inf, -7.0]]))
        np.testing.assert_allclose(found, [10 - 24, 10 + 0.5, 10 + 0.5])

    def test_it_is_continuous_where_a_constraint_becomes_active(self):
        penalty = Penalty(np.array([2.0]), np.array([4.0]), np.full(2, np.nan))
        at, beside = penalty.scores(np.zeros(2), np.array([[-0.5], [-0.5 + 1e-9]]))
        assert at == pytest.approx(beside, abs=1e-8)

    @pytest.mark.parametrize(
        ("fitness", "scale"), [([-3.0] * 4, 3), ([0.0] * 4, 1), ([2.0, 0, 0, 0, 0], 2), ([0.0, 0, 3, 4], 3.25)]
    )
    def test_where_fitness_tells_no_scale(self, fitness, scale):
        """The first factor has the interquartile range of fitness, else its range, else its size, at least 1."""
        penalty = Penalty(np.zeros(1), np.zeros(1), np.full(2, np.nan))
        values = np.arange(1.0, len(fitness) + 1)[:, None]
        found = penalty.adapted(np.array(fitness), values, 5)
        spread = np.ptp(np.percentile(values, [25, 75]))
        assert found.factors == pytest.approx(0.4 * scale / 5 / spread**2)

    def test_what_is_violated_without_measure_is_ranked_last(self):
        penalty = Penalty(np.array([2.0]), np.array([4.0]), np.full(2, np.nan))
        found = penalty.scores(np.array([1.0, -1e9]), np.array([[np.inf], [100.0]]))
        assert found[0] == -np.inf
        assert np.isfinite(found[1])
        adapted = penalty.adapted(np.array([1.0, 2.0, np.nan]), np.array([[np.inf], [1.0], [1.0]]), 3)
        assert adapted is penalty  # one solution tells nothing

    def test_nothing_is_added_until_a_constraint_is_violated(self):
        fitness, values = np.arange(8.0), np.full((8, 2), [-1.0, -2.0]) - np.arange(8)[:, None]
        penalty = Penalty.begin(2)
        for _ in range(5):
            penalty = penalty.adapted(fitness, values, 4)
        assert (penalty.factors == 0).all()
        np.testing.assert_array_equal(penalty.scores(fitness, values), fitness)

    def test_multipliers_are_those_of_kuhn_and_tucker(self):
        """Least |x|^2 + x_4 with x_1 >= 1, x_1 + x_2 >= 3 and x_3 <= 5, which is not active.

        x = (1.5, 1.5, 0, -0.5); the gradient 2 x + e_4 is the multiplier 3 times that of the second constraint.
        """
        penalty = Penalty.begin(3)
        es = cma.CMAEvolutionStrategy([4.0] * 4, 1.0, {"seed": 3, "verbose": -9})
        for _ in range(250):
            x = np.array(es.ask())
            loss, values = (x**2).sum(1) + x[:, 3], np.stack([1 - x[:, 0], 3 - x[:, 0] - x[:, 1], x[:, 2] - 5], 1)
            penalty = penalty.adapted(-loss, values, 4)
            es.tell(list(x), (-penalty.scores(-loss, values)).tolist())
        np.testing.assert_allclose(es.mean, [1.5, 1.5, 0, -0.5], atol=1e-3)
        np.testing.assert_allclose(penalty.multipliers, [0, 3, 0], atol=0.03)

    def test_numbers_that_do_not_fit_each_other(self):
        assert Penalty.begin(2).check() == 2
        for strange in (np.zeros(3), np.zeros(2, int), np.zeros((2, 1))):
            with pytest.raises(ValueError, match="penalty"):
                Penalty(np.zeros(2), strange, np.zeros(3)).check()
