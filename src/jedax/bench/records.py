"""Results of many runs: a record for each method, task and seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from jedax.errors import JedaxError, fail


@dataclass(frozen=True, eq=False)
class Record:
    """The result of one seed of one method on one task.

    Attributes:
        label: Name of the method in the comparison.
        method: Name of the method in jedax; of a CSV file, the label.
        task: Name of the task.
        seed: The seed.
        curve: A row per report, indexed by evaluations, which rise: `max_fitness`, the best so far, which never falls
            (-inf before the first success), `coverage`, the share of filled cells (NaN: unknown), and the other
            columns of the metrics.
        budget: Evaluations that the run was given; None: unknown, as in a CSV file.
        goal: Fitness at which the task is solved; None: no goal, or unknown.
        task_settings: All settings of the task; None: unknown.
        settings: All settings of the method, and those of the run that change what it finds; None: unknown.
        source: The run directory or the CSV file.
        replica: Replica of the run; None: not from a run directory.
        stopped: Whether the run ended before its budget, at its `stop_fitness` or by a callback.
    """

    label: str
    method: str
    task: str
    seed: int
    curve: pandas.DataFrame
    budget: int | None
    goal: float | None
    task_settings: Mapping[str, Any] | None
    settings: Mapping[str, Any] | None
    source: Path
    replica: int | None = None
    stopped: bool = False


@dataclass(frozen=True, eq=False)
class Records:
    """All results that were found.

    Attributes:
        records: One for each label, task and seed.
        left_out: Directories of runs that are not compared, and why.
    """

    records: tuple[Record, ...]
    left_out: Mapping[Path, str]

    def of(self, task: str, label: str) -> tuple[Record, ...]:
        """Return the records of one method on one task, by seed."""
        return tuple(r for r in self.records if r.task == task and r.label == label)


def curve_of(where: str, reports: pandas.DataFrame) -> pandas.DataFrame:
    """Return the reports of one seed as `Record.curve`.

    Args:
        where: Source of the reports, for errors.
        reports: A row per report, with columns `evaluations` and `max_fitness`.

    Raises:
        JedaxError: Evaluations do not rise, or the best fitness falls or is NaN.
    """
    values = {name: reports[name].to_numpy(float) for name in ("evaluations", "max_fitness")}
    before = {name: np.concatenate([[start], values[name][:-1]]) for name, start in
              (("evaluations", -1.0), ("max_fitness", -np.inf))}  # fmt: skip
    for name, expected, fits in (
        ("evaluations", "numbers that rise from report to report", values["evaluations"] > before["evaluations"]),
        ("max_fitness", "the best so far, which never falls", values["max_fitness"] >= before["max_fitness"]),
    ):
        if not fits.all():
            wrong = fits.argmin()
            received = f"{values[name][wrong]:g} after {before[name][wrong]:g}"
            raise fail(f"{where}: {name}", expected=expected, received=received, remedy="correct the file")
    curve = reports.set_index("evaluations")
    return curve if "coverage" in curve else curve.assign(coverage=np.nan)


def check_together(records: Iterable[Record]) -> None:
    """Check that records with the same label or task belong together.

    Raises:
        JedaxError: A seed twice, or different methods, tasks or budgets under one name; both sources are named.
    """
    first: dict[tuple, Record] = {}
    for record in records:
        trial = f"{record.label} on {record.task}"
        other = first.setdefault((record.label, record.task, record.seed), record)
        if other is not record:
            raise _conflict(f"seed {record.seed} of {trial}", "one result", "two", record, other, "leave one out")
        other = first.setdefault((record.label, record.task), record)
        if other.settings != record.settings:
            received = _first_difference(other.settings, record.settings)
            remedy = "give one of them a label of its own"
            raise _conflict(trial, "one method with the same settings", received, record, other, remedy)
        if record.task_settings is None:
            continue
        other = first.setdefault((record.task,), record)
        remedy = "compare them separately"
        if other.task_settings != record.task_settings:
            received = _first_difference(other.task_settings, record.task_settings)
            raise _conflict(record.task, "one task with the same settings", received, record, other, remedy)
        if other.budget != record.budget:
            received = f"{other.budget:,} and {record.budget:,} evaluations"
            raise _conflict(record.task, "one budget", received, record, other, remedy)


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of settings whose values differ, or that only one side has."""
    return [name for name in {**one, **other} if (name in one, one.get(name)) != (name in other, other.get(name))]


def _first_difference(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str:
    if one is None or other is None:
        return "a run and a CSV file"
    name = differing(one, other)[0]
    shown = [str(values.get(name, "none")) for values in (one, other)]
    return f"{name} {' and '.join(text if len(text) <= 60 else text[:57] + '...' for text in shown)}"


def _conflict(what: str, expected: str, received: str, record: Record, other: Record, remedy: str) -> JedaxError:
    """Return an error that names both sources in full, which `fail` would shorten."""
    return JedaxError(f"{what}: expected {expected}, got {received} in {other.source} and {record.source}; {remedy}.")
