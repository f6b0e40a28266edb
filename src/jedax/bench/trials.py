"""The trials of a grid, one method on one task each, and the runs of each that are still to do.

The seeds of a trial are the replicas of one run, in the directory `OUT/TASK/LABEL/seeds-FIRST-LAST`. Runs that have
ended are skipped, runs that were interrupted are resumed, and missing seeds become a new run.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax.bench.grids import Grid, slug
from jedax.bench.reading import differing
from jedax.errors import check_choice, fail
from jedax.imports import is_custom, load_object
from jedax.search import api
from jedax.search.compiled import keep_compiled_programs, replica_roots
from jedax.search.engines import Engine, Job
from jedax.search.programs import forget_programs, programs_for, settled
from jedax.search.progress import Progress
from jedax.search.tracking import Tracker
from jedax.store.config import FullConfig, RunConfig, method_of
from jedax.store.directory import RunDirectory, has_ended
from jedax.store.files import put_back
from jedax.store.guard import check_no_links
from jedax.store.lock import LockedError
from jedax.tasks.base import Task
from jedax.tasks.measured import HostTask
from jedax.tasks.registry import config_of, name_of, task_entry, task_of, title_of
from jedax.tasks.settings import WithDescriptorBounds

# A run needs the memory of its state about three times: donated buffers, a checkpoint, the final arrays.
_COPIES_OF_STATE = 3
_SHARE_OF_MEMORY = 0.5


@dataclass(frozen=True)
class TrialRun:
    """A run of some seeds of a trial."""

    config: FullConfig
    path: Path  # its directory
    objects: Mapping[str, Any] = field(default_factory=dict)  # task and class of the method that no settings can name

    def job(self, figures: str | None, track: Sequence[str | Tracker]) -> Job:
        """Return the run as a job for an engine."""
        arguments = {"config": self.config, "figures": figures, "track": tuple(track), **self.objects}
        name = f"{self.config.task}, {self.config.label}"
        try:
            uses_workers = isinstance(self.task(), HostTask)
        except Exception:  # of the user's code: the run will fail, too, and is recorded then
            uses_workers = False
        return Job(name, self.path, f"{__name__}:run_trial", arguments, uses_workers=uses_workers)

    def task(self) -> Task:
        """Return the task."""
        return task_of(self.config.task, self.config.task_config, self.objects.get("task"))

    def of_seeds(self, first: int, number: int) -> TrialRun:
        """Return a run of the same trial with other seeds."""
        config = self.config.replace(run=self.config.run.replace(seed=first, replicas=number))
        return TrialRun(config, self.path.with_name(f"seeds-{first}-{first + number - 1}"), self.objects)

    @property
    def trial(self) -> str:
        """The folder of the trial in that of the bench, TASK/LABEL."""
        return "/".join(self.path.parts[-3:-1])


def trials_of(grid: Grid, folder: Path, engine: Engine, only: Sequence[str] = ()) -> dict[str, TrialRun]:
    """Return the trials of a grid, or those in some folders TASK/LABEL, by folder, each as the run of all its seeds."""
    if grid.seeds < 1:
        raise fail("seeds", expected="at least 1", received=grid.seeds, remedy="raise it")
    trials: dict[str, TrialRun] = {}
    for task in grid.tasks:
        name, settings, default, objects = _settled(task, engine, folder)
        for entry in grid.entries:
            budget = entry.defaults(name)[1] or default if grid.evaluations is None else grid.evaluations
            method = entry.registered
            config = FullConfig(
                task=name,
                task_config=settings,
                method=method.name,
                method_config=entry.config(name, settings),
                label=entry.label,
                run=RunConfig.build({"evaluations": budget}),
            )
            own = objects | ({"method": method.method} if is_custom(method.name) else {})
            place = folder / slug(title_of(name)) / slug(entry.label) / "run"
            trial = TrialRun(config, place, own).of_seeds(grid.first_seed, grid.seeds)
            if trials.setdefault(trial.trial, trial) is not trial:
                expected, received = "a name of its own for every trial", f"{entry.label!r} on {name} twice"
                raise fail("methods", expected=expected, received=received, remedy="leave one out")
    _check_budgets(trials.values())
    chosen = {check_choice("trials", place, trials) for place in only} or trials
    return {place: trial for place, trial in trials.items() if place in chosen}


def _check_budgets(trials: Iterable[TrialRun]) -> None:
    """Raise an error if methods have different budgets on a task, because their results are not compared."""
    first: dict[str, FullConfig] = {}
    for config in (trial.config for trial in trials):
        other = first.setdefault(config.task, config)
        if config.run.evaluations != other.run.evaluations:
            received = " and ".join(f"{one.run.evaluations:,} of {one.label}" for one in (other, config))
            raise fail(
                f"evaluations on {title_of(config.task)}",
                expected="the same for all methods",
                received=received,
                remedy="choose one budget with --evaluations",
            )


def _settled(task: str | Task, engine: Engine, folder: Path) -> tuple[str, Any, int, dict[str, Any]]:
    """Return a task's name, its settings with measured bounds, its budget, and the object if no name stands for it.

    Bounds of earlier trials in the folder of the bench are kept: a noisy task has others each time they are measured.
    """
    name = task if isinstance(task, str) else name_of(task)
    settings: Any = task_entry(name).config() if isinstance(task, str) else config_of(name, task)
    if settings is None:
        return name, None, task.default_evaluations, {"task": task}  # type: ignore[union-attr]
    if isinstance(task, str) and isinstance(settings, WithDescriptorBounds) and not settings.descriptor_lows:
        settings = settings.replace(**_measured_before(folder / slug(title_of(name)), settings))
    found = task_of(name, settings) if isinstance(task, str) else task
    settings = settled(FullConfig(task=name, task_config=settings), found, engine)[0].task_config
    return name, settings, found.default_evaluations, {}


def _measured_before(folder: Path, settings: WithDescriptorBounds) -> dict[str, Any]:
    """Return the bounds of a trial with the same settings of the task in its folder; empty: there is none."""
    ours = settings.model_dump(mode="json")
    for path in sorted(folder.glob("*/seeds-*/config.yaml")):
        check_no_links(folder, *path.relative_to(folder).parts)
        config = RunDirectory.open(path.parent).read_config().task_config
        theirs = {} if config is None else config.model_dump(mode="json")
        bounds = {name: theirs.get(name) or [] for name in ("descriptor_lows", "descriptor_highs")}
        if all(bounds.values()) and theirs | dict.fromkeys(bounds) == ours | dict.fromkeys(bounds):
            return {name: tuple(values) for name, values in bounds.items()}
    return {}


def left_to_do(trial: TrialRun) -> tuple[list[TrialRun], set[int]]:
    """Return the runs that are to be started or resumed for all seeds of a trial, and the seeds that are done."""
    if not trial.path.parent.is_dir():
        trial = replace(trial, path=_earlier_folder(trial) / trial.path.name)
    check_no_links(trial.path.parents[2], *trial.path.parts[-3:])
    put_back(trial.path.parent)
    done: set[int] = set()
    interrupted: list[TrialRun] = []
    for path in sorted(trial.path.parent.glob("seeds-*")):
        check_no_links(path.parent, path.name)
        if (path / "config.yaml").is_file() or is_finished(path):  # one that has lost its settings is refused
            config = read_settings(path, trial.config)
            _check_same(trial, config, path)
            if is_finished(path):
                done.update(seeds_of(config))
            else:
                interrupted.append(TrialRun(config, path, trial.objects))
    runs = [run for run in interrupted if not done.issuperset(seeds_of(run.config))]
    missing = set(seeds_of(trial.config)).difference(done, *(seeds_of(run.config) for run in runs))
    firsts = sorted(seed for seed in missing if seed - 1 not in missing)
    lasts = sorted(seed for seed in missing if seed + 1 not in missing)
    runs += [trial.of_seeds(first, last - first + 1) for first, last in zip(firsts, lasts, strict=True)]
    return runs, done


def read_settings(path: Path, wanted: FullConfig) -> FullConfig:
    """Return the settings of a run in a bench; they may name the code that the wanted ones name, and no other."""
    directory = RunDirectory.open(path)
    config = directory.read_config()
    return directory.read_config("any") if config.withheld and config.code == wanted.code else config


def _earlier_folder(trial: TrialRun) -> Path:
    """Return the folder that an earlier version, with another name of the method, gave a trial; else its own folder."""
    for settings in sorted(trial.path.parents[1].glob("*/seeds-*/config.yaml")):
        if RunDirectory.open(settings.parent).read_config().label == trial.config.label:
            return settings.parents[1]
    return trial.path.parent


def seeds_of(config: FullConfig) -> range:
    """Return the seeds of a run."""
    return range(config.run.seed, config.run.seed + config.run.replicas)


def is_finished(path: Path) -> bool:
    """Return whether the run in a directory has ended."""
    return has_ended(RunDirectory(path).read_summary().get("status"))


def error_file(path: Path) -> Path:
    """Return the file beside a run's directory that holds the error of its last try."""
    return path.with_name(f"{path.name}.error.txt")


