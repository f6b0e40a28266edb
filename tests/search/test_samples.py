"""Searches that evaluate each solution several times."""

import jax
import numpy as np
import pytest
from tests.conftest import assert_same_bits, without_seconds
from tests.noisy import Noisy, expected_maximum
from tests.notes import Notes

import jedax
from jedax.gp import condition, predict
from jedax.methods.jedi import JEDi
from jedax.methods.map_elites import MapElites
from jedax.search.compiled import Programs
from jedax.search.programs import evaluate_samples, forget_programs
from jedax.tasks import Maze, make

MAPS = {"offspring": 8, "cells": 16, "iso_sigma": 0.0}


def test_one_sample_is_as_if_nobody_had_heard_of_samples(monkeypatch):
    task = Noisy(spread=0.3)
    run = jedax.run("map-elites", task, evaluations=80, replicas=2, samples_per_evaluation=1, **MAPS)
    default = jedax.run("map-elites", task, evaluations=80, replicas=2, **MAPS)

    def evaluate(self, key, genotypes):
        return self.task.evaluate_batch(jedax.search.compiled.native_random.jax_keys(key), genotypes)

    forget_programs()
    monkeypatch.setattr(Programs, "_evaluate", evaluate)
    before = jedax.run("map-elites", task, evaluations=80, replicas=2, **MAPS)
    forget_programs()
    for other in (default, before):
        assert_same_bits(run.repertoire, other.repertoire)
        assert without_seconds(run.rows) == without_seconds(other.rows)


@pytest.mark.parametrize("how", ["mean", "median"])
def test_samples_are_evaluations_with_keys_of_their_own(how):
    task = Noisy(spread=0.3)
    config = jedax.methods.registry.method_defaults("map-elites", "").replace(
        samples_per_evaluation=3, sample_aggregation=how, **MAPS
    )
    programs = Programs(MapElites(config, task), task, 1)
    key, genotypes = jax.random.key(7), jax.random.normal(jax.random.key(8), (5, 2))
    found = jax.jit(programs._evaluate)(key, genotypes)
    samples = [task.evaluate_batch(key, genotypes) for key in jax.random.split(key, 3)]
    of = {"mean": np.mean, "median": np.median}[how]
    np.testing.assert_allclose(found.fitness, of([s.fitness for s in samples], axis=0), atol=1e-6)
    np.testing.assert_allclose(found.descriptor, of([s.descriptor for s in samples], axis=0), atol=1e-6)
    assert len({float(s.fitness[0]) for s in samples}) == 3


@pytest.fixture(scope="module")
def lucky():
    """64 seeds, each 64 evaluations of nothing but noise: 64 solutions, or 16 with four samples each."""
    settings = {"evaluations": 64, "replicas": 64, **MAPS}
    task = Noisy(sigma=2.0)
    return {samples: jedax.run("map-elites", task, samples_per_evaluation=samples, **settings) for samples in (1, 4)}


@pytest.mark.parametrize("samples", [1, 4])
def test_the_best_of_noise_is_the_expected_maximum(lucky, samples):
    mean, variance = expected_maximum(64 // samples)
    best = np.array(lucky[samples].summary["max_fitness"]) / (2.0 / np.sqrt(samples))
    assert best.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 64))


@pytest.mark.parametrize("samples", [1, 4])
def test_every_sample_counts_as_an_evaluation(lucky, samples):
    run = lucky[samples]
    assert run.summary["evaluations"] == 64 == run.rows[-1]["evaluations"]
    assert set(np.asarray(run.repertoire.counts).sum(axis=1).tolist()) == {64}
    assert (np.asarray(run.repertoire.counts) % samples == 0).all()
    assert run.rows[0]["evaluations"] == 8 * samples
    assert set(np.unique(run.repertoire.improved_at)) <= {-1, *range(8 * samples, 65, 8 * samples)}


def test_a_budget_under_one_generation_of_samples_is_refused():
    with pytest.raises(jedax.JedaxError, match=r"one generation of 32, got 31; .* or the samples"):
        jedax.run("map-elites", Noisy(), evaluations=31, samples_per_evaluation=4, **MAPS)


def test_failed_samples_fail_solutions_that_are_counted():
    task = Noisy(failing=0.2)
    run = jedax.run("map-elites", task, evaluations=3 * 8 * 40, samples_per_evaluation=3, **MAPS)
    failed = run.summary["num_failed"]
    assert failed + int(run.repertoire.counts.sum()) == 960
    assert failed % 3 == 0
    # A solution fails with probability 1 - 0.8^3.
    share, number = 1 - 0.8**3, 320
    assert failed / 960 == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / number))


