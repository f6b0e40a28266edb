"""What a run leaves: its repertoire, its metrics, its best solution, from memory or from its directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jedax.errors import fail
from jedax.imports import CUSTOM
from jedax.methods.base import Method
from jedax.repertoire import Repertoire
from jedax.repertoire.cells import Cells
from jedax.search.compiled import replica_roots
from jedax.search.programs import programs_for
from jedax.store import files
from jedax.store.config import FullConfig, method_of
from jedax.store.directory import RunDirectory
from jedax.tasks import Maze, make
from jedax.tasks.base import ConfiguredTask, Task, check_task
from jedax.tasks.python.settings import OwnTaskConfig
from jedax.tasks.registry import MAZE, TASKS, is_elsewhere

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Solution:
    """One solution.

    Attributes:
        genotype: `(params,)`.
        fitness: What it achieved.
        descriptor: `(d,)`, how it behaved.
    """

    genotype: np.ndarray
    fitness: float
    descriptor: np.ndarray


@dataclass(frozen=True, repr=False)
class Run:
    """A run that has ended, or as far as it had got.

    Attributes:
        config: All settings.
        task: What was searched on.
        cells: How the descriptor space is cut.
        repertoire: NumPy arrays with a leading replica axis; see `jedax.repertoire.Repertoire`.
        gp_mean: `(replicas, cells)`, the GP's mean at all centroids; None where it was not computed.
        gp_std: `(replicas, cells)`, its standard deviation.
        targets: `(replicas, pool, d)`, the last targets; None for methods without targets.
        rows: The metrics, one dict per report and replica.
        summary: The outcome in numbers, as in summary.json; empty for a run that was cut off.
        path: Its directory; None: it has none.
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

    def __repr__(self) -> str:
        """Return what it was and what came of it, in a line."""
        evaluations = self.rows[-1]["evaluations"] if self.rows else 0
        best = float(np.max(self.repertoire.best_fitness))
        return f"Run({self.config.method} on {self.config.task}, {evaluations:,} evaluations, best fitness {best:g})"

    @property
    def metrics(self) -> pandas.DataFrame:
        """The metrics as a table: a row per report and replica."""
        import pandas

        return pandas.DataFrame(self.rows)

    @property
    def best_replica(self) -> int:
        """The replica that found the best solution."""
        return int(np.argmax(self.repertoire.best_fitness))

    @property
    def has_solution(self) -> bool:
        """Whether any evaluation of any replica succeeded; else `best` holds zeros, and a fitness of -inf."""
        return bool(np.isfinite(self.repertoire.best_fitness).any())

    def best(self, replica: int | None = None) -> Solution:
        """Return the best solution ever evaluated, of one replica or (None) of all."""
        which = self.best_replica if replica is None else replica
        return Solution(
            genotype=np.asarray(self.repertoire.best_genotype[which]),
            fitness=float(self.repertoire.best_fitness[which]),
            descriptor=np.asarray(self.repertoire.best_descriptor[which]),
        )

    def policy(self, replica: int | None = None) -> Callable[[Sequence[float]], np.ndarray]:
        """Return the best solution as a function from observation to action.

        Raises:
            JedaxError: The task's solutions are no policies.
        """
        act = getattr(self.task, "act", None)
        if act is None:
            raise fail(
                "policy",
                expected="a task whose solutions are policies",
                received=self.task.name,
                remedy="take best().genotype",
            )
        genotype = self.best(replica).genotype
        return lambda observation: np.asarray(act(genotype, observation))


def save_arrays(directory: RunDirectory, run: Run) -> None:
    """Write the repertoire, and what figures need beside it, as `repertoire.safetensors`."""
    arrays = {name.removeprefix("."): array for name, array in files.flatten(run.repertoire).items()}
    arrays |= {"centroids": run.cells.centroids}
    if run.targets is not None:
        arrays |= {"targets": np.asarray(run.targets)}
    if run.gp_mean is not None and run.gp_std is not None:
        arrays |= {"gp_mean": run.gp_mean, "gp_std": run.gp_std}
    files.write_tensors(directory.path / "repertoire.safetensors", arrays, {"format": str(files.FORMAT)})


def load(path: str | Path, task: Task | None = None) -> Run:
    """Return a run from its directory, finished or not.

    Args:
        path: The directory.
        task: The task, where it is an object of your own that the directory cannot name.

    Raises:
        JedaxError: No run there, nothing saved yet, or a damaged file.
    """
    directory = RunDirectory.open(path)
    config = directory.read_config()
    task = task_of(config, task)
    cells, repertoire, mean, std, targets = load_arrays(directory, config, task)
    return Run(
        config=config,
        task=task,
        cells=cells,
        repertoire=repertoire,
        gp_mean=mean,
        gp_std=std,
        targets=targets,
        rows=directory.read_metrics(),
        summary=directory.read_summary(),
        path=directory.path,
    )


