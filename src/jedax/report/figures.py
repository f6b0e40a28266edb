"""The figures that every run leaves in its directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from jedax.report import plots
from jedax.report.pictures import write_picture
from jedax.store.run import Run


def write_figures(run: Run, folder: Path) -> list[Path]:
    """Draw a run's figures as PNG files; those of cells show the replica that found the best solution.

    Args:
        run: The run.
        folder: Where to; made if it is missing.

    Returns:
        The files, in the order in which one would look at them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawings: dict[str, Callable[[Run], Figure]] = {
        "convergence": _convergence,
        "best": _best,
        "repertoire": lambda run: _cells(run, _fitness(run), "fitness"),
        "evaluations": lambda run: _cells(run, _of(run, run.repertoire.counts), "evaluations", log=True, cmap="magma"),
    }
    if run.gp_mean is not None and run.gp_std is not None and run.has_solution:
        mean, std = _of(run, run.gp_mean), _of(run, run.gp_std)
        drawings["gp_mean"] = lambda run: _cells(run, mean, "GP mean of fitness", with_targets=True)
        drawings["gp_std"] = lambda run: _cells(run, std, "GP standard deviation", cmap="cividis", with_targets=True)
    return [write_picture(folder / f"{name}.png", draw(run)) for name, draw in drawings.items()]


def _of(run: Run, values: np.ndarray | jax.Array) -> np.ndarray:
    return np.asarray(values[run.best_replica])


def _fitness(run: Run) -> np.ndarray:
    fitness = _of(run, run.repertoire.fitness)
    return np.where(np.isfinite(fitness), fitness, np.nan)


def _title(run: Run) -> str:
    seed = run.config.run.seed + run.best_replica
    return f"{run.task.name}, {run.config.method}, seed {seed}"


def _convergence(run: Run) -> Figure:
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(5.5, 4.6), height_ratios=(2, 1))
    plots.convergence(top, run)
    top.set_xlabel("")
    plots.convergence(bottom, run, "coverage", "coverage")
    bottom.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    replicas = run.config.run.replicas
    top.set_title(_title(run) if replicas == 1 else f"{run.task.name}, {run.config.method}, {replicas} replicas",
                  fontsize=10)  # fmt: skip
    figure.align_ylabels()
    return figure


def _best(run: Run) -> Figure:
    figure, ax = plt.subplots(figsize=(4.6, 4.6))
    plots.best(ax, run)
    outcome = f"fitness {run.best().fitness:.2f}" if run.has_solution else "no solution"
    ax.set_title(f"{_title(run)}: {outcome}", fontsize=10)
    return figure


def _cells(
    run: Run,
    values: np.ndarray,
    label: str,
    *,
    log: bool = False,
    cmap: str = "viridis",
    with_targets: bool = False,
) -> Figure:
    figure, ax = plt.subplots(figsize=(5.2, 4.4))
    plots.cell_values(ax, run, values, label, log=log, cmap=cmap)
    if with_targets:
        plots.targets(ax, run, run.best_replica)
    ax.set_title(f"{_title(run)}: {label}", fontsize=10)
    return figure
