"""The figures that every run leaves in its directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from jedax.report import plots
from jedax.report.pictures import write_picture
from jedax.store.run import Run
from jedax.tasks.drawing import plain

_LAYERS = {"repertoire": "fitness", "evaluations": "counts", "gp_mean": "gp_mean", "gp_std": "gp_std"}


def write_figures(run: Run, folder: Path) -> list[Path]:
    """Draw a run's figures as PNG files, and return them; those of cells show the replica with the best solution."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [write_picture(folder / "convergence.png", _convergence(run)),
             write_picture(folder / "best.png", _best(run))]  # fmt: skip
    has_gp = run.gp_mean is not None and run.gp_std is not None and run.has_solution
    for name, layer in _LAYERS.items():
        if has_gp or not layer.startswith("gp_"):
            paths.append(write_picture(folder / f"{name}.png", _cells(run, layer)))
    return paths


def _axes(width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    """Return a figure and its axes, so many inches large, with margins that hold labels, legends and colour bars."""
    left, right, bottom, top = 1.2, 1.2, 1.1, 0.6
    whole, tall = left + width + right, bottom + height + top
    figure, axes = plt.subplots(figsize=(whole, tall), **options)
    figure.subplots_adjust(left / whole, bottom / tall, 1 - right / whole, 1 - top / tall)
    return figure, axes


def _title(run: Run, after: str = "") -> str:
    replicas = run.config.run.replicas
    which = after or replicas == 1
    seed = f"seed {run.config.run.seed + run.best_replica}" if which else f"{replicas} replicas"
    return plain(f"{run.task.name}, {run.config.method}, {seed}" + (f": {after}" if after else ""))


def _convergence(run: Run) -> Figure:
    figure, (top, bottom) = _axes(4.3, 3.6, nrows=2, sharex=True, height_ratios=(2, 1))
    plots.convergence(top, run)
    top.set_xlabel("")
    plots.convergence(bottom, run, "coverage", "coverage")
    bottom.set_ylim(bottom=0)
    bottom.yaxis.set_major_formatter(PercentFormatter(1))
    top.set_title(_title(run), fontsize=10)
    figure.align_ylabels()
    return figure


def _best(run: Run) -> Figure:
    figure, ax = _axes(3.6, 3.6)
    plots.best(ax, run)
    ax.set_title(_title(run, f"fitness {run.best().fitness:.5g}" if run.has_solution else "no solution"), fontsize=10)
    return figure


def _cells(run: Run, layer: str) -> Figure:
    figure, ax = _axes(4.1, 3.5)
    plots.layer(ax, run, layer)
    if layer.startswith("gp_"):
        plots.targets(ax, run, run.best_replica)
    ax.set_title(_title(run, plots.LAYERS[layer]["label"]), fontsize=10)
    return figure
