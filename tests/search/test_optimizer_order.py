"""`Optimizer.tell` in any order, of any solution: workers, failures, solutions that are known, and those told twice."""

import heapq
import warnings

import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.search.outside import JEDI_X, MAPS, drive, make, simulate, step

import jedax
from jedax.search.told import fingerprints

ORDER = np.random.default_rng(0).permutation(8)


def reversed_rows(optimizer):
    genotypes = optimizer.ask()[ORDER]
    optimizer.tell(genotypes, *simulate(genotypes))


def one_at_a_time(optimizer):
    for row in optimizer.ask()[ORDER]:
        optimizer.tell(row[None], *simulate(row[None]))


def part_of_a_batch(optimizer):
    genotypes = optimizer.ask()
    some, rest = genotypes[[5, 0, 3]], genotypes[[1, 2, 4, 6, 7]]
    optimizer.tell(some, *simulate(some))
    np.testing.assert_array_equal(optimizer.ask(), rest)
    step(optimizer)


def one_asked_at_a_time(optimizer):
    for _ in range(8):
        step(optimizer, 1)


def two_workers(optimizer):
    first, second = optimizer.ask(3), optimizer.ask(5)
    optimizer.tell(second, *simulate(second))
    optimizer.tell(first, *simulate(first))


class TestOrder:
    @pytest.mark.parametrize("way", [reversed_rows, one_at_a_time, part_of_a_batch, one_asked_at_a_time, two_workers])
    @pytest.mark.parametrize("settings", [JEDI_X, MAPS], ids=["jedi-x", "map-elites"])
    def test_it_does_not_matter(self, way, settings):
        whole, other = make(settings, seed=1), make(settings, seed=1)
        for _ in range(4):
            step(whole)
            way(other)
            assert other.evaluations == whole.evaluations
            assert_same_bits(other.repertoire, whole.repertoire)
        np.testing.assert_array_equal(other.ask(), whole.ask())

    def test_numbers_of_solutions(self):
        """What `ask_ids` and `asked` give is what `ask` returns."""
        optimizer, other = make(MAPS), make(MAPS)
        numbers = optimizer.ask_ids(3)
        assert numbers == [0, 1, 2]
        assert list(optimizer.asked) == numbers
        np.testing.assert_array_equal(list(optimizer.asked.values()), other.ask()[:3])
        assert optimizer.ask_ids() == list(range(8))
        optimizer.tell(other.ask()[1:2], *simulate(other.ask()[1:2]))
        assert optimizer.ask_ids() == [0, 2, 3, 4, 5, 6, 7] == list(optimizer.asked)


class TestNumbers:
    """`ids` of `tell`."""

    def test_equal_solutions_are_told_apart(self):
        space = {"coils": jedax.Integer(2, 3), "metal": ["steel", "bronze"]}
        optimizer = jedax.Optimizer(space=space, population=32, evaluations=64, noisy=True)
        asked = dict(zip(optimizer.ask_ids(), optimizer.ask(), strict=True))
        first, *_, last = (one for one in asked if asked[one] == asked[0])
        assert first != last
        optimizer.tell([None], [1.0], ids=[last])
        assert list(optimizer.asked) == [one for one in asked if one != last]
        optimizer.tell([None, None], [2.0, 3.0], ids=[1, first])
        assert set(asked) - set(optimizer.asked) == {first, 1, last}

    def test_a_whole_generation(self):
        """In another order, and beside a solution that was not asked for."""
        optimizer, other = make(MAPS), make(MAPS)
        genotypes = step(other)
        results = [np.concatenate([part[::-1], np.abs(part[:1])]) for part in simulate(genotypes)]
        own = [None] * 8 + [np.full(6, 0.1)]
        optimizer.tell(own, *results, ids=[*optimizer.ask_ids()[::-1], None])
        assert optimizer.evaluations == 9
        assert optimizer.generations == other.generations == 1
        np.testing.assert_array_equal(optimizer.best.genotype, own[-1])

    def test_without_solutions(self):
        """The numbers say which; a single dict is one solution."""
        optimizer = jedax.Optimizer(space={"coils": (2.0, 9.0)}, population=32, evaluations=64)
        ids = optimizer.ask_ids()
        optimizer.tell(None, np.arange(2.0), ids=np.array(ids[:2]))
        optimizer.tell(None, [2.0], ids=(number for number in ids[2:3]))
        optimizer.tell(optimizer.asked[ids[4]], [4.0], ids=[ids[4]])
        optimizer.tell(optimizer.asked[ids[5]], [5.0])
        assert list(optimizer.asked) == [ids[3], *ids[6:]]
        with pytest.raises(jedax.JedaxError, match=r"genotypes: expected .* got "):
            optimizer.tell(None, [1.0])

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            ([0], "ids: expected 2 numbers, got 1"),
            ([0, 8], r"id: expected one of those asked for and not told yet \(0, 1, 2, 3, 4, 5, 6, 7\), got 8"),
            ([0, True], "id: expected one of those asked for and not told yet"),
            ([3, 3], "id: expected one result per solution, got 3 twice"),
        ],
    )
    def test_bad_numbers(self, ids, message):
        optimizer = make(MAPS)
        optimizer.ask()
        with pytest.raises(jedax.JedaxError, match=message):
            optimizer.tell([None, None], [0.0, 0.0], np.zeros((2, 2)), ids=ids)
        assert len(optimizer.asked) == 8


