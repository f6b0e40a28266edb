"""A run as Python objects: settings, repertoire, metrics and outcome, from memory or from its directory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from jedax.errors import JedaxError, check_whole, fail, memory_in_words
from jedax.imports import is_custom
from jedax.methods.base import Method
from jedax.repertoire import Repertoire
from jedax.repertoire.cells import Cells
from jedax.store import files, history
from jedax.store.config import FullConfig, method_of
from jedax.store.directory import RunDirectory
from jedax.store.history import History
from jedax.store.trust import Code, shown
from jedax.tasks.base import Task
from jedax.tasks.registry import task_of
from jedax.tasks.stored import StoredTask, stored_task
from jedax.types import Bounds

if TYPE_CHECKING:
    import pandas

_FINAL = "repertoire.safetensors"
_REPERTOIRE = tuple(Repertoire.__dataclass_fields__)
_WITHOUT = {"task": "Solutions are not drawn", "method": "The method is not described"}
ONLY_REEVALUATION = "Nothing can be evaluated again"
"""Beginning of sentences in `Run.missing` about code without which figures and tables are complete."""
_SAVED = ("cells", "repertoire", "gp_mean", "gp_std", "targets")


@dataclass(frozen=True)
class Solution:
    """One solution.

    Attributes:
        genotype: `(params,)`, from `Optimizer` in the user's units; from a run as its task takes it, so with a space
            of parameters as coordinates, whose values in the user's units are in `parameters`.
        fitness: Its fitness.
        descriptor: `(d,)`, its behaviour; None: there are no descriptors.
        violation: Sum of its violations of constraints; 0: it is feasible.
        parameters: The parameters by name, where a space names them.
    """

    genotype: np.ndarray
    fitness: float
    descriptor: Any
    violation: float = 0.0
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A run that has ended, or the part of it that has been saved.

    A run that was loaded with `partial=True` may lack parts, which `missing` names: then `task`, `cells` and
    `repertoire` can be None.

    Attributes:
        config: All settings.
        task: The task.
        cells: The cells of the descriptor space.
        repertoire: NumPy arrays with a leading replica axis; see `jedax.repertoire.Repertoire`.
        gp_mean: `(replicas, cells)`, the mean of the Gaussian process at all centroids; None: not computed.
        gp_std: `(replicas, cells)`, its standard deviation; None: not computed.
        targets: `(replicas, pool, d)`, the last targets; None for methods without targets.
        rows: The metrics, one dict per report and replica.
        summary: The outcome in numbers, as in summary.json; empty for a run that has not ended.
        path: The directory; None: the run has none.
        environment: Versions, machine and command line; empty where unknown.
        missing: The parts that could not be read, or must not be imported, and the consequences, a sentence each.
    """

    config: FullConfig
    task: Task
    cells: Cells
    repertoire: Repertoire
    gp_mean: np.ndarray | None
    gp_std: np.ndarray | None
    targets: np.ndarray | None
    rows: list[dict[str, float]]
    summary: dict[str, Any]
    path: Path | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return task, method, evaluations and best fitness in a line."""
        best = "" if self.repertoire is None else f", best fitness {np.max(self.repertoire.best_fitness):g}"
        return f"Run({self.config.method} on {self.config.task}, {self.evaluations:,} evaluations{best})"

    @property
    def replicas(self) -> int:
        """The number of independent searches."""
        return self.config.run.replicas

    @property
    def evaluations(self) -> int:
        """Evaluations of each replica, as far as the directory tells."""
        reported = self.rows[-1]["evaluations"] if self.rows else 0
        return int(self.summary.get("evaluations", reported))

    @property
    def status(self) -> str:
        """The status in summary.json; "running" for a run that has not ended."""
        return str(self.summary.get("status", "running"))

    @property
    def metrics(self) -> pandas.DataFrame:
        """The metrics as a table: a row per report and replica."""
        import pandas

        return pandas.DataFrame(self.rows)

    @functools.cached_property
    def method(self) -> Method | None:
        """The method; None if its class cannot or must not be imported, or nothing is known of the task."""
        if "method" in self.config.withheld:
            return None
        problem: Any = self.task
        if problem is None and self.cells is not None:
            problem = SimpleNamespace(descriptor_bounds=self.cells.bounds, qd_offset=0.0)
        try:
            return None if problem is None else method_of(self.config, problem)
        except JedaxError:
            return None

    @functools.cached_property
    def history(self) -> History | None:
        """The targets and ends of each loop; None: not recorded."""
        return None if self.path is None else RunDirectory(self.path).read_history(self.cells, self.replicas)

    @property
    def best_replica(self) -> int:
        """The replica that found the best solution."""
        return int(np.argmax(self.repertoire.best_fitness))

    @property
    def has_solution(self) -> bool:
        """Whether any evaluation of any replica succeeded."""
        return bool(np.isfinite(self.repertoire.best_fitness).any())

    def best(self, replica: int | None = None) -> Solution:
        """Return the best solution ever evaluated, of one replica or (None) of all; an error where all failed."""
        which, kept = self._which(replica), self.repertoire
        if not np.isfinite(kept.best_fitness[which]):
            remedy = "evaluate one genotype by hand, and correct the task"
            raise fail("best", expected="an evaluation that succeeded", received="none", remedy=remedy)
        return self._solution(kept.best_genotype[which], kept.best_fitness[which], kept.best_descriptor[which])

    def elites(self, replica: int | None = None) -> list[Solution]:
        """Return the solutions of all filled cells of one replica, or (None) of that with the best one, best first."""
        which, kept = self._which(replica), self.repertoire
        genotypes, fitness, descriptors = kept.genotypes[which], kept.fitness[which], kept.descriptors[which]
        places = sorted(np.flatnonzero(kept.filled[which]), key=lambda place: -fitness[place])
        return [self._solution(genotypes[place], fitness[place], descriptors[place]) for place in places]

    def _which(self, replica: int | None) -> int:
        """Return a replica's number; None: that of the one with the best solution."""
        return self.best_replica if replica is None else check_whole("replica", replica, 0, self.replicas - 1)

    def _solution(self, genotype: Any, fitness: Any, descriptor: Any) -> Solution:
        genotype, space = np.asarray(genotype), self.task.space
        parameters = None if space is None else space.dict_of(genotype)
        return Solution(genotype, float(fitness), np.asarray(descriptor), parameters=parameters)

    def check_code(self) -> None:
        """Raise a `JedaxError` if the code of the task was not imported, so that it evaluates nothing."""
        if isinstance(self.task, StoredTask):
            raise self.task.no_code()

    def policy(self, replica: int | None = None) -> Callable[[Sequence[float]], np.ndarray]:
        """Return the best solution as a function from one observation to the action, if solutions are policies.

        The function takes `(observation,)` and returns an array: the action `(action,)`, each number in [-1, 1], or for
        an environment of gymnasium the action in the form that the environment takes.

        Args:
            replica: Which one; None: the one that found the best solution.

        Raises:
            JedaxError: The task's solutions are not policies, or its code was not imported.
        """
        self.check_code()
        act = getattr(self.task, "act", None)
        if act is None:
            expected, remedy = "a task whose solutions are policies", "take best()"
            raise fail("policy", expected=expected, received=self.task.name, remedy=remedy)
        genotype = self.best(replica).genotype
        return lambda observation: np.asarray(act(genotype, observation))


