"""Solutions evaluated again: against noise that is known."""

import dataclasses
import hashlib
import json

import jax
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.noisy import Noisy, expected_maximum

import jedax
from jedax.report import reevaluation
from jedax.search.reevaluation import middle, sample_again
from jedax.store.directory import REEVALUATED, RunDirectory

SEEDS, SIGMA, SAMPLES = 64, 2.0, 32
MAPS = {"offspring": 8, "cells": 16, "iso_sigma": 0.3}


@pytest.fixture(scope="module")
def lucky():
    """Nothing but noise: whoever is best was lucky."""
    return jedax.run("map-elites", Noisy(sigma=SIGMA), evaluations=64, replicas=SEEDS, **MAPS)


@pytest.fixture(scope="module")
def again(lucky):
    return sample_again(lucky, SAMPLES)


class TestKnownNoise:
    def test_all_of_the_best_was_luck(self, lucky, again):
        corrected = np.array([s.fitness[s.best] for s in again.replicas])
        error = SIGMA / np.sqrt(SAMPLES)
        assert np.abs(corrected.mean()) < 4 * error / np.sqrt(SEEDS)
        assert corrected.std() == pytest.approx(error, rel=4 / np.sqrt(2 * SEEDS))
        mean, variance = expected_maximum(64)
        luck = np.mean([s.luck for s in again.replicas])
        assert luck == pytest.approx(SIGMA * mean, abs=4 * SIGMA * np.sqrt((variance + 1 / SAMPLES) / SEEDS))
        assert [s.reported[s.best] for s in again.replicas] == lucky.summary["max_fitness"]

    def test_standard_errors(self, again):
        errors = np.concatenate([s.error for s in again.replicas])
        assert np.sqrt((errors**2).mean()) == pytest.approx(SIGMA / np.sqrt(SAMPLES), rel=0.05)

    def test_what_one_half_chooses_the_other_measures_without_bias(self, again):
        # Choosing by all samples would promise the expected maximum of as many means as there are elites.
        naive = np.mean([s.fitness.max() for s in again.replicas])
        promised = np.mean([expected_maximum(len(s.cell))[0] for s in again.replicas]) * SIGMA / np.sqrt(SAMPLES)
        assert naive == pytest.approx(promised, abs=0.1)
        assert promised > 0.4
        honest = np.array([s.chosen.fitness for s in again.replicas])
        error = SIGMA / np.sqrt(SAMPLES / 2)
        assert np.abs(honest.mean()) < 4 * error / np.sqrt(SEEDS)
        assert np.mean([s.chosen.error for s in again.replicas]) == pytest.approx(error, rel=0.1)

    def test_every_elite_keeps_its_cell_where_behaviour_is_certain(self, lucky, again):
        for s, coverage in zip(again.replicas, lucky.summary["coverage"], strict=True):
            assert s.num_kept == s.num_elites == round(16 * coverage)
            np.testing.assert_allclose(s.descriptor, s.reported_descriptor, atol=1e-5)
            np.testing.assert_array_equal(np.isfinite(s.elites(16)), np.isin(np.arange(16), s.cell))

    def test_other_seeds_other_samples(self, lucky, again):
        one = sample_again(lucky, SAMPLES, cells="best")
        other = sample_again(lucky, SAMPLES, seed=1, cells="best")
        assert one.evaluations == other.evaluations == SEEDS * SAMPLES
        assert not set(one.replicas[0].fitness) & set(other.replicas[0].fitness)
        assert [s.fitness.tolist() for s in one.replicas] == [
            s.fitness.tolist() for s in sample_again(lucky, SAMPLES, cells="best").replicas
        ]


def test_elites_move_to_where_their_mean_lies():
    run = jedax.run("map-elites", Noisy(sigma=1.0, spread=1.5), evaluations=800, **MAPS)
    s = sample_again(run, 256).replicas[0]
    genotypes = np.asarray(run.repertoire.genotypes[0])[s.cell]
    np.testing.assert_allclose(s.descriptor, genotypes, atol=5 * 1.5 / 16)
    nearest = np.linalg.norm(run.cells.centroids[None] - s.descriptor[:, None], axis=-1).argmin(axis=1)
    inside = (np.abs(s.descriptor) < 4).all(axis=1)
    np.testing.assert_array_equal(s.new_cell[inside], nearest[inside])
    placed = s.elites(16)
    assert s.num_kept == int((s.cell == s.new_cell).sum()) < s.num_elites
    for cell in range(16):
        here = s.fitness[s.new_cell == cell]
        assert placed[cell] == (here.max() if len(here) else -np.inf)
    assert np.isfinite(placed).sum() < s.num_elites


