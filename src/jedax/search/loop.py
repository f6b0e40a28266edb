"""The loop of a search: begin, then chunks of generations until the budget is spent; nothing on the way is lost."""

from __future__ import annotations

import functools
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax.errors import fail
from jedax.gp.threads import one_blas_thread
from jedax.methods.base import Method
from jedax.search import devices
from jedax.search.compiled import Programs, replica_roots
from jedax.search.engines.base import Engine
from jedax.search.interrupts import Interrupted, interruptible
from jedax.search.programs import programs_for
from jedax.search.progress import Progress, Silent
from jedax.store import environment, history
from jedax.store.config import FullConfig
from jedax.store.directory import RunDirectory, has_ended
from jedax.tasks.base import Task

_STATUSES = ("running", "callback", "finished", "goal", "time", "interrupted")
# Reports of a run that does not say how often.
_REPORTS = 50
# A chunk, the work between two looks at the clock and at Ctrl-C, lasts about this long.
_CHUNK_SECONDS = 1.0
# Large states take seconds to write: between two checkpoints lie this many times what the last one took, as long as
# that is no more than ten times what the settings ask for.
_CHECKPOINT_PAUSE = 20


@dataclass(frozen=True)
class Report:
    """What callbacks get at each report.

    Attributes:
        evaluations: Done so far, by each replica.
        rows: The new rows of the metrics, one per replica.
        state: The method's state, arrays on the device with a leading replica axis; valid during the call.
    """

    evaluations: int
    rows: list[dict[str, Any]]
    state: Any


Callback = Callable[[Report], bool | None]