class TestDetours:
    """Solutions that come back with fewer digits."""

    @pytest.mark.parametrize("changes", [{}, {"bounds": (-3, 50)}, {"x0": np.full(6, 1e3), "sigma0": 0.1}], ids=str)
    @pytest.mark.parametrize("detour", [np.float32, lambda x: np.array([f"{one:.12g}" for one in x.flat], float)])
    def test_are_found(self, changes, detour):
        optimizer = make(MAPS, **changes)
        genotypes = optimizer.ask()
        again = np.asarray(detour(genotypes), float).reshape(genotypes.shape)
        optimizer.tell(again, *simulate(genotypes))
        assert (optimizer.evaluations, len(optimizer.asked)) == (8, 0)
        assert optimizer.best.genotype in genotypes

    def test_a_narrow_range_far_from_zero(self):
        """Solutions of the user's own are not those that were asked for."""
        optimizer = jedax.Optimizer(bounds=([1e9], [1e9 + 100]), evaluations=200, minimise=True)
        asked = optimizer.ask()
        optimizer.tell([[1e9 + 30.5]], [0.0])
        assert optimizer.best.genotype[0] == pytest.approx(1e9 + 30.5, abs=1e-6)
        assert len(optimizer.asked) == 8
        for _ in range(2):  # the second time it is known
            optimizer.tell(asked[:1], [7.0])
            assert (optimizer.evaluations, len(optimizer.asked)) == (2, 7)


