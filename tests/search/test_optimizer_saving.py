"""`Optimizer.save` and `load`: a search that was saved at any moment goes on with the same bits."""

import copy
import errno
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.search.outside import JEDI_X, MAPS, drive, make, simulate, step

import jedax
from jedax import Integer
from jedax.methods.map_elites import MapElites
from jedax.search import saved
from jedax.search.compiled import StepPrograms


def assert_same_search(one, other, generations=3):
    """Check that two searches are in the same state, and that they go on alike."""
    assert repr(one) == repr(other)
    assert one.asked.keys() == other.asked.keys()
    for _ in range(generations):
        np.testing.assert_array_equal(one.ask(), other.ask())
        np.testing.assert_array_equal(one.ask(2), other.ask(2))
        for each in (one, other):
            step(each, 1)
            step(each)
        assert (one.evaluations, one.num_failed) == (other.evaluations, other.num_failed)
    assert_same_bits(one._steps.state, other._steps.state)


def nothing(optimizer):
    pass


def asked(optimizer):
    optimizer.ask()


def partly_told(optimizer):
    step(optimizer, 3)


def idle_workers(optimizer):
    """Several candidates of each place, some of them told, and some late."""
    genotypes = optimizer.ask(20)
    optimizer.tell(genotypes[9:18], *simulate(genotypes[9:18]))
    optimizer.ask(3)


def failed(optimizer):
    genotypes = optimizer.ask()
    optimizer.tell(genotypes, np.full(8, np.nan), np.zeros((8, 2)))
    genotypes = optimizer.ask()[:2]
    optimizer.tell(genotypes, np.full(2, np.nan), np.zeros((2, 2)))


def known(optimizer):
    given = np.random.default_rng(0).normal(size=(3, 6))
    optimizer.add(given, *simulate(given))
    given += 1
    optimizer.tell(given, *simulate(given))


@pytest.mark.parametrize("moment", [nothing, asked, partly_told, idle_workers, failed, known])
@pytest.mark.parametrize(
    ("settings", "generations"), [(JEDI_X, 0), (JEDI_X, 5), (MAPS, 0), (MAPS, 2)], ids=lambda v: str(v)[-20:]
)
def test_at_any_moment(tmp_path, settings, generations, moment):
    optimizer = drive(make(settings, seed=1), generations)
    moment(optimizer)
    optimizer.save(tmp_path / "search.safetensors")
    assert_same_search(jedax.Optimizer.load(tmp_path / "search.safetensors"), optimizer)


@pytest.mark.parametrize("moment", [nothing, asked, partly_told, known])
def test_while_descriptors_are_measured(tmp_path, moment):
    optimizer = make(MAPS, descriptor_bounds="measure")
    moment(optimizer)
    optimizer.save(tmp_path / "saved")
    loaded = jedax.Optimizer.load(tmp_path / "saved")
    assert_same_search(loaded, optimizer)
    assert loaded.cells == optimizer.cells