def save_arrays(directory: RunDirectory, run: Run) -> None:
    """Write the repertoire, centroids, targets and Gaussian process as `repertoire.safetensors`."""
    arrays = {name.removeprefix("."): array for name, array in files.flatten(run.repertoire).items()}
    others = {"centroids": run.cells.centroids, "targets": run.targets, "gp_mean": run.gp_mean, "gp_std": run.gp_std}
    arrays |= {name: np.asarray(array) for name, array in others.items() if array is not None}
    files.write_tensors(directory.path / _FINAL, arrays, {"format": str(files.FORMAT)})


@memory_in_words()
def load(path: str | Path, task: Task | None = None, *, partial: bool = False, trust: bool = False) -> Run:
    """Return a run from its directory, finished or not.

    Of a run that has not ended, the repertoire is that of the newest whole checkpoint, without the Gaussian process.
    The files of a run that has ended must have the checksums in its manifest.json; runs of earlier versions have none.
    Code outside jedax that the settings name is not imported: the task then has the attributes that the directory
    keeps, but evaluates nothing.

    Args:
        path: The directory.
        task: The task, where it is an object of your own that the directory cannot name.
        partial: Read all that can be read, and name the rest in `Run.missing`.
        trust: Import the code that the settings name.

    Raises:
        JedaxError: No run there, or damaged settings. Without `partial` also: nothing saved yet, or a damaged file.
    """
    return load_with("any" if trust else "never", path, task, partial=partial)


