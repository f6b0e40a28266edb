"""Run a grid: every method on every task with every seed, each once; see `jedax.bench.trials`."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from jedax.bench.grids import Grid
from jedax.bench.trials import error_file, left_to_do, parts_of, trials_of
from jedax.search.engines import Engine, Job, LocalEngine
from jedax.search.progress import Progress, StatusLine, left_text
from jedax.search.tracking import Tracker
from jedax.search.tracking import make as make_tracking
from jedax.store.files import write_atomic


@dataclass(frozen=True)
class Outcome:
    """The outcome of a bench."""

    done: int  # runs that were finished now
    before: int  # seeds that were done before
    failed: tuple[tuple[Path, str], ...]  # runs that failed, with their errors
    elsewhere: tuple[Path, ...]  # runs that another process works on, or has finished meanwhile


def bench(
    grid: Grid,
    out: str | Path,
    *,
    progress: BenchProgress | None = None,
    figures: str | None = None,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
    only: Sequence[str] = (),
) -> Outcome:
    """Run what a grid asks for and `out` does not hold yet.

    Several processes may share `out`: a run that another process works on is skipped. A run that fails leaves its error
    beside its directory and does not stop the others.

    Args:
        grid: Tasks, methods, seeds, budget.
        out: Directory of all runs; seeds, methods and tasks can be added later.
        progress: Shows the progress; None: nothing is shown.
        figures: `module:function` that draws the figures of each run; None: no figures.
        track: Trackers that follow each run, as in `jedax.run`; with an engine on other machines by name.
        engine: Where runs are done; None: one after the other in this process.
        only: The trials to run, each as its folder within `out`, TASK/LABEL; empty: all.

    Raises:
        JedaxError: An unknown task, method or trial, or a directory that holds the same trial with other settings;
            nothing has run then.
        Interrupted: Ctrl-C or SIGTERM; everything done is saved, and the same call continues.
    """
    shown, engine = progress or BenchProgress(None), engine or LocalEngine()
    make_tracking(track, Path(out))  # raises for unknown trackers before anything runs
    left = [left_to_do(trial) for trial in trials_of(grid, Path(out), engine, only).values()]
    runs, before = [run for to_do, _ in left for run in to_do], sum(len(done) for _, done in left)
    jobs = (part.job(figures, track) for run in runs for part in parts_of(run, engine.memory()))

    def follow(job: Job) -> Progress:
        return shown.run(job.name, job.arguments["config"].run.replicas)

    failed: list[tuple[Path, str]] = []
    elsewhere: list[Path] = []
    done = 0
    shown.begin(sum(run.config.run.evaluations * run.config.run.replicas for run in runs), len(runs), before)
    try:
        for job, failure in engine.run_jobs(jobs, follow):
            note = error_file(job.path)
            if failure is None:
                note.unlink(missing_ok=True)
                done += 1
            elif failure.taken_by_another_process:
                shown.note(f"{job.name} is left to another process. {failure.message}")
                elsewhere.append(job.path)
            else:
                with contextlib.suppress(OSError):  # such as a full disk; the message is shown below
                    note.parent.mkdir(parents=True, exist_ok=True)
                    write_atomic(note, f"{failure.message}\n\n{failure.details}")
                shown.note(f"{job.name} failed: {failure.message}")
                failed.append((job.path, failure.message))
    finally:
        shown.close()
    return Outcome(done, before, tuple(failed), tuple(elsewhere))


def runs_text(number: int) -> str:
    """Return a number of runs in words."""
    return f"{number} run{'s' if number != 1 else ''}"


class BenchProgress:
    """The progress of a bench on a stream (None: nothing is shown): one bar, or a line now and then, for all its runs.

    The time left has two parts: the evaluations that remain, at the speed so far, and for each run that has not begun
    the mean time that runs have spent on other work, such as compilation. It is shown once the speed of a run is known.
    """

    def __init__(self, stream: TextIO | None):
        self.done = self._total = 0  # evaluations of all replicas
        self.ended = self._begun = self._num_runs = 0
        self.worked = 0.0  # seconds of work on these evaluations, of all runs
        self.is_measured = False  # whether the speed of a run is known
        self._line = StatusLine(stream or io.StringIO())
        self._began = time.monotonic()

    def begin(self, evaluations: int, num_runs: int, num_before: int) -> None:
        """Show what is to be done: evaluations of all replicas, runs, and the number of seeds that were done before."""
        self._total, self._num_runs, self._began = evaluations, num_runs, time.monotonic()
        before = f", {num_before} seeds were done before" if num_before else ""
        self.note(f"{runs_text(num_runs)}, {evaluations:,} evaluations to do{before}")

    def run(self, name: str, replicas: int) -> TrialProgress:
        """Return the progress of the next run."""
        self._begun += 1
        self._num_runs = max(self._num_runs, self._begun)  # a run that memory does not hold is split when it begins
        return TrialProgress(self, name, replicas)

    def show(self, name: str) -> None:
        """Show the progress, and the name of a run that goes on."""
        which = f"run {self._begun} of {self._num_runs}"
        if self._begun - self.ended > 1:
            which = f"{self.ended} of {self._num_runs} runs done, {self._begun - self.ended} at work"
        text = f"{self.done:,} of {self._total:,} evaluations, {which}: {name}{left_text(self._left())}"
        self._line.show(self.done / max(self._total, 1), text)

    def _left(self) -> float | None:
        """Return the seconds left; None: not known yet."""
        if not self.is_measured:
            return None
        at_work = max(1, self._begun - self.ended)
        otherwise = max(0.0, at_work * (time.monotonic() - self._began) - self.worked) / self._begun
        work = self.worked * (self._total - self.done) / self.done
        return (work + max(0, self._num_runs - self._begun) * otherwise) / at_work

    def note(self, message: str) -> None:
        """Show a message."""
        self._line.note(message)

    def close(self) -> None:
        """Stop showing anything."""
        self._line.close()


class TrialProgress:
    """Passes the progress of one run on to that of its bench."""

    def __init__(self, bench: BenchProgress, name: str, replicas: int):
        self._bench, self._name, self._replicas = bench, name, replicas
        self._counted, self._worked, self._is_over = 0, 0.0, False

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float | None) -> None:
        """Count the run's new evaluations, and show the progress of the bench."""
        worked = evaluations * self._replicas / per_second if per_second > 0 else 0.0
        self._bench.done += (evaluations - self._counted) * self._replicas
        self._bench.worked += worked - self._worked
        self._bench.is_measured |= left is not None
        self._counted, self._worked = evaluations, worked
        self._bench.show(f"{self._name}, best {best:.2f}")

    def note(self, message: str) -> None:
        """Show a message."""
        self._bench.note(f"{self._name}: {message}")

    def close(self) -> None:
        """Count the run as over; the bench continues."""
        self._bench.ended += not self._is_over
        self._is_over = True
