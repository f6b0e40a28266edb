"""The cells of a grid: one method on one task each, and the runs in it that are still to do.

The seeds of a cell run side by side as replicas of one run, in a directory of its own:
`DIR/TASK/LABEL/seeds-FIRST-LAST`. What is finished there is left alone, what was cut off goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax.bench.grids import Entry, Grid, slug
from jedax.errors import JedaxError, fail
from jedax.imports import load_object
from jedax.search import api, engines, host
from jedax.search.compile_cache import keep_compiled_programs
from jedax.search.compiled import replica_roots
from jedax.search.engines import Engine
from jedax.search.programs import forget_programs, programs_for
from jedax.search.progress import Progress
from jedax.search.tracking import Tracker
from jedax.store.config import FullConfig, RunConfig, defaults_for, method_of
from jedax.store.directory import RunDirectory
from jedax.store.lock import LockedError
from jedax.tasks.host import HostTask
from jedax.tasks.registry import task_entry, task_of, title_of

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

    @property
    def place(self) -> str:
        """Its folder within that of the bench, which tells it from all other cells."""
        return f"{self.folder.parent.name}/{self.folder.name}"

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

    def job(self, figures: str | None, track: Sequence[str | Tracker]) -> engines.Job:
        """Return the run as a job for an engine."""
        uses_workers = isinstance(task_of(self.config.task, self.config.task_config), HostTask)
        arguments = {"settings": self.config.dump(), "figures": figures, "track": tuple(track)}
        return engines.Job(self.cell.name, self.path, f"{__name__}:run_cell", arguments, uses_workers)


def cells_of(grid: Grid, folder: Path, engine: Engine) -> list[Cell]:
    """Return the cells of a grid, checked, task by task.

    Raises:
        JedaxError: A task, method or parameter that does not exist, or two cells of one name.
    """
    if grid.seeds < 1:
        raise fail("seeds", expected="at least 1", received=grid.seeds, remedy="raise it")
    cells: dict[Path, Cell] = {}
    for task in grid.tasks:
        settings = _settings(task, engine)
        for entry in grid.entries:
            path = folder / slug(title_of(task)) / slug(entry.label)
            if path in cells:
                raise fail(
                    "methods",
                    expected="a name of its own for every cell",
                    received=f"{entry.label!r} on {task} twice",
                    remedy="leave one out",
                )
            cells[path] = Cell(_config(task, settings, entry, grid.evaluations), path)
    return list(cells.values())


def _settings(task: str, engine: Engine) -> Any:
    """Return a task's settings as its runs have them, measured bounds included."""
    settings = task_entry(task).config()
    config = FullConfig(task=task, task_config=settings)
    return host.settled(config, task_of(task, settings), lambda message: None, engine)[0].task_config


def _config(task: str, settings: Any, entry: Entry, evaluations: int | None) -> FullConfig:
    of_preset = defaults_for(entry.method, task, entry.preset)[1] or settings.evaluations
    budget = of_preset if evaluations is None else evaluations
    return FullConfig(
        task=task,
        task_config=settings,
        method=entry.method,
        method_config=entry.config(task),
        label=entry.label,
        run=RunConfig.build({"evaluations": budget}),
    )


def left_to_do(cell: Cell, seeds: int) -> tuple[list[Job], set[int]]:
    """Return the runs of a cell that are to do or to finish, and the seeds that are done.

    Raises:
        JedaxError: Its folder holds runs with other settings.
    """
    done, unfinished = _runs_in(cell)
    missing = [seed for seed in range(seeds) if seed not in done | unfinished.keys()]
    paths = dict.fromkeys(unfinished.values())
    jobs = [Job(cell, RunDirectory.open(path).read_config(), path) for path in paths]
    return jobs + [_job(cell, first, number) for first, number in _stretches(missing)], done


def _runs_in(cell: Cell) -> tuple[set[int], dict[int, Path]]:
    """Return the seeds that are done, and those of runs that were cut off with their directories."""
    done: set[int] = set()
    unfinished: dict[int, Path] = {}
    for path in sorted(cell.folder.glob("seeds-*")):
        if not (path / "config.yaml").is_file():
            continue
        config = RunDirectory.open(path).read_config()
        _check_same(cell, config, path)
        if is_finished(path):
            done.update(seeds_of(config))
        else:
            unfinished.update(dict.fromkeys(seeds_of(config), path))
    return done, {seed: path for seed, path in unfinished.items() if seed not in done}


def seeds_of(config: FullConfig) -> range:
    """Return the seeds of a run."""
    return range(config.run.seed, config.run.seed + config.run.replicas)


def is_finished(path: Path) -> bool:
    """Whether a run's directory holds an end that it came to by itself."""
    return RunDirectory(path).read_summary().get("status") in ("finished", "goal", "callback")


def error_file(path: Path) -> Path:
    """Return where the error of the last try of a run is kept, beside its directory."""
    return path.with_name(f"{path.name}.error.txt")


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


def parts_of(job: Job, memory: int | None) -> list[Job]:
    """Return a run cut into runs of as many seeds as there is memory for, in bytes; None: enough."""
    if (job.path / "config.yaml").is_file():
        return [job]
    try:
        room = replicas_that_fit(job.config, memory)
    except JedaxError:  # what does not fit is told, and recorded, by the run itself
        return [job]
    first, number = job.config.run.seed, job.config.run.replicas
    return [_job(job.cell, first + i, min(room, number - i)) for i in range(0, number, room)]


def replicas_that_fit(config: FullConfig, memory: int | None) -> int:
    """Return how many replicas of a run there is memory for, in bytes, at least 1."""
    task = task_of(config.task, config.task_config)
    programs = programs_for(method_of(config, task), task, 1)
    like = programs.shapes(replica_roots(0, 1), jax.ShapeDtypeStruct((0, task.num_params), np.float32))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like))
    if memory is None:
        return config.run.replicas
    return max(1, int(_SHARE_OF_MEMORY * memory / (_COPIES_OF_STATE * size)))


def run_cell(
    path: Path, progress: Progress, engine: Engine, settings: str, figures: str | None, track: Sequence[str | Tracker]
) -> None:
    """Run seeds of a cell, or go on with them; an engine calls it.

    Args:
        path: The directory of the run.
        progress: What shows how far it is.
        engine: Where tasks outside JAX are evaluated.
        settings: All of them, as YAML.
        figures: `module:function` that draws the figures of the run; None: no figures.
        track: Trackers that follow it.

    Raises:
        LockedError: Another process works on it, or has finished it meanwhile.
    """
    keep_compiled_programs()
    how: dict[str, Any] = {
        "progress": progress,
        "draw": load_object(figures, "figures") if figures else None,
        "track": track,
        "engine": engine,
    }
    try:
        if is_finished(path):  # by another process, since the bench looked
            raise LockedError(f"{path} is finished.")
        if (path / "config.yaml").is_file():
            api.resume(path, **how)
        else:
            config = FullConfig.parse(settings, where=str(path))
            api.start(config, out=path, overwrite=True, **how)
    finally:
        # Programs of one cell serve no other; kept, they would add up.
        forget_programs()
        jax.clear_caches()
        gc.collect()
        _give_back_memory()


def _give_back_memory() -> None:
    """Let the C library return what was freed to the system; on others than glibc nothing happens."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