@pytest.mark.parametrize(
    "changes",
    [
        {"bounds": (np.zeros(6), np.ones(6)), "num_params": None},
        {"x0": np.arange(6.0), "sigma0": 0.3, "num_params": None},
        {"sigma0": 0.3, "minimise": True, "evaluations": None},
        {"initial": np.zeros((2, 6)), "initial_std": 0.1},
        {"noisy": True},
        {"dims": (3, 4)},
        {"samples_per_evaluation": 1, "repertoire_dtype": "bfloat16"},
        {"descriptor_bounds": "measure"},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("generations", [0, 2])
def test_with_any_arguments(tmp_path, changes, generations):
    optimizer = drive(make(MAPS, **changes), generations)
    optimizer.save(tmp_path / "saved")
    loaded = jedax.Optimizer.load(tmp_path / "saved")
    assert_same_search(loaded, optimizer)
    assert (loaded.minimise, loaded.noisy, loaded.config) == (optimizer.minimise, optimizer.noisy, optimizer.config)


def test_with_defaults_and_a_large_first_batch(tmp_path):
    optimizer = make({})
    optimizer.ask(30)
    optimizer.save(tmp_path / "saved")
    loaded = jedax.Optimizer.load(tmp_path / "saved")
    assert loaded.config.population == 32
    np.testing.assert_array_equal(loaded.ask(), optimizer.ask())


def test_without_descriptors_and_with_names(tmp_path):
    def cost(rows):
        return [-(row["x"] ** 2) - row["k"] for row in rows]

    optimizer = jedax.Optimizer(space={"x": (-1, 1), "k": Integer(0, 9)}, evaluations=200, seed=2)
    rows = optimizer.ask()
    optimizer.tell(rows[:3], cost(rows[:3]))
    optimizer.save(tmp_path / "saved")
    loaded = jedax.Optimizer.load(tmp_path / "saved")
    while not loaded.done:
        rows = loaded.ask()
        assert rows == optimizer.ask()
        for each in (loaded, optimizer):
            each.tell(rows, cost(rows))
    assert loaded.best.parameters == optimizer.best.parameters
    assert loaded.best.parameters["k"] == 0


def test_what_was_told_is_remembered(tmp_path):
    optimizer = make(MAPS)
    genotypes = step(optimizer)
    optimizer.save(tmp_path / "saved")
    loaded = jedax.Optimizer.load(tmp_path / "saved")
    loaded.tell(genotypes, *simulate(genotypes))
    assert loaded.evaluations == 8
    with pytest.raises(jedax.JedaxError, match="which was told before"):
        loaded.tell(genotypes, np.zeros(8), np.zeros((8, 2)))


def test_numbers_of_numpy_are_saved(tmp_path):
    numbers = {"seed": np.int64(3), "population": np.int32(4), "minimise": np.bool_(True), "initial_std": np.float32(1)}
    optimizer = drive(make(evaluations=np.int64(1600), **numbers), 2)
    optimizer.save(tmp_path / "saved")
    assert_same_bits(jedax.Optimizer.load(tmp_path / "saved").repertoire, optimizer.repertoire)


class TestOut:
    def test_every_tell_and_add_is_saved(self, tmp_path):
        path = tmp_path / "folder" / "search"
        optimizer = make(MAPS, out=path)
        assert not path.exists()
        for told in range(1, 5):
            step(optimizer, 3)
            assert jedax.Optimizer.load(path).evaluations == 3 * told == optimizer.evaluations
        optimizer.add(np.full((1, 6), 0.5), [0.0], [[0.5, 0.5]])
        assert jedax.Optimizer.load(path).best.fitness == 0

    def test_a_search_that_is_continued_goes_on_saving_itself(self, tmp_path):
        path = tmp_path / "search"
        drive(make(MAPS, out=path), 2)
        drive(jedax.Optimizer.load(path), 2)
        assert jedax.Optimizer.load(path).evaluations == 32

    def test_the_file_stays_where_the_directory_changes(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        optimizer = drive(make(MAPS, out="search"), 1)
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        drive(optimizer, 1)
        assert list((tmp_path / "other").iterdir()) == []
        optimizer.save(tmp_path / "search")
        drive(jedax.Optimizer.load("../search"), 1)
        assert jedax.Optimizer.load(tmp_path / "search").evaluations == 24

    def test_other_files_are_left_alone(self, tmp_path):
        path, other = tmp_path / "search", tmp_path / "other"
        optimizer = drive(make(MAPS, out=path), 2)
        optimizer.save(other)
        drive(jedax.Optimizer.load(other), 2)
        assert jedax.Optimizer.load(path).evaluations == 16
        assert jedax.Optimizer.load(other).evaluations == 16

    def test_a_file_that_exists_is_refused(self, tmp_path):
        (tmp_path / "search").touch()
        message = r"out: expected a path that does not exist, got .*search; continue it with jedax\.Optimizer\.load"
        with pytest.raises(jedax.JedaxError, match=message):
            make(MAPS, out=tmp_path / "search")

    def test_a_refused_tell_changes_nothing(self, tmp_path):
        optimizer = drive(make(MAPS, out=tmp_path / "search"), 1)
        before = (tmp_path / "search").read_bytes()
        with pytest.raises(jedax.JedaxError):
            optimizer.tell(np.zeros((1, 6)), [0.0], np.zeros((1, 3)))
        assert (tmp_path / "search").read_bytes() == before


PROGRAM = """
import sys, time
from pathlib import Path
import jedax
from tests.search.outside import MAPS, make, step

path = Path(sys.argv[1])
optimizer = jedax.Optimizer.load(path) if path.exists() else make(MAPS, seed=7, evaluations=320, out=path)
while not optimizer.done:
    step(optimizer, 1)
    print(optimizer.evaluations, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_killed_at_any_moment(tmp_path):
    """Each result is saved when `tell` returns; those of evaluations under way are lost, and asked for again."""
    path, counts = tmp_path / "search", []
    for pause in (0.002, 0.002, 0.0):
        command = [sys.executable, "-c", PROGRAM, str(path), str(pause)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        told = 0
        while told < 320 and (line := process.stdout.readline()):
            told = int(line)
            if pause and told >= 70 + (counts[-1] if counts else 0):
                process.send_signal(signal.SIGKILL)
                break
        process.wait(60)
        process.stdout.close()
        counts.append(jedax.Optimizer.load(path).evaluations)
        assert counts[-1] >= told
        time.sleep(0.01)
    assert counts[-1] == 320
    assert counts == sorted(set(counts))
    assert int(jedax.Optimizer.load(path).repertoire.counts.sum()) >= 320


def test_a_full_disk_during_tell(tmp_path, monkeypatch):
    """The results are taken, so that `save` is all that is left to do."""
    path = tmp_path / "search"
    optimizer = make(MAPS, out=path)
    genotypes = optimizer.ask()
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        for take in (optimizer.tell, optimizer.add):
            with pytest.raises(jedax.JedaxError, match=r"out: .*No space left on device\); free some space, then call"):
                take(genotypes, *simulate(genotypes))
    assert (optimizer.evaluations, optimizer.generations, list(tmp_path.iterdir())) == (8, 1, [])
    optimizer.save(path)
    assert jedax.Optimizer.load(path).evaluations == 8


def test_ctrl_c_during_tell_leaves_no_other_file(tmp_path, monkeypatch):
    optimizer = make(MAPS, out=tmp_path / "search")
    genotypes = optimizer.ask()
    monkeypatch.setattr("os.fsync", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        optimizer.tell(genotypes, *simulate(genotypes))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", [MAPS, {**MAPS, "descriptor_bounds": "measure"}], ids=["bounds", "measure"])
@pytest.mark.parametrize("generation", [0, 2])
def test_ctrl_c_while_a_generation_closes_changes_nothing(monkeypatch, settings, generation):
    """As where the first generation compiles in a notebook: the loop of `ask` and `tell` goes on with the same bits."""

    def constrained(optimizer):
        genotypes = optimizer.ask()
        return genotypes, *simulate(genotypes), genotypes[:, :1] - 0.2

    def tell(optimizer, genotypes, fitness, descriptors, violations):
        optimizer.tell(genotypes, fitness, descriptors, violations=violations)

    interrupted, other = make(settings), make(settings)
    for _ in range(generation):
        for optimizer in (interrupted, other):
            tell(optimizer, *constrained(optimizer))
    results = constrained(interrupted)
    with monkeypatch.context() as patch:
        name = "init" if generation == 0 else "tell"
        patch.setattr(StepPrograms, name, raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            tell(interrupted, *results)
    tell(other, *constrained(other))
    for _ in range(3):
        for optimizer in (interrupted, other):
            tell(optimizer, *constrained(optimizer))
    np.testing.assert_array_equal(interrupted.ask(), other.ask())
    assert interrupted.evaluations == other.evaluations == 8 * (generation + 4)
    assert interrupted.generations == other.generations


def raising(error):
    """Return a function that raises an error."""

    def fun(*arguments):
        raise error

    return fun


def test_saving_without_a_name():
    with pytest.raises(jedax.JedaxError, match=r"path: expected the name of a file, got '\.'; write one"):
        make(MAPS).save("")


def test_saving_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(jedax.JedaxError, match=r"path: expected a file that can be written, got .*(exists|Not a dir)"):
        make(MAPS).save(tmp_path / "file" / "x.safetensors")


@pytest.mark.parametrize("how", ["flip", "truncate", "foreign", "missing", "empty", "folder"])
def test_damaged_files_are_refused(tmp_path, how):
    path = tmp_path / "search.safetensors"
    optimizer = drive(make(MAPS), 2)
    optimizer.ask(3)
    optimizer.save(path)
    if how == "flip":
        data = bytearray(path.read_bytes())
        data[-50] ^= 1
        path.write_bytes(data)
    elif how == "truncate":
        path.write_bytes(path.read_bytes()[:200])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "foreign":
        from safetensors.numpy import save_file

        save_file({"a": np.zeros(3)}, path)
    else:
        path.unlink()
        if how == "folder":
            path.mkdir()
    with pytest.raises(jedax.JedaxError, match=str(path)):
        jedax.Optimizer.load(path)


def test_no_bit_can_change_unnoticed(tmp_path):
    path = tmp_path / "search.safetensors"
    optimizer = make(MAPS)
    optimizer.ask(3)
    optimizer.save(path)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for place in random.integers(0, 8 * len(whole), 100):
        data = bytearray(whole)
        data[place // 8] ^= 1 << (place % 8)
        path.write_bytes(data)
        with pytest.raises(jedax.JedaxError, match=str(path)):
            jedax.Optimizer.load(path)


def test_files_of_earlier_versions_are_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "FORMAT", "jedax optimizer 2")
    make(MAPS).save(tmp_path / "old")
    monkeypatch.undo()
    with pytest.raises(jedax.JedaxError, match=r"old: expected format 'jedax optimizer 4', got 'jedax optimizer 2'"):
        jedax.Optimizer.load(tmp_path / "old")


class Doubled(MapElites):
    """MAP-Elites whose offspring are twice as long; it has the settings of MAP-Elites."""

    def ask(self, key, state):
        genotypes, state = super().ask(key, state)
        return 2 * genotypes, state


def test_a_class_that_shares_the_settings_of_another(tmp_path):
    optimizer = drive(make({"method": Doubled, "cells": 16, "offspring": 8}), 2)
    optimizer.save(tmp_path / "search.safetensors")
    again = jedax.Optimizer.load(tmp_path / "search.safetensors", method=Doubled)
    assert_same_search(again, optimizer)
    assert not np.array_equal(again.ask(), jedax.Optimizer.load(tmp_path / "search.safetensors", trust=True).ask() / 2)


def test_the_population_follows_the_first_batch_after_loading_too(tmp_path):
    optimizer = jedax.Optimizer(4, evaluations=2_000, patience=7)
    optimizer.save(tmp_path / "search.safetensors")
    again = jedax.Optimizer.load(tmp_path / "search.safetensors")
    assert again.config == optimizer.config
    np.testing.assert_array_equal(again.ask(40), optimizer.ask(40))
    assert again.config == optimizer.config
    assert (again.config.population, again.config.patience) == (40, 7)
    again.save(tmp_path / "search.safetensors")
    assert jedax.Optimizer.load(tmp_path / "search.safetensors").config == optimizer.config


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickle_and_copy_name_save(copied):
    with pytest.raises(jedax.JedaxError, match=r"Optimizer: expected save and load, got pickle or copy; call save"):
        copied(make())


def test_the_first_step_between_bounds_follows_what_was_given(tmp_path):
    """Also where the batch, which is not known when the search is saved, changes the settings."""
    steps = []
    for is_saved in (False, True):
        optimizer = jedax.Optimizer(bounds=([0, 0], [1, 1]), x0=[0.3, 0.3], evaluations=500)
        if is_saved:
            optimizer.save(tmp_path / "search")
            optimizer = jedax.Optimizer.load(tmp_path / "search")
        optimizer.ask(20)
        steps.append((optimizer.config.first_step, optimizer.config.population))
    assert steps == [(0.5, 20), (0.5, 20)]