def _check_same(trial: TrialRun, config: FullConfig, path: Path) -> None:
    ours = trial.of_seeds(config.run.seed, config.run.replicas).config.model_dump(mode="json")
    theirs = config.model_dump(mode="json")
    for section in ("task_config", "method", "method_config", "run"):
        mine, other = (s[section] if isinstance(s[section], dict) else {section: s[section]} for s in (ours, theirs))
        if mine != other:
            received = [f"{name} {other.get(name)!r} instead of {mine.get(name)!r}" for name in differing(mine, other)]
            expected = f"runs of {config.label} on {config.task} with the same settings in {path}"
            remedy = "choose another --out, or give the method another name"
            raise fail("out", expected=expected, received=", ".join(received), remedy=remedy)


def parts_of(run: TrialRun, memory: int | None) -> list[TrialRun]:
    """Return a run split into runs whose seeds fit into memory, in bytes (None: unlimited)."""
    if (run.path / "config.yaml").is_file():
        return [run]
    try:
        room = replicas_that_fit(run, memory)
    except Exception:  # also of the user's code: the run itself reports and records it
        return [run]
    seeds = seeds_of(run.config)
    return [run.of_seeds(seeds[i], min(room, len(seeds) - i)) for i in range(0, len(seeds), room)]


def replicas_that_fit(run: TrialRun, memory: int | None) -> int:
    """Return how many replicas of a run fit into memory, in bytes (None: unlimited); at least 1."""
    if memory is None:
        return run.config.run.replicas
    task = run.task()
    programs = programs_for(method_of(run.config, task, run.objects.get("method")), task, 1)
    like = programs.shapes(replica_roots(0, 1), jax.ShapeDtypeStruct((0, task.num_params), np.float32))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like))
    return max(1, int(_SHARE_OF_MEMORY * memory / (_COPIES_OF_STATE * size)))


