"""What a bench shows while it goes on: one bar, or now and then a line, for all of its runs."""

from __future__ import annotations

import time
from typing import Any, TextIO

from jedax.search.progress import clock
from jedax.store.config import FullConfig

_SECONDS_BETWEEN_LINES = 10.0


def runs_text(number: int) -> str:
    """Return a number of runs in words."""
    return f"{number} run{'s' if number != 1 else ''}"


class BenchProgress:
    """Follows a bench: a bar where the stream is a terminal, else lines.

    The time left is that of the evaluations left at the pace since this process began.

    Attributes:
        stream: Where to show it; None: nowhere.
    """

    def __init__(self, stream: TextIO | None):
        self.stream = stream
        self._bar: Any = None
        self._total = self._done = self._begun = self._ended = self._num_runs = 0
        self._began = self._last = time.monotonic()

    def begin(self, evaluations: int, num_runs: int, num_before: int) -> None:
        """Take note of all that is to do: evaluations of all replicas, runs, and seeds that were done before."""
        self._total, self._num_runs = evaluations, num_runs
        self._began = self._last = time.monotonic()
        before = f", {num_before} seeds were done before" if num_before else ""
        self.note(f"{runs_text(num_runs)}, {evaluations:,} evaluations to do{before}")
        if self.stream is not None and self.stream.isatty() and num_runs:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.percentage:>3.0f} %"), BarColumn(), TextColumn("{task.fields[status]}"),
                console=Console(file=self.stream), auto_refresh=False,
            )  # fmt: skip
            self._task = self._bar.add_task("", total=evaluations, status="compiling")
            self._bar.start()

    def run(self, name: str, config: FullConfig) -> _Follower:
        """Return what follows the next run."""
        self._begun += 1
        return _Follower(self, name, config)

    def show(self, name: str, done: int) -> None:
        """Show how far it is, at most every few seconds where there is no bar."""
        seconds = time.monotonic() - self._began
        left = seconds / done * (self._total - done) if done else 0.0
        which = f"run {self._begun} of {self._num_runs}"
        if self._begun - self._ended > 1:
            which = f"{self._ended} of {self._num_runs} runs done, {self._begun - self._ended} at work"
        status = f"{which}: {name}, {clock(left)} left"
        if self._bar is not None:
            self._bar.update(self._task, completed=done, status=status)
            self._bar.refresh()
        elif time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self.note(f"{done / max(self._total, 1):.0%}, {status}")

    def add(self, evaluations: int) -> int:
        """Count evaluations that were done; return their sum."""
        self._done += evaluations
        return self._done

    def end(self) -> None:
        """Count a run that is over."""
        self._ended += 1

    def note(self, message: str) -> None:
        """Show a message."""
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False)
        elif self.stream is not None:
            print(message, file=self.stream, flush=True)

    def close(self) -> None:
        """Show nothing more."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class _Follower:
    """Passes on what one run tells."""

    def __init__(self, bench: BenchProgress, name: str, config: FullConfig):
        self._bench, self._name = bench, name
        self._replicas, self._counted, self._is_over = config.run.replicas, 0, False

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Take note of where the run stands."""
        done = self._bench.add((evaluations - self._counted) * self._replicas)
        self._counted = evaluations
        self._bench.show(f"{self._name}, best {best:.2f}", done)

    def note(self, message: str) -> None:
        """Show a message."""
        self._bench.note(f"{self._name}: {message}")

    def close(self) -> None:
        """Take note that the run is over; the bench goes on."""
        if not self._is_over:
            self._bench.end()
        self._is_over = True
