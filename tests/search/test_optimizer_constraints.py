"""`Optimizer` with constraints: feasible solutions first, and penalties that adapt to the search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.search.outside import JEDI_X, MAPS, drive, make, simulate, step

import jedax
from jedax.methods.jedi_x import POOL
from jedax.repertoire.repertoire import INFEASIBLE
from jedax.search.constraints import Penalty


def tell(optimizer, fitness, violations, places=None):
    """Tell the open generation; each solution in a place of its own, unless places are given."""
    genotypes, number = optimizer.ask(), len(fitness)
    places = np.stack([np.linspace(-0.9, 0.9, number)] * 2, axis=1) if places is None else places
    optimizer.tell(genotypes, fitness, places, violations=violations)
    return genotypes


class TestBest:
    def test_feasible_solutions_come_first(self):
        optimizer = make(MAPS)
        genotypes = tell(optimizer, np.arange(8.0), [0, 0, 0, 1, 1e-3, 1e-9, 1e9, np.inf])
        best = optimizer.best
        assert (best.fitness, best.violation) == (2, 0)
        np.testing.assert_array_equal(best.genotype, genotypes[2])
        assert repr(optimizer).endswith("best 2>")

    def test_in_each_cell_too(self):
        """All in one cell."""
        optimizer = make(MAPS)
        tell(optimizer, [9.0, 8, 7, 6, 5, 4, 3, 2], [3, 2, 1, 4, 5, 6, 7, 8], np.zeros((8, 2)))
        repertoire = optimizer.repertoire
        cell = int(np.argmax(repertoire.counts))
        assert repertoire.fitness[cell] == pytest.approx(INFEASIBLE * (1 + np.log(2)))
        tell(optimizer, [-1e6, *[99.0] * 7], [0, *[0.5] * 7], np.zeros((8, 2)))
        assert optimizer.repertoire.fitness[cell] == -1e6

    def test_cells_that_are_feasible(self):
        optimizer = make(MAPS)
        tell(optimizer, np.arange(8.0), [0, 1, 0, 1, 0, 1, np.inf, 1e-9])
        repertoire, feasible = optimizer.repertoire, optimizer.feasible
        assert set(repertoire.fitness[feasible]) <= {0, 2, 4}
        assert feasible.sum() == (repertoire.fitness >= 0).sum() > 0
        assert (repertoire.filled & ~feasible).any()
        assert repertoire.coverage() == pytest.approx(feasible.mean())
        assert repertoire.qd_score(-1.0) == pytest.approx((repertoire.fitness[feasible] + 1).sum())

    def test_the_gaussian_process_of_jedi_takes_them_for_the_worst(self):
        optimizer = make(JEDI_X, method="jedi")
        tell(optimizer, np.arange(8.0), [1, 0, 0, 2, 0, 0, np.inf, 0])
        repertoire = optimizer.repertoire
        data = optimizer._steps.method.gp_data(jax.tree.map(jnp.asarray, repertoire))
        filled = np.asarray(repertoire.fitness)[np.asarray(repertoire.filled)]
        np.testing.assert_array_equal(data.fitness[: len(filled)], np.where(filled < 0, 1, filled))
        assert (filled < 0).sum() == 3

    @pytest.mark.parametrize("violation", [1e-300, 1e-17, 1e-9, 0.25, 3.0, 1e9, np.inf])
    def test_nothing_is_feasible(self, violation):
        optimizer = make(MAPS)
        violations = np.append(np.full(7, np.inf), violation)
        genotypes = tell(optimizer, np.arange(8.0), violations)
        best = optimizer.best
        assert np.isnan(best.fitness)
        assert best.violation == pytest.approx(max(violation, np.finfo(float).eps), rel=1e-6)
        assert f", violation {best.violation:.3g}>" in repr(optimizer)
        np.testing.assert_array_equal(best.genotype, genotypes[0 if violation == np.inf else 7])

    def test_minimising(self):
        optimizer = make(MAPS, minimise=True)
        tell(optimizer, np.arange(8.0), [1, 1, 0, 0, 0, 0, 0, 0])
        assert optimizer.best.fitness == 2

    def test_violations_are_summed(self):
        """Values below 0 are satisfied, by how much does not matter."""
        optimizer = make(MAPS)
        tell(optimizer, np.zeros(8), np.array([[1, -9], [0.5, 0.25]] + [[1, 1]] * 6))
        assert optimizer.best.violation == pytest.approx(0.75)

    def test_of_added_and_unasked_solutions(self):
        optimizer = make(MAPS)
        optimizer.add(np.ones((1, 6)), [50.0], [[0.9, 0.9]], violations=[[1.0, -1.0]])
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, *simulate(genotypes), violations=np.zeros((len(genotypes), 2)))
        assert optimizer.best.fitness < 0
        optimizer.tell(np.full((1, 6), 2.0), [60.0], [[0.9, 0.9]], violations=[[1.0, 2.0]])
        assert optimizer.best.fitness < 0
        optimizer.tell(np.full((1, 6), 3.0), [60.0], [[0.9, 0.9]], violations=[[0.0, -2.0]])
        assert optimizer.best.fitness == 60


class TestPenalty:
    """What evolution strategies get is the fitness less penalties, which adapt to generations of the pool."""

    def scores(self, optimizer):
        """Return the list to which the scores that evolution strategies get of each generation will be added."""
        seen, evaluation = [], optimizer._steps._evaluation

        def watch(*given, **options):
            found = evaluation(*given, **options)
            seen.append(np.asarray(found.score)[0])
            return found

        optimizer._steps._evaluation = watch
        return seen

    def test_scores_are_those_of_the_penalty(self):
        optimizer = make(MAPS)
        seen, values = self.scores(optimizer), np.stack([np.arange(8.0) - 3, -np.ones(8)], axis=1)
        for _ in range(3):
            tell(optimizer, np.arange(8.0), values)
            penalty = optimizer._steps.penalty
            np.testing.assert_array_equal(seen[-1], penalty.scores(np.arange(8.0), values))
            assert penalty.factors[0] > 0 == penalty.factors[1]

    def test_it_adapts_to_generations_that_climb_alone(self, monkeypatch):
        optimizer = make(MAPS)
        tell(optimizer, np.arange(8.0), np.arange(8.0) - 3)
        before = optimizer._steps.penalty
        monkeypatch.setattr(type(optimizer._steps.method), "climbs", lambda self, state: np.array([False]))
        tell(optimizer, np.arange(8.0), np.arange(8.0) - 3)
        assert optimizer._steps.penalty is before
        monkeypatch.setattr(type(optimizer._steps.method), "climbs", lambda self, state: np.array([True]))
        tell(optimizer, np.arange(8.0), np.arange(8.0) - 3)
        assert optimizer._steps.penalty.multipliers[0] != before.multipliers[0]

    def test_the_default_climbs_with_its_pool(self):
        optimizer = make({"method": "jedi-x", "cells": 16}, evaluations=None)
        kinds = set()
        for _ in range(150):
            number = len(optimizer.ask())
            tell(optimizer, np.zeros(number), np.full(number, -1.0))
            kind = int(optimizer._steps.state.kind[0])
            kinds.add(kind)
            assert bool(optimizer._steps.method.climbs(optimizer._steps.state)[0]) == (kind == POOL)
        assert len(kinds) > 1

    def test_solutions_that_nobody_asked_for_do_not_change_it(self):
        optimizer = drive(make(MAPS, evaluations=16_000), 1)
        optimizer.tell(np.ones((1, 6)), [0.0], [[0.0, 0.0]], violations=[1e6])
        assert (optimizer._steps.penalty.factors == 0).all()
        assert int(optimizer.repertoire.counts.sum()) == 9

    def test_places_that_failed_do_not_count(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        optimizer.tell(genotypes[:4], np.arange(4.0), np.zeros((4, 2)), violations=[4, 3, 2, -1])
        while len(optimizer.ask()) == 4 and optimizer._steps.state is None:
            optimizer.tell(optimizer.ask(), np.full(4, np.nan), np.zeros((4, 2)))
        expected = Penalty.begin(1).adapted(np.arange(4.0), np.array([[4.0], [3], [2], [-1]]), 6)
        np.testing.assert_allclose(optimizer._steps.penalty.mean, expected.mean)
        np.testing.assert_allclose(optimizer._steps.penalty.factors, expected.factors)

    def test_without_violations_nothing_changes(self):
        plain, told = drive(make(MAPS), 3), make(MAPS)
        for _ in range(3):
            genotypes = told.ask()
            told.tell(genotypes, *simulate(genotypes), violations=-np.ones((8, 2)))
        assert_same_bits(told.repertoire, plain.repertoire)

    def test_it_is_saved(self, tmp_path):
        optimizer = make(MAPS, evaluations=160)
        tell(optimizer, np.arange(8.0), [4, 3, 2, 1, 0, 5, 6, 7])
        optimizer.save(tmp_path / "saved")
        loaded = jedax.Optimizer.load(tmp_path / "saved")
        for each in (optimizer, loaded):
            tell(each, np.arange(8.0), [0.59, 0.5905, 0, 0, 0.7, 0.1, 1, 2])
        assert_same_bits(loaded._steps.state, optimizer._steps.state)
        assert_same_bits(vars(loaded._steps.penalty), vars(optimizer._steps.penalty))


class TestBadInput:
    @pytest.mark.parametrize(
        ("violations", "message"),
        [
            (np.zeros(7), r"violations: expected shape \(8,\), got \(7,\)"),
            (np.zeros((7, 2)), r"violations: expected shape \(8, d\), got \(7, 2\)"),
            (0.0, r"violations: expected shape \(8, d\), got \(\)"),
            ([[0.0]] * 7 + [[0.0, 1.0]], r"violations: expected numbers of shape \(8,\), got list"),
            ([np.nan] + [0] * 7, "violations: expected numbers, above 0 where violated, got NaN; give"),
        ],
    )
    def test_it_changes_nothing(self, violations, message):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        with pytest.raises(jedax.JedaxError, match=message):
            optimizer.tell(genotypes, *simulate(genotypes), violations=violations)
        assert optimizer.evaluations == 0

    def test_another_number_of_constraints(self):
        optimizer = make(MAPS)
        tell(optimizer, np.zeros(8), np.ones((8, 2)))
        with pytest.raises(jedax.JedaxError, match="violations: expected 2 constraints, as told before, got 3; give"):
            optimizer.add(np.ones((1, 6)), [0.0], [[0.0, 0.0]], violations=np.ones((1, 3)))

    def test_left_out_later(self):
        """They are not known to be satisfied; a failed evaluation needs none."""
        optimizer = make(MAPS)
        tell(optimizer, np.zeros(8), np.ones((8, 2)))
        genotypes = optimizer.ask()
        for take in (optimizer.tell, optimizer.add):
            with pytest.raises(jedax.JedaxError, match="violations: expected 2 constraints, as told before, got None"):
                take(genotypes, *simulate(genotypes))
        assert len(optimizer.asked) == 8
        optimizer.tell(genotypes[:1], [np.nan], [[0.0, 0.0]])
        assert (optimizer.evaluations, optimizer.num_failed) == (8, 1)

    def test_what_is_refused_does_not_tell_how_many_there_are(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        with pytest.raises(jedax.JedaxError, match="finite"):
            optimizer.tell(np.full((1, 6), np.inf), [0.0], [[0.0, 0.0]], violations=np.ones((1, 3)))
        optimizer.tell(genotypes, *simulate(genotypes), violations=np.ones((8, 2)))

    def test_nan_of_a_failed_evaluation(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        fitness[0] = np.nan
        failed = np.arange(8) == 1
        violations = np.where(np.arange(8) < 2, np.nan, 0)
        optimizer.tell(genotypes, fitness, descriptors, violations=violations, failed=failed)
        assert (optimizer.evaluations, optimizer.num_failed) == (6, 2)

    def test_another_violation_for_a_solution_that_was_told(self):
        optimizer = make(MAPS)
        genotypes = step(optimizer)
        with pytest.raises(jedax.JedaxError, match="which was told before"):
            optimizer.tell(genotypes, *simulate(genotypes), violations=np.ones(8))


@pytest.mark.parametrize("descriptors", [False, True])
def test_a_problem_with_a_known_solution(descriptors):
    """The sphere with x + y >= 1: 0.5 at (0.5, 0.5), on the border of what is feasible."""
    optimizer = jedax.Optimizer(
        bounds=([-2, -2], [2, 2]), evaluations=2000, minimise=True, seed=1,
        descriptor_bounds=([-2], [2]) if descriptors else None, cells=16,
    )  # fmt: skip
    while not optimizer.done:
        x = optimizer.ask()
        fitness, violations = np.square(x).sum(axis=1), 1 - x.sum(axis=1)
        optimizer.tell(x, fitness, x[:, :1] if descriptors else None, violations=violations[:, None])
    best = optimizer.best
    assert best.violation == 0
    assert 0.5 <= best.fitness < 0.51
    np.testing.assert_allclose(best.genotype, 0.5, atol=0.08)
    assert best.genotype.sum() >= 1


@pytest.mark.parametrize("violations", [np.ones(8, bool), [[True, False]] * 8, [1.0] * 7 + [True]])
def test_truth_values_are_no_violations(violations):
    """A user may mean what is feasible."""
    optimizer = jedax.Optimizer(3, evaluations=800, minimise=True)
    with pytest.raises(jedax.JedaxError, match=r"^violations: expected numbers, above 0 .*, got truth values; return"):
        optimizer.tell(optimizer.ask(), np.arange(8.0), violations=violations)
