"""SIGINT and SIGTERM stop a search, which saves what it has done."""

import pickle
import signal
import subprocess
import sys
import threading

import pytest
from tests.conftest import assert_same_bits

import jedax
from jedax.cli.options import nothing_to_save
from jedax.search import api
from jedax.search.compiled import Programs
from jedax.search.interrupts import Interrupted, interruptible
from jedax.search.tracking import Tracking

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def usual():
    """What the signals do outside, as a list of those that arrived there."""
    arrived = []
    before = {number: signal.signal(number, lambda number, frame: arrived.append(number)) for number in BOTH}
    yield arrived
    for number, handler in before.items():
        signal.signal(number, handler)


def send(*numbers):
    """Let signals arrive at once, as during a long call of native code; in this thread, so that none comes later."""
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers:
        signal.pthread_kill(threading.get_ident(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def test_the_first_of_each_kind_is_caught(usual):
    with interruptible() as caught:
        for number in BOTH:
            send(number)
        assert (caught, usual) == ([*BOTH], [])
        for number in BOTH:
            send(number)
        assert (caught, usual) == ([*BOTH], [*BOTH])
    send(signal.SIGINT)
    assert usual == [*BOTH, signal.SIGINT]


def test_both_at_once(usual, monkeypatch):
    """Python drops a signal, and prints so, if its handler is removed while it waits."""
    for number in BOTH:
        signal.signal(number, signal.SIG_DFL)
    dropped = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: dropped.append(str(found.exc_value)))
    with interruptible() as caught:
        send(*BOTH)
        assert sorted(caught) == sorted(BOTH)
    assert dropped == []


@pytest.mark.parametrize("handles", [interruptible, nothing_to_save])
def test_an_ignored_signal_stays_ignored(usual, handles):
    """A shell script ignores SIGINT for what it starts with `&`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with handles() as caught:
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM).__name__ in ("handle", "leave")
        send(signal.SIGINT)
        assert not caught
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_the_exception_can_be_sent_to_other_processes():
    found = pickle.loads(pickle.dumps(Interrupted("Stopped.", signal.SIGTERM)))
    assert (str(found), found.signal) == ("Stopped.", signal.SIGTERM)


SCRIPT = """
import os, signal, sys
import jedax
from jedax.tasks import PlanarArm

def at(place):
    for name in sys.argv[2:]:
        if name.startswith(place):
            os.kill(os.getpid(), getattr(signal, name.partition(":")[2]))

try:
    jedax.run("map-elites", PlanarArm(joints=4), evaluations=64 * 200, cells=64, out=sys.argv[1],
              callbacks=[lambda report: at("search") if report.evaluations > 1000 else None],
              draw=lambda run, folder: at("figures"))
except jedax.Interrupted as stop:
    print(stop.signal, jedax.load(sys.argv[1]).status, stop)
"""


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (["search:SIGINT", "search:SIGTERM"], "2 interrupted Stopped after "),
        (["search:SIGINT", "figures:SIGTERM"], "2 interrupted Stopped after "),
        (["figures:SIGTERM"], "15 finished Stopped; the search had ended before, and all of it is saved."),
        (
            ["search:SIGINT", "search:SIGINT"],
            "2 running Stopped at once. Continue from what was saved before with: jedax run --resume ",
        ),
        (
            ["search:SIGINT", "figures:SIGINT"],
            "2 running Stopped at once. Continue from what was saved before with: jedax run --resume ",
        ),
    ],
)
def test_a_search_ends_orderly(tmp_path, signals, expected):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), *signals]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stdout.startswith(expected), found
    assert found.returncode == 0
    assert found.stderr == ""


def sends_before(monkeypatch, owner, name):
    """Let Ctrl-C arrive when a function is called."""
    original = getattr(owner, name)

    def call(*args, **kwargs):
        send(signal.SIGINT)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def test_a_search_that_is_stopped_before_its_directory_exists_writes_nothing(
    usual, tmp_path, small, arm, monkeypatch, undrawn
):
    sends_before(monkeypatch, Programs, "shapes")
    with pytest.raises(Interrupted, match=r"^Stopped; nothing was written\.$"):
        jedax.run(small, arm, evaluations=64, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert usual == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_search_that_is_stopped_before_its_first_generation_saves_that(
    usual, tmp_path, small, arm, monkeypatch, undrawn, goes_on
):
    path = tmp_path / "run"
    if goes_on:
        jedax.run(small, arm, evaluations=64, out=path, max_seconds=1e-9)
    with monkeypatch.context() as patch:
        sends_before(patch, api, "_write_environment")
        said = rf"^Stopped after {8 + 8 * goes_on} evaluations; all of them are saved\. Continue with: "
        with pytest.raises(Interrupted, match=said):
            jedax.resume(path, max_seconds=9) if goes_on else jedax.run(small, arm, evaluations=64, out=path)
    assert usual == []
    whole = jedax.run(small, arm, evaluations=64)
    assert_same_bits(jedax.resume(path, max_seconds=99).repertoire, whole.repertoire)


def test_a_signal_while_trackers_end_is_not_lost(usual, small, arm, monkeypatch):
    sends_before(monkeypatch, Tracking, "finish")
    with pytest.raises(Interrupted, match="the search had ended before"):
        jedax.run(small, arm, evaluations=64)
    assert usual == []