def test_samples_that_fail_are_left_out_and_counted():
    run = jedax.run("map-elites", Noisy(failing=0.25), evaluations=80, **MAPS)
    found = sample_again(run, 64)
    s = found.replicas[0]
    number = s.failed.size * 64
    assert s.failed.sum() / number == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / number))
    assert np.isfinite(s.fitness).all()
    nothing_left = dataclasses.replace(run, task=Noisy(failing=1.0))
    s = sample_again(nothing_left, 4).replicas[0]
    assert np.isnan(s.fitness).all()
    assert (s.failed == 4).all()
    assert (s.new_cell == -1).all()
    assert s.chosen is None
    assert s.num_kept == 0
    assert not np.isfinite(s.elites(16)).any()


def test_the_best_solution_is_evaluated_where_no_cell_holds_it(lucky):
    stored = lucky.repertoire
    fitness = np.array(stored.fitness)
    fitness[0, fitness[0].argmax()] = -np.inf  # as a soft repertoire may forget it
    run = dataclasses.replace(lucky, repertoire=dataclasses.replace(stored, fitness=fitness))
    s = sample_again(run, 4).replicas[0]
    assert s.cell[s.best] == -1
    assert s.reported[s.best] == stored.best_fitness[0]
    assert s.num_elites == len(s.cell) - 1 == np.isfinite(fitness[0]).sum()
    np.testing.assert_allclose(s.reported_descriptor[s.best], stored.best_descriptor[0])


def test_a_task_without_noise_has_no_luck(arm):
    run = jedax.run("map-elites", arm, evaluations=80, **MAPS)
    found = sample_again(run)
    assert (found.samples, found.agree) == (2, True)
    s = found.replicas[0]
    assert s.luck == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(s.fitness, s.reported, atol=1e-5)
    assert (s.error == 0).all()
    assert "nothing in this task is random, so two samples are enough, and they agree" in reevaluation.table(found)
    assert "nan" not in reevaluation.table(found)


def test_parameters_with_noise_against_a_closed_form():
    """The mean of -sum (x + e)^2 is -sum x^2 less the parameters' number times the variance of e."""
    task = jedax.tasks.make("sphere", dimensions=20)
    run = jedax.run("map-elites", task, evaluations=80, **MAPS)
    found = sample_again(run, 1024, parameter_noise=0.1)
    sigma = 0.1 * float(np.std([task.init(jax.random.key(i)) for i in range(200)]))
    s = found.replicas[0]
    assert found.samples == 1024
    np.testing.assert_allclose(s.reported - s.fitness, 20 * sigma**2, atol=5 * s.error.max())
    assert s.luck > 5 * s.error[s.best]
    assert "parameters with normal noise, whose standard deviation is 0.1 of the spread" in reevaluation.table(found)
    assert reevaluation.as_dict(found)["parameter_noise"] == 0.1
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(s.fitness, sample_again(run, 1024, 1, parameter_noise=0.1).replicas[0].fitness)


def test_functions_outside_jax():
    run = jedax.run("map-elites", "tests.search.workers.work:sphere", evaluations=40, workers=1, **MAPS)
    found = sample_again(run, 4)
    assert found.agree
    np.testing.assert_array_equal(found.replicas[0].fitness, found.replicas[0].reported)
    assert "nothing in this task seems to be random" in reevaluation.table(found)