def test_a_run_with_samples_goes_on_with_the_same_bits(tmp_path):
    settings = {"evaluations": 3 * 8 * 12, "samples_per_evaluation": 3, "seed": 2, **MAPS}
    whole = jedax.run("map-elites", Noisy(spread=0.2), **settings)
    part = jedax.run("map-elites", Noisy(spread=0.2), out=tmp_path / "r", max_seconds=1e-3, **settings)
    assert part.summary["status"] == "time"
    for _ in range(20):
        if part.summary["status"] == "finished":
            break
        part = jedax.resume(tmp_path / "r", task=Noisy(spread=0.2), draw=None)
    assert part.summary["evaluations"] == 288
    assert_same_bits(whole.repertoire, part.repertoire)
    assert without_seconds(whole.rows) == without_seconds(part.rows)


class TestGP:
    """A cell of m solutions with K samples each has the noise of K m observations."""

    def test_counts_and_noise(self, small):
        task, genotypes = Noisy(), jax.random.normal(jax.random.key(0), (8, 2))
        evaluation = task.evaluate_batch(jax.random.key(1), genotypes)
        predictions = {}
        for samples in (1, 5):
            method = JEDi(small.replace(samples_per_evaluation=samples), task)
            state = jax.jit(method.init)(jax.random.key(2), genotypes, evaluation)
            data = method.gp_data(state.repertoire)
            assert int(data.counts[data.mask].sum()) == 8 * samples == int(method.evaluations(state))
            start = method.config.initial_hyperparameters()
            gp = condition(method.config, start, data)
            predictions[samples] = predict(gp, data.x[:8]), _by_hand(start, data)
        for prediction, (mean, variance) in predictions.values():
            rows = int(data.mask.sum())
            np.testing.assert_allclose(prediction.mean[:rows], mean, rtol=2e-3, atol=2e-3)
            np.testing.assert_allclose(prediction.variance[:rows], variance, rtol=5e-3, atol=1e-4)
        assert (predictions[5][0].variance[:rows] < 0.5 * predictions[1][0].variance[:rows]).all()

    def test_the_gp_is_fitted_anew_only_where_something_is_new(self, small):
        method = JEDi(small.replace(samples_per_evaluation=5, targets="pareto"), Noisy())
        genotypes = jax.random.normal(jax.random.key(0), (8, 2))
        evaluation = Noisy().evaluate_batch(jax.random.key(1), genotypes)
        state, fit = jax.jit(method.init)(jax.random.key(2), genotypes, evaluation), jax.jit(method.fit_model)
        once, _ = fit(state)
        assert int(once.gp_fitted_at) == 40 == int(once.repertoire.improved_at.max())
        again, _ = fit(once)
        assert_same_bits(once.gp, again.gp)


def _by_hand(start, data):
    """Mean and variance at the data, from the formulas in float64; noise s_n^2 / n."""
    rows = np.asarray(data.mask)
    x, y, n = (np.asarray(values, float)[rows] for values in (data.x, data.fitness, data.counts))
    squared = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    signal, length, noise = (float(value) ** 2 for value in (start.signal, start.length_scale, start.noise))
    kernel = signal * np.exp(-squared / 2 / length)
    inverse = np.linalg.inv(kernel + np.diag(noise / n))
    mean = kernel @ inverse @ (y - y.mean()) + y.mean()
    return mean, (signal - np.einsum("ij,jk,ki->i", kernel, inverse, kernel)) * y.var()


class TestOutsideJAX:
    def test_equal_samples_change_nothing_but_counts(self):
        settings = {"seed": 3, "offspring": 8, "cells": 16, "report_every": 2}
        task = "tests.search.workers.work:sphere"
        one = jedax.run("map-elites", task, evaluations=40, workers=1, **settings)
        three = jedax.run("map-elites", task, evaluations=120, workers=1, samples_per_evaluation=3, **settings)
        np.testing.assert_allclose(one.repertoire.genotypes, three.repertoire.genotypes, atol=1e-5)
        np.testing.assert_array_equal(3 * one.repertoire.counts, three.repertoire.counts)
        assert three.summary["evaluations"] == 120

    def test_a_solution_that_fails_fails_with_all_its_samples(self):
        task = make("tests.search.workers.work:partly", num_params=3, descriptor_lows=(-1, -1), descriptor_highs=(1, 1),
                    initial_std=2)  # fmt: skip
        settings = {"seed": 3, "offspring": 8, "cells": 16, "workers": 1}
        one = jedax.run("map-elites", task, evaluations=24, **settings).summary
        three = jedax.run("map-elites", task, evaluations=72, samples_per_evaluation=3, **settings)
        assert 0 < one["num_failed"] < 24
        assert three.summary["num_failed"] == 3 * one["num_failed"] == three.summary["failures"]["raised"]
        assert three.summary["num_failed"] + int(three.repertoire.counts.sum()) == 72

    def test_samples_get_seeds_where_the_task_has_them(self):
        class Pool:
            def evaluate(self, genotypes, seeds=None):
                self.seeds = seeds
                return genotypes[:, 0] + (0 if seeds is None else seeds), genotypes

        class Seeded:
            num_descriptors = 2

            def sample_seed(self, sample):
                return 100 + sample

        class Plain(Seeded):
            def sample_seed(self, sample):
                return None

        pool, genotypes = Pool(), np.arange(6, dtype=np.float32).reshape(3, 2)
        found = evaluate_samples(Seeded(), pool, genotypes, range(4, 6))
        np.testing.assert_array_equal(found.fitness, [[104, 106, 108], [105, 107, 109]])
        np.testing.assert_array_equal(found.descriptor, [genotypes, genotypes])
        assert evaluate_samples(Plain(), pool, genotypes, range(2)).fitness.shape == (2, 3)
        assert pool.seeds is None


