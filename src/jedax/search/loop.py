"""The loop of a search: begin or restore, then chunks of generations until the budget is spent or something stops it.

A chunk is the work between two looks at the clock and at signals, about a second. It ends at the latest where the
method begins a loop, or a report is due. After each chunk the search reports, decides whether to stop, shows its
progress and saves a checkpoint if one is due.
"""

from __future__ import annotations

import functools
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jedax.errors import fail
from jedax.gp.threads import one_blas_thread
from jedax.methods.base import Method
from jedax.search import devices
from jedax.search.compiled import Programs, replica_roots
from jedax.search.engines.base import Engine
from jedax.search.failures import Noted, first_arrival
from jedax.search.interrupts import Interrupted
from jedax.search.programs import programs_for
from jedax.search.progress import Progress, Silent
from jedax.search.workers.pool import Stopped
from jedax.store import history
from jedax.store.config import FullConfig
from jedax.store.directory import RunDirectory, has_ended
from jedax.tasks.base import Task, reaches

_STATUSES = ("running", "callback", "finished", "goal", "time", "interrupted")
_REPORTS = 50  # default number of reports of a run
_CHUNK_SECONDS = 1.0
# The time left is shown after the first chunk, and after so many seconds or such a share of the evaluations.
_MEASURED_SECONDS, _MEASURED_SHARE = 1.0, 0.02
_PAUSE = 20  # the pause between two checkpoints, in times of the duration of the last one; large states take seconds
_LONGEST_PAUSE = 10  # in times of `checkpoint_seconds`


@dataclass(frozen=True)
class Report:
    """The argument of callbacks.

    Attributes:
        evaluations: Evaluations done by each replica.
        rows: The new rows of the metrics, one per replica.
        state: The method's state, arrays on the device with a leading replica axis; valid during the call.
    """

    evaluations: int
    rows: list[dict[str, Any]]
    state: Any


Callback = Callable[[Report], bool | None]


class Phases:
    """Seconds by phase: import, compile, simulate+es, gp, io, figures."""

    def __init__(self, compile_seconds: Callable[[], float]):
        self.seconds: dict[str, float] = {}
        self._compile_seconds = compile_seconds

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the duration of a block to a phase, except for compilation, which is a phase of its own."""
        began, compiled = time.perf_counter(), self._compile_seconds()
        yield
        compiling = self._compile_seconds() - compiled
        self.add("compile", compiling)
        self.add(name, time.perf_counter() - began - compiling)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a phase; negative ones, of a clock that was set back, count as none."""
        self.seconds[name] = self.seconds.get(name, 0.0) + max(seconds, 0.0)

    @property
    def working(self) -> float:
        """Seconds of evaluation, method and output; compilation and figures do not count."""
        return sum(self.seconds.get(name, 0) for name in ("simulate+es", "gp", "io"))