class TestWorkers:
    def test_idle_ones_get_other_solutions_of_the_same_generation(self):
        """The initial batch first, then evolved solutions."""
        optimizer = make(MAPS)
        for _ in range(3):
            everything = np.concatenate([optimizer.ask(8), optimizer.ask(5), optimizer.ask(20)])
            assert len(np.unique(everything, axis=0)) == 33
            genotypes = optimizer.ask(30)[-8:]
            optimizer.tell(genotypes, *simulate(genotypes))
            assert len(optimizer.ask()) < 8 or optimizer.evaluations % 8 == 0
            step(optimizer)

    def test_the_first_result_of_a_place_counts(self):
        optimizer = make(MAPS)
        first, second = optimizer.ask(8), optimizer.ask(1)
        optimizer.tell(second, *simulate(second))
        np.testing.assert_array_equal(optimizer.ask(), first[1:])
        step(optimizer)
        assert optimizer.evaluations == 8
        assert int(optimizer.repertoire.counts.sum()) == 8
        optimizer.tell(first[:1], [7.0], [[0.9, 0.9]])  # late
        assert optimizer.evaluations == 9
        assert optimizer.best.fitness == 7
        np.testing.assert_array_equal(optimizer.best.genotype, first[0])

    def test_late_results_do_not_hold_up_or_change_a_generation(self):
        """Not even in the generation that is open when they come."""
        optimizer, other = make(MAPS), make(MAPS)
        late, again = optimizer.ask(8), optimizer.ask(1)
        optimizer.tell(again, *simulate(again))
        step(optimizer)
        step(optimizer, 3)
        before = optimizer.ask()
        optimizer.tell(late[:1], [-1e9], [[0.0, 0.0]])
        np.testing.assert_array_equal(optimizer.ask(), before)
        assert optimizer.evaluations == 8 + 3 + 1
        assert len(other.ask()) == 8

    def test_a_late_result_before_the_first_generation_is_complete(self):
        optimizer = make(MAPS)
        first, second = optimizer.ask(8), optimizer.ask(1)
        optimizer.tell(second, *simulate(second))
        optimizer.tell(first[:1], [7.0], [[0.9, 0.9]])
        step(optimizer)
        assert optimizer.best.fitness == 7
        assert int(optimizer.repertoire.counts.sum()) == optimizer.evaluations == 9

    @pytest.mark.parametrize("settings", [JEDI_X, MAPS], ids=["jedi-x", "map-elites"])
    def test_one_that_never_answers_holds_nobody_up(self, settings):
        optimizer = make(settings)
        for _ in range(20):
            optimizer.ask(1)  # lost
            for _ in range(10):
                step(optimizer, 1)
        assert optimizer.evaluations == 200
        assert int(optimizer._steps.state.generation[0]) >= 24
        assert int(optimizer.repertoire.counts.sum()) >= 8 * 25

    def test_the_oldest_of_many_lost_ones_are_forgotten(self, monkeypatch):
        """Else each `tell` takes longer and each file is larger. A late result is that of another solution then."""
        monkeypatch.setattr("jedax.search.ledger._REMEMBERED", 20)
        optimizer = make(MAPS)
        lost = list(optimizer.ask(24)[:16])
        step(optimizer)
        for _ in range(6):
            genotypes = optimizer.ask(11)
            optimizer.tell(genotypes[3:], *simulate(genotypes[3:]))
            lost += list(genotypes[:3])
        forgotten = 16 + 5 * 3 - 20  # at the last `ask`
        np.testing.assert_array_equal(list(optimizer.asked.values()), lost[forgotten:])
        with pytest.raises(
            jedax.JedaxError,
            match=rf"\({forgotten}, .*got {forgotten - 1}, which was told or given up",
        ):
            optimizer.tell([None], [0.0], [[0.0, 0.0]], ids=[forgotten - 1])
        late = np.array(lost[forgotten - 1 : forgotten + 1])
        optimizer.tell(late, *simulate(late))
        assert (optimizer.evaluations, len(optimizer.asked)) == (8 * 7 + 2, 22)

    @pytest.mark.parametrize(
        "settings",
        [
            {"method": "es", "es": "sep-cma-es", "population": 8},
            {"method": "es", "es": "cma-es", "population": 8, "bounds": (0.0, 1.0)},
            {"method": "cma-me", "population": 4, "pool": 2},
            JEDI_X,
        ],
        ids=["es", "bounded", "cma-me", "jedi-x"],
    )
    def test_results_of_former_generations_take_places(self, settings):
        """Sixteen workers for generations of eight: with results of their own alone, one in three would count."""
        random, optimizer, busy = np.random.default_rng(0), make({"cells": 64, "step_size": 0.1, **settings}), []
        for _ in range(400):
            busy += [optimizer.ask(1) for _ in range(16 - len(busy))]
            genotypes = busy.pop(random.integers(16))
            optimizer.tell(genotypes, *simulate(genotypes))
        assert int(optimizer._steps.state.generation[0]) > 24
        assert int(optimizer.repertoire.counts.sum()) >= 8 * (400 // 8 - 1)

    def test_results_that_the_es_would_not_sample_any_more_do_not(self):
        optimizer = make({"method": "es", "es": "cma-es", "population": 8, "step_size": 0.3, "cells": 16})
        late = optimizer.ask(9)[-1:]
        while optimizer.best.fitness < -1e-4 if optimizer.has_best else True:
            for row in optimizer.ask(8):
                optimizer.tell(row[None], *simulate(row[None]))
        before = optimizer.ask()
        optimizer.tell(late, *simulate(late))
        np.testing.assert_array_equal(optimizer.ask(), before)

    def test_workers_of_all_speeds(self):
        """Sixteen workers whose evaluations take as long as they like; all results arrive."""
        random, optimizer, now, number, told = np.random.default_rng(1), make(MAPS, evaluations=400), 0.0, 0, 0
        busy = []
        while not (optimizer.done or told >= 400):
            while len(busy) < 16:
                heapq.heappush(busy, (now + random.exponential(), number, optimizer.ask(1)))
                number += 1
            now, _, genotypes = heapq.heappop(busy)
            optimizer.tell(genotypes, *simulate(genotypes))
            told += 1
            assert optimizer.evaluations == told
        assert optimizer.best.fitness > -3
        for _, _, genotypes in busy:
            optimizer.tell(genotypes, *simulate(genotypes))
        assert optimizer.evaluations == told + 15


class TestFailures:
    def test_others_take_their_places_at_no_cost(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        failed = np.arange(8) < 3
        optimizer.tell(genotypes, np.where(failed, 1e6, fitness), descriptors, failed=failed)
        assert (optimizer.evaluations, optimizer.num_failed) == (5, 3)
        others = optimizer.ask()
        assert others.shape == (3, 6)
        assert len(np.unique(np.concatenate([genotypes, others]), axis=0)) == 11
        step(optimizer)
        assert optimizer.evaluations == 8
        assert int(optimizer.repertoire.counts.sum()) == 8
        assert int(optimizer.repertoire.num_failed) == 0
        assert optimizer.best.fitness < 0  # failed numbers count for nothing

    @pytest.mark.parametrize("settings", [JEDI_X, MAPS], ids=["jedi-x", "map-elites"])
    def test_numbers_that_are_not_finite(self, settings):
        optimizer = drive(make(settings), 2)
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        fitness[0], fitness[1], descriptors[2, 1], descriptors[3, 0] = np.nan, np.inf, np.nan, -np.inf
        optimizer.tell(genotypes, fitness, descriptors)
        assert (optimizer.evaluations, optimizer.num_failed) == (16 + 4, 4)
        assert optimizer.ask().shape == (4, 6)
        step(optimizer)
        assert optimizer.evaluations == 24
        assert np.isfinite(optimizer.best.fitness)

    def test_a_place_fails_after_three(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        optimizer.tell(genotypes[1:], *simulate(genotypes[1:]))
        for trial in range(3):
            assert optimizer.evaluations == 7
            optimizer.tell(optimizer.ask(), [0.0], np.zeros((1, 2)), failed=[True])
            assert optimizer.num_failed == trial + 1
        assert optimizer.evaluations == 8
        assert int(optimizer.repertoire.num_failed) == 1
        assert int(optimizer.repertoire.counts.sum()) == 7
        assert optimizer.ask().shape == (8, 6)

    def test_nothing_but_failures_ends(self):
        optimizer = make(evaluations=32)
        while not optimizer.done:
            optimizer.tell(optimizer.ask(), np.full(len(optimizer.ask()), np.nan), np.zeros((len(optimizer.ask()), 2)))
        assert optimizer.num_failed == 3 * 32
        assert not optimizer.has_best
        assert "best" not in repr(optimizer)

    def test_a_candidate_that_fails_while_another_succeeds(self):
        optimizer = make(MAPS)
        first, second = optimizer.ask(8), optimizer.ask(1)
        optimizer.tell(second, *simulate(second))
        optimizer.tell(first[:1], [np.nan], np.zeros((1, 2)))
        assert (optimizer.evaluations, optimizer.num_failed) == (1, 1)
        np.testing.assert_array_equal(optimizer.ask(), first[1:])

    def test_of_a_solution_that_nobody_asked_for(self):
        optimizer = drive(make(MAPS), 1)
        optimizer.tell(np.ones((1, 6)), [np.nan], np.zeros((1, 2)))
        assert (optimizer.evaluations, optimizer.num_failed) == (8, 1)
        optimizer.tell(np.ones((1, 6)), [1.0], np.zeros((1, 2)))  # the second attempt
        assert (optimizer.evaluations, optimizer.best.fitness) == (9, 1)

    @pytest.mark.parametrize("failed", [[0, 1], [True], np.zeros((2, 1), bool), "ab"])
    def test_marks_that_do_not_fit(self, failed):
        optimizer = make(MAPS)
        genotypes = optimizer.ask(2)
        with pytest.raises(jedax.JedaxError, match=r"failed: expected truth values of shape \(2,\), got"):
            optimizer.tell(genotypes, *simulate(genotypes), failed=failed)
        assert optimizer.evaluations == 0


class TestUnasked:
    def test_they_are_stored_and_counted(self):
        optimizer = drive(make(MAPS), 2)
        asked = optimizer.ask()
        optimizer.tell(np.full((3, 6), [[0.5], [0.6], [0.7]]), [5.0, 6.0, 4.0], np.full((3, 2), 0.8))
        assert optimizer.evaluations == 19
        assert optimizer.best.fitness == 6
        assert optimizer.best.genotype.tolist() == [0.6] * 6
        assert int(optimizer.repertoire.counts.sum()) == 19
        assert int(optimizer.repertoire.num_failed) == 0
        np.testing.assert_array_equal(optimizer.ask(), asked)

    def test_before_anything_was_asked(self):
        optimizer = make(MAPS)
        optimizer.tell(np.full((1, 6), 0.5), [5.0], np.full((1, 2), 0.8))
        assert optimizer.evaluations == 1
        genotypes = optimizer.ask()
        assert genotypes.shape == (7, 6)  # it is a member of the initial batch
        optimizer.tell(genotypes, *simulate(genotypes))
        assert (optimizer.best.fitness, optimizer.evaluations) == (5, 8)

    def test_with_solutions_that_were_asked_for(self):
        optimizer = make(MAPS)
        genotypes = np.concatenate([optimizer.ask(), np.full((1, 6), 0.5)])
        optimizer.tell(genotypes, *simulate(genotypes))
        assert optimizer.best.fitness == 0
        assert int(optimizer.repertoire.counts.sum()) == 9


class TestTwice:
    @pytest.mark.parametrize("noisy", [False, True])
    def test_the_same_result(self, noisy):
        optimizer = make(MAPS, noisy=noisy)
        genotypes = step(optimizer)
        optimizer.tell(genotypes, *simulate(genotypes))
        assert optimizer.evaluations == (16 if noisy else 8)
        assert int(optimizer.repertoire.counts.sum()) == optimizer.evaluations

    def test_another_result(self):
        optimizer = make(MAPS)
        genotypes = step(optimizer)
        message = r"tell: expected one result per solution, got another one for \[.*\], which was told before"
        for fitness, descriptors in ((np.zeros(8), genotypes[:, :2]), (simulate(genotypes)[0], np.zeros((8, 2)))):
            with pytest.raises(jedax.JedaxError, match=message):
                optimizer.tell(genotypes, fitness, descriptors)
        assert optimizer.evaluations == 8

    def test_within_one_tell(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask()
        twice = np.concatenate([genotypes, genotypes])
        fitness, descriptors = simulate(twice)
        with pytest.raises(jedax.JedaxError, match="which was told before"):
            optimizer.tell(twice, fitness - np.arange(16), descriptors)
        assert optimizer.evaluations == 0
        optimizer.tell(twice, fitness, descriptors)
        assert optimizer.evaluations == 8

    def test_noisy_results_are_kept(self):
        optimizer = make(MAPS, noisy=True)
        genotypes = step(optimizer)
        optimizer.tell(genotypes[:1], [3.0], [[0.9, 0.9]])
        assert (optimizer.evaluations, optimizer.best.fitness) == (9, 3)

    def test_a_failure_after_a_result_is_ignored(self):
        optimizer = make(MAPS)
        genotypes = step(optimizer)
        optimizer.tell(genotypes, np.full(8, np.nan), np.zeros((8, 2)))
        assert (optimizer.evaluations, optimizer.num_failed) == (8, 0)

    def test_long_ago(self):
        """Of the last ten thousand solutions the results are remembered."""
        optimizer = make(MAPS, evaluations=20_000)
        first, second = step(optimizer)[:2]
        optimizer.tell(np.random.default_rng(0).normal(size=(9_993, 6)), np.zeros(9_993), np.zeros((9_993, 2)))
        optimizer.tell(first[None], [7.0], np.zeros((1, 2)))
        assert optimizer.best.fitness == 7
        with pytest.raises(jedax.JedaxError, match="which was told before"):
            optimizer.tell(step(optimizer)[:1], [7.0], np.zeros((1, 2)))
        assert not np.array_equal(first, second)


class TestNearMatches:
    @pytest.mark.parametrize(
        "detour",
        [lambda g: g.astype(np.float32), lambda g: [[float(f"{x:.8g}") for x in row] for row in g]],
        ids=["float32", "decimals"],
    )
    def test_the_solution_is_the_one_that_was_asked_for(self, detour):
        optimizer, exact = make(MAPS), make(MAPS)
        for _ in range(3):
            genotypes = optimizer.ask()
            step(exact)
            told = detour(genotypes)
            assert not np.array_equal(told, genotypes)
            optimizer.tell(told, *simulate(genotypes))
            optimizer.tell(told, *simulate(genotypes))  # the same
        assert optimizer.evaluations == 24
        assert_same_bits(optimizer.repertoire, exact.repertoire)

    def test_others_are_others(self):
        optimizer = make(MAPS)
        genotypes = optimizer.ask() * (1 + 1e-5)
        with pytest.warns(UserWarning, match="the last 8 solutions told are not among .* 8 of those still wait"):
            optimizer.tell(genotypes, *simulate(genotypes))
        assert len(optimizer.ask()) == 8

    def test_solutions_that_a_user_clips_are_told_of_once(self):
        optimizer = make(MAPS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(6):
                clipped = np.clip(optimizer.ask(), -0.9, 0.9)
                optimizer.tell(clipped, *simulate(clipped))
        assert ["If you round or clip solutions" in str(warning.message) for warning in caught] == [True]
        assert optimizer.generations == 0

    def test_solutions_that_are_evaluated_again_are_no_mistake(self):
        optimizer = make(MAPS, noisy=True)
        step(optimizer)
        known = optimizer.repertoire.genotypes[optimizer.repertoire.filled]
        optimizer.ask()
        for _ in range(8):
            optimizer.tell(known, *simulate(known))
        assert optimizer.generations == 1

    def test_a_few_solutions_of_the_user_between_others_are_no_mistake(self):
        optimizer = make(MAPS)
        for number in range(4):
            genotypes = optimizer.ask()
            own = np.full((5, 6), 0.1 * number) + np.arange(5)[:, None] / 100
            optimizer.tell(own, *simulate(own))
            optimizer.tell(genotypes, *simulate(genotypes))
        assert optimizer.generations == 4


class TestAdd:
    def test_before_they_are_members_of_the_initial_batch(self):
        optimizer = make(JEDI_X, initial=np.zeros((1, 6)))
        known = np.full((3, 6), [[0.4], [0.5], [0.6]])
        optimizer.add(known, *simulate(known))
        genotypes = optimizer.ask()
        assert genotypes.shape == (5, 6)
        assert genotypes[0].tolist() == [0] * 6
        optimizer.tell(genotypes, *simulate(genotypes))
        assert optimizer.evaluations == 5
        assert optimizer.best.fitness == 0
        assert int(optimizer.repertoire.counts.sum()) == 8
        np.testing.assert_array_equal(
            optimizer._steps.state.es.pool.origin[0, 0], [0.5] * 6
        )  # where the first ES starts

    def test_a_whole_batch_and_more(self):
        optimizer = make(MAPS)
        known = np.random.default_rng(0).uniform(-1, 1, (20, 6))
        optimizer.add(known, *simulate(known))
        genotypes = optimizer.ask()
        assert genotypes.shape == (8, 6)
        assert optimizer.evaluations == 0
        assert int(optimizer.repertoire.counts.sum()) == 20
        assert optimizer.best.fitness == simulate(known)[0].max()

    def test_the_best_fill_the_places(self):
        optimizer = make(MAPS)
        known = np.random.default_rng(0).uniform(-1, 1, (20, 6))
        fitness, descriptors = simulate(known)
        optimizer.add(known, fitness, descriptors)
        told = []
        fill = optimizer._close_generation
        optimizer._close_generation = lambda: (told.extend(optimizer._steps.generation.fitness[:, 0]), fill())
        optimizer.ask()
        assert sorted(told) == sorted(fitness)[-8:]

    def test_during_a_search(self):
        optimizer = drive(make(JEDI_X), 3)
        asked = optimizer.ask()
        optimizer.add(np.full((1, 6), 0.5), [0.0], [[0.5, 0.5]])
        assert (optimizer.evaluations, optimizer.best.fitness) == (24, 0)
        assert int(optimizer.repertoire.counts.sum()) == 25
        np.testing.assert_array_equal(optimizer.ask(), asked)
        drive(optimizer, 3)

    def test_before_the_first_generation_is_complete(self):
        optimizer = make(MAPS)
        step(optimizer, 2)
        optimizer.add(np.full((1, 6), 0.5), [0.0], [[0.5, 0.5]])
        step(optimizer)
        assert (optimizer.evaluations, optimizer.best.fitness) == (8, 0)

    def test_failures_are_left_out(self):
        optimizer = make(MAPS)
        optimizer.add(np.ones((2, 6)), [np.nan, 1.0], [[0, 0], [np.inf, 0]])
        assert len(optimizer.ask()) == 8
        assert optimizer.num_failed == 0

    def test_bad_input(self):
        optimizer = make(MAPS)
        with pytest.raises(jedax.JedaxError, match=r"genotypes: expected shape \(n, 6\), got \(2, 5\)"):
            optimizer.add(np.ones((2, 5)), np.zeros(2), np.zeros((2, 2)))
        with pytest.raises(jedax.JedaxError, match="genotypes: expected finite numbers"):
            optimizer.add(np.full((2, 6), np.inf), np.zeros(2), np.zeros((2, 2)))


def test_solutions_of_simple_numbers_are_told_apart():
    # The lower bits of whole numbers and of their halves are zero, which a weak hash does not mix.
    rows = np.stack(np.meshgrid(*4 * [np.arange(-8, 9) / 2.0]), axis=-1).reshape(-1, 4)
    prints = fingerprints(rows[:, :2], rows[:, 2:]).tolist()
    assert len(set(prints)) == len(rows) == 17**4
    assert fingerprints(rows[5:6, :2], rows[5:6, 2:]) == prints[5:6]
    assert not set(prints) & set(fingerprints(rows[:, 2:] + 20, rows[:, :2]).tolist())


def test_the_best_of_several_samples_is_the_best_mean():
    optimizer = jedax.Optimizer(2, ([-1, -1], [1, 1]), samples_per_evaluation=2)
    genotypes = optimizer.ask()
    samples = np.array([[1.0, 5.0], [4.0, 4.0], [9.0, -9.0]])
    for told in range(1, 4):  # of an open generation, in numbers that are no power of two, too
        optimizer.tell(genotypes[told - 1 : told], samples[told - 1 : told], np.zeros((1, 2, 2)))
        best = int(np.argmax(samples[:told].mean(axis=1)))
        assert optimizer.best.fitness == samples[best].mean()
        np.testing.assert_array_equal(optimizer.best.genotype, genotypes[best])
    sizes = [key for key in optimizer._steps.programs._compiled if key[0] == "aggregate"]
    assert len(sizes) == 3  # for one, two and four results
