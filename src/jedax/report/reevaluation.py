"""What came of evaluating a run's solutions again: a table, a figure, and files beside the run's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jedax.errors import fail
from jedax.report import plots
from jedax.report.numbers import decimals_for, fitness_text
from jedax.report.pictures import write_picture
from jedax.search.reevaluation import Note, Reevaluation, Solutions, sample_again
from jedax.store.directory import REEVALUATED, RunDirectory
from jedax.store.files import write_atomic, write_json
from jedax.store.run import Run, load
from jedax.tasks.base import Task

FILES = REEVALUATED
"""What `reevaluate` writes into a run's directory."""


def reevaluate(
    run: Run | str | Path,
    *,
    samples: int = 128,
    seed: int = 0,
    cells: str = "all",
    task: Task | None = None,
    note: Note = lambda share: None,
) -> Reevaluation:
    """Evaluate what a run found again, each solution many times, and say how much of what it reports was luck.

    Beside the run's files, which stay as they are, its directory gets `reevaluated.json` (the numbers of `table`),
    `reevaluated.csv` (a row per solution) and, for all cells, `reevaluated.png`. See `docs/guides/noise.md`.

    Example:
        `jedax.reevaluate("runs/noisy").replicas[0].luck`

    Args:
        run: A run that has ended, or its directory; one without a directory writes nothing.
        samples: Evaluations of each solution, at least 4; a task that says that it has no noise gets 2.
        seed: Of their random numbers, which are never those of a search.
        cells: "all" elites, or only the "best" solution of each replica.
        task: The task, where it is an object of your own that the directory cannot name.
        note: Told now and then which share is done, 0 to 1.

    Raises:
        JedaxError: No run, one that has not ended, an argument that does not fit, or results cannot be written.
    """
    run = run if isinstance(run, Run) else load(run, task)
    if run.path is not None and not (run.path / "summary.json").exists():
        raise fail(
            "run directory",
            expected="a run that has ended",
            received=run.path,
            remedy=f"end it with: jedax run --resume {run.path}",
        )
    found = sample_again(run, samples, seed, cells, note)
    if run.path is not None:
        with RunDirectory(run.path).writing():
            _write(run, found, run.path)
    return found


def _write(run: Run, found: Reevaluation, folder: Path) -> None:
    numbers, table, picture = (folder / name for name in FILES)
    picture.unlink(missing_ok=True)  # it would belong to other numbers
    write_json(numbers, as_dict(found))
    write_atomic(table, _csv(found))
    if found.scope == "all":
        write_picture(picture, figure(run, found))


def as_dict(found: Reevaluation) -> dict[str, Any]:
    """Return a reevaluation in numbers, as in reevaluated.json."""
    return {
        "task": found.config.task,
        "method": found.config.method,
        "samples": found.samples,
        "aggregation": found.aggregation,
        "seed": found.seed,
        "cells": found.scope,
        "evaluations": found.evaluations,
        "is_noisy": found.is_noisy,
        "samples_agree": found.agree,
        "replicas": [_replica(found, solutions) for solutions in found.replicas],
    }


def _replica(found: Reevaluation, solutions: Solutions) -> dict[str, Any]:
    best, chosen = solutions.best, solutions.chosen
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
    reported = np.where(solutions.cell >= 0, solutions.reported, -np.inf)
    before, after = reported[np.isfinite(reported)], solutions.elites(found.num_cells)
    after = after[np.isfinite(after)]
    return numbers | {
        "chosen": None if chosen is None else {
            "cell": int(solutions.cell[chosen.row]), "fitness": chosen.fitness, "standard_error": chosen.error,
        },
        "coverage": {"reported": len(before) / found.num_cells, "corrected": len(after) / found.num_cells},
        "qd_score": {
            "reported": float((before - found.qd_offset).sum()), "corrected": float((after - found.qd_offset).sum()),
        },
        "num_elites": solutions.num_elites,
        "num_kept": solutions.num_kept,
    }  # fmt: skip


def _csv(found: Reevaluation) -> str:
    text = io.StringIO()
    axes = range(found.replicas[0].descriptor.shape[1])
    writer = csv.writer(text)
    writer.writerow(["seed", "cell", "is_best", "reported_fitness", "corrected_fitness", "standard_error",
                     "failed_samples", "corrected_cell", *(f"reported_descriptor_{i}" for i in axes),
                     *(f"corrected_descriptor_{i}" for i in axes)])  # fmt: skip
    for s in found.replicas:
        for row in range(len(s.cell)):
            numbers = s.reported[row], s.fitness[row], s.error[row]
            places = *s.reported_descriptor[row], *s.descriptor[row]
            writer.writerow([s.seed, s.cell[row], int(row == s.best), *map(_text, numbers), s.failed[row],
                             s.new_cell[row], *map(_text, places)])  # fmt: skip
    return text.getvalue()


