"""The progress of a bench: one bar, or a line now and then, for all of its runs."""

from __future__ import annotations

import time
from typing import TextIO

from jedax.search.progress import StatusLine, clock


def runs_text(number: int) -> str:
    """Return a number of runs in words."""
    return f"{number} run{'s' if number != 1 else ''}"


class BenchProgress:
    """The progress of a bench on a stream; None: nothing is shown.

    The time left is estimated from the speed since this process began.

    Attributes:
        done: Evaluations of all replicas so far.
        ended: Number of runs that are over.
    """

    def __init__(self, stream: TextIO | None):
        self.done = self.ended = self._total = self._begun = self._num_runs = 0
        self._line = None if stream is None else StatusLine(stream)
        self._began = time.monotonic()

    def begin(self, evaluations: int, num_runs: int, num_before: int) -> None:
        """Show what is to be done: evaluations of all replicas, runs, and the number of seeds that were done before."""
        self._total, self._num_runs, self._began = evaluations, num_runs, time.monotonic()
        before = f", {num_before} seeds were done before" if num_before else ""
        self.note(f"{runs_text(num_runs)}, {evaluations:,} evaluations to do{before}")

    def run(self, name: str, replicas: int) -> RunProgress:
        """Return the progress of the next run."""
        self._begun += 1
        return RunProgress(self, name, replicas)

    def show(self, name: str) -> None:
        """Show the progress, and the name of a run that goes on."""
        left = (time.monotonic() - self._began) / self.done * (self._total - self.done) if self.done else 0.0
        which = f"run {self._begun} of {self._num_runs}"
        if self._begun - self.ended > 1:
            which = f"{self.ended} of {self._num_runs} runs done, {self._begun - self.ended} at work"
        if self._line is not None:
            text = f"{self.done:,} of {self._total:,} evaluations, {which}: {name}, {clock(left)} left"
            self._line.show(self.done / max(self._total, 1), text)

    def note(self, message: str) -> None:
        """Show a message."""
        if self._line is not None:
            self._line.note(message)

    def close(self) -> None:
        """Stop showing anything."""
        if self._line is not None:
            self._line.close()


class RunProgress:
    """Passes the progress of one run on to that of its bench."""

    def __init__(self, bench: BenchProgress, name: str, replicas: int):
        self._bench, self._name, self._replicas = bench, name, replicas
        self._counted, self._is_over = 0, False

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Count the run's new evaluations, and show the progress of the bench."""
        self._bench.done += (evaluations - self._counted) * self._replicas
        self._counted = evaluations
        self._bench.show(f"{self._name}, best {best:.2f}")

    def note(self, message: str) -> None:
        """Show a message."""
        self._bench.note(f"{self._name}: {message}")

    def close(self) -> None:
        """Count the run as over; the bench continues."""
        self._bench.ended += not self._is_over
        self._is_over = True
