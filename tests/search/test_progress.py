"""The line that shows how far a run is, and what it may not do to the run or the terminal."""

import io
import os

import pytest

import jedax
from jedax.bench.bench import BenchProgress
from jedax.search import loop, progress
from jedax.search.progress import RunProgress, StatusLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Kept(progress.Silent):
    """Keeps what it is told."""

    def __init__(self):
        self.updates = []

    def update(self, *numbers):
        self.updates.append(numbers)


def test_the_time_left_is_shown_once_it_is_known(monkeypatch):
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("COLUMNS", "200")
    shown = RunProgress(1_000_000)
    shown.update(64, 100.0, -1.0, 0.5, None)
    assert stderr.getvalue().endswith("64 of 1,000,000 evaluations, 100/s, best -1, coverage 50.0%")
    shown.update(64_000, 100.0, -1.0, 0.5, 90.0)
    assert stderr.getvalue().endswith(", coverage 50.0%, 1:30 left")


@pytest.mark.parametrize(("seconds", "share", "unknown"), [(1e9, 0.5, 50), (0.0, 2.0, 1), (1e9, 0.0, 1)])
def test_a_run_knows_it_after_its_first_chunk_and_some_work(small, arm, monkeypatch, seconds, share, unknown):
    monkeypatch.setattr(loop, "_MEASURED_SECONDS", seconds)
    monkeypatch.setattr(loop, "_MEASURED_SHARE", share)
    kept = Kept()
    jedax.run(small, arm, evaluations=8 * 100, report_every=1, progress=kept)
    left = [numbers[-1] for numbers in kept.updates]
    assert len(left) == 100
    first = next(i for i, known in enumerate(left) if known is not None)
    assert abs(first - unknown) <= 1
    assert None not in left[first:]
    assert left[-1] == 0


def test_a_bench_estimates_from_work_and_what_each_run_costs_besides(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = Terminal()
    monkeypatch.setenv("COLUMNS", "200")
    bench = BenchProgress(stream)
    bench.begin(2 * 1000 * 10, 2, 0)
    run, now[0] = bench.run("one", 10), 6.0  # it compiles
    run.update(10, 200.0, -1.0, 0.0, None)
    assert "left" not in stream.getvalue()
    now[0] = 8.0
    run.update(500, 2500.0, -1.0, 0.0, 2.0)  # 5,000 evaluations in 2 of 8 seconds
    assert stream.getvalue().endswith(", 0:12 left")  # 15,000 evaluations in 6 seconds, and 6 seconds of the other run
    now[0] = 10.0
    run.update(1000, 2500.0, -1.0, 0.0, 0.0)
    run.close()
    run = bench.run("other", 10)
    run.update(10, 2500.0, -1.0, 0.0, None)
    assert stream.getvalue().endswith(", 0:04 left")


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_no_control_of_the_terminal(stream):
    line = StatusLine(stream())
    line.note("a \x1b[31mred\x07 note\nof \u202etwo lines")
    line.show(0.5, "a \x1b]0;title\x07 text\n")
    written = line.stream.getvalue().replace("\r\x1b[K", "")
    assert "a \\x1b[31mred\\x07 note\nof \\u202etwo lines\n" in written
    assert "a \\x1b]0;title\\x07 text\\n" in written
    assert "\x1b" not in written


def test_a_closed_pipe_is_left_alone():
    ours, theirs = os.pipe()
    os.close(ours)
    stream = open(theirs, "w")  # noqa: SIM115, it is closed below
    line = StatusLine(stream)
    line.note("a note")
    line.show(0.5, "a text")
    line.close()
    with pytest.raises(BrokenPipeError):
        stream.close()
