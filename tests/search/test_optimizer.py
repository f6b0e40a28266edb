"""`Optimizer`: what it finds, that it is the search of `jedax.run`, and bad arguments."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.search.outside import BOUNDS, JEDI_X, MAPS, drive, make, simulate, step
from tests.search.workers.work import sphere

import jedax
from jedax.tasks import make as make_task


def test_finds_what_it_is_after():
    optimizer = make()
    while not optimizer.done:
        step(optimizer)
    assert optimizer.evaluations == 1600
    best = optimizer.best
    assert best.fitness > -1e-4
    fitness, descriptors = simulate(best.genotype[None])
    assert best.fitness == float(fitness[0])  # in float64
    np.testing.assert_array_equal(best.descriptor, descriptors[0])
    assert (best.violation, best.parameters) == (0, None)
    assert int(optimizer.repertoire.counts.sum()) == 1600


def test_minimising_is_maximising_the_negative():
    up, down = drive(make(), 12), make(minimise=True)
    for _ in range(12):
        genotypes = down.ask()
        fitness, descriptors = simulate(genotypes)
        down.tell(genotypes, -fitness, descriptors)
    assert down.best.fitness == -up.best.fitness
    np.testing.assert_array_equal(down.best.genotype, up.best.genotype)
    assert_same_bits(down.repertoire, up.repertoire)


def test_same_seed_same_batches():
    one, other = drive(make(seed=3), 7), drive(make(seed=3), 7)
    np.testing.assert_array_equal(one.ask(), other.ask())
    assert not np.array_equal(make(seed=3).ask(), make(seed=4).ask())


def test_a_batch_stays_until_it_is_told():
    optimizer = make()
    for _ in range(8):
        np.testing.assert_array_equal(optimizer.ask(), optimizer.ask())
        batch = optimizer.ask()
        batch[:] = 0  # the caller's own copy
        step(optimizer)


def test_initial_genotypes_come_first():
    given = np.random.default_rng(0).normal(size=(2, 6))
    optimizer = make(initial=given)
    np.testing.assert_array_equal(optimizer.ask()[:2], given)  # in float64
    assert optimizer.ask().shape == (8, 6)


def test_random_genotypes_have_the_initial_spread():
    optimizer = make(initial_std=30.0)
    np.testing.assert_allclose(optimizer.ask(), 30 * make().ask(), rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("jedi", {"population": 4, "pool": 2, "generations": 5}),
        ("es", {"population": 8}),
        ("es-restart", {"population": 8}),
        ("map-elites", {"offspring": 8}),
        ("cma-me", {"population": 4, "pool": 2}),
        ("cma-mae", {"population": 4, "pool": 2, "threshold_min": -100.0}),
    ],
)
def test_every_method_can_be_fed_from_outside(tmp_path, method, parameters):
    def search():
        return jedax.Optimizer(6, BOUNDS, evaluations=8 * 50, method=method, cells=16, seed=2, **parameters)

    optimizer = search()
    first = simulate(optimizer.ask())[0].max()
    drive(optimizer, 4).save(tmp_path / "half")
    again = jedax.Optimizer.load(tmp_path / "half")
    assert type(again.config) is type(optimizer.config)
    for other in (optimizer, again):
        while not other.done:
            step(other)
    assert optimizer.best.fitness > first
    assert int(optimizer.repertoire.counts.sum()) == optimizer.evaluations
    assert_same_bits(optimizer.repertoire, again.repertoire)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (
            "jedi-x",
            {
                "population": 4,
                "pool": 2,
                "patience": 2,
                "scouts": 2,
                "es": "cma-es",
                "growth": 1,
                "exploration": 1.0,
                "first_step": 0.5,
            },
        ),
        ("jedi", {"population": 4, "pool": 2, "generations": 5, "gp_max_steps": 4}),
        ("es-restart", {"population": 8}),
        ("map-elites", {"offspring": 8}),
        ("cma-me", {"population": 4, "pool": 2}),
    ],
)
def test_finds_what_a_run_finds_whose_task_is_a_function(method, settings):
    task = make_task("tests.search.workers.work:sphere", initial_std=0.7)
    settings = {"evaluations": 8 * 16, "seed": 3, "cells": 64, **settings}
    given = np.full((1, 3), 0.5, np.float32)
    run = jedax.run(method, task, workers=1, start_genotypes=given, **settings)
    optimizer = jedax.Optimizer(3, BOUNDS, method=method, initial_std=0.7, initial=given, **settings)
    while not optimizer.done:
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, *sphere(genotypes))
    assert optimizer.evaluations == run.summary["evaluations"]
    assert_same_bits(optimizer.repertoire, jax.tree.map(lambda leaf: leaf[0], run.repertoire))


class TestSettings:
    def test_few_evaluations_have_one_es_with_the_population_of_cma_es(self):
        """4 + floor(3 ln 6) = 9, and the next multiple of four scouts."""
        config = jedax.Optimizer(6, BOUNDS, evaluations=100).config
        assert (config.population, config.pool, config.es) == (12, 1, "cma-es")
        assert jedax.Optimizer(301, BOUNDS, evaluations=100).config.es == "lm-ma-es"
        assert jedax.Optimizer(6, BOUNDS, evaluations=100, population=8).config.population == 8

    def test_settings_as_an_object_are_taken_as_they_are(self):
        config = jedax.methods.registry.method_defaults("jedi-x")
        assert jedax.Optimizer(6, BOUNDS, evaluations=1000, method=config).config == config

    def test_more_workers_than_solutions_set_the_population(self):
        optimizer = jedax.Optimizer(6, BOUNDS, evaluations=100, seed=3)
        assert optimizer.ask(30).shape == (30, 6)
        assert optimizer.config.population == 32
        assert len(optimizer.ask()) == 32
        np.testing.assert_array_equal(optimizer.ask()[:30], optimizer.ask()[:30])

    @pytest.mark.parametrize(
        ("spread", "step"),
        [((1 / 8, 1 / 8), 1 / 8), ((1 / 2, 1 / 32), 1 / 8), ((1 / 8, 0), 1 / 8), ((0, 0), 0.5), ((1, 1), 0.5)],
    )
    def test_first_step_follows_the_spread_of_known_solutions(self, spread, step, tmp_path):
        """The geometric mean over the parameters that differ, of the best tenth."""
        optimizer = jedax.Optimizer(bounds=([-1, -1], [1, 1]), evaluations=100, minimise=True)
        assert optimizer.config.first_step == 0.5
        signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 2)
        near, far = signs * np.array(spread) / np.sqrt(3), np.tile(signs * 0.9, (9, 1))  # as normal on [-1, 1]
        optimizer.add([*near, *far], [0] * 8 + [1] * 72)
        asked = optimizer.ask()
        assert optimizer.config.first_step == step
        optimizer.save(tmp_path / "saved")
        loaded = jedax.Optimizer.load(tmp_path / "saved")
        assert loaded.config.first_step == step
        np.testing.assert_array_equal(loaded.ask(), asked)

    def test_first_step_does_not_follow_few_solutions_nor_replaces_a_setting(self):
        for known, settings, first in ((15, {}, 0.5), (16, {}, 2**-14), (16, {"first_step": 0.3}, 0.3)):
            optimizer = jedax.Optimizer(bounds=([-1], [1]), evaluations=100, **settings)
            x = np.linspace(-1e-5, 1e-5, known)
            optimizer.add(x[:, None], -abs(x))
            optimizer.ask()
            assert optimizer.config.first_step == first

    def test_first_step_is_long_where_the_best_known_solution_is_the_last_in_a_direction(self):
        for highest, first in ((0.1, 0.5), (1.0, 2**-4)):
            optimizer = jedax.Optimizer(bounds=([-1], [1]), evaluations=100)
            x = np.linspace(highest - 1, highest, 100)
            optimizer.add(x[:, None], x)
            optimizer.ask()
            assert optimizer.config.first_step == first

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"x0": [1, 2], "sigma0": 0.5}, {"x0": [7, -2], "sigma0": [3, 4]}),
            ({"bounds": ([0, 1], [1, 9])}, {"space": {"a": jedax.Real(1e-3, 1, log=True), "b": jedax.Real(1, 7)}}),
            (
                {"space": {"a": jedax.Integer(0, 6), "b": [7, 9, 3]}},
                {"space": {"c": jedax.Integer(1, 7), "d": list("pqr")}},
            ),
        ],
    )
    def test_problems_in_other_units_share_programs(self, one, other):
        first, second = (jedax.Optimizer(evaluations=100, **kept) for kept in (one, other))
        assert first._steps.programs._compiled is second._steps.programs._compiled
        assert first.task.space != second.task.space

    def test_but_not_beyond_the_budget(self, tmp_path):
        optimizer = jedax.Optimizer(3, evaluations=50, minimise=True)
        asked = optimizer.ask(50)
        optimizer.save(tmp_path / "saved")
        for found in (optimizer, jedax.Optimizer.load(tmp_path / "saved")):
            found.tell(asked, (asked**2).sum(axis=1))
            assert (found.evaluations, found.done) == (50, True)

    def test_later_they_do_not(self):
        optimizer = jedax.Optimizer(6, BOUNDS, evaluations=100, seed=3)
        optimizer.ask(3)
        assert optimizer.ask(30).shape == (30, 6)
        assert optimizer.config.population == 12

    def test_nor_where_the_population_is_given(self):
        optimizer = make()
        assert len(np.unique(optimizer.ask(20), axis=0)) == 20
        assert len(optimizer.ask()) == 8

    def test_a_grid_of_given_sides(self):
        optimizer = make(MAPS, dims=(3, 5))
        assert optimizer.cells.shape == (3, 5)
        step(optimizer)
        assert optimizer.repertoire.fitness.shape == (15,)


class TestBudget:
    def test_unknown(self):
        optimizer = make(evaluations=None)
        drive(optimizer, 5)
        assert not optimizer.done
        assert optimizer.stop_reason == ""
        assert repr(optimizer).startswith("<Optimizer: 6 parameters, jedi-x, 40 evaluations, best -")

    def test_some_methods_follow_it(self):
        with pytest.raises(jedax.JedaxError, match=r"evaluations: expected a budget, which jedi .* follows, got None"):
            make({"method": "jedi", "alpha": "decay", "cells": 16}, evaluations=None)
        make({"method": "jedi", "alpha": 0.5, "cells": 16}, evaluations=None)

    def test_done_says_why(self):
        optimizer = make(evaluations=20)
        said = []
        while not optimizer.done:
            said.append(optimizer.stop_reason)
            step(optimizer)
        assert said == ["", ""]
        expected = "The budget of 20 evaluations has no room for another generation of 8."
        assert optimizer.stop_reason == expected
        assert repr(optimizer).startswith("<Optimizer: 6 parameters, jedi-x, 16 of 20 evaluations, best -")

    def test_an_open_generation_can_be_finished(self):
        optimizer = drive(make(evaluations=20), 2)
        genotypes = optimizer.ask()
        assert not optimizer.done
        optimizer.tell(genotypes, *simulate(genotypes))
        assert optimizer.evaluations == 24
        assert optimizer.done

    def test_done_stays_also_if_more_is_asked_for(self):
        optimizer = drive(make(evaluations=24), 3)
        assert optimizer.stop_reason == "The budget of 24 evaluations is spent."
        late = optimizer.ask(2)
        assert optimizer.done
        optimizer.tell(late, *simulate(late))
        assert optimizer.evaluations == 26
        assert optimizer.done

    def test_repr_before_any_result(self):
        assert repr(make()) == "<Optimizer: 6 parameters, jedi-x, 0 of 1,600 evaluations>"


def test_methods_that_need_more_than_fitness_and_descriptors_are_refused():
    with pytest.raises(jedax.JedaxError, match=r"evaluated elsewhere, whose genotypes are no policies .* got pga-me"):
        jedax.Optimizer(6, BOUNDS, evaluations=100, method="pga-me")


def test_the_lowest_fitness_of_an_unknown_problem_must_be_told():
    with pytest.raises(jedax.JedaxError, match="threshold_min: expected a number"):
        jedax.Optimizer(6, BOUNDS, evaluations=100, method="cma-mae")


def test_gp_targets_by_ask_and_tell():
    optimizer = drive(make({**JEDI_X, "method": "jedi", "generations": 5, "gp_max_steps": 4}), 12)
    assert optimizer.evaluations == 96
    assert int(optimizer._steps.state.gp_fitted_at[0]) == 88


def test_descriptors_outside_the_bounds_are_counted():
    optimizer = make()
    optimizer.tell(optimizer.ask(), np.zeros(8), np.full((8, 2), 3.0))
    assert int(optimizer.repertoire.num_outside) == 8
    nearest = optimizer.cells.centroids[optimizer.repertoire.counts.argmax()]
    assert (nearest > 0.7).all()


def test_the_repertoire_is_known_after_a_whole_generation():
    optimizer = make()
    with pytest.raises(jedax.JedaxError, match=r"repertoire: expected at least one tell\(\) of a whole .*, got none"):
        _ = optimizer.repertoire
    step(optimizer, 3)
    with pytest.raises(jedax.JedaxError, match=r"repertoire: .*, got 3 of its results"):
        _ = optimizer.repertoire


class TestBest:
    def test_is_known_from_the_first_result_on(self):
        optimizer = make()
        with pytest.raises(jedax.JedaxError, match=r"best: expected a solution that was told and .*, got none"):
            _ = optimizer.best
        genotypes = optimizer.ask()
        optimizer.tell(genotypes[:1], [np.nan], [[0.0, 0.0]])
        assert not optimizer.has_best
        optimizer.tell(genotypes[1:4], [3.0, 5.0, 4.0], [[0.0, 0.0], [0.1, 0.2], [0.3, 0.3]])
        assert optimizer.has_best
        assert (optimizer.best.fitness, optimizer.generations) == (5, 0)
        np.testing.assert_array_equal(optimizer.best.genotype, genotypes[2])
        np.testing.assert_array_equal(optimizer.best.descriptor, [0.1, 0.2])
        assert repr(optimizer).endswith("best 5>")

    def test_may_be_in_the_open_generation_or_before_it(self):
        optimizer = make(minimise=True)
        step(optimizer)
        before = optimizer.best
        genotypes = optimizer.ask()
        optimizer.tell(genotypes[:1], [before.fitness + 1], [[0.0, 0.0]])
        assert optimizer.best.fitness == before.fitness
        optimizer.tell(genotypes[5:6], [before.fitness - 1], [[0.0, 0.0]])
        assert optimizer.best.fitness == before.fitness - 1
        np.testing.assert_array_equal(optimizer.best.genotype, genotypes[5])

    def test_may_be_a_solution_that_was_added(self):
        optimizer = make()
        optimizer.add(np.ones((1, 6)), [7.0], [[0.5, 0.5]])
        assert optimizer.best.fitness == 7

    def test_feasible_solutions_come_first(self):
        optimizer = make()
        genotypes = optimizer.ask()
        optimizer.tell(genotypes[:3], [9.0, 1.0, 2.0], np.zeros((3, 2)), violations=[1.0, 0.0, -1.0])
        assert (optimizer.best.fitness, optimizer.best.violation) == (2, 0)


class TestPrecision:
    def test_numbers_come_back_as_they_were_told(self):
        optimizer = make(initial=np.full((1, 6), 1 / 3))
        genotypes = optimizer.ask()
        fitness, descriptors = np.full(8, 999.0), np.full((8, 2), 1 / 7)
        fitness[0] = 1000.000127
        optimizer.tell(genotypes, fitness, descriptors)
        assert optimizer.best.fitness == 1000.000127
        assert optimizer.best.genotype.tolist() == [1 / 3] * 6
        assert optimizer.best.descriptor.tolist() == [1 / 7] * 2
        repertoire = optimizer.repertoire
        assert [repertoire.fitness.dtype, repertoire.genotypes.dtype, repertoire.descriptors.dtype] == [np.float64] * 3

    def test_fitness_that_float32_cannot_tell_apart_is_compared(self):
        optimizer = make()
        genotypes = optimizer.ask()
        fitness = 1000 + 1e-9 * np.array([0, 1, 2, 5, 4, 3, 2, 1.0])
        optimizer.tell(genotypes, fitness, np.zeros((8, 2)))
        np.testing.assert_array_equal(optimizer.best.genotype, genotypes[3])

    def test_a_simple_problem_is_solved_beyond_float32(self):
        optimizer = jedax.Optimizer(3, evaluations=3000, bounds=(-5, 5), minimise=True, cells=1)
        while not optimizer.done:
            genotypes = optimizer.ask()
            optimizer.tell(genotypes, 100 + np.square(genotypes - 1).sum(axis=1))
        assert optimizer.best.fitness - 100 < 1e-9


@pytest.mark.parametrize(
    ("fitness", "descriptors", "message"),
    [
        (np.zeros(7), np.zeros((8, 2)), r"fitness: expected shape \(8,\), got \(7,\)"),
        (np.zeros((8, 1)), np.zeros((8, 2)), r"fitness: expected shape \(8,\), got \(8, 1\)"),
        (np.zeros(8), np.zeros((8, 3)), r"descriptors: expected shape \(8, 2\), got \(8, 3\)"),
        (np.zeros(8), np.zeros((2, 8)), r"descriptors: expected shape \(8, 2\), got \(2, 8\)"),
        (["a"] * 8, np.zeros((8, 2)), r"fitness: expected numbers"),
        (np.zeros(8), None, r"descriptors: expected the descriptors of the solutions, got None"),
        ([10**400] * 8, np.zeros((8, 2)), r"fitness: expected numbers of shape \(8,\), got a number beyond all floats"),
        (np.zeros(8) + 1j, np.zeros((8, 2)), r"fitness: expected numbers of shape \(8,\), got complex numbers"),
        (np.zeros(8), np.ma.array(np.zeros((8, 2)), mask=True), r"descriptors: expected .*, got masked values"),
        (np.zeros(8, "M8[D]"), np.zeros((8, 2)), r"fitness: expected .*, got dates"),
    ],
)
def test_wrong_shapes_change_nothing(fitness, descriptors, message):
    optimizer = drive(make(), 3)
    batch = optimizer.ask()
    with pytest.raises(jedax.JedaxError, match=message):
        optimizer.tell(batch, fitness, descriptors)
    assert optimizer.evaluations == 24
    np.testing.assert_array_equal(optimizer.ask(), batch)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (lambda g: simulate(g), r"genotypes: expected shape \(n, 6\), got \(8,\); give one solution per row, as ask"),
        (lambda g: (g[:, :5], *simulate(g)), r"genotypes: expected shape \(n, 6\), got \(8, 5\)"),
        (lambda g: (g[:0], *simulate(g)), r"genotypes: expected shape \(n, 6\), got \(0, 6\)"),
        (lambda g: (g * np.nan, *simulate(g)), r"genotypes: expected finite numbers, got nan"),
        (lambda g: (np.where(g > 9, 0, np.inf), *simulate(g)), r"genotypes: expected finite numbers, got inf"),
    ],
)
def test_wrong_solutions_change_nothing(told, message):
    optimizer = drive(make(), 3)
    batch = optimizer.ask()
    with pytest.raises(jedax.JedaxError, match=message):
        optimizer.tell(*told(batch))
    assert optimizer.evaluations == 24
    np.testing.assert_array_equal(optimizer.ask(), batch)


def test_no_results_change_nothing():
    optimizer = drive(make(), 3)
    batch = optimizer.ask()
    optimizer.tell(batch[:0], [], np.zeros((0, 2)))
    optimizer.tell([], [], [])
    optimizer.add([], [])
    assert optimizer.evaluations == 24
    np.testing.assert_array_equal(optimizer.ask(), batch)


@pytest.mark.parametrize("n", [0, -1, 1.5, "a", 2**32, True])
def test_a_wrong_number_of_solutions(n):
    with pytest.raises(jedax.JedaxError, match="n: expected a whole number from 1 to 2,147,483,647, got"):
        make().ask(n)
    with pytest.raises(jedax.JedaxError, match="n: expected a whole number from 1 to 2,147,483,647, got"):
        make().ask_ids(n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, [1.0], [[0, 0]], 3), r"ids: expected a list of numbers, got 3; write ids=\[...\]"),
        ((3, [1.0], [[0, 0]], None), r"genotypes: expected shape \(n, 6\), got \(\)"),
        (((row for row in np.zeros((1, 6))), [1.0], [[0, 0]], None), "genotypes: expected numbers .* got generator"),
        ((np.zeros((1, 6)), [1.0], [[0]], None), r"descriptors: expected shape \(1, 2\), .* a number for each desc"),
    ],
)
def test_results_of_a_strange_kind(arguments, message):
    *results, ids = arguments
    with pytest.raises(jedax.JedaxError, match=message):
        make().tell(*results, ids=ids)


@pytest.mark.parametrize("bounds", [([-1, -1], [1, 1]), "measure"])
def test_failed_evaluations_need_no_descriptors(bounds):
    one, other = (make(descriptor_bounds=bounds) for _ in range(2))
    for optimizer, nothing in ((one, None), (other, [[np.nan, np.nan]])):
        optimizer.tell(optimizer.ask(1), [np.nan], nothing)
        optimizer.tell(optimizer.ask(1), [3.0], nothing, failed=[True])
        with pytest.raises(jedax.JedaxError, match="descriptors: expected the descriptors of the solutions, got None"):
            optimizer.tell(optimizer.ask(2), [1.0, np.nan])
        drive(optimizer, 3)
        assert optimizer.num_failed == 2
    np.testing.assert_array_equal(one.repertoire.genotypes, other.repertoire.genotypes)


PAIRS, FLAT = ((0.0, 2.0), (1.0, 3.0)), ((0.0, 1.0), (2.0, 2.0))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [([(0, 1), (2, 3)], PAIRS), (([0, 2], [1, 3]), PAIRS), (((0, 1), (2, 2)), FLAT), (np.array(FLAT), FLAT)],
)
def test_bounds_of_descriptors_in_all_their_forms(bounds, expected):
    assert make(descriptor_bounds=bounds).cells.bounds == expected


@pytest.mark.parametrize("bounds", [((0, 1), (2, 3)), [[0, 1], [2, 3]], np.array([[0, 1], [2, 3]])], ids=type)
@pytest.mark.parametrize("argument", ["bounds", "descriptor_bounds"])
def test_bounds_with_two_readings_are_refused(argument, bounds):
    with pytest.raises(jedax.JedaxError, match=rf"{argument}: expected \(lows, highs\), or a list of tuples"):
        make(**{"num_params": 2, argument: bounds})


def test_bounds_of_parameters_are_read_as_those_of_descriptors_are():
    assert make(num_params=2, bounds=((None, None), (5, 5))).task.space.parameters[1].high == 5
    with pytest.raises(jedax.JedaxError, match="bounds: expected"):
        make(num_params=2, bounds=[["a", 1], [2, 3]])
    for bounds in ([(0, 1), (2, 3)], ([0, 2], [1, 3]), ((1, 2), (0, 3))):
        first, second = make(num_params=2, bounds=bounds).task.space.parameters
        assert (first.high, second.low) == ((2.0, 0.0) if bounds == ((1, 2), (0, 3)) else (1.0, 2.0))


def test_a_flag_is_true_or_false():
    with pytest.raises(jedax.JedaxError, match="minimise: expected True or False, got 'false'"):
        make(minimise="false")


def test_named_parameters_are_counted_as_the_user_does():
    space = {"n": jedax.Integer(1, 4), "c": ["a", "b"], "x": {"low": 0.05, "high": 2.0, "log": True}}
    optimizer = jedax.Optimizer(space=space, evaluations=100)
    assert "3 parameters" in repr(optimizer)
    assert optimizer.task.space.parameters[2] == jedax.Real(0.05, 2.0, log=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": ([1] * 4, [0] * 4)}, "parameter 0: expected low below high"),
        ({"x0": [0, 0], "sigma0": 0}, "sigma0: expected numbers above 0, got 0"),
        ({"x0": [1, 2], "sigma0": [1, 2, 3]}, "sigma0: expected 1 or 2 numbers, got 3"),
        ({"x0": np.ones((1, 2))}, r"x0: expected one number per parameter, got array\(\[\[1., 1.\]\]\); give one sol"),
        ({"num_params": 4, "x0": [0, 0, 0]}, "num_params: expected 3, as many as x0 has, got 4"),
        ({"num_params": 4, "x0": 0.5}, "num_params: expected 1, as many as x0 has, got 4"),
        ({"num_params": 4, "space": {"a": (0, 1)}}, "num_params: expected 1, as many as space has, got 4"),
        ({"method": "jedi-uniform", "num_params": 4}, r"pool: .* \(1\), got 4; .* \(without them there is one cell\)"),
        ({"num_params": 4, "bounds": ([0] * 3, [1] * 3)}, "bounds: expected 4 lows, got 3 lows for 4 parameters"),
    ],
)
def test_errors_name_what_the_user_gave(arguments, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.Optimizer(evaluations=100, **arguments)


def test_a_grid_whose_bounds_are_measured():
    optimizer = drive(make({"method": "map-elites", "offspring": 8}, dims=(2, 3), descriptor_bounds="measure"), 1)
    assert optimizer.cells.shape == (2, 3)


def test_elites_are_the_repertoire_in_units_of_the_user():
    optimizer = make(MAPS, cells=64, minimise=True, bounds=(-1, 3))
    genotypes = optimizer.ask()
    places = np.stack([np.linspace(-0.9, 0.9, 8)] * 2, axis=1)
    optimizer.tell(genotypes, np.arange(8.0), places, violations=[1, 0, 0, 0, 0, 0, 0, 2])
    elites, kept = optimizer.elites(), optimizer.repertoire
    assert len(elites) == kept.filled.sum() == 8
    feasible = [one for one in elites if one.violation == 0]
    assert [one.fitness for one in feasible] == sorted(-kept.fitness[optimizer.feasible])
    for one in feasible:
        number = int(one.fitness)
        np.testing.assert_allclose(one.genotype, genotypes[number], rtol=1e-6)
        np.testing.assert_allclose(one.descriptor, places[number], rtol=1e-6)
    assert [round(one.violation) for one in elites[len(feasible) :]] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population": 1}, "population: expected greater than or equal to 2"),
        ({"evalutions": 9}, "argument: unknown name 'evalutions'; did you mean 'evaluations'"),
        ({"seed": None}, "seed: expected a whole number from 0 to 4,294,967,295, got None"),
        ({"descriptor_bounds": [(0, 0), (1, 1)]}, r"descriptor_bounds: expected .*got \(\(0.0, 1.0\), \(0.0, 1.0\)\)"),
        ({"method": "jedi", "alpa": 0.3}, "argument: unknown name 'alpa'; did you mean 'alpha'"),
        ({"alpha": 0.3}, "setting: expected one that jedi-x has, got alpha, which belongs to jedi, jedi-uniform"),
        (
            {"method": "jedi", "patience": 5},
            "setting: expected one that jedi has, got patience, which belongs to jedi-x",
        ),
        ({"method": "jedy"}, "method: unknown name 'jedy'; did you mean 'jedi'"),
        ({"descriptor_bounds": ([0.0, 1.0], [1.0, 1.0])}, "descriptor_bounds: expected"),
        ({"num_params": 0}, "num_params: expected a whole number from 1 to 2,147,483,647"),
        ({"num_params": None}, "num_params: expected the number of parameters, got None; give it, or space, bounds"),
        ({"evaluations": -1}, "evaluations: expected"),
        ({"evaluations": 7}, r"evaluations: expected at least 8 \(one generation\), got 7"),
        ({"seed": -1}, "seed: expected a whole number from 0 to 4,294,967,295, got -1"),
        ({"seed": "a"}, "seed: expected a whole number from 0 to 4,294,967,295, got 'a'"),
        (
            {"method": 3},
            "method: expected a name, settings such as a JediConfig, or a class derived from jedax.Method, got 3",
        ),
        ({"initial_std": -1}, "initial_std: expected a finite number of at least 0, got -1"),
        ({"initial_std": np.nan}, "initial_std: expected a finite number of at least 0, got nan"),
        ({"descriptor_bounds": 5}, "descriptor_bounds: expected"),
        ({"descriptor_bounds": (["a"], ["b"])}, "descriptor_bounds: expected"),
        ({"descriptor_bounds": "guess"}, r"descriptor_bounds: expected \(lows, highs\), 'measure' or None, got"),
        ({"initial": "abc"}, r"initial: expected at most 8 rows of 6 numbers, got <U3"),
        (
            {"initial": np.zeros((2, 5))},
            r"initial: expected at most 8 rows of 6 numbers, got float64 of shape \(2, 5\)",
        ),
        ({"initial": np.zeros((9, 6))}, r"initial: expected at most 8 rows of 6 numbers"),
        (
            {"initial": np.zeros((8, 6)), "x0": np.ones(6)},
            "initial: expected at most 7 rows beside the solution to start from, got 8",
        ),
        ({"dims": (4, 4, 4)}, r"dims: expected 2 numbers, one per descriptor, got \[4, 4, 4\]"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(jedax.JedaxError, match=message):
        make(**changes)


@pytest.mark.parametrize("given", [{}, {"JAX_COMPILATION_CACHE_DIR": "mine"}])
def test_a_new_process_takes_compiled_programs_from_the_cache(tmp_path, given):
    """Also where the user compiled something before; from that of the user if there is one."""
    program = (
        "import jax; jax.jit(lambda x: 2 * x)(jax.numpy.ones(3))\n"
        "import jedax; jedax.Optimizer(2, ([-1, -1], [1, 1]), evaluations=640, cells=16).ask()"
    )
    taken = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    environment = {name: value for name, value in os.environ.items() if name not in taken}
    environment |= {"XDG_CACHE_HOME": str(tmp_path)} | {name: str(tmp_path / path) for name, path in given.items()}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"mine" if given else "jedax"}
    assert given or any("draw" in file.name for file in (tmp_path / "jedax" / "xla").rglob("*"))


def test_a_value_of_1e30_is_no_constraint():
    optimizer = jedax.Optimizer(2, BOUNDS, evaluations=800, minimise=True)
    genotypes = optimizer.ask()
    optimizer.tell(genotypes, np.full(len(genotypes), 1e30), np.clip(genotypes, -1, 1))
    assert optimizer.best.fitness == pytest.approx(1e30, rel=1e-6)
    np.testing.assert_array_equal(optimizer.feasible, np.isfinite(optimizer.repertoire.fitness))


def test_a_loop_that_rounds_solutions_ends_with_an_error():
    """Its results are told again and again, and the budget would never be spent."""
    optimizer = jedax.Optimizer(bounds=(-5, 5), num_params=4, evaluations=400, minimise=True)
    message = r"^tell: expected results of solutions from ask\(\), got \d+ results in a row that were told before"

    def search():
        while not optimizer.done:
            asked = np.round(optimizer.ask(), 2)
            optimizer.tell(asked, np.square(asked).sum(axis=1))

    with pytest.warns(UserWarning, match="If you round or clip"), pytest.raises(jedax.JedaxError, match=message):
        search()


def test_threads_share_an_optimizer():
    optimizer = jedax.Optimizer(bounds=(-5, 5), num_params=4, evaluations=400, minimise=True)

    def work(_):
        while not optimizer.done:
            solution = optimizer.ask(1)
            optimizer.tell(solution, np.square(solution).sum(axis=1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what a thread has raised
    assert optimizer.evaluations >= 400
    assert optimizer.best.fitness < 0.1