@dataclass
class Search:
    """One search from its first evaluation, or from a checkpoint, to its end.

    Attributes:
        config: All settings.
        method: The method.
        task: The task.
        start_genotypes: `(given, params)`, the first members of the initial batch.
        directory: Where results go; None: nowhere.
        progress: What shows how far it is.
        engine: Where tasks outside JAX are evaluated.
        callbacks: Called at each report; one that returns True stops the search.
        began: `time.perf_counter()` when this process took it up.
        phases: Seconds by phase, those of earlier processes included.
        source: Where an earlier process left its checkpoints; None: in `directory`.
        max_seconds: Stop after this many seconds; None: as in the settings.
        digest: Checksum of the settings that checkpoints must have been written with.
    """

    config: FullConfig
    method: Method
    task: Task
    start_genotypes: np.ndarray
    directory: RunDirectory | None
    progress: Progress
    engine: Engine
    callbacks: Sequence[Callback] = ()
    began: float = field(default_factory=time.perf_counter)
    phases: dict[str, float] = field(default_factory=dict)
    source: RunDirectory | None = None
    max_seconds: float | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        run = self.config.run
        self.digest = self.digest or self.config.digest()
        self.batch = self.method.evaluations_per_generation
        least = self.method.initial_evaluations
        if run.evaluations < least:
            raise fail(
                "evaluations",
                expected=f"at least one generation of {least}",
                received=run.evaluations,
                remedy="raise the budget or lower the population" + " or the samples" * (self.method.samples > 1),
            )
        self.generations = (run.evaluations - least) // self.batch
        self.report_every = run.report_every or max(1, self.generations // _REPORTS)
        self.roots = replica_roots(run.seed, run.replicas)
        self.programs: Programs = programs_for(self.method, self.task, run.replicas, run.devices)
        if not self.leads:
            self.source, self.directory, self.progress = self.source or self.directory, None, Silent()
        self._affordable = self.programs.first_chunk  # generations that fit a chunk; grows from a careful start
        self.state: Any
        self.rows: list[dict[str, Any]] = []
        self._failures = np.zeros((run.replicas, len(self.programs.failure_kinds)), int)
        self.generation = 0
        self.seconds_before = 0.0
        self.status = "running"

    @property
    def evaluations(self) -> int:
        """Evaluations done so far by each replica."""
        return self.method.initial_evaluations + self.generation * self.batch

    @property
    def seconds(self) -> float:
        """Duration so far, those of earlier processes included."""
        return self.seconds_before + time.perf_counter() - self.began

    @property
    def leads(self) -> bool:
        """Whether this process writes what there is to write: of several that search together, the first."""
        return devices.leads(self.programs.mesh)

    @property
    def on_devices(self) -> str:
        """Words for the log where several devices share the work."""
        shares = devices.describe(self.programs.mesh)
        number = math.prod(shares.values())
        words = f" on {number} devices, {shares[devices.REPLICAS]} for replicas by {shares[devices.POPULATION]}"
        return f"{words} for the population" if number > 1 else ""

    def environment(self) -> dict[str, Any]:
        """Return what the run's environment.json holds."""
        return {**environment.describe(), "devices_used": devices.describe(self.programs.mesh)}

    @functools.cached_property
    def recorder(self) -> history.Recorder | None:
        """What keeps the loops for reports; None: nothing does."""
        if self.directory is None or not self.config.run.history:
            return None
        path = self.directory.path / history.FILE
        return history.Recorder(path, self.method, self.generations, self.report_every)

    def run(self) -> None:
        """Search until the budget is spent or something stops it, then save the state.

        Raises:
            Interrupted: Ctrl-C or SIGTERM, after the state was saved.
            JedaxError: Results cannot be written, or no checkpoint is whole.
        """
        with (
            interruptible() as caught,
            one_blas_thread(),
            self.programs.opened(self.config.run, self.note, lambda: bool(caught), self.engine),
        ):
            try:
                if not self._restored():
                    self._begin()
                    self._end_of_chunk(caught)
                while self.status == "running":
                    self._chunk()
                    self._end_of_chunk(caught)
                self._save_checkpoint()
                devices.wait_for_all(self.programs.mesh, "the last checkpoint is written")
            finally:
                self.progress.close()
        if self.status == "interrupted":
            number = caught[0] if caught else signal.SIGINT  # caught by the process that leads
            raise Interrupted(_farewell(self.directory, self.evaluations), signal=number)

    def _begin(self) -> None:
        """Evaluate the initial batch."""
        if self.directory is not None:
            self.directory.cut_metrics(-1)
            history.cut(self.directory.path / history.FILE, -1)
        with self.phase("simulate+es"):
            self.state, failed = self.programs.begin(self.roots, jax.numpy.asarray(self.start_genotypes))
            jax.block_until_ready(self.state)
        self._failures += np.asarray(failed)

    def _restored(self) -> bool:
        """Go back to the newest checkpoint, if there is one."""
        source = self.source or self.directory
        if source is None or not source.checkpoints():
            return False
        given = jax.numpy.asarray(self.start_genotypes)
        restored = source.load_checkpoint(self.programs.shapes(self.roots, given))
        if restored is None:
            return False
        self.state, facts = restored
        self._check_restored(source, facts)
        for warning in facts["warnings"]:
            if self.directory is not None:
                self.directory.log(f"{warning} Went back to the checkpoint at {facts['evaluations']} evaluations.")
            self.progress.note(f"{warning} Going on from {facts['evaluations']:,} evaluations.")
        self.generation = (facts["evaluations"] - self.method.initial_evaluations) // self.batch
        self._reported_at = self.generation
        self.seconds_before, self.phases = float(facts["seconds"]), dict(facts["phases"])
        for place, kind in enumerate(self.programs.failure_kinds):
            self._failures[:, place] = facts.get("failures", {}).get(kind, 0)  # not in those of older versions
        self.status = "finished" if has_ended(facts["status"]) else "running"
        if self.status == "finished":
            self.progress.note("This run had ended already; its pictures and its summary are made anew.")
        devices.wait_for_all(self.programs.mesh, "the checkpoint is read")
        if self.directory is not None:
            self._tidy(self.directory, facts["damaged"])
        return True

    def _tidy(self, directory: RunDirectory, damaged: list[Path]) -> None:
        """Remove from a run's directory what comes after its checkpoint."""
        directory.cut_metrics(self.evaluations)
        history.cut(directory.path / history.FILE, self.evaluations)
        self.rows = list(directory.read_metrics())
        for folder in damaged:
            directory.set_aside(folder)
        if self.status == "running":
            directory.remove_outcome()

    def _check_restored(self, source: RunDirectory, facts: dict[str, Any]) -> None:
        """Check that a checkpoint is one of this run, and its parts of one moment."""
        if facts["config"] != self.digest:
            raise fail(
                str(source.path),
                expected="a checkpoint of the run in config.yaml",
                received="one of other settings",
                remedy="restore config.yaml or start anew with --overwrite",
            )
        generation, rest = divmod(facts["evaluations"] - self.method.initial_evaluations, self.batch)
        counts = [len(numbers) for numbers in facts.get("failures", {}).values()]
        agrees = rest == 0 and 0 <= generation <= self.generations
        agrees = agrees and (np.asarray(self.state.generation) == generation).all()
        if not agrees or any(count != self.config.run.replicas for count in counts):
            raise fail(
                str(source.path),
                expected="a checkpoint whose state and manifest agree",
                received=f"one that says {facts['evaluations']} evaluations",
                remedy="remove it, or start anew with --overwrite",
            )

    def _chunk(self) -> None:
        """Choose targets where a loop begins, then run generations up to the next mark."""
        earlier = self.state
        if self.method.is_loop_start(self.generation):
            self._begin_loop()
        before = self.generation
        ends = [self.generations, before + self._affordable]
        for step in (self.method.generations_per_loop, self.report_every):
            if step is not None:
                ends.append((before // step + 1) * step)
        with self.phase("simulate+es"):
            began = time.perf_counter()
            self.state, reached, failed = self.programs.advance(self.roots, self.state, min(ends) - before)
            jax.block_until_ready(self.state)
            seconds = time.perf_counter() - began
        self.generation = int(np.asarray(self.state.generation)[0])
        if self.generation == before:  # stopped within a generation: as if the chunk had not begun
            self.state = earlier
            return
        self._failures += np.asarray(failed)
        if self.recorder and (self.method.is_loop_start(self.generation) or self.generation == self.generations):
            with self.phase("io"):
                self.recorder.end(self.generation, self.evaluations, reached)
        per_generation = seconds / (self.generation - before)
        affordable = max(1, min(round(_CHUNK_SECONDS / per_generation), 2 * self._affordable))
        self._affordable = devices.as_leader_says(self.programs.mesh, affordable)

    def _begin_loop(self) -> None:
        with self.phase("gp" if self.method.model_guides else "simulate+es"):
            progress = self.evaluations / self.config.run.evaluations
            self.state, prediction = self.programs.begin_loop(self.roots, self.state, progress)
        if self.recorder:
            with self.phase("io"):
                self.recorder.start(self.generation, self.evaluations, self.state, prediction)

    def _end_of_chunk(self, caught: list[int]) -> None:
        """Report, show, save, and see whether it is time to stop."""
        at_mark = self.generation % self.report_every == 0 or self.generation == self.generations
        at_mark = at_mark and self.generation != self._reported_at
        if at_mark and self._report():
            self.status = "callback"
        if self.generation == self.generations:
            self.status = "finished"
        best, coverage = self._outcome()
        stop = self.config.run.stop_fitness
        # Only marks count, so that the end does not depend on how fast the machine is.
        if stop is not None and at_mark and self.status == "running" and best.min() >= stop:
            self.status = "goal"
        limit = self.max_seconds or self.config.run.max_seconds
        if limit is not None and self.status == "running" and time.perf_counter() - self.began >= limit:
            self.status = "time"
        if caught and self.status == "running":
            self.status = "interrupted"
        self.status = _STATUSES[devices.as_leader_says(self.programs.mesh, _STATUSES.index(self.status))]
        worked = sum(self.phases.get(name, 0) for name in ("simulate+es", "gp", "io"))
        rate = self.config.run.replicas * self.evaluations / worked if worked > 0 else 0.0
        left = (self.generations - self.generation) * self.batch * self.config.run.replicas / rate if rate > 0 else 0.0
        self.progress.update(self.evaluations, rate, float(best.max()), float(coverage.mean()), left)
        wanted = self.config.run.checkpoint_seconds
        pause = max(wanted, min(_CHECKPOINT_PAUSE * self._saving_took, 10 * wanted))
        if time.perf_counter() - self._saved_at >= pause and self.status == "running":
            self._save_checkpoint()

    _saved_at = -math.inf
    _saving_took = 0.0
    _reported_at = -1

    def _outcome(self) -> tuple[np.ndarray, np.ndarray]:
        repertoire = self.state.repertoire
        filled = np.asarray(repertoire.fitness) > -np.inf
        return np.asarray(repertoire.best_fitness), filled.mean(axis=1)

    def _report(self) -> bool:
        """Add the metrics' rows; return whether a callback wants to stop."""
        self._reported_at = self.generation
        rows = self.measure()
        self.rows += rows
        if self.directory is not None:
            with self.phase("io"):
                self.directory.add_metrics(rows)
                if self.recorder:
                    self.recorder.cells(self.generation, self.evaluations, np.asarray(self.state.repertoire.fitness))
                    with self.directory.writing():
                        self.recorder.flush()
        report = Report(self.evaluations, rows, devices.own_copy(self.state, self.programs.mesh))
        wishes = [callback(report) is True for callback in self.callbacks]  # every callback hears of it
        return any(wishes)

    def measure(self) -> list[dict[str, Any]]:
        """Return one row of metrics per replica."""
        repertoire = self.state.repertoire
        small = {name: getattr(repertoire, name) for name in ("fitness", "best_fitness", "num_failed", "num_outside")}
        found, own = jax.device_get((small, self.method.metrics(self.state)))
        failed = [list(zip(self.programs.failure_kinds, numbers, strict=True)) for numbers in self._failures]
        rows = []
        for replica in range(self.config.run.replicas):
            fitness = found["fitness"][replica].astype(np.float64)
            filled = fitness > -np.inf
            rows.append({
                "evaluations": self.evaluations,
                "replica": replica,
                "max_fitness": float(found["best_fitness"][replica]),
                "coverage": float(filled.mean()),
                "qd_score": float((fitness[filled] - self.task.qd_offset).sum()),
                **{name: values[replica].item() for name, values in own.items()},
                "num_failed": int(found["num_failed"][replica]),
                **{f"failed_{kind}": int(number) for kind, number in failed[replica]},
                "num_outside": int(found["num_outside"][replica]),
                "seconds": round(self.seconds, 3),
            })  # fmt: skip
        return rows

    def note(self, message: str) -> None:
        """Show a message, and keep it."""
        self.progress.note(message)
        if self.directory is not None:
            self.directory.log(message)

    def _save_checkpoint(self) -> None:
        began = time.perf_counter()
        self._write_checkpoint()
        self._saved_at = time.perf_counter()
        self._saving_took = self._saved_at - began

    def _write_checkpoint(self) -> None:
        if self.directory is None:
            return
        with self.phase("io"):
            if self.recorder:
                with self.directory.writing():
                    self.recorder.flush()
            facts = {
                "evaluations": self.evaluations,
                "seconds": self.seconds,
                "phases": self.phases,
                "status": self.status,
                "config": self.digest,
                "failures": dict(zip(self.programs.failure_kinds, self._failures.T.tolist(), strict=True)),
            }
            self.directory.save_checkpoint(devices.own_copy(self.state, self.programs.mesh), facts)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge what happens inside to a phase, its compilation apart."""
        began, compiled = time.perf_counter(), self.programs.compile_seconds
        yield
        compiling = self.programs.compile_seconds - compiled
        self.charge("compile", compiling)
        self.charge(name, time.perf_counter() - began - compiling)

    def charge(self, phase: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


def _farewell(directory: RunDirectory | None, evaluations: int) -> str:
    if directory is None:
        return f"Stopped after {evaluations:,} evaluations."
    return (f"Stopped after {evaluations:,} evaluations; all of them are saved. "
            f"Go on with: jedax run --resume {directory.path}")  # fmt: skip
