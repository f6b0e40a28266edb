"""Trackers that fail, hang or come too late: the run goes on, and says so once."""

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import assert_same_bits, without_seconds
from tests.noisy import Noisy
from tests.notes import Notes

import jedax
from jedax.search import tracking
from jedax.search.tracking import About, Tracking, guard
from jedax.search.tracking.guard import Guarded, numbers_of

SETTINGS = {"evaluations": 80, "offspring": 8, "cells": 16, "seed": 3}
ABOUT = About("title", {"run": {"seed": 3}}, None)


class Kept:
    """Keeps what it is told."""

    def __init__(self):
        self.calls, self.threads = [], set()

    def begin(self, about):
        self._keep("begin", about)

    def log(self, step, numbers):
        self._keep("log", step, numbers)

    def finish(self, summary):
        self._keep("finish", summary)

    def _keep(self, *call):
        self.calls.append(call)
        self.threads.add(threading.get_ident())


class Fails(Kept):
    def __init__(self, where, error):
        super().__init__()
        self.where, self.error = where, error

    def _keep(self, name, *call):
        super()._keep(name, *call)
        if name == self.where:
            raise self.error


class Hangs(Kept):
    def __init__(self, where):
        super().__init__()
        self.where, self.free = where, threading.Event()

    def _keep(self, name, *call):
        super()._keep(name, *call)
        if name == self.where:
            self.free.wait()


@pytest.fixture(scope="module")
def alone():
    return jedax.run("map-elites", Noisy(), **SETTINGS)


def assert_same_run(run, other):
    assert_same_bits(run.repertoire, other.repertoire)
    assert without_seconds(run.rows) == without_seconds(other.rows)


def test_a_tracker_hears_all_in_order(alone):
    tracker = Kept()
    run = jedax.run("map-elites", Noisy(), track=[tracker], **SETTINGS)
    assert_same_run(run, alone)
    (_, about), *logs, (_, summary) = tracker.calls
    assert [name for name, *_ in tracker.calls] == ["begin", *["log"] * len(run.rows), "finish"]
    assert about.title == "custom:noisy-map-elites-seed3"
    assert about.config["method_config"]["offspring"] == 8
    assert about.folder is None
    assert summary == run.summary
    for (_, step, numbers), row in zip(logs, run.rows, strict=True):
        assert step == row["evaluations"]
        assert numbers == {name: value for name, value in row.items() if name not in ("evaluations", "replica")}
    assert len(tracker.threads) == 1
    assert threading.get_ident() not in tracker.threads


@pytest.mark.parametrize("where", ["begin", "log", "finish"])
@pytest.mark.parametrize("error", [RuntimeError("no network"), SystemExit(3)])
def test_a_tracker_that_fails_is_noted_once(alone, where, error):
    notes, tracker = Notes(), Fails(where, error)
    run = jedax.run("map-elites", Noisy(), track=[tracker, kept := Kept()], progress=notes, **SETTINGS)
    assert_same_run(run, alone)
    kind, message = type(error).__name__, str(error)
    assert notes.said == [f"The tracker Fails 1 failed ({kind}: {message}); the run goes on without it."]
    assert [name for name, *_ in tracker.calls].count(where) == 1
    assert tracker.calls[-1][0] == where
    assert kept.calls[-1][0] == "finish"


@pytest.mark.parametrize("where", ["begin", "log", "finish"])
def test_a_tracker_that_hangs_is_left_behind(alone, where, monkeypatch):
    monkeypatch.setattr(guard, "_PATIENCE", 0.2)
    notes, tracker = Notes(), Hangs(where)
    try:
        run = jedax.run("map-elites", Noisy(), track=[tracker], progress=notes, **SETTINGS)
        assert_same_run(run, alone)
        assert notes.said == ["The tracker Hangs 1 did not finish in time; the run goes on without it."]
    finally:
        tracker.free.set()


def test_a_slow_tracker_is_waited_for():
    class Slow(Kept):
        def log(self, step, numbers):
            time.sleep(0.05)
            super().log(step, numbers)

    notes, tracker = [], Slow()
    tracked = Tracking({"slow": tracker})
    tracked.begin(ABOUT, notes.append)
    for step in range(10):
        tracked.log(step, [{"replica": 0, "max_fitness": 1.0}])
    tracked.finish({})
    assert [step for name, step, *_ in tracker.calls if name == "log"] == list(range(10))
    assert tracker.calls[-1] == ("finish", {})
    assert notes == []


def test_a_queue_that_is_full_is_noted_once(monkeypatch):
    monkeypatch.setattr(guard, "_MOST_WAITING", 3)
    notes, tracker = [], Hangs("begin")
    guarded = Guarded("it", tracker, notes.append)
    try:
        guarded.begin(ABOUT)
        began = time.monotonic()
        for step in range(100):
            guarded.log(step, {})
        guarded.finish({})
        guarded.wait(60)
        assert time.monotonic() - began < 30
        assert notes == ["The tracker it does not keep up, 3 calls wait; the run goes on without it."]
    finally:
        tracker.free.set()


def test_a_run_that_fails_ends_its_trackers(tmp_path):
    def callback(report):
        raise OSError("full")

    tracker = Kept()
    with pytest.raises(OSError, match="full"):
        jedax.run("map-elites", Noisy(), track=[tracker], callbacks=[callback], **SETTINGS)
    assert tracker.calls[-1] == ("finish", {"status": "failed"})


def test_a_failure_is_in_the_log(tmp_path):
    tracker = Fails("log", RuntimeError("no network"))
    jedax.run("map-elites", Noisy(), track=[tracker], out=tmp_path / "r", **SETTINGS)
    log = (tmp_path / "r" / "log.txt").read_text()
    assert log.count("The tracker Fails 1 failed (RuntimeError: no network); the run goes on without it.") == 1


def test_the_example_of_the_docs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "guides" / "tracking.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(re.sub(r"evaluations=[\d_]+", "evaluations=640", block), {})
    title, *steps, status = capsys.readouterr().out.splitlines()
    assert (title, status) == ("maze-a-jedi-x-seed0", "finished")
    assert [int(line.split()[0]) for line in steps] == list(range(128, 641, 128))


def test_names_of_numbers():
    rows = [{"evaluations": 8, "replica": r, "max_fitness": [1.5, -np.inf][r], "coverage": 0.5} for r in range(2)]
    assert numbers_of(rows, 7) == {"max_fitness/seed7": 1.5, "coverage/seed7": 0.5, "coverage/seed8": 0.5}
    assert numbers_of(rows[:1], 7) == {"max_fitness": 1.5, "coverage": 0.5}


@pytest.mark.parametrize("name", tracking.names())
def test_a_missing_extra_is_said_before_anything_is_run(name, monkeypatch, tmp_path):
    package = tracking.TRACKERS[name][0]
    find = tracking.importlib.util.find_spec
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda it: None if it == package else find(it))
    with pytest.raises(jedax.JedaxError, match=rf"track {name}: expected the package {package}, got none; install it "
                       rf"with: pip install 'jedax\[{name}\]'"):  # fmt: skip
        jedax.run("map-elites", Noisy(), track=[name], out=tmp_path / "r", **SETTINGS)
    assert not (tmp_path / "r").exists()


def test_unknown_names_are_refused():
    with pytest.raises(jedax.JedaxError, match=r"track: unknown name 'tensorbord'; did you mean 'tensorboard'\?"):
        tracking.make(["tensorbord"], None)