def run_trial(
    path: Path, progress: Progress, engine: Engine, config: FullConfig, figures: str | None, **how: Any
) -> None:
    """Start or resume a run of a trial; engines call this with the arguments of `TrialRun.job`."""
    keep_compiled_programs()
    how |= {"progress": progress, "engine": engine, "draw": load_object(figures, "figures") if figures else None}
    try:
        if is_finished(path):  # by another process, since this bench looked
            raise LockedError(f"{path} is finished.")
        if (path / "config.yaml").is_file():
            api.resume(path, trust=not read_settings(path, config).withheld, **how)
        else:
            _check_not_elsewhere(path, config)
            api.start(config, out=path, overwrite=True, **how)
    finally:
        free_programs()


def _check_not_elsewhere(path: Path, config: FullConfig) -> None:
    """Raise an error if another process has begun some of the seeds in another run since this bench looked."""
    for other in path.parent.glob("seeds-*"):
        if other != path and (other / "config.yaml").is_file():
            theirs = seeds_of(RunDirectory.open(other).read_config())
            if set(theirs) & set(seeds_of(config)):
                raise LockedError(f"{other} has some of the same seeds.")


def free_programs() -> None:
    """Free the memory of all compiled programs: those of one trial serve no other, and would add up."""
    forget_programs()
    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # with other C libraries than glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # returns freed memory to the system
