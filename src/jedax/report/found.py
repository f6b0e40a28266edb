"""What a run directory holds, as far as the run got: what is missing is said, not refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError
from jedax.repertoire import Repertoire
from jedax.repertoire.cells import Cells
from jedax.store import history
from jedax.store import run as results
from jedax.store.config import CUSTOM, FullConfig
from jedax.store.directory import RunDirectory
from jedax.store.guard import check_summary
from jedax.store.history import History
from jedax.tasks.base import Task


@dataclass(frozen=True, eq=False)
class Found:
    """What is there of a run.

    Attributes:
        path: Its directory.
        config: All settings.
        task: What was searched on; None: it cannot be made here, as `missing` says.
        cells: How the descriptor space is cut; None: nothing was saved yet.
        repertoire: NumPy arrays with a leading replica axis; None with `cells`.
        gp_mean: `(replicas, cells)`; None: not there.
        gp_std: `(replicas, cells)`; None: not there.
        rows: The metrics.
        summary: The outcome; empty for a run that has not ended.
        environment: Versions, machine, command; empty where it is missing.
        history: What the search did, loop by loop; None: not there.
        missing: What is not there and what that means, a sentence each.
    """

    path: Path
    config: FullConfig
    task: Task | None
    cells: Cells | None
    repertoire: Repertoire | None
    gp_mean: np.ndarray | None
    gp_std: np.ndarray | None
    rows: list[dict[str, float]]
    summary: dict[str, Any]
    environment: dict[str, Any]
    history: History | None
    missing: tuple[str, ...]

    @property
    def replicas(self) -> int:
        """How many searches ran side by side."""
        return self.config.run.replicas

    @property
    def evaluations(self) -> int:
        """Evaluations of each replica, as far as is known."""
        reported = self.rows[-1]["evaluations"] if self.rows else 0
        return int(self.summary.get("evaluations", reported))

    @property
    def status(self) -> str:
        """How it ended, as in summary.json; "running": it has not, as far as its directory tells."""
        return str(self.summary.get("status", "running"))


def find(path: str | Path, task: Task | None = None) -> Found:
    """Read what there is of a run.

    Args:
        path: Its directory.
        task: The task, where it is an object of one's own that the directory cannot name.

    Raises:
        JedaxError: There is no run, or its settings are damaged or of a newer format.
    """
    directory = RunDirectory.open(path)
    config = directory.read_config()
    missing: list[str] = []
    if task is None and config.task.startswith(CUSTOM):
        missing.append(
            "The task is an object of its owner's Python: solutions are not drawn. "
            "jedax.write_report(directory, task=...) draws them."
        )
    elif task is None:
        try:
            task = results.task_of(config)
        except JedaxError as error:
            missing.append(f"Solutions are not drawn: {error}")
    else:
        task = results.task_of(config, task)
    cells = repertoire = mean = std = None
    try:
        cells, repertoire, mean, std = _saved(directory, config, task)
    except (JedaxError, OSError) as error:
        missing.append(f"No solutions: {error}")
    return Found(
        path=directory.path,
        config=config,
        task=task,
        cells=cells,
        repertoire=repertoire,
        gp_mean=mean,
        gp_std=std,
        rows=_rows(directory, missing),
        summary=_summary(directory, missing),
        environment=_json(directory.path / "environment.json", missing, "Unknown: command, versions and machine"),
        history=_history(directory.path / history.FILE, cells, config.run.replicas, missing),
        missing=tuple(missing),
    )


def _saved(directory: RunDirectory, config: FullConfig, task: Task | None) -> tuple:
    if task is not None:
        run = results.load_arrays(directory, config, task)
        return run[:4]
    arrays, repertoire = results.read_arrays(directory.path / "repertoire.safetensors", config.run.replicas)
    centroids = arrays["centroids"]
    # The box of a task that is not there: half a cell around the outermost centroids, about.
    margin = np.ptp(centroids, axis=0) / (2 * len(centroids) ** (1 / centroids.shape[1]))
    bounds = tuple(tuple(side.tolist()) for side in (centroids.min(axis=0) - margin, centroids.max(axis=0) + margin))
    cells = Cells(centroids, bounds, None)  # type: ignore[arg-type]
    return cells, repertoire, arrays.get("gp_mean"), arrays.get("gp_std")


def _rows(directory: RunDirectory, missing: list[str]) -> list[dict[str, float]]:
    try:
        rows = directory.read_metrics()
    except (JedaxError, OSError) as error:
        missing.append(f"No curves: {error}")
        return []
    if not rows:
        missing.append("No curves: metrics.csv is missing or empty.")
    return rows


def _summary(directory: RunDirectory, missing: list[str]) -> dict[str, Any]:
    path, meaning = directory.path / "summary.json", "The run has not ended, as far as this directory says"
    found = _json(path, missing, meaning)
    try:
        check_summary(path, found)
    except JedaxError as error:
        missing.append(f"{meaning}: {error}")
        return {}
    return found


def _json(path: Path, missing: list[str], meaning: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        missing.append(f"{meaning}: there is no {path.name}.")
        return {}
    except (OSError, ValueError, RecursionError) as error:
        missing.append(f"{meaning}: {path.name} cannot be read ({error}).")
        return {}
    if isinstance(found, dict):
        return found
    missing.append(f"{meaning}: {path.name} does not hold names and values.")
    return {}


def _history(path: Path, cells: Cells | None, replicas: int, missing: list[str]) -> History | None:
    if cells is None:
        return None
    try:
        found = history.read(path, cells.bounds)
        if found is not None and not found.fits(replicas, cells.num_cells):
            raise JedaxError(f"{path} is of another run.")
    except (JedaxError, OSError) as error:
        missing.append(f"The search cannot be played back: {error}")
        return None
    if found is None:
        missing.append(f"The search cannot be played back: there is no {path.name}.")
    return found