class TestMiddle:
    @settings(deadline=None, max_examples=50)
    @given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.data())
    def test_against_numpy(self, values, data):
        valid = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
        column = np.array(values)
        for how, of in (("mean", np.mean), ("median", np.median)):
            found, error = (float(x[0]) for x in middle(column[:, None], valid[:, None], how))
            if not valid.any():
                assert np.isnan(found)
                continue
            np.testing.assert_allclose(found, of(column[valid]), rtol=1e-9, atol=1e-9)
            if valid.sum() == 1:
                assert np.isnan(error)
            elif how == "mean":
                expected = column[valid].std(ddof=1) / np.sqrt(valid.sum())
                np.testing.assert_allclose(error, expected, rtol=1e-9, atol=1e-9)
            else:
                assert error >= 0

    def test_the_error_of_a_median(self):
        values = np.random.default_rng(0).normal(size=(129, 4000))
        centre, error = middle(values, np.ones_like(values, bool), "median")
        # Of normal numbers, asymptotically, sqrt(pi / 2) times that of the mean.
        assert centre.std() == pytest.approx(np.sqrt(np.pi / 2 / 129), rel=0.05)
        assert error.mean() == pytest.approx(centre.std(), rel=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "noisy"
    jedax.run("map-elites", Noisy(spread=0.5), evaluations=64, replicas=2, out=folder, **MAPS)
    return folder


class TestFiles:
    def test_the_runs_own_files_stay_as_they_are(self, folder):
        def digests():
            return {
                path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in folder.rglob("*") if path.is_file() and not path.name.startswith("reevaluated")
            }  # fmt: skip

        before = digests()
        found = jedax.reevaluate(folder, samples=8, task=Noisy(spread=0.5))
        assert digests() == before
        assert {path.name for path in folder.glob("*reevaluated*")} == set(REEVALUATED)
        numbers = json.loads((folder / "reevaluated.json").read_text())
        rows = pandas.read_csv(folder / "reevaluated.csv")
        assert (numbers["samples"], numbers["cells"], len(numbers["replicas"])) == (8, "all", 2)
        assert numbers["evaluations"] == 8 * len(rows) == found.evaluations
        for replica, s in zip(numbers["replicas"], found.replicas, strict=True):
            own = rows[rows.seed == replica["seed"]]
            best = own[own.is_best == 1].iloc[0]
            assert replica["luck"] == pytest.approx(best.reported_fitness - best.corrected_fitness, rel=1e-5)
            assert replica["coverage"]["corrected"] == own.corrected_cell.nunique() / 16
            of_cells = own.groupby("corrected_cell").corrected_fitness.max()
            assert replica["qd_score"]["corrected"] == pytest.approx(of_cells.sum(), rel=1e-5)
            assert replica["num_kept"] == (own.cell == own.corrected_cell).sum() == s.num_kept
            np.testing.assert_allclose(own.standard_error, s.error, rtol=1e-5)
        table = reevaluation.table(found)
        assert f"luck {numbers['replicas'][1]['luck']:.3f}" in table
        assert "seed 0" in table
        assert "seed 1" in table

    def test_the_best_alone_leaves_no_picture_of_others(self, folder):
        jedax.reevaluate(folder, samples=8, task=Noisy(spread=0.5))
        jedax.reevaluate(folder, samples=4, cells="best", task=Noisy(spread=0.5))
        assert not (folder / "reevaluated.png").exists()
        assert "coverage" not in json.loads((folder / "reevaluated.json").read_text())["replicas"][0]

    def test_a_new_run_replaces_them(self, tmp_path):
        for name in REEVALUATED:
            (tmp_path / name).touch()
        (tmp_path / "config.yaml").write_text("{task: arm, method: jedi, run: {}}")
        RunDirectory.create(tmp_path, overwrite=True).release()
        assert not list(tmp_path.iterdir())

    def test_a_run_that_goes_on_removes_them(self, tmp_path):
        for name in REEVALUATED:
            (tmp_path / name).touch()
        RunDirectory(tmp_path).remove_outcome()
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 3}, r"samples: expected a whole number from 4 to 2,147,483,647, got 3"),
        ({"samples": "8"}, r"samples: expected a whole number from 4 to 2,147,483,647, got '8'"),
        ({"samples": 8.5}, r"samples: expected a whole number from 4 to 2,147,483,647, got 8.5"),
        ({"parameter_noise": "1"}, r"parameter_noise: expected a number of at least 0, got '1'"),
        ({"seed": -1}, r"seed: expected a whole number from 0 to 2,147,483,647, got -1"),
        ({"parameter_noise": -1.0}, r"parameter_noise: expected a number of at least 0, got -1.0"),
        ({"cells": "bets"}, r"cells: unknown name 'bets'; did you mean 'best'\?"),
    ],
)
def test_bad_arguments(lucky, arguments, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.reevaluate(lucky, **arguments)


def test_a_run_that_goes_on_is_not_corrected(lucky, tmp_path):
    with pytest.raises(jedax.JedaxError, match=r"expected a run that has ended.*jedax run --resume"):
        jedax.reevaluate(dataclasses.replace(lucky, path=tmp_path))
