"""What a search found in each cell and how often it looked there: Figure 1 of the paper, from run directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from jedax.bench.comparison import Comparison, Entry, TaskTable, is_reference
from jedax.bench.records import Record
from jedax.repertoire.cells import Cells
from jedax.report import plots
from jedax.report.comparisons import plain
from jedax.report.numbers import decimals_for, fitness_text
from jedax.report.scales import colour_limits
from jedax.store.directory import RunDirectory
from jedax.store.files import CorruptError
from jedax.tasks.base import Task
from jedax.tasks.registry import is_custom, task_of
from jedax.types import Float

_MOST_METHODS = 4


@dataclass(frozen=True, eq=False)
class CellMap:
    """The cells of one seed.

    Attributes:
        title: Which seed, and what it reached.
        task: Whose descriptor space it is.
        cells: How that is cut.
        fitness: `(cells,)`, of each cell's elite; NaN: empty.
        counts: `(cells,)`, evaluations that landed there.
    """

    title: str
    task: Task
    cells: Cells
    fitness: Float[np.ndarray, " cells"]
    counts: Float[np.ndarray, " cells"]


def cell_maps(comparison: Comparison, table: TaskTable, labels: Sequence[str] | None = None) -> list[CellMap]:
    """Return the cells of some methods on a task, each of the seed whose final fitness is nearest to the median.

    Args:
        comparison: What is compared.
        table: The task.
        labels: The methods. None: the reference and the best others, those that are not JEDi first, four in
            all.

    Returns:
        One per method that left its cells; none for a task that only its owner's Python can make.
    """
    ranked = sorted(table.entries, key=lambda e: (e.label != table.reference, is_reference(e.method), -e.median))
    chosen = [e for e in ranked if labels is None or e.label in labels]
    records = [record for entry in chosen if (record := _typical(comparison, table, entry)) is not None]
    return [_read(record) for record in (records[:_MOST_METHODS] if labels is None else records)]


def _typical(comparison: Comparison, table: TaskTable, entry: Entry) -> Record | None:
    """Return the record nearest to the median among those that left cells; None where none did."""
    left = [
        (abs(final - entry.median), record.seed, record)
        for final, record in zip(entry.final, comparison.records.of(table.task, entry.label), strict=True)
        if record.replica is not None and (record.source / "repertoire.safetensors").exists()
    ]
    if not left:
        return None
    record = min(left, key=lambda item: item[:2])[2]
    return None if is_custom(RunDirectory.open(record.source).read_config().task) else record


def _read(record: Record) -> CellMap:
    """Read the cells of one replica, and nothing else: the genotypes of all can be gigabytes."""
    from safetensors import SafetensorError, safe_open

    path = record.source / "repertoire.safetensors"
    config = RunDirectory.open(record.source).read_config()
    task = task_of(config.task, config.task_config)
    try:
        with safe_open(path, framework="numpy") as file:
            centroids = file.get_tensor("centroids")
            fitness, counts = (file.get_slice(name)[record.replica].astype(float) for name in ("fitness", "counts"))
    except (OSError, SafetensorError) as error:
        raise CorruptError(f"{path}: expected a repertoire, got {error}; restore the file.") from None
    best = fitness_text(record.max_fitness[-1], decimals_for(record.max_fitness[-1:]))
    return CellMap(
        title=f"{record.label}, seed {record.seed} (best {best})",
        task=task,
        cells=Cells(centroids, task.descriptor_bounds, None),
        fitness=np.where(np.isfinite(fitness), fitness, np.nan),
        counts=counts,
    )


def draw(maps: Sequence[CellMap], title: str) -> Figure:
    """Draw a row per method: left the fitness of each cell, right its evaluations on a logarithmic scale.

    Colours mean the same in all rows.

    Args:
        maps: At least one.
        title: Above all.
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
