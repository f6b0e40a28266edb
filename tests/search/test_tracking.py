"""Trackers that fail or hang: the run goes on, and says so once."""

import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import assert_same_run
from tests.noisy import Noisy
from tests.notes import Notes

import jedax
from jedax.search import tracking

SETTINGS = {"evaluations": 80, "offspring": 8, "cells": 16, "seed": 3}


class Kept:
    """Keeps its calls."""

    def __init__(self):
        self.calls, self.threads = [], set()

    def begin(self, about):
        self._keep("begin", about)

    def __call__(self, report):
        self._keep("report", report)

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


def test_a_tracker_gets_all_in_order(alone):
    tracker = Kept()
    run = jedax.run("map-elites", Noisy(), track=[tracker], **SETTINGS)
    assert_same_run(run, alone)
    (_, about), *reports, (_, summary) = tracker.calls
    assert [name for name, *_ in tracker.calls] == ["begin", *["report"] * len(run.rows), "finish"]
    assert about.title == "tests.noisy:Noisy-map-elites-seed3"
    assert about.config["method_config"]["offspring"] == 8
    assert about.folder is None
    assert summary == run.summary
    assert [report.evaluations for _, report in reports] == [row["evaluations"] for row in run.rows]
    assert [report.rows for _, report in reports] == [[row] for row in run.rows]
    assert {report.state for _, report in reports} == {None}
    assert len(tracker.threads) == 1
    assert threading.get_ident() not in tracker.threads


def test_a_function_is_a_tracker(alone):
    seen = []
    run = jedax.run("map-elites", Noisy(), track=[lambda report: seen.append(report.rows[0])], **SETTINGS)
    assert_same_run(run, alone)
    assert seen == run.rows


def test_what_a_tracker_returns_does_not_stop_the_run(alone):
    assert_same_run(jedax.run("map-elites", Noisy(), track=[lambda report: True], **SETTINGS), alone)


@pytest.mark.parametrize("name", ["Mine", "follow"])
def test_classes_and_functions_by_name(tmp_path, monkeypatch, name):
    (tmp_path / "mine_to_track.py").write_text(
        "seen = []\n\ndef follow(report):\n    seen.append(report.evaluations)\n\n"
        "class Mine:\n    def __call__(self, report):\n        follow(report)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run = jedax.run("map-elites", Noisy(), track=[f"mine_to_track:{name}"], **SETTINGS)
    assert sys.modules["mine_to_track"].seen == [row["evaluations"] for row in run.rows]


def test_one_tracker_needs_no_list():
    run = jedax.run("map-elites", Noisy(), track=(kept := Kept()), **SETTINGS)
    assert kept.calls[-1][0] == "finish"
    assert run.rows
    with pytest.raises(jedax.JedaxError, match="track tensorboard: expected a run with a directory"):
        jedax.run("map-elites", Noisy(), track="tensorboard", **SETTINGS)


@pytest.mark.parametrize("where", ["begin", "report", "finish"])
@pytest.mark.parametrize("error", [RuntimeError("no network"), SystemExit(3)])
def test_a_tracker_that_fails_is_noted_once(alone, where, error):
    notes, tracker = Notes(), Fails(where, error)
    run = jedax.run("map-elites", Noisy(), track=[tracker, kept := Kept()], progress=notes, **SETTINGS)
    assert_same_run(run, alone)
    kind, message = type(error).__name__, str(error)
    assert notes.said == [f"The tracker Fails failed ({kind}: {message}); the run goes on without it."]
    assert [name for name, *_ in tracker.calls].count(where) == 1
    assert tracker.calls[-1][0] == where
    assert kept.calls[-1][0] == "finish"


@pytest.mark.parametrize("where", ["begin", "report", "finish"])
def test_a_tracker_that_hangs_is_left_behind(alone, where, monkeypatch):
    monkeypatch.setattr(tracking, "_PATIENCE", 0.2)
    notes, tracker = Notes(), Hangs(where)
    try:
        run = jedax.run("map-elites", Noisy(), track=[tracker], progress=notes, **SETTINGS)
        assert_same_run(run, alone)
        assert notes.said == ["The tracker Hangs did not finish in time; the run goes on without it."]
    finally:
        tracker.free.set()


def test_a_slow_tracker_is_waited_for():
    class Slow(Kept):
        def __call__(self, report):
            time.sleep(0.05)
            super().__call__(report)

    notes, tracker = Notes(), Slow()
    run = jedax.run("map-elites", Noisy(), track=[tracker], progress=notes, **SETTINGS)
    assert len(tracker.calls) == len(run.rows) + 2
    assert notes.said == []


def test_a_run_that_fails_ends_its_trackers():
    def callback(report):
        raise OSError("full")

    tracker = Kept()
    with pytest.raises(OSError, match="full"):
        jedax.run("map-elites", Noisy(), track=[tracker], callbacks=[callback], **SETTINGS)
    assert tracker.calls[-1] == ("finish", {"status": "failed"})


def test_a_failure_is_in_the_log(tmp_path):
    tracker = Fails("report", RuntimeError("no network"))
    jedax.run("map-elites", Noisy(), track=[tracker], out=tmp_path / "r", **SETTINGS)
    log = (tmp_path / "r" / "log.txt").read_text()
    assert log.count("The tracker Fails failed (RuntimeError: no network); the run goes on without it.") == 1


def test_the_example_of_the_docs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "guides" / "tracking.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(re.sub(r"evaluations=[\d_]+", "evaluations=640", block), {})
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(128, 641, 128))


@pytest.mark.parametrize("name", tracking.names())
def test_a_missing_extra_is_said_before_anything_is_run(name, monkeypatch, tmp_path):
    package = tracking.TRACKERS[name][0]
    find = tracking.importlib.util.find_spec
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda it: None if it == package else find(it))
    with pytest.raises(jedax.JedaxError, match=rf"track {name}: expected the package {package}, got none; install it "
                       rf"with: pip install 'jedax\[{name}\]'"):  # fmt: skip
        jedax.run("map-elites", Noisy(), track=[name], out=tmp_path / "r", **SETTINGS)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(("entry", "message"), [
    ("tensorbord", r"track: unknown name 'tensorbord'; did you mean 'tensorboard'\?"),
    ("tests.notes:nobody", r"track: expected 'nobody' in tests.notes, got none"),
    (np.zeros(1), r"track ndarray: expected a callback, got"),
])  # fmt: skip
def test_what_is_no_tracker_is_refused(entry, message):
    with pytest.raises(jedax.JedaxError, match=message):
        tracking.make([entry], None)
