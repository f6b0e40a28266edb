"""The comparison of methods as data: what each reached on each task, and whether it differs from JEDi.

After Table 1 of the paper: the median over seeds of the final best fitness, and for each baseline the p-value of a
Mann-Whitney U test against the better version of JEDi on that task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jedax.bench import statistics
from jedax.bench.reading import read
from jedax.bench.records import Record, Records
from jedax.errors import JedaxError as _JedaxError
from jedax.errors import check_choice, fail
from jedax.methods.registry import method_named
from jedax.methods.registry import methods as known_methods
from jedax.tasks.registry import entries
from jedax.types import Float

SIGNIFICANT = 0.05

_SHORT_OF_BUDGET = 0.98


@dataclass(frozen=True)
class Reached:
    """How soon a method reached a fitness.

    Attributes:
        fitness: What was to be reached.
        evaluations: Of each seed, at the first report at which it was there; inf: never.
    """

    fitness: float
    evaluations: tuple[float, ...]

    @property
    def count(self) -> int:
        """How many seeds reached it."""
        return int(np.isfinite(self.evaluations).sum())

    @property
    def median(self) -> float:
        """Median of the evaluations, inf where half of the seeds or more never reached it."""
        return float(np.median(self.evaluations))


@dataclass(frozen=True)
class Entry:
    """One method on one task: a cell of the table.

    Attributes:
        label: What the method is compared as.
        method: Its name.
        seeds: Rising.
        final: Best fitness of each seed at the end of the task's budget.
        coverage: Share of filled cells of each seed there; NaN: unknown.
        interval: 95 % bootstrap interval of the median of `final`; None for a single seed.
        successes: Seeds that reached the goal; None: the task has none.
        success_interval: 95 % Wilson interval of their share.
        reached: For the goal, if there is one, and for each fitness asked for.
        place: 1: best median of the task, 2: second best, 0: neither; equal medians share a place.
        p: Two-sided p-value of the Mann-Whitney U test against the reference; None: not tested.
        p_holm: The same, corrected by Holm for all comparisons on the task.
        effect: Vargha and Delaney's A, how likely a seed of this method ends above one of the reference; None where
            p is.
    """

    label: str
    method: str
    seeds: tuple[int, ...]
    final: tuple[float, ...]
    coverage: tuple[float, ...]
    interval: tuple[float, float] | None
    successes: int | None
    success_interval: tuple[float, float] | None
    reached: tuple[Reached, ...]
    place: int = 0
    p: float | None = None
    p_holm: float | None = None
    effect: float | None = None

    @property
    def median(self) -> float:
        """Median of the final best fitness."""
        return float(np.median(self.final))

    @property
    def median_coverage(self) -> float:
        """Median of the coverage; NaN where that of a seed is unknown."""
        return float(np.median(self.coverage))

    @property
    def similar(self) -> bool:
        """Whether the test found no significant difference from the reference: the star of the paper's table."""
        return self.p is not None and self.p > SIGNIFICANT


@dataclass(frozen=True)
class TaskTable:
    """One task: a row of the table.

    Attributes:
        task: Its name.
        budget: Evaluations at which the methods are compared.
        goal: Fitness at which it is solved; None: it has no goal.
        reference: Label that the others are tested against; None: nothing is tested.
        entries: One per method that has results, in the order of `Comparison.labels`.
    """

    task: str
    budget: int
    goal: float | None
    reference: str | None
    entries: tuple[Entry, ...]

    def entry(self, label: str) -> Entry | None:
        """Return a method's entry, None where it has no results on this task."""
        return next((entry for entry in self.entries if entry.label == label), None)


@dataclass(frozen=True, eq=False)
class Comparison:
    """All that was compared.

    Attributes:
        labels: The methods, JEDi first.
        tables: One per task.
        records: What it was made from.
        notes: What a careful reader has to know.
    """

    labels: tuple[str, ...]
    tables: tuple[TaskTable, ...]
    records: Records
    notes: tuple[str, ...]

    def curves(
        self, table: TaskTable, label: str, column: str
    ) -> tuple[Float[np.ndarray, " grid"], Float[np.ndarray, "seeds grid"]]:
        """Return a method's "max_fitness" or "coverage" on a task, on a grid that all its seeds share.

        See `jedax.bench.statistics.on_common_grid`.
        """
        records = self.records.of(table.task, label)
        return statistics.on_common_grid([(r.evaluations, getattr(r, column)) for r in records], table.budget)


