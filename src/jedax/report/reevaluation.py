"""The output of `jedax reevaluate`: a table, a figure, and files beside those of the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jedax.errors import fail, jedax_command, memory_in_words
from jedax.report import plots
from jedax.report.numbers import decimals_for, fitness_text
from jedax.report.pictures import write_picture
from jedax.search.reevaluation import Note, Reevaluation, Solutions, sample_again
from jedax.store.directory import REEVALUATED, RunDirectory
from jedax.store.files import write_atomic, write_json
from jedax.store.run import Run, opened
from jedax.tasks.base import Task
from jedax.tasks.drawing import plain

_EMPTY = "#b8b8b8"  # cells without a solution, darker than the white of no luck


@memory_in_words()
def reevaluate(
    run: Run | str | Path, *, samples: int = 128, seed: int = 0, cells: str = "all", parameter_noise: float = 0.0,
    task: Task | None = None, trust: bool = False, note: Note = lambda share: None,
) -> Reevaluation:  # fmt: skip
    """Evaluate the solutions of a run again, each many times, and return how much of its results was luck.

    The run's own files are not changed. Its directory gets `reevaluated.json` (the numbers of `table`),
    `reevaluated.csv` (a row per solution) and, for all cells, `reevaluated.png`. See `docs/guides/noise.md`.

    Example:
        `jedax.reevaluate("runs/noisy").replicas[0].luck`

    Args:
        run: A run that has ended, or its directory; nothing is written for a run without a directory.
        samples: Evaluations of each solution, at least 4; a task without noise gets 2, unless parameters have noise.
        seed: The seed of their random numbers, which no search draws.
        cells: "all" elites, or only the "best" solution of each replica.
        parameter_noise: Standard deviation of normal noise on the parameters of each sample, in units of the spread of
            random solutions: it shows what remains of a fitness when a solution changes a little.
        task: The task, where it is an object of your own that the directory cannot name.
        trust: Import all code that the settings name, as in `jedax.resume`.
        note: Called from time to time with the share that is done, 0 to 1.

    Raises:
        JedaxError: No run, one that has not ended, an argument that does not fit, or results cannot be written.
    """
    run = opened(run, task, trust=trust)
    if run.path is not None and not (run.path / "summary.json").exists():
        remedy = f"end it with: {jedax_command('run', '--resume', run.path)}"
        raise fail("run directory", expected="a run that has ended", received=run.path, remedy=remedy)
    found = sample_again(run, samples, seed, cells, parameter_noise, note)
    if run.path is not None:
        numbers, table, picture = (run.path / name for name in REEVALUATED)
        with RunDirectory(run.path).writing():
            picture.unlink(missing_ok=True)  # it shows other numbers
            write_json(numbers, as_dict(found))
            write_atomic(table, _csv(found))
            if found.scope == "all":
                write_picture(picture, figure(found))
    return found


def as_dict(found: Reevaluation) -> dict[str, Any]:
    """Return the numbers of a reevaluation, as in reevaluated.json."""
    return {
        "task": found.run.config.task,
        "method": found.run.config.method,
        "samples": found.samples,
        "aggregation": found.aggregation,
        "seed": found.seed,
        "cells": found.scope,
        "parameter_noise": found.parameter_noise,
        "evaluations": found.evaluations,
        "is_noisy": found.run.task.is_noisy,
        "samples_agree": found.agree,
        "replicas": [_numbers(found, solutions) for solutions in found.replicas],
    }


def _numbers(found: Reevaluation, solutions: Solutions) -> dict[str, Any]:
    best, chosen, num_cells = solutions.best, solutions.chosen, found.run.cells.num_cells
    numbers: dict[str, Any] = {
        "seed": solutions.seed,
        "reported_best": float(solutions.reported[best]),
        "corrected_best": float(solutions.fitness[best]),
        "standard_error": float(solutions.error[best]),
        "luck": solutions.luck,
        "failed_samples": int(solutions.failed.sum()),
    }
    if found.scope == "best":
        return numbers
    filled = {"reported": solutions.reported[solutions.cell >= 0], "corrected": solutions.elites(num_cells)}
    filled = {name: fitness[np.isfinite(fitness)] for name, fitness in filled.items()}
    return numbers | {
        "chosen": None if chosen is None else {
            "cell": int(solutions.cell[chosen.row]), "fitness": chosen.fitness, "standard_error": chosen.error,
        },
        "coverage": {name: len(fitness) / num_cells for name, fitness in filled.items()},
        "qd_score": {name: float((fitness - found.run.task.qd_offset).sum()) for name, fitness in filled.items()},
        "num_elites": solutions.num_elites,
        "num_kept": solutions.num_kept,
    }  # fmt: skip


def _csv(found: Reevaluation) -> str:
    """Return a row per solution."""
    import pandas

    tables = [
        pandas.DataFrame({
            "seed": s.seed, "cell": s.cell, "is_best": (np.arange(len(s.cell)) == s.best).astype(int),
            "reported_fitness": s.reported, "corrected_fitness": s.fitness, "standard_error": s.error,
            "failed_samples": s.failed, "corrected_cell": s.new_cell,
            **{f"reported_descriptor_{i}": axis for i, axis in enumerate(s.reported_descriptor.T)},
            **{f"corrected_descriptor_{i}": axis for i, axis in enumerate(s.descriptor.T)},
        })
        for s in found.replicas
    ]  # fmt: skip
    return pandas.concat(tables).to_csv(index=False, float_format="%.7g", na_rep="nan")


def table(found: Reevaluation) -> str:
    """Return the numbers as text, a block of lines for each replica."""
    each = "every elite" if found.scope == "all" else "the best solution"
    seeds = "" if len(found.replicas) == 1 else f" of {len(found.replicas)} seeds"
    parts = [f"{found.run.config.task}, {found.run.config.method}: {found.samples} new samples of {each}{seeds} "
             f"({found.evaluations:,} evaluations), {found.aggregation}s and standard errors"]  # fmt: skip
    if found.parameter_noise:
        parts.append("parameters with normal noise, whose standard deviation is "
                     f"{found.parameter_noise:g} of the spread of random solutions")  # fmt: skip
    elif not found.run.task.is_noisy:
        parts.append("nothing in this task is random, so two samples are enough"
                     + (", and they agree" if found.agree else "; they differ by rounding alone"))  # fmt: skip
    elif found.agree:
        parts.append("all samples of every solution agree: nothing in this task seems to be random")
    parts += ["\n".join(_lines(found, solutions)) for solutions in found.replicas]
    if found.scope == "all" and not found.agree:
        parts.append("best elite: chosen by one half of the samples and measured by the other, because the best of "
                     "many means is lucky, too.")  # fmt: skip
    return "\n\n".join(parts)


def _lines(found: Reevaluation, solutions: Solutions) -> list[str]:
    numbers = _numbers(found, solutions)
    decimals = decimals_for([numbers["reported_best"], numbers["corrected_best"]])

    def text(value: float) -> str:
        return fitness_text(value, decimals)

    def measured(value: float, error: float) -> str:
        return f"{text(value)} ± {text(error)}" if math.isfinite(error) else text(value)  # one sample has no error

    best = measured(numbers["corrected_best"], numbers["standard_error"])
    rows = [
        (f"seed {solutions.seed}", "reported", "corrected", ""),
        ("best fitness", text(numbers["reported_best"]), best, f"luck {text(numbers['luck'])}"),
    ]
    if found.scope == "all":
        chosen, coverage, qd_score = numbers["chosen"], numbers["coverage"], numbers["qd_score"]
        elite = "none" if chosen is None else measured(chosen["fitness"], chosen["standard_error"])
        rows += [
            ("best elite", "", elite, ""),
            ("coverage", f"{coverage['reported']:.1%}", f"{coverage['corrected']:.1%}", ""),
            ("QD score", f"{qd_score['reported']:,.6g}", f"{qd_score['corrected']:,.6g}", ""),
            ("elites in their cell", str(numbers["num_elites"]), str(numbers["num_kept"]), ""),
        ]
    if numbers["failed_samples"]:
        rows.append(("failed samples", "", f"{numbers['failed_samples']:,}", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{name:<{widths[0]}}  {before:>{widths[1]}}  {after:<{widths[2]}}  {more}".rstrip()
            for name, before, after, more in rows]  # fmt: skip


def figure(found: Reevaluation) -> Figure:
    """Draw reported against corrected fitness, and the luck of each cell, of the best replica."""
    run = found.run
    solutions = found.replicas[run.best_replica]
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10.2, 4.4))
    scatter(left, solutions)
    luck = np.full(run.cells.num_cells, np.nan)
    rows = solutions.cell >= 0
    luck[solutions.cell[rows]] = (solutions.reported - solutions.fitness)[rows]
    largest = np.nanmax(np.abs(luck), initial=0)
    label = "luck: reported minus corrected fitness" + ("" if largest else " (0 in every cell)")
    plots.cell_values(right, run, luck, label, cmap="RdBu_r", empty_colour=_EMPTY, limits=(-largest, largest))
    right.set_title("luck by cell", fontsize=10)
    title = f"{run.task.name}, {run.config.method}, seed {solutions.seed}: {found.samples} new samples of every elite"
    drawn.suptitle(plain(title), fontsize=10)
    drawn.tight_layout()
    return drawn


def scatter(ax: Axes, solutions: Solutions) -> None:
    """Draw corrected against reported fitness: a dot per solution, and the best one with its standard error."""
    known = np.isfinite(solutions.fitness) & np.isfinite(solutions.reported)
    reported, fitness = solutions.reported[known], solutions.fitness[known]
    ax.plot(reported, fitness, ".", color=plots.PATH, markersize=6, alpha=0.5, markeredgewidth=0, label="elite")
    best = solutions.best
    ax.errorbar(solutions.reported[best], solutions.fitness[best], solutions.error[best], fmt="*", markersize=13,
                color=plots.STOP, markeredgecolor="white", capsize=3, label="reported best", zorder=4)  # fmt: skip
    if len(reported):
        ax.axline((reported.mean(), reported.mean()), slope=1, color="#888888", linewidth=1, zorder=0, label="no luck")
    ax.set(xlabel="reported fitness", ylabel="corrected fitness")
    ax.set_title("reported and corrected fitness", fontsize=10)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=8)
