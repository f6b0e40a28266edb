"""Run a grid: every method on every task with every seed, one program after another, nothing twice.

A cell is one method on one task. Its seeds run side by side as replicas of one run, in a directory of its own:
`DIR/TASK/LABEL/seeds-FIRST-LAST`. What is finished there is left alone, what was cut off goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax._checks import JedaxError, fail
from jedax.config.presets import preset_budget
from jedax.config.run import FullConfig, RunConfig
from jedax.config.tasks import is_elsewhere, is_maze_file, task_entry
from jedax.experiments.grids import Entry, Grid, slug
from jedax.experiments.progress import BenchProgress
from jedax.runs import api, host, results
from jedax.runs.compiled import replica_roots
from jedax.runs.directory import RunDirectory
from jedax.runs.files import write_atomic
from jedax.runs.lock import LockedError
from jedax.runs.programs import programs_for

# A run needs its state about three times: donated buffers, a checkpoint, the final arrays.
_COPIES_OF_STATE = 3
_SHARE_OF_MEMORY = 0.5


@dataclass(frozen=True)
class Cell:
    """One method on one task.

    Attributes:
        config: All settings but the seeds.
        folder: Where its runs go.
    """

    config: FullConfig
    folder: Path

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.config.task}, {self.config.label}"

    def with_seeds(self, first: int, number: int) -> FullConfig:
        """Return the settings of the run of some seeds that follow each other."""
        return self.config.replace(run=self.config.run.replace(seed=first, replicas=number))


@dataclass(frozen=True)
class Job:
    """One run that is still to do, or to finish.

    Attributes:
        cell: What it belongs to.
        config: All settings.
        path: Its directory.
    """

    cell: Cell
    config: FullConfig
    path: Path

    @property
    def error_file(self) -> Path:
        """Where the error of the last try is kept."""
        return self.path.with_name(f"{self.path.name}.error.txt")


@dataclass(frozen=True)
class Outcome:
    """What a bench came to.

    Attributes:
        done: Runs that finished now.
        before: Seeds that had finished before.
        failed: The runs that failed, with their errors.
        elsewhere: Runs that another process works on, or has finished meanwhile; they were left to it.
    """

    done: int
    before: int
    failed: tuple[tuple[Path, str], ...]
    elsewhere: tuple[Path, ...] = ()


def bench(grid: Grid, out: str | Path, *, progress: BenchProgress | None = None, figures: bool = False) -> Outcome:
    """Run what a grid asks for and `out` does not hold yet.

    Several processes may share `out`: a run that another one works on is left to it.

    Args:
        grid: Tasks, methods, seeds, budget.
        out: The directory of all its runs; seeds, methods and tasks can be added later.
        progress: What shows how far it is; None: nothing does.
        figures: Whether each run draws its own figures.

    Returns:
        What was done; a run that failed left its error beside its directory and did not stop the others.

    Raises:
        JedaxError: A task or method that does not exist, or a directory that holds the same cell with other
            settings; nothing has run then.
        Interrupted: Ctrl-C or SIGTERM; all that was done is saved, and the same call goes on.
    """
    shown = progress or BenchProgress(None)
    folder = Path(out)
    jobs: list[Job] = []
    before = 0
    for cell in cells_of(grid, folder):
        held, unfinished = _runs_in(cell)
        before += len(held)
        missing = [seed for seed in range(grid.seeds) if seed not in held | unfinished.keys()]
        paths = dict.fromkeys(unfinished.values())
        jobs += [Job(cell, RunDirectory.open(path).read_config(), path) for path in paths]
        jobs += [_job(cell, first, number) for first, number in _stretches(missing)]
    failed: list[tuple[Path, str]] = []
    elsewhere: list[Path] = []
    done = 0
    shown.begin(sum(job.config.run.evaluations * job.config.run.replicas for job in jobs), len(jobs), before)
    try:
        for job in jobs:
            for part in _parts(job):
                try:
                    error = _carry_out(part, shown, figures)
                except LockedError as locked:
                    shown.note(f"{part.cell.name} is left to another process. {locked}")
                    elsewhere.append(part.path)
                    continue
                if error is not None:
                    failed.append((part.path, error))
                else:
                    done += 1
    finally:
        shown.close()
    return Outcome(done, before, tuple(failed), tuple(elsewhere))


def cells_of(grid: Grid, folder: Path) -> list[Cell]:
    """Return the cells of a grid, checked, task by task.

    Raises:
        JedaxError: A task, method or parameter that does not exist, or two cells of one name.
    """
    if grid.seeds < 1:
        raise fail("seeds", expected="at least 1", received=grid.seeds, remedy="raise it")
    cells: dict[Path, Cell] = {}
    for task in grid.tasks:
        settings = _settings(task)
        for entry in grid.entries:
            path = folder / slug(Path(task).stem if is_maze_file(task) else task) / slug(entry.label)
            if path in cells:
                raise fail(
                    "methods",
                    expected="a name of its own for every cell",
                    received=f"{entry.label!r} on {task} twice",
                    remedy="leave one out",
                )
            cells[path] = Cell(_config(task, settings, entry, grid.evaluations), path)
    return list(cells.values())


def _settings(task: str) -> Any:
    """Return a task's settings as its runs have them, measured bounds included."""
    settings = task_entry(task).config()
    if not is_elsewhere(task):
        return settings
    config = FullConfig(task=task, task_config=settings)
    return host.settled(config, results.task_of(config), lambda message: None)[0].task_config