@dataclass
class Search:
    """One search, from its first evaluation or a checkpoint to its end; a search without a directory writes nothing."""

    config: FullConfig
    method: Method
    task: Task
    start_genotypes: np.ndarray  # (given, params), the first members of the initial batch
    directory: RunDirectory | None
    progress: Progress
    engine: Engine  # evaluates tasks outside JAX
    callbacks: Sequence[Callback]  # called at each report; the search stops if one returns True
    began: float | None = None  # `time.perf_counter()` at the start of this process's work on the search; None: now
    max_seconds: float | None = None  # from then on; None: as in the settings

    def __post_init__(self) -> None:
        run, now = self.config.run, time.perf_counter()
        self._began = now if self.began is None else self.began
        least = self.method.initial_evaluations
        if run.evaluations < least:
            raise fail(
                "evaluations",
                expected=f"at least one generation of {least}",
                received=run.evaluations,
                remedy="raise the budget or lower the population" + " or the samples" * (self.method.samples > 1),
            )
        self.batch = self.method.evaluations_per_generation
        self.generations, self.unused = divmod(run.evaluations - least, self.batch)
        self.report_every = run.report_every or max(1, self.generations // _REPORTS)
        self.roots = replica_roots(run.seed, run.replicas)
        self.programs: Programs = programs_for(self.method, self.task, run.replicas, run.devices)
        self.digest = self.config.digest()  # of the settings, which a checkpoint must have
        self.phase = Phases(lambda: self.programs.compile_seconds)  # includes earlier processes
        self.phase.add("import", now - self._began)
        self._source = self.directory  # of checkpoints, which all processes read
        if not self.leads:
            self.directory, self.progress = None, Silent()
        self.status = "running"  # or the reason why the search ended
        self.state: Any = None  # of the method, with a leading replica axis
        self.generation = 0
        self.rows: list[dict[str, Any]] = []  # all rows of the metrics
        self._num_failed = np.zeros((run.replicas, len(self.programs.failure_kinds)), int)
        self.arrivals = np.zeros(run.replicas, int)  # evaluations until the task's goal was reached; 0: not yet
        self._seconds_before = 0.0  # of earlier processes
        self._affordable = self.programs.first_chunk  # generations that fit into a chunk
        self._has_advanced = False  # in this process
        self._reported_at = -1
        self._saved_at, self._saving_took = -math.inf, 0.0  # of the last checkpoint

    @property
    def evaluations(self) -> int:
        """Evaluations done by each replica."""
        return self.method.initial_evaluations + self.generation * self.batch

    @property
    def seconds(self) -> float:
        """Duration so far, including earlier processes."""
        return self._seconds_before + max(time.perf_counter() - self._began, 0.0)

    @property
    def leads(self) -> bool:
        """Whether this process writes the results: it searches alone, or it is the first of several processes."""
        return devices.leads(self.programs.mesh)

    @functools.cached_property
    def _recorder(self) -> history.Recorder | None:
        if self.directory is None or not self.config.run.history:
            return None
        return history.Recorder(self.directory.path / history.FILE, self.method, self.generations, self.report_every)

    def run(self, caught: list[int]) -> None:
        """Search until the budget is spent or something stops the search, such as a signal in `caught`; then save."""
        with (
            one_blas_thread(),
            self.programs.opened(self.config.run, self.note, lambda: bool(caught), self.engine),
        ):
            try:
                if not self._restore():
                    self._begin(caught)
                    self._end_chunk(caught)
                while self.status == "running":
                    self._run_chunk()
                    self._end_chunk(caught)
                self._save_checkpoint()
                devices.wait_for_all(self.programs.mesh, "the last checkpoint is written")
            finally:
                self.progress.close()
        if self.status == "interrupted":
            message = f"Stopped after {self.evaluations:,} evaluations"
            if self.directory is not None:
                message += f"; all of them are saved. Continue with: {self.directory.resume_command}"
                message += ", or jedax.resume in Python"
            else:
                message += "; none of them is saved, as out=DIR was not given"
            raise Interrupted(message, signal=caught[0] if caught else signal.SIGINT)  # or the first process caught it

    def _begin(self, caught: list[int]) -> None:
        """Evaluate the initial batch."""
        if self.directory is not None:
            self.directory.cut(-1)
        try:
            with self.phase("simulate+es"):
                self.state, noted = self.programs.begin(self.roots, self.start_genotypes)
                jax.block_until_ready(self.state)
        except Stopped:
            message = "Stopped before the first generation was complete; nothing is saved yet"
            if self.directory is not None:
                message += f". Begin it again with: {self.directory.resume_command}"
            raise Interrupted(message, signal=caught[0]) from None
        self._add(noted, 0)
        threshold = self.method.acceptance.start
        all_failed = self._num_failed.sum() == self.method.initial_evaluations * self.config.run.replicas
        if threshold > -np.inf and not all_failed and not any(row["coverage"] for row in self.measure()):
            self.note(
                "No solution of the initial batch was stored: none has a fitness above the threshold of empty cells, "
                f"{threshold:g}. Set threshold_min, or the task's qd_offset, to a lower bound of the fitness."
            )

    def _restore(self) -> bool:
        """Restore the newest whole checkpoint; return whether there is one."""
        like = self.programs.shapes(self.roots, self.start_genotypes)
        found = None if self._source is None else self._source.load_checkpoint(like)
        if found is None or self._source is None:
            return False
        self.state, facts = found
        if facts["config"] != self.digest:
            raise fail(
                str(self._source.path),
                expected="a checkpoint of the run in config.yaml",
                received="one with other settings",
                remedy="restore config.yaml or start anew with --overwrite",
            )
        if not self._agrees_with(facts):
            raise fail(
                str(self._source.path),
                expected="a checkpoint whose state and manifest agree",
                received=f"a manifest that says {facts['evaluations']} evaluations",
                remedy="remove it, or start anew with --overwrite",
            )
        if not self._elites_match_cells():
            raise fail(
                str(self._source.path),
                expected="elites in the cells of their descriptors",
                received="elites elsewhere, from a version of jedax with other cells",
                remedy="start anew with --overwrite",
            )
        for warning in facts["warnings"]:
            self.note(f"{warning} Went back to the checkpoint at {facts['evaluations']:,} evaluations.")
        self.generation = (facts["evaluations"] - self.method.initial_evaluations) // self.batch
        self._reported_at = self.generation
        now = self.phase.seconds.get("import", 0.0)
        self._seconds_before, self.phase.seconds = float(facts["seconds"]), dict(facts["phases"])
        self.phase.add("import", now)
        for kind, numbers in zip(self.programs.failure_kinds, self._num_failed.T, strict=True):
            numbers[:] = facts.get("failures", {}).get(kind, 0)  # old checkpoints have none
        self.arrivals[:] = facts.get("arrivals", -1)  # -1: unknown
        self.status = facts["status"] if has_ended(facts["status"]) else "running"
        if self.status != "running":
            self.progress.note("This run had ended already; its figures and its summary are made again.")
        devices.wait_for_all(self.programs.mesh, "the checkpoint is read")
        if self.directory is not None:  # remove results that are later than the checkpoint
            self.directory.cut(self.evaluations)
            if self.status == "running":
                self.directory.remove_outcome()
            for folder in facts["damaged"]:
                self.directory.set_aside(folder)
            self.rows = list(self.directory.read_metrics())
        return True

    def _agrees_with(self, facts: dict[str, Any]) -> bool:
        """Return whether the facts of a checkpoint fit the settings and the state that was restored from it."""
        run, first, evaluations = self.config.run, self.method.initial_evaluations, facts["evaluations"]
        generations = np.asarray(self.state.generation).astype(int)
        lists = *facts.get("failures", {}).values(), facts.get("arrivals", [0] * run.replicas)  # old ones lack them
        counts = [len(numbers) for numbers in lists]
        return (
            first <= evaluations <= run.evaluations
            and (has_ended(facts["status"]) or evaluations + self.batch <= run.evaluations)
            and bool((first + generations * self.batch == evaluations).all())
            and all(count == run.replicas for count in counts)
        )

    def _elites_match_cells(self) -> bool:
        """Return whether restored elites lie in the cells of their descriptors; rounding may move one in a hundred."""
        repertoire = self.state.repertoire
        filled = np.asarray(repertoire.fitness) > -np.inf
        own = self.method.cells.assign_on_host(np.asarray(repertoire.descriptors))
        moved = filled & (own != np.arange(filled.shape[-1]))
        return moved.sum() <= 0.01 * filled.sum()

    def _run_chunk(self) -> None:
        """Begin a loop of the method if one is due, then run a chunk of generations."""
        before, earlier, evaluations = self.generation, self.state, self.evaluations
        if self.method.is_loop_start(before):
            with self.phase("gp" if self.method.model_guides else "simulate+es"):
                progress = self.evaluations / self.config.run.evaluations
                self.state, prediction = self.programs.begin_loop(self.roots, self.state, progress)
            if self._recorder:
                with self.phase("io"):
                    self._recorder.start(before, self.evaluations, self.state, prediction)
        with self.phase("simulate+es"):
            began = time.perf_counter()
            self.state, results, noted = self.programs.advance(self.roots, self.state, self._chunk_length())
            jax.block_until_ready(self.state)
            seconds = time.perf_counter() - began
        self.generation = int(np.asarray(self.state.generation)[0])
        if self.generation == before:  # stopped during the first generation: as if the chunk had not begun
            self.state = earlier
            return
        self._add(noted, evaluations)
        if self._recorder and (self.method.is_loop_start(self.generation) or self.generation == self.generations):
            with self.phase("io"):
                self._recorder.end(self.generation, self.evaluations, results)
        wanted = round(_CHUNK_SECONDS * (self.generation - before) / max(seconds, 1e-6))  # clocks may stand still
        affordable = max(1, min(wanted, 2 * self._affordable))
        self._affordable = devices.from_leader(self.programs.mesh, affordable)
        self._has_advanced = True

    def _add(self, noted: Noted, evaluations: int) -> None:
        """Add what was noted of a chunk that began after so many evaluations."""
        self._num_failed += np.asarray(noted.failed)
        place = np.asarray(noted.arrived, int) * self.method.samples
        self.arrivals = first_arrival(self.arrivals, place, evaluations)

    def _chunk_length(self) -> int:
        """Return the number of generations of the next chunk."""
        ends = [self.generations, self.generation + self._affordable]
        for step in (self.method.generations_per_loop, self.report_every):
            if step is not None:
                ends.append((self.generation // step + 1) * step)
        return min(ends) - self.generation

    def _end_chunk(self, caught: list[int]) -> None:
        """Report if due, decide whether to stop, show the progress, and save a checkpoint if due."""
        reports = self.generation % self.report_every == 0 or self.generation == self.generations
        reports = reports and self.generation != self._reported_at
        stopped = reports and self._report()
        repertoire = self.state.repertoire
        coverage = (np.asarray(repertoire.fitness) > -np.inf).mean()
        best = np.asarray(repertoire.best_fitness)
        status = self._status(reports, stopped, best.min(), bool(caught))
        self.status = _STATUSES[devices.from_leader(self.programs.mesh, _STATUSES.index(status))]
        worked, replicas = self.phase.working, self.config.run.replicas
        rate = replicas * self.evaluations / worked if worked > 0 else 0.0
        left = None  # until the rate is measured
        measured = worked >= _MEASURED_SECONDS or self.evaluations >= _MEASURED_SHARE * self.config.run.evaluations
        if self._has_advanced and measured and rate > 0:
            left = (self.generations - self.generation) * self.batch * replicas / rate
        self.progress.update(self.evaluations, rate, float(best.max()), float(coverage), left)
        wanted = self.config.run.checkpoint_seconds
        pause = max(wanted, min(_PAUSE * self._saving_took, _LONGEST_PAUSE * wanted))
        if self.status == "running" and time.perf_counter() - self._saved_at >= pause:
            self._save_checkpoint()

    def _status(self, reports: bool, stopped: bool, best: float, caught: bool) -> str:
        """Return the status after a chunk, as this process sees it.

        The goal counts only at reports, whose times are fixed, so that the end does not depend on the machine's speed.
        """
        goal, limit = self.config.run.stop_fitness, self.max_seconds or self.config.run.max_seconds
        if self.generation == self.generations:
            return "finished"
        if stopped:
            return "callback"
        if goal is not None and reports and reaches(best, goal):
            return "goal"
        if limit is not None and time.perf_counter() - self._began >= limit:
            return "time"
        return "interrupted" if caught else "running"

    def _report(self) -> bool:
        """Add rows to the metrics and call the callbacks; return whether one of them stops the search."""
        self._reported_at = self.generation
        rows = self.measure()
        self.rows += rows
        if self.directory is not None:
            with self.phase("io"):
                self.directory.add_metrics(rows)
                if self._recorder:
                    self._recorder.cells(self.generation, self.evaluations, np.asarray(self.state.repertoire.fitness))
                    with self.directory.writing():
                        self._recorder.flush()
        own = [dict(row) for row in rows]  # callbacks may change them
        report = Report(self.evaluations, own, devices.local_copy(self.state, self.programs.mesh))
        wishes = [_is_true(callback(report)) for callback in self.callbacks]  # all of them are called
        return any(wishes)

    def measure(self) -> list[dict[str, Any]]:
        """Return one row of metrics per replica."""
        repertoire, seconds = self.state.repertoire, round(self.seconds, 3)
        failed = {f"failed_{kind}": i for i, kind in enumerate(self.programs.failure_kinds)}
        small = {name: getattr(repertoire, name) for name in ("fitness", "best_fitness", "num_failed", "num_outside")}
        found, own = jax.device_get((small, self.method.metrics(self.state)))
        own = self._numbers(own)
        rows = []
        for replica, all_fitness in enumerate(found["fitness"].astype(np.float64)):
            filled = all_fitness > -np.inf
            before = {
                "evaluations": self.evaluations,
                "replica": replica,
                "max_fitness": float(found["best_fitness"][replica]),
                "coverage": float(filled.mean()),
                "qd_score": float((all_fitness[filled] - self.task.qd_offset).sum()),
            }
            after = {
                "num_failed": int(found["num_failed"][replica]),
                **{name: int(self._num_failed[replica, i]) for name, i in failed.items()},
                "num_outside": int(found["num_outside"][replica]),
                "seconds": seconds,
            }
            if taken := sorted(own.keys() & (before | after).keys()):
                expected = "names that the search does not use itself"
                raise fail("metrics", expected=expected, received=taken[0], remedy="rename it")
            rows.append(before | {name: values[replica] for name, values in own.items()} | after)
        return rows

    def _numbers(self, metrics: Any) -> dict[str, list[Any]]:
        """Return the method's own metrics as numbers, one of each replica; truth values are 0 and 1."""
        name, expected = f"{type(self.method).__name__}.metrics", "a dict of arrays with one number of each replica"
        if not isinstance(metrics, dict):
            remedy = "return {} if there are none"
            raise fail(name, expected=expected, received=type(metrics).__name__, remedy=remedy)
        for key, values in metrics.items():
            if np.shape(values) != (self.config.run.replicas,) or np.asarray(values).dtype.kind in "OSU":
                received = f"{key} of shape {np.shape(values)}"
                raise fail(name, expected=expected, received=received, remedy=f"correct {key}")
        return {key: [value.item() * 1 for value in np.asarray(values)] for key, values in metrics.items()}

    def note(self, message: str) -> None:
        """Show a message, and write it to the log."""
        self.progress.note(message)
        if self.directory is not None:
            self.directory.log(message)

    def _save_checkpoint(self) -> None:
        if self.directory is None:
            return
        facts = {
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "phases": self.phase.seconds,
            "status": self.status,
            "failures": dict(zip(self.programs.failure_kinds, self._num_failed.T.tolist(), strict=True)),
            "arrivals": self.arrivals.tolist(),
            "config": self.digest,
        }
        with self.phase("io"):
            if self._recorder:
                with self.directory.writing():
                    self._recorder.flush()
            began = time.perf_counter()
            self.directory.save_checkpoint(devices.local_copy(self.state, self.programs.mesh), facts)
            self._saved_at = time.perf_counter()
            self._saving_took = self._saved_at - began


def _is_true(found: Any) -> bool:
    """Return whether a callback has returned True, also as an array of one truth value."""
    if not isinstance(found, bool | np.bool_ | np.ndarray | jax.Array):
        return False
    value = np.asarray(found)
    return value.dtype == bool and value.size == 1 and value.item()