def load_arrays(
    directory: RunDirectory, config: FullConfig, task: Task
) -> tuple[Cells, Repertoire, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Return cells, repertoire, GP mean, GP standard deviation and targets of a run, as in `Run`.

    Of a run that has not ended they are those of its newest checkpoint, without the GP.

    Raises:
        JedaxError: Nothing saved yet, or a damaged file.
    """
    method = method_of(config, task)
    cells = method.cells
    final = directory.path / "repertoire.safetensors"
    if not final.exists():
        state = _checkpoint_state(directory, config, task, method)
        return cells, state.repertoire, None, None, getattr(state, "targets", None)
    arrays, repertoire = read_arrays(final, config.run.replicas)
    if arrays["centroids"].shape != cells.centroids.shape or repertoire.best_genotype.shape[1] != task.num_params:
        raise files.CorruptError(f"{final}: expected the cells and genotypes of the run in config.yaml, got others; "
                                 "restore it.")  # fmt: skip
    cells = Cells(arrays["centroids"], cells.bounds, cells.shape)
    return cells, repertoire, arrays.get("gp_mean"), arrays.get("gp_std"), arrays.get("targets")


def read_arrays(path: Path, replicas: int) -> tuple[dict[str, np.ndarray], Repertoire]:
    """Return all that `save_arrays` wrote, and the repertoire that is in it.

    Raises:
        JedaxError: A damaged file, or arrays that do not fit each other.
    """
    arrays = files.read_tensors(path, str(files.FORMAT))
    names = Repertoire.__dataclass_fields__
    missing = [name for name in [*names, "centroids"] if name not in arrays]
    if missing:
        raise files.CorruptError(f"{path}: expected the arrays of a repertoire, got none of {missing}; restore it.")
    for name, shape in _shapes(arrays, replicas).items():
        array = arrays.get(name)
        if array is not None and (array.shape != shape or array.dtype.kind not in "fi"):
            got = f"{array.dtype}{array.shape}"
            raise files.CorruptError(f"{path}: expected {name} as numbers of shape {shape}, got {got}; restore it.")
    if len(arrays["centroids"]) == 0 or ("gp_mean" in arrays) != ("gp_std" in arrays):
        raise files.CorruptError(f"{path}: expected cells, and the GP's mean beside its deviation; restore it.")
    return arrays, Repertoire(**{name: arrays[name] for name in names})  # type: ignore[arg-type]


def _shapes(arrays: Mapping[str, np.ndarray], replicas: int) -> dict[str, tuple[int, ...]]:
    """Return the shape that each array of a run should have, by those of the centroids and the best genotype."""
    cells, size = (*arrays["centroids"].shape, 1, 1)[:2]
    params = (*arrays["best_genotype"].shape, 1, 1)[1]
    pool = (*arrays["targets"].shape, 1, 1)[1] if "targets" in arrays else 0
    shapes = dict.fromkeys(("fitness", "thresholds", "counts", "improved_at", "gp_mean", "gp_std"), (replicas, cells))
    shapes |= dict.fromkeys(("best_fitness", "num_failed", "num_outside"), (replicas,))
    return {
        **shapes,
        "centroids": (cells, size),
        "genotypes": (replicas, cells, params),
        "descriptors": (replicas, cells, size),
        "best_genotype": (replicas, params),
        "best_descriptor": (replicas, size),
        "targets": (replicas, pool, size),
    }


def _checkpoint_state(directory: RunDirectory, config: FullConfig, task: Task, method: Method) -> Any:
    programs = programs_for(method, task, config.run.replicas)
    given = jax.ShapeDtypeStruct((0, task.num_params), np.float32)
    like = programs.shapes(replica_roots(config.run.seed, config.run.replicas), given)
    restored = directory.load_checkpoint(like)
    if restored is None:
        raise fail(
            "run directory",
            expected="a run that has saved something",
            received=directory.path,
            remedy=f"go on with: jedax run --resume {directory.path}",
        )
    return jax.device_get(restored[0])


def name_of(task: Task) -> str:
    """Return the name under which settings keep a task; `CUSTOM` starts it if only the user can make it again."""
    name = getattr(task, "name", "")
    if isinstance(task, ConfiguredTask) and is_elsewhere(name):
        return name
    if type(task) is Maze:
        return name if name in TASKS else f"{MAZE}{name}"
    return name if name in TASKS and type(task) is type(make(name)) else f"{CUSTOM}{name}"


def task_of(config: FullConfig, task: Task | None = None) -> Task:
    """Return the task that the settings name; one of the user's own classes must be given.

    Raises:
        JedaxError: The settings name an object that only the user has, or another task is given.
    """
    if task is not None and (config.task.startswith(CUSTOM) or isinstance(config.task_config, OwnTaskConfig)):
        return check_task(task)
    if task is not None:
        if getattr(task, "config", None) != config.task_config:
            expected = f"the {config.task} of the settings"
            raise fail("task", expected=expected, received=repr(task), remedy="leave it out")
        return task
    if config.task.startswith(CUSTOM):
        raise fail(
            "task",
            expected=f"the task object {config.task.removeprefix(CUSTOM)}",
            received="none",
            remedy="pass it as task=...",
        )
    return make(config.task, config.task_config)
