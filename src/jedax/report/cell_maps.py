"""Fitness and evaluations of each cell, drawn from run directories: Figure 1 of the paper."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from jedax.bench.comparison import Comparison, Entry, TaskTable, is_reference
from jedax.bench.reading import Record
from jedax.errors import NotImportableError
from jedax.imports import is_custom
from jedax.repertoire.cells import Cells
from jedax.report import plots
from jedax.report.numbers import colour_limits, decimals_for, fitness_text
from jedax.store.directory import RunDirectory
from jedax.store.files import CorruptError
from jedax.store.run import task_kept
from jedax.tasks.base import Task
from jedax.tasks.drawing import plain
from jedax.tasks.registry import task_of
from jedax.types import Float

_MOST_METHODS = 4
_FILE = "repertoire.safetensors"


class CellMap(NamedTuple):
    """The cells of one seed: the fitness of each elite (NaN: empty), and how many evaluations fell into each cell."""

    title: str  # the method, the seed and its best fitness
    task: Task
    cells: Cells
    fitness: Float[np.ndarray, " cells"]
    counts: Float[np.ndarray, " cells"]


def cell_maps(comparison: Comparison, table: TaskTable, labels: Sequence[str] | None = None) -> list[CellMap]:
    """Return the cells of some methods on a task, each of the seed whose final fitness is nearest to the median.

    Without `labels`: of the reference and the best others, four in all; versions of JEDi come last. Methods whose runs
    have stored no cells are left out, and so is a task that is an object of the user's.
    """
    ranked = sorted(table.entries, key=lambda e: (e.label != table.reference, is_reference(e.method), -e.median))
    chosen = [e for e in ranked if labels is None or e.label in labels]
    maps = (_cell_map(comparison.records.of(table.task, entry.label), entry) for entry in chosen)
    return list(itertools.islice((m for m in maps if m is not None), None if labels else _MOST_METHODS))


def _cell_map(records: Sequence[Record], entry: Entry) -> CellMap | None:
    """Return the cells of the seed nearest to the median among those with stored cells; None if there are none."""
    from safetensors import SafetensorError, safe_open

    left = [(abs(final - entry.median), record.seed, record) for final, record in zip(entry.final, records, strict=True)
            if record.replica is not None and (record.source / _FILE).exists()]  # fmt: skip
    record = min(left, key=lambda item: item[:2])[2] if left else None
    config = None if record is None else RunDirectory.open(record.source).read_config()
    if record is None or config is None or is_custom(config.task):
        return None
    path = RunDirectory(record.source).checked(_FILE)
    try:
        with safe_open(path, framework="numpy") as file:  # genotypes, which can be gigabytes, are not read
            centroids = file.get_tensor("centroids")
            fitness, counts = (file.get_slice(name)[record.replica].astype(float) for name in ("fitness", "counts"))
    except (OSError, SafetensorError) as error:
        raise CorruptError(f"{path}: expected a repertoire, got {error}; restore the file.") from None
    task = None
    if "task" not in config.withheld:
        with contextlib.suppress(NotImportableError):
            task = task_of(config.task, config.task_config)
    task = task or task_kept(RunDirectory(record.source).read_environment(), config, centroids)
    if task is None:
        return None
    made = config.method_config.make_cells(task.descriptor_bounds)
    best = record.curve["max_fitness"].iloc[-1]
    return CellMap(
        title=f"{record.label}, seed {record.seed} (best {fitness_text(best, decimals_for([best]))})",
        task=task,
        cells=Cells(centroids, task.descriptor_bounds, made.shape if made.num_cells == len(centroids) else None),
        fitness=np.where(np.isfinite(fitness), fitness, np.nan),
        counts=counts,
    )


def draw(maps: Sequence[CellMap], title: str) -> Figure:
    """Return a figure with a row per method: fitness of each cell, and its evaluations on a logarithmic scale.

    Colours have the same meaning in all rows.
    """
    figure = Figure(figsize=(9.6, 0.5 + 4.1 * len(maps)), layout="constrained")
    known = np.concatenate([m.fitness[np.isfinite(m.fitness)] for m in maps])
    counted = np.concatenate([m.counts[m.counts > 0] for m in maps])
    for row, cell_map in zip(figure.subplots(len(maps), 2, squeeze=False), maps, strict=True):
        for ax, values, label, log, cmap, shared in (
            (row[0], cell_map.fitness, "fitness", False, "viridis", known),
            (row[1], cell_map.counts, "evaluations", True, "magma", counted),
        ):
            limits = colour_limits(shared, log=log) if len(shared) else None
            plots.cell_values(ax, cell_map, values, label, log=log, cmap=cmap, limits=limits)
            ax.set_title(f"{plain(cell_map.title)}: {label}", fontsize=10)
        row[1].set_ylabel("")
    figure.suptitle(plain(title))
    return figure