def opened(run: Run | str | Path, task: Task | None = None, *, trust: bool = False) -> Run:
    """Return a run, read from its directory if that is given; code that it names is imported as `trust` allows."""
    return run if isinstance(run, Run) else load_with("any" if trust else "ask", run, task)


def load_with(code: Code, path: str | Path, task: Task | None = None, *, partial: bool = False) -> Run:
    """Return a run as `load` does; `code` says when code that its settings name is imported."""
    directory = RunDirectory.open(path)
    config = directory.read_config(code, ("task",) if task is not None else ())
    withheld = [part for part in config.withheld if part != "task" or task is None]
    why = "is not imported without trust (--trust, trust=True)."
    lacks, absent = dict(_WITHOUT), {part: f"{shown(config.code[part][0])} {why}" for part in withheld}
    if task is None and is_custom(config.task):
        absent["task"] = "the task is an object of your own, to be given as task=..."
    missing: list[str] = []

    def piece(name: str, meaning: str, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            found = read()
        except (JedaxError, OSError) as error:
            if not partial:
                raise
            missing.append(f"{meaning}: {error}")
            return otherwise
        if not found and isinstance(found, list | dict | None):
            missing.append(f"{meaning}: {name} is missing or empty.")
        return found

    about = piece("environment.json", "Unknown: command, versions, machine", directory.read_environment, {})
    if "task" in absent:
        task = task_kept(about, config)
        if task is not None and not task.config.draws:
            lacks["task"] = ONLY_REEVALUATION
    elif task is not None or not partial:
        task = task_of(config.task, config.task_config, task)
    else:
        task = piece("the task", "Solutions are not drawn", lambda: task_of(config.task, config.task_config), None)
    saved = piece(_FINAL, "No solutions", lambda: _read_saved(directory, config, task), dict.fromkeys(_SAVED))
    rows = piece("metrics.csv", "No curves", directory.read_metrics, [])
    summary = piece("summary.json", "The run has not ended, as far as its directory tells", directory.read_summary, {})
    if task is None and "task" in absent and saved["cells"] is not None:
        task = task_kept(about, config, saved["cells"].centroids, saved["repertoire"].genotypes.shape[-1])
    recorded: dict[str, Any] = {}
    if partial and saved["cells"] is not None:
        read = functools.partial(directory.read_history, saved["cells"], config.run.replicas)
        recorded["history"] = piece(history.FILE, "The search cannot be played back", read, None)
    notes = (f"{lacks[part]}: {reason}" for part, reason in absent.items())
    found = Run(config, task, **saved, rows=rows, summary=summary, path=directory.path, environment=about,  # type: ignore[arg-type]
                missing=(*notes, *(missing if partial else [])))  # fmt: skip
    vars(found).update(recorded)
    return found


def task_kept(
    environment: Mapping[str, Any], config: FullConfig, centroids: np.ndarray | None = None, num_params: int = 1
) -> StoredTask | None:
    """Return a task as the directory of its run describes it.

    Earlier versions wrote little of it: then bounds follow from the centroids, and without those the result is None.
    """
    kept, settings = environment.get("task"), config.task_config and config.task_config.model_dump()
    size, known = None, {}
    if centroids is not None:
        size, (lows, highs) = centroids.shape[1], _bounds_around(centroids)
        known = {"name": config.task, "num_params": num_params, "descriptor_lows": lows, "descriptor_highs": highs}
    tried = (stored_task(*sources, known) for sources in ((kept, settings), (settings,), ()))
    return next((task for task in tried if task is not None and size in (None, task.num_descriptors)), None)


def _read_saved(directory: RunDirectory, config: FullConfig, task: Task | None) -> dict[str, Any]:
    """Return the fields `_SAVED` of a run: from its final repertoire, or else from its newest whole checkpoint."""
    final, replicas = directory.checked(_FINAL), config.run.replicas
    arrays, cells = read_arrays(final, replicas) if task is None or final.exists() else None, None
    # The number is compared first, because making the cells of a damaged config may take long.
    if task is not None and (arrays is None or len(arrays["centroids"]) == config.method_config.cells):
        cells = config.method_config.make_cells(task.descriptor_bounds)
        arrays = arrays or _read_checkpoint(directory, cells, replicas)
    assert arrays is not None
    centroids = arrays["centroids"]
    if task is None:
        cells = Cells(centroids, _bounds_around(centroids))
    elif cells is None or (centroids.shape, arrays["best_genotype"].shape[1]) != (
        cells.centroids.shape,
        task.num_params,
    ):
        raise files.CorruptError(f"{directory.path}: expected cells and genotypes of the task {task.name}, got others; "
                                 "give the run's own task, or restore the directory.")  # fmt: skip
    assert cells is not None
    repertoire = Repertoire(**{name: arrays[name] for name in _REPERTOIRE})  # type: ignore[arg-type]
    cells = Cells(centroids, cells.bounds, cells.shape)
    return {"cells": cells, "repertoire": repertoire, **{name: arrays.get(name) for name in _SAVED[2:]}}


def _read_checkpoint(directory: RunDirectory, cells: Cells, replicas: int) -> dict[str, np.ndarray]:
    """Return repertoire and targets from the newest whole checkpoint, by their names in the file."""

    def read(folder: Path) -> dict[str, np.ndarray]:
        saved = files.read_tree(folder)
        arrays = {name: saved[f".repertoire.{name}"] for name in _REPERTOIRE if f".repertoire.{name}" in saved}
        if ".targets" in saved:
            arrays["targets"] = saved[".targets"]
        return _checked(folder, {**arrays, "centroids": cells.centroids}, replicas)

    newest = directory.read_checkpoint(read)
    if newest is None:
        remedy = f"go on with: {directory.resume_command}"
        raise fail("run directory", expected="a run that has saved something", received=directory.path, remedy=remedy)
    return newest[0]


def _bounds_around(centroids: np.ndarray) -> Bounds:
    """Return estimated bounds of cells whose task is unknown: half a cell beyond the outermost centroids."""
    margin = np.ptp(centroids, axis=0) / (2 * len(centroids) ** (1 / centroids.shape[1]))
    return tuple((centroids.min(axis=0) - margin).tolist()), tuple((centroids.max(axis=0) + margin).tolist())


def read_arrays(path: Path, replicas: int) -> dict[str, np.ndarray]:
    """Return the arrays that `save_arrays` wrote, by name; their shapes fit each other."""
    return _checked(path, files.read_tensors(path, str(files.FORMAT)), replicas)


def _checked(place: Path, arrays: dict[str, np.ndarray], replicas: int) -> dict[str, np.ndarray]:
    """Return the arrays of a run, after a check of their names, shapes and types."""
    if missing := [name for name in (*_REPERTOIRE, "centroids") if name not in arrays]:
        raise files.CorruptError(f"{place}: expected the arrays of a repertoire, got none of {missing}; restore it.")
    cells, size = (*arrays["centroids"].shape, 1, 1)[:2]
    params = (*arrays["best_genotype"].shape, 1, 1)[1]
    pool = (*arrays["targets"].shape, 1, 1)[1] if "targets" in arrays else 0
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("fitness", "thresholds", "counts", "improved_at", "gp_mean", "gp_std"), (replicas, cells)),
        **dict.fromkeys(("best_fitness", "num_failed", "num_outside"), (replicas,)),
        "centroids": (cells, size),
        "genotypes": (replicas, cells, params),
        "descriptors": (replicas, cells, size),
        "best_genotype": (replicas, params),
        "best_descriptor": (replicas, size),
        "targets": (replicas, pool, size),
    }
    for name in shapes.keys() & arrays.keys():
        array = arrays[name]
        if array.shape != shapes[name] or array.dtype.kind not in "fi":
            expected, got = f"{name} as numbers of shape {shapes[name]}", f"{array.dtype}{array.shape}"
            raise files.CorruptError(f"{place}: expected {expected}, got {got}; restore it.")
    if cells == 0 or ("gp_mean" in arrays) != ("gp_std" in arrays):
        raise files.CorruptError(f"{place}: expected cells, and the GP's mean beside its deviation; restore it.")
    return arrays