def _config(task: str, settings: Any, entry: Entry, evaluations: int | None) -> FullConfig:
    of_preset = preset_budget(entry.method, task, entry.preset) or settings.evaluations
    budget = of_preset if evaluations is None else evaluations
    return FullConfig(
        task=task,
        task_config=settings,
        method=entry.method,
        method_config=entry.config(task),
        label=entry.label,
        run=RunConfig.build({"evaluations": budget}),
    )


def _runs_in(cell: Cell) -> tuple[set[int], dict[int, Path]]:
    """Return the seeds that are done, and those of runs that were cut off with their directories."""
    done: set[int] = set()
    unfinished: dict[int, Path] = {}
    for path in sorted(cell.folder.glob("seeds-*")):
        if not (path / "config.yaml").is_file():
            continue
        config = RunDirectory.open(path).read_config()
        _check_same(cell, config, path)
        seeds = range(config.run.seed, config.run.seed + config.run.replicas)
        if is_finished(path):
            done.update(seeds)
        else:
            unfinished.update(dict.fromkeys(seeds, path))
    return done, {seed: path for seed, path in unfinished.items() if seed not in done}


def is_finished(path: Path) -> bool:
    """Whether a run's directory holds an end that it came to by itself."""
    return RunDirectory(path).read_summary().get("status") in ("finished", "goal", "callback")


def _check_same(cell: Cell, config: FullConfig, path: Path) -> None:
    ours = cell.with_seeds(config.run.seed, config.run.replicas)
    for name in ("task_config", "method", "method_config", "run"):
        if getattr(ours, name) != getattr(config, name):
            theirs, mine = (_plain(getattr(c, name)) for c in (config, ours))
            differs = [key for key in mine if theirs.get(key) != mine[key]]
            raise fail(
                "out",
                expected=f"runs of {cell.name} with the same settings in {path}",
                received=", ".join(f"{key} {theirs.get(key)!r} instead of {mine[key]!r}" for key in differs),
                remedy="choose another --out, or give the method another name",
            )


def _plain(value: Any) -> dict[str, Any]:
    return value.model_dump() if hasattr(value, "model_dump") else {"method": value}


def _stretches(seeds: Sequence[int]) -> list[tuple[int, int]]:
    """Return seeds as stretches of numbers that follow each other: first and length."""
    breaks = [i for i in range(1, len(seeds)) if seeds[i] != seeds[i - 1] + 1]
    starts, ends = [0, *breaks], [*breaks, len(seeds)]
    return [(seeds[a], b - a) for a, b in zip(starts, ends, strict=True) if b > a]


def _job(cell: Cell, first: int, number: int) -> Job:
    return Job(cell, cell.with_seeds(first, number), cell.folder / f"seeds-{first}-{first + number - 1}")


def _parts(job: Job) -> list[Job]:
    """Return a run cut into runs of as many seeds as memory has room for."""
    if (job.path / "config.yaml").is_file():
        return [job]
    try:
        room = replicas_that_fit(job.config)
    except JedaxError:  # what does not fit is told, and recorded, by the run itself
        return [job]
    first, number = job.config.run.seed, job.config.run.replicas
    return [_job(job.cell, first + i, min(room, number - i)) for i in range(0, number, room)]


def replicas_that_fit(config: FullConfig) -> int:
    """Return how many replicas of a run this machine has memory for, at least 1."""
    available = _available_memory()
    task = results.task_of(config)
    programs = programs_for(results.algorithm_of(config, task), task, 1)
    like = programs.shapes(replica_roots(0, 1), jax.ShapeDtypeStruct((0, task.num_params), np.float32))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like))
    if available is None:
        return config.run.replicas
    return max(1, int(_SHARE_OF_MEMORY * available / (_COPIES_OF_STATE * size)))


def _available_memory() -> int | None:
    """Return free memory in bytes; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = {key: int(value.split()[0]) * 1024 for key, _, value in (line.partition(":") for line in lines)}
    return found.get("MemAvailable")


def _carry_out(job: Job, shown: BenchProgress, figures: bool) -> str | None:
    """Run a job; return its error, which is kept beside its directory, if it fails.

    Raises:
        LockedError: Another process works on it, or has finished it meanwhile.
    """
    follower = shown.run(job.cell.name, job.config)
    try:
        if is_finished(job.path):  # by another process, since this one looked
            raise LockedError(f"{job.path} is finished.")
        if (job.path / "config.yaml").is_file():
            api.resume(job.path, progress=follower, figures=figures)
        else:
            api.start(job.config, out=job.path, overwrite=True, progress=follower, figures=figures)
        job.error_file.unlink(missing_ok=True)
        return None
    except LockedError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}" if not isinstance(error, JedaxError) else str(error)
        job.error_file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(job.error_file, f"{message}\n\n{traceback.format_exc()}")
        shown.note(f"{job.cell.name} failed: {message}")
        return message
    finally:
        # Programs of one cell serve no other; kept, they would add up.
        programs_for.cache_clear()
        jax.clear_caches()
        gc.collect()
        _give_back_memory()


def _give_back_memory() -> None:
    """Let the C library return what was freed to the system; on others than glibc nothing happens."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