def _text(number: float) -> str:
    return f"{number:.7g}"


def table(found: Reevaluation) -> str:
    """Return what came out as text: a block of lines for each replica."""
    each = "every elite" if found.scope == "all" else "the best solution"
    seeds = "" if len(found.replicas) == 1 else f" of {len(found.replicas)} seeds"
    parts = [f"{found.config.task}, {found.config.method}: {found.samples} new samples of {each}{seeds} "
             f"({found.evaluations:,} evaluations), {found.aggregation}s and standard errors"]  # fmt: skip
    if not found.is_noisy:
        parts.append("nothing in this task is random, so two samples are enough"
                     + (", and they agree" if found.agree else "; they differ by rounding alone"))  # fmt: skip
    elif found.agree:
        parts.append("all samples of every solution agree: nothing in this task seems to be random")
    for solutions in found.replicas:
        parts.append("\n".join(_lines(found, solutions)))
    if found.scope == "all" and not found.agree:
        parts.append("best elite: chosen by one half of the samples, measured by the other, for the best of many means "
                     "is lucky, too.")  # fmt: skip
    return "\n\n".join(parts)


def _lines(found: Reevaluation, solutions: Solutions) -> list[str]:
    numbers = _replica(found, solutions)
    decimals = decimals_for([numbers["reported_best"], numbers["corrected_best"]])

    def with_error(value: float, error: float) -> str:
        return f"{fitness_text(value, decimals)} ± {fitness_text(error, decimals)}"

    corrected = with_error(numbers["corrected_best"], numbers["standard_error"])
    rows = [
        (f"seed {solutions.seed}", "reported", "corrected", ""),
        ("best fitness", fitness_text(numbers["reported_best"], decimals), corrected,
         f"luck {fitness_text(numbers['luck'], decimals)}"),
    ]  # fmt: skip
    if found.scope == "all":
        chosen, coverage, qd_score = numbers["chosen"], numbers["coverage"], numbers["qd_score"]
        measured = "none" if chosen is None else with_error(chosen["fitness"], chosen["standard_error"])
        rows += [
            ("best elite", "", measured, ""),
            ("coverage", f"{coverage['reported']:.1%}", f"{coverage['corrected']:.1%}", ""),
            ("QD score", f"{qd_score['reported']:,.6g}", f"{qd_score['corrected']:,.6g}", ""),
            ("elites in their cell", str(numbers["num_elites"]), str(numbers["num_kept"]), ""),
        ]
    if numbers["failed_samples"]:
        rows.append(("failed samples", "", f"{numbers['failed_samples']:,}", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        f"{name:<{widths[0]}}  {before:>{widths[1]}}  {after:<{widths[2]}}  {more}".rstrip()
        for name, before, after, more in rows
    ]


def figure(run: Run, found: Reevaluation) -> Figure:
    """Draw reported against corrected fitness, and luck by cell, of the replica that found the best solution."""
    solutions = found.replicas[run.best_replica]
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10.2, 4.4))
    scatter(left, solutions)
    luck = np.full(found.num_cells, np.nan)
    rows = solutions.cell >= 0
    luck[solutions.cell[rows]] = (solutions.reported - solutions.fitness)[rows]
    largest = np.nanmax(np.abs(luck), initial=0) or 1.0
    plots.cell_values(right, run, luck, "luck: reported minus corrected fitness", cmap="RdBu_r",
                      limits=(-largest, largest))  # fmt: skip
    right.set_title("luck by cell", fontsize=10)
    drawn.suptitle(f"{run.task.name}, {run.config.method}, seed {solutions.seed}: {found.samples} new samples of every "
                   "elite", fontsize=10)  # fmt: skip
    drawn.tight_layout()
    return drawn


def scatter(ax: Axes, solutions: Solutions) -> None:
    """Draw corrected against reported fitness: a dot per solution, the best with its standard error."""
    known = np.isfinite(solutions.fitness) & np.isfinite(solutions.reported)
    reported, fitness = solutions.reported[known], solutions.fitness[known]
    ax.plot(reported, fitness, ".", color=plots.PATH, markersize=6, alpha=0.5, markeredgewidth=0, label="elite")
    best = solutions.best
    ax.errorbar(solutions.reported[best], solutions.fitness[best], solutions.error[best], fmt="*", markersize=13,
                color=plots.STOP, markeredgecolor="white", capsize=3, label="reported best", zorder=4)  # fmt: skip
    ax.axline((reported.mean(), reported.mean()), slope=1, color="#888888", linewidth=1, zorder=0, label="no luck")
    ax.set(xlabel="reported fitness", ylabel="corrected fitness")
    ax.set_title("reported and corrected fitness", fontsize=10)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=8)
