"""What the runs of JEDi look like that do not reach the goal of maze A; called by results/paper_mazes.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas
from claims import GOAL
from keeping import write_small
from matplotlib.figure import Figure

import jedax
from jedax.bench.grids import slug
from jedax.report import plots
from jedax.search.api import Run
from jedax.store.files import write_atomic

_UPPER_WALL = 0.6  # the second coordinate of the wall of maze A that lies before the goal
LABELS = ("jedi decay", "jedi tuned", "jedi-uniform")


def keep_stuck(runs: Path, folder: Path) -> str:
    """Write stuck.csv, a row for each seed of JEDi on maze A, and stuck.png, the first one that does not arrive.

    Without the runs both stay what they are.

    Returns:
        The table for the page.
    """
    path, rows, drawn = folder / "stuck.csv", [], None
    if not all((runs / "maze-a" / slug(label)).exists() for label in LABELS):
        return table(pandas.read_csv(path))
    for label in LABELS:
        for directory in sorted((runs / "maze-a" / slug(label)).glob("seeds-*")):
            run = jedax.load(directory)
            for replica in range(run.replicas):
                rows.append(row_of(label, run, replica))
                if drawn is None and not rows[-1]["arrived"]:
                    drawn = run, replica, rows[-1]
    found = pandas.DataFrame(rows)
    write_atomic(path, found.to_csv(index=False, float_format="%.4g"))
    if drawn is not None:
        write_small(draw(*drawn[:2], f"{drawn[2]['label']}, seed {drawn[2]['seed']}"), folder / "figures" / "stuck.png")
    return table(found)


def table(rows: pandas.DataFrame) -> str:
    """Return where the last targets of each method lie, of seeds that arrive and of those that do not."""
    lines = [
        "| | seeds | last targets | beyond the upper wall | of these in empty cells | filled cells, median (range) |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for label in LABELS:
        for arrived in (False, True):
            each = rows[(rows.label == label) & (rows.arrived == arrived)]
            if not len(each):
                continue
            low, middle, high = (f"{each.coverage.quantile(share):.0%}" for share in (0, 0.5, 1))
            counts = [each[name].sum() for name in ("targets", "beyond_the_wall", "empty_beyond_the_wall")]
            what = f"{label}, {'arrived' if arrived else 'not arrived'}"
            lines.append(f"| {what} | {len(each)} | {' | '.join(map(str, counts))} | {middle} ({low} to {high}) |")
    return "\n".join(lines) + "\n"


def row_of(label: str, run: Run, replica: int) -> dict[str, object]:
    """Return where the last targets of a seed lie."""
    assert run.targets is not None
    targets = np.asarray(run.targets[replica])
    cells = np.argmin(np.square(run.cells.centroids - targets[:, None]).sum(axis=2), axis=1)
    filled = np.isfinite(np.asarray(run.repertoire.fitness[replica]))
    fitness = float(run.best(replica).fitness)
    return {
        "label": label,
        "seed": run.config.run.seed + replica,
        "fitness": fitness,
        "arrived": fitness >= GOAL,
        "coverage": float(filled.mean()),
        "targets": len(targets),
        "beyond_the_wall": int((targets[:, 1] > _UPPER_WALL).sum()),
        "empty_beyond_the_wall": int(((targets[:, 1] > _UPPER_WALL) & ~filled[cells]).sum()),
    }


def draw(run: Run, replica: int, title: str) -> Figure:
    """Return a figure of the end of a seed: its best robot, the evaluations of each cell, and the process."""
    figure, axes = plt.subplots(1, 4, figsize=(18, 4.4), dpi=100, layout="constrained")
    assert run.gp_mean is not None
    assert run.gp_std is not None
    plots.best(axes[0], run, replica)
    counts = np.asarray(run.repertoire.counts[replica])
    plots.cell_values(axes[1], run, counts, "evaluations", log=True, cmap="magma")
    plots.cell_values(axes[2], run, run.gp_mean[replica], "GP mean of fitness")
    plots.targets(axes[2], run, replica)
    plots.cell_values(axes[3], run, run.gp_std[replica], "GP standard deviation", cmap="cividis")
    plots.targets(axes[3], run, replica)
    figure.suptitle(title)
    return figure