class TestOptimizer:
    def test_it_takes_samples(self):
        def search(tell):
            optimizer = jedax.Optimizer(2, ([-4, -4], [4, 4]), evaluations=3 * 8 * 5, method="map-elites",
                                        samples_per_evaluation=3, sample_aggregation="median", **MAPS)  # fmt: skip
            while not optimizer.done:
                tell(optimizer, optimizer.ask())
            return optimizer

        def three(optimizer, genotypes):
            fitness = -np.abs(genotypes).sum(axis=1)
            low_high = np.stack([fitness, fitness - 9, fitness + 100], axis=1)
            optimizer.tell(genotypes, low_high, np.stack([genotypes, genotypes - 1, genotypes + 1], axis=1))

        found = search(three)
        assert found.evaluations == 120 == int(found.repertoire.counts.sum())
        assert found.best.fitness == pytest.approx(-np.abs(found.best.genotype).sum())
        np.testing.assert_allclose(found.best.descriptor, found.best.genotype)

    def test_another_number_of_samples_is_refused(self):
        optimizer = jedax.Optimizer(2, ([-4, -4], [4, 4]), evaluations=99, method="map-elites",
                                    samples_per_evaluation=3, **MAPS)  # fmt: skip
        genotypes = optimizer.ask()
        with pytest.raises(jedax.JedaxError, match=r"fitness: expected shape \(8, 3\), got \(8, 2\)"):
            optimizer.tell(genotypes, np.zeros((8, 2)), np.zeros((8, 2, 2)))


def test_samples_of_a_task_without_noise_are_remarked_on(arm):
    notes = Notes()
    jedax.run("map-elites", arm, evaluations=16, progress=notes, samples_per_evaluation=2, **MAPS)
    assert notes.said == ["arm is deterministic: all 2 samples of a solution are equal."]


def test_remarks_are_logged_where_nothing_shows_the_progress(arm, caplog):
    jedax.run("map-elites", arm, evaluations=16, samples_per_evaluation=2, **MAPS)
    said = [(record.name, record.levelname, record.getMessage()) for record in caplog.records if "jedax" in record.name]
    assert said == [("jedax", "WARNING", "arm is deterministic: all 2 samples of a solution are equal.")]


def test_samples_of_replicas_are_those_of_their_seeds():
    both = jedax.run("map-elites", Noisy(), evaluations=48, seed=5, replicas=2, samples_per_evaluation=2, **MAPS)
    for replica in range(2):
        alone = jedax.run("map-elites", Noisy(), evaluations=48, seed=5 + replica, samples_per_evaluation=2, **MAPS)
        np.testing.assert_allclose(alone.repertoire.best_fitness[0], both.repertoire.best_fitness[replica], atol=1e-5)
        np.testing.assert_array_equal(alone.repertoire.counts[0], both.repertoire.counts[replica])


def test_pga_me_learns_from_the_steps_of_all_samples():
    maze = Maze(steps=10, wheel_noise=0.001)
    run = jedax.run("pga-me", maze, evaluations=2 * 8 * 3, samples_per_evaluation=2, offspring=8, cells=16,
                    critic_hidden=(4,), critic_batch=4, critic_steps=2, gradient_steps=1, buffer=1000)  # fmt: skip
    # Nobody arrives in ten steps, so that every step of every sample is one to learn from.
    assert (
        [row["buffered_steps"] for row in run.rows] == [10 * row["evaluations"] for row in run.rows] == [160, 320, 480]
    )