def compare(
    paths: str | Path | Iterable[str | Path], *, reference: str | None = None, fitness: Sequence[float] = ()
) -> Comparison:
    """Compare all runs and foreign results below some directories; nothing is written.

    Args:
        paths: Directories and CSV files, as in `jedax.bench.reading.read`.
        reference: Label that all others are tested against. None: on each task the version of JEDi with the
            highest median, against which all methods but JEDi are tested.
        fitness: Fitness values, beside the goal, for which the evaluations to reach them are counted.

    Raises:
        JedaxError: As in `read`; an unknown reference, or a fitness that is not finite.
    """
    records = read([paths] if isinstance(paths, str | Path) else paths)
    labels = _ordered_labels(records.records)
    if reference is not None:
        check_choice("reference", reference, labels)
    for value in fitness:
        if not np.isfinite(value):
            raise fail("fitness", expected="finite numbers", received=value, remedy="leave it out")
    tasks = sorted({r.task for r in records.records}, key=lambda task: (_place(task, entries()), _natural(task)))
    tables = tuple(_table(records, task, labels, reference, fitness) for task in tasks)
    return Comparison(labels, tables, records, tuple(_notes(tables, records, reference)))


def _ordered_labels(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the labels: JEDi's, then other methods as jedax lists them, then foreign ones; numbers by size."""
    methods = {}
    for record in records:
        methods.setdefault(record.label, record.method)
    return tuple(
        sorted(methods, key=lambda n: (not is_reference(methods[n]), _place(methods[n], known_methods()), _natural(n)))
    )


def _place(name: str, known: Iterable[str]) -> int:
    names = list(known)
    return names.index(name) if name in names else len(names)


def _natural(text: str) -> list[tuple[float, str]]:
    """Return a key that sorts `alpha=0.3` before `alpha=0.10`... by the numbers in a text, not by their digits."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if place % 2 else (-1.0, part) for place, part in enumerate(parts)]


def _table(
    records: Records, task: str, labels: Sequence[str], reference: str | None, fitness: Sequence[float]
) -> TaskTable:
    mine = [r for r in records.records if r.task == task]
    known = [r for r in mine if r.budget is not None]
    budget = (known[0].budget if known else None) or int(max(r.evaluations[-1] for r in mine))
    # The runs know the task better than its name in a CSV file does; all of them have the same settings of it.
    goal = (known or mine)[0].goal
    levels = ([] if goal is None else [goal]) + sorted({float(level) for level in fitness if level != goal})
    entries = [_entry(found, budget, goal, levels) for label in labels if (found := records.of(task, label))]
    medians = sorted({entry.median for entry in entries}, reverse=True)[:2]
    entries = [replace(e, place=medians.index(e.median) + 1 if e.median in medians else 0) for e in entries]
    chosen = _reference(entries, reference)
    return TaskTable(task, budget, goal, chosen and chosen.label, tuple(_tested(entries, chosen, reference is None)))


def _entry(records: Sequence[Record], budget: int, goal: float | None, levels: Sequence[float]) -> Entry:
    final, coverage = (
        tuple(float(statistics.value_at(r.evaluations, getattr(r, column), [budget])[0]) for r in records)
        for column in ("max_fitness", "coverage")
    )
    late = next((r for r in records if r.evaluations[0] > budget), None)
    if late is not None:
        raise fail(
            f"seed {late.seed} of {late.label} on {late.task}",
            expected=f"a report within the budget of {budget:,} evaluations",
            received=f"the first at {late.evaluations[0]:,.0f} in {late.source}",
            remedy="leave it out",
        )
    successes = None if goal is None else sum(value >= goal for value in final)
    reached = [[_until(r, level, budget) for r in records] for level in levels]
    return Entry(
        label=records[0].label,
        method=records[0].method,
        seeds=tuple(r.seed for r in records),
        final=final,
        coverage=coverage,
        interval=statistics.median_interval(final),
        successes=successes,
        success_interval=None if successes is None else statistics.wilson_interval(successes, len(final)),
        reached=tuple(Reached(level, tuple(counts)) for level, counts in zip(levels, reached, strict=True)),
    )


def _until(record: Record, level: float, budget: int) -> float:
    needed = statistics.evaluations_to_reach(record.evaluations, record.max_fitness, level)
    return needed if needed <= budget else float("inf")


def _reference(entries: Sequence[Entry], reference: str | None) -> Entry | None:
    if reference is not None:
        return next((entry for entry in entries if entry.label == reference), None)
    return max((e for e in entries if is_reference(e.method)), key=lambda entry: entry.median, default=None)


def _tested(entries: Sequence[Entry], reference: Entry | None, spare_jedi: bool) -> list[Entry]:
    """Return the entries with p-values and effect sizes against the reference.

    Args:
        entries: Of one task.
        reference: One of them; None: nothing is tested.
        spare_jedi: Whether other versions of JEDi are not tested.
    """
    if reference is None:
        return list(entries)
    p_values = [
        None
        if entry is reference or (spare_jedi and is_reference(entry.method))
        else statistics.mann_whitney(entry.final, reference.final)
        for entry in entries
    ]
    return [
        entry
        if p is None
        else replace(entry, p=p, p_holm=p_holm, effect=statistics.vargha_delaney(entry.final, reference.final))
        for entry, p, p_holm in zip(entries, p_values, statistics.holm(p_values), strict=True)
    ]


def _notes(tables: Sequence[TaskTable], records: Records, reference: str | None) -> list[str]:
    notes = []
    lacking = [table.task for table in tables if table.reference is None]
    if lacking and reference is None:
        notes.append(f"No p-values on {', '.join(lacking)}: no JEDi there, and no reference was chosen.")
    elif lacking:
        notes.append(f"No p-values on {', '.join(lacking)}: the reference {reference} has no results there.")
    counts = {table.task: sorted({len(entry.seeds) for entry in table.entries}) for table in tables}
    if unequal := [f"{task} ({n[0]} to {n[-1]})" for task, n in counts.items() if len(n) > 1]:
        notes.append(f"The methods have unequal numbers of seeds on {', '.join(unequal)}.")
    for table in tables:
        single = [entry.label for entry in table.entries if len(entry.seeds) < 2]
        if single:
            notes.append(f"{table.task}: a single seed of {', '.join(single)}; no interval and no p-value with it.")
        if table.reference is not None and (known := [e for e in table.entries if e.p is not None]):
            ours = next(len(entry.seeds) for entry in table.entries if entry.label == table.reference)
            least = min(statistics.least_p(ours, len(entry.seeds)) for entry in known)
            if least > SIGNIFICANT:
                notes.append(f"{table.task}: with so few seeds no p-value can be below {least:.2g}; run more.")
        for entry in table.entries:
            if all(record.num_restarts == 0 for record in records.of(table.task, entry.label)):
                notes.append(f"{table.task}: {entry.label} never restarted in any of its runs: it did what es does "
                             "with the same settings.")  # fmt: skip
        stopped = [r for r in records.records if r.task == table.task and r.stopped]
        if stopped:
            labels = ", ".join(sorted({r.label for r in stopped}))
            notes.append(f"{table.task}: seeds of {labels} that stopped at their stop_fitness, before the budget was "
                         f"spent: {len(stopped)}; what they would have reached is unknown.")  # fmt: skip
        short = [r for r in records.records if r.task == table.task and r.budget is None
                 and r.evaluations[-1] < _SHORT_OF_BUDGET * table.budget]  # fmt: skip
        if short:
            labels = ", ".join(sorted({r.label for r in short}))
            notes.append(f"{table.task}: seeds of {labels} that end before the budget of {table.budget:,} evaluations: "
                         f"{len(short)}, the first at {min(r.evaluations[-1] for r in short):,.0f}; their last value "
                         "stands for what they would have reached.")  # fmt: skip
    return notes


def is_reference(method: str) -> bool:
    """Return whether comparisons test other methods against this one: the family of JEDi."""
    try:
        return method_named(method).method.family == "jedi"
    except _JedaxError:  # a method of another program
        return False
