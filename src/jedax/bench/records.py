"""Results of many runs in one structure: a record for each method, task and seed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.types import Float


@dataclass(frozen=True, eq=False)
class Record:
    """What one seed of one method did on one task.

    Attributes:
        label: What the method is compared as.
        method: The name of the method; in a CSV file, the label.
        task: The task's name.
        seed: The seed.
        evaluations: `(reports,)`, rising.
        max_fitness: `(reports,)`, the best so far, never falling; -inf before anything was evaluated well.
        coverage: `(reports,)`, share of filled cells, 0 to 1; NaN: unknown.
        budget: Evaluations that the run was given; None: unknown, as in a CSV file.
        goal: Fitness at which the task is solved; None: it has no goal, or only its owner knows.
        task_settings: All settings of the task, as JSON; None: unknown.
        settings: All settings of the method, and others that change what it finds, as JSON; None: unknown.
        source: The run directory or the CSV file.
        replica: Which replica of the run; None: not from a run directory.
        stopped: Whether the run stopped before its budget because it had reached its `stop_fitness`.
        num_restarts: How often its evolution strategy began anew; None: it never would have, or nobody knows.
    """

    label: str
    method: str
    task: str
    seed: int
    evaluations: Float[np.ndarray, " reports"]
    max_fitness: Float[np.ndarray, " reports"]
    coverage: Float[np.ndarray, " reports"]
    budget: int | None
    goal: float | None
    task_settings: str | None
    settings: str | None
    source: Path
    replica: int | None = None
    stopped: bool = False
    num_restarts: float | None = None


@dataclass(frozen=True)
class LeftOut:
    """A run directory that is not compared.

    Attributes:
        path: The directory.
        reason: Why.
    """

    path: Path
    reason: str


@dataclass(frozen=True, eq=False)
class Records:
    """Everything that was found.

    Attributes:
        records: One for each label, task and seed; never two.
        left_out: Runs that have not ended.
    """

    records: tuple[Record, ...]
    left_out: tuple[LeftOut, ...] = ()

    def of(self, task: str, label: str) -> tuple[Record, ...]:
        """Return the records of one method on one task, by seed."""
        return tuple(r for r in self.records if r.task == task and r.label == label)


def curves(where: str, rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return a record's three arrays, which nobody can change, from its reports.

    Args:
        where: Where they come from, for errors.
        rows: Each with evaluations and max_fitness, and coverage where it is known.

    Raises:
        JedaxError: Evaluations do not rise, or the best fitness falls or is NaN.
    """
    columns = {
        name: np.array([row.get(name, np.nan) for row in rows], float)
        for name in ("evaluations", "max_fitness", "coverage")
    }
    for name, expected, rises in (
        ("evaluations", "numbers that rise from report to report", np.greater),
        ("max_fitness", "the best so far, which never falls", np.greater_equal),
    ):
        for before, after in itertools.pairwise([-np.inf if rises is np.greater_equal else -1, *columns[name]]):
            if not rises(after, before):
                raise fail(
                    f"{where}: {name}",
                    expected=expected,
                    received=f"{after:g} after {before:g}",
                    remedy="mend the file",
                )
    for column in columns.values():
        column.flags.writeable = False
    return columns


def check_together(records: Sequence[Record]) -> None:
    """Check that records under one name belong together.

    Raises:
        JedaxError: One seed twice, or two methods, tasks or budgets under one name; both sources are named.
    """
    tasks: dict[str, Record] = {}
    cells: dict[tuple[str, str], Record] = {}
    seeds: dict[tuple[str, str, int], Record] = {}
    for record in records:
        cell = f"{record.label} on {record.task}"
        other = seeds.setdefault((record.label, record.task, record.seed), record)
        if other is not record:
            raise _conflict(f"seed {record.seed} of {cell}", "one result", "two", record, other, "leave one out")
        other = cells.setdefault((record.label, record.task), record)
        if other.settings != record.settings:
            differing = _difference(other.settings, record.settings)
            remedy = "give one of them a label of its own"
            raise _conflict(cell, "one method with the same settings", differing, record, other, remedy)
        if record.task_settings is None:
            continue
        other = tasks.setdefault(record.task, record)
        if other.task_settings != record.task_settings:
            differing = _difference(other.task_settings, record.task_settings)
            raise _conflict(
                record.task, "one task with the same settings", differing, record, other, "compare them apart"
            )
        if other.budget != record.budget:
            budgets = f"{other.budget:,} and {record.budget:,} evaluations"
            raise _conflict(record.task, "one budget", budgets, record, other, "compare them apart")


def _difference(one: str | None, other: str | None) -> str:
    """Return the first of two sets of settings, as JSON, that is not the same in both."""
    if one is None or other is None:
        return "a run and a CSV file"
    first, second = json.loads(one), json.loads(other)
    name = next(n for n in [*first, *second] if first.get(n) != second.get(n) or (n in first) != (n in second))
    shown = [str(values[name]) if name in values else "none" for values in (first, second)]
    return f"{name} {' and '.join(text if len(text) <= 60 else text[:57] + '...' for text in shown)}"


def _conflict(what: str, expected: str, received: str, record: Record, other: Record, remedy: str) -> JedaxError:
    """Word an error without shortening the two sources, the second's value coming last."""
    return JedaxError(f"{what}: expected {expected}, got {received} in {other.source} and {record.source}; {remedy}.")
