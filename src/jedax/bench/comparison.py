"""The comparison of methods as data: the result of each method on each task, and its test against a reference.

After Table 1 of the paper: the median over seeds of the final best fitness, and for each other method the p-value of a
Mann-Whitney U test against the best JEDi of the task.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas

from jedax.bench import statistics
from jedax.bench.reading import Record, Records, read
from jedax.errors import check_choice, fail
from jedax.methods.registry import ALIASES, methods
from jedax.tasks.base import reaches
from jedax.tasks.registry import entries

SIGNIFICANT = 0.05


def is_reference(method: str) -> bool:
    """Return whether a method is a registered JEDi: others are tested against the best of these."""
    entry = methods().get(ALIASES.get(method, method))
    return entry is not None and entry.method.is_reference


@dataclass(frozen=True)
class Reached:
    """How soon a method reached a fitness."""

    fitness: float
    evaluations: tuple[float, ...]  # of each seed until then, known to the evaluation or to the report; inf: never

    @property
    def count(self) -> int:
        """Number of seeds that reached it."""
        return int(np.isfinite(self.evaluations).sum())

    @property
    def median(self) -> float:
        """Median of the evaluations; inf if half of the seeds or more never reached it."""
        return float(np.median(self.evaluations))


@dataclass(frozen=True)
class Entry:
    """One method on one task."""

    label: str  # name of the method in the comparison
    method: str  # name of the method in jedax
    seeds: tuple[int, ...]  # rising
    final: tuple[float, ...]  # best fitness of each seed at the end of the task's budget
    coverage: tuple[float, ...]  # share of filled cells of each seed at that time; NaN: unknown
    interval: tuple[float, float] | None  # of the median of `final`, see `interval_kind`; None for a single seed
    successes: int | None  # number of seeds that reached the goal; None: the task has none
    success_interval: tuple[float, float] | None  # 95 % Wilson interval of their share
    reached: tuple[Reached, ...]  # for the goal, if there is one, and for each fitness asked for
    place: int = 0  # 1: best median of the task, 2: second best, 0: neither, or -inf; equal medians share a place
    p: float | None = None  # two-sided Mann-Whitney U test against the reference; None: not tested
    p_holm: float | None = None  # the same, corrected by Holm's method for all tests on the task
    effect: float | None = None  # Vargha and Delaney's A: probability that a seed ends above one of the reference

    @property
    def median(self) -> float:
        """Median of the final best fitness."""
        return float(np.median(self.final))

    @property
    def interval_kind(self) -> str | None:
        """What `interval` is: "95 % bootstrap", "range" (least to greatest, of fewer than 5 seeds), or None."""
        if self.interval is None:
            return None
        return "range" if len(self.seeds) < statistics.FEWEST_FOR_INTERVAL else "95 % bootstrap"

    @property
    def median_coverage(self) -> float:
        """Median of the coverage; NaN if that of a seed is unknown."""
        return float(np.median(self.coverage))

    @property
    def similar(self) -> bool:
        """Whether the test found no significant difference from the reference."""
        return self.p is not None and self.p > SIGNIFICANT


@dataclass(frozen=True)
class TaskTable:
    """One task: a row of the table."""

    task: str
    budget: int  # evaluations at which the methods are compared
    goal: float | None  # fitness at which the task is solved; None: it has no goal
    reference: str | None  # label of the method that the others are tested against; None: nothing is tested
    entries: tuple[Entry, ...]  # one per method with results, in the order of `Comparison.labels`

    def entry(self, label: str) -> Entry | None:
        """Return a method's entry; None if it has no results on this task."""
        return next((entry for entry in self.entries if entry.label == label), None)

    @property
    def verdict(self) -> str | None:
        """What the tests say of the reference, in one sentence; None: nothing was tested."""
        reference, tested = self.entry(self.reference or ""), [entry for entry in self.entries if entry.p is not None]
        if reference is None or not tested:
            return None
        groups = {"above": [], "below": [], "not distinguishable from": []}  # type: dict[str, list[str]]
        for entry in tested:
            pairs = list(itertools.product(reference.final, entry.final))
            wins, ties = sum(mine > other for mine, other in pairs), sum(mine == other for mine, other in pairs)
            equal = f", equal in {ties}" if ties else ""
            text = f"{entry.label} (above in {wins}{equal} of {len(pairs)} pairs of seeds)"
            side = "below" if entry.effect is not None and entry.effect > 0.5 else "above"
            groups["not distinguishable from" if entry.similar else side].append(text)
        parts = [f"{relation} {', '.join(texts)}" for relation, texts in groups.items() if texts]
        return f"{self.task}: {reference.label} is {'; '.join(parts)}."


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods compared on tasks."""

    labels: tuple[str, ...]  # the methods, every JEDi first
    tables: tuple[TaskTable, ...]  # one per task
    records: Records  # the results that it was made from
    notes: tuple[str, ...]  # caveats, a sentence each

    def __repr__(self) -> str:
        """Return the number of results, and the medians."""
        return f"<Comparison of {len(self.records.records)} results, medians of the best fitness:\n{self.medians}>"

    @property
    def medians(self) -> pandas.DataFrame:
        """The median final fitness: a row per method, a column per task; NaN: no results."""
        columns = {table.task: {entry.label: entry.median for entry in table.entries} for table in self.tables}
        return pandas.DataFrame(columns).reindex(self.labels)

    def curves(self, table: TaskTable, label: str, column: str) -> pandas.DataFrame:
        """Return a method's "max_fitness" or "coverage" on a task, as in `jedax.bench.statistics.on_common_grid`."""
        records = self.records.of(table.task, label)
        return statistics.on_common_grid([record.curve[column] for record in records], table.budget)


def compare(
    paths: str | Path | Iterable[str | Path], *, reference: str | None = None, fitness: Sequence[float] = ()
) -> Comparison:
    """Return the comparison of all results below some directories; nothing is written.

    Args:
        paths: Directories and CSV files, as in `jedax.bench.reading.read`.
        reference: Label that all others are tested against. None: on each task the JEDi with the highest median; then
            other versions of JEDi are not tested.
        fitness: Fitness values, besides the goal, for which the evaluations to reach them are counted.

    Raises:
        JedaxError: As in `read`; an unknown reference, or a fitness that is not finite.
    """
    return compare_records(
        read([paths] if isinstance(paths, str | Path) else paths), reference=reference, fitness=fitness
    )


def compare_records(records: Records, *, reference: str | None = None, fitness: Sequence[float] = ()) -> Comparison:
    """Return the comparison of results that were read before; arguments and errors are those of `compare`."""
    names = {record.label: record.method for record in reversed(records.records)}
    labels = tuple(sorted(names, key=lambda n: (not is_reference(names[n]), _place(names[n], methods()), _natural(n))))
    if reference is not None:
        check_choice("reference", reference, labels)
    for value in fitness:
        if not np.isfinite(value):
            raise fail("fitness", expected="finite numbers", received=value, remedy="leave it out")
    tasks = sorted({r.task for r in records.records}, key=lambda task: (_place(task, entries()), _natural(task)))
    tables = tuple(_table(records, task, labels, reference, fitness) for task in tasks)
    notes = [*_notes_on_references(tables, reference), *(note for t in tables for note in _notes(t, records))]
    return Comparison(labels, tables, records, tuple(notes))


def _place(name: str, known: Iterable[str]) -> int:
    names = [*known, name]
    return names.index(name)


def _natural(text: str) -> list[tuple[float, str]]:
    """Return a sort key that orders the numbers in a text by value: `alpha=0.3` before `alpha=10`."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if place % 2 else (-1.0, part) for place, part in enumerate(parts)]


def _table(
    records: Records, task: str, labels: Sequence[str], reference: str | None, fitness: Sequence[float]
) -> TaskTable:
    mine = [r for r in records.records if r.task == task]
    # Runs know the task better than its name in a CSV file does; all of them have the same settings of it.
    first = next((r for r in mine if r.budget is not None), mine[0])
    goal = next((r.goal for r in mine if r.goal is not None and r.budget == first.budget), None)
    budget = first.budget or int(max(r.curve.index[-1] for r in mine))
    levels = ([] if goal is None else [goal]) + sorted({float(level) for level in fitness if level != goal})
    entries = [_entry(found, budget, goal, levels) for label in labels if (found := records.of(task, label))]
    places = pandas.Series([entry.median for entry in entries]).rank(method="dense", ascending=False)
    entries = [
        replace(entry, place=int(n) if n <= 2 and np.isfinite(entry.median) else 0)
        for entry, n in zip(entries, places, strict=True)
    ]
    candidates = [e for e in entries if (is_reference(e.method) if reference is None else e.label == reference)]
    chosen = max(candidates, key=lambda entry: entry.median, default=None)
    if chosen is not None:
        entries = _tested(entries, chosen, candidates)
    return TaskTable(task, budget, goal, chosen and chosen.label, tuple(entries))


def _entry(records: Sequence[Record], budget: int, goal: float | None, levels: Sequence[float]) -> Entry:
    curves = [record.curve.loc[:budget] for record in records]
    for record, curve in zip(records, curves, strict=True):
        if curve.empty:
            what = f"seed {record.seed} of {record.label} on {record.task}"
            expected = f"a report within the budget of {budget:,} evaluations"
            received = f"the first at {record.curve.index[0]:,.0f} in {record.source}"
            raise fail(what, expected=expected, received=received, remedy="leave it out")
    final = tuple(float(curve["max_fitness"].iloc[-1]) for curve in curves)
    successes = None if goal is None else int(reaches(final, goal).sum())
    return Entry(
        label=records[0].label,
        method=records[0].method,
        seeds=tuple(record.seed for record in records),
        final=final,
        coverage=tuple(float(curve["coverage"].iloc[-1]) for curve in curves),
        interval=statistics.median_interval(final),
        successes=successes,
        success_interval=None if successes is None else statistics.wilson_interval(successes, len(final)),
        reached=tuple(Reached(level, tuple(_first(record, level, budget) for record in records)) for level in levels),
    )


def _first(record: Record, level: float, budget: int) -> float:
    """Return the evaluations of a record until it reached a fitness; inf: not within the budget.

    For the goal that is the evaluation itself where the run recorded it, else the first report afterwards.
    """
    if level == record.goal and record.goal_evaluations is not None:
        return record.goal_evaluations if record.goal_evaluations <= budget else float("inf")
    fitness = record.curve.loc[:budget, "max_fitness"]
    reached = fitness.index[reaches(fitness, level)]
    return float(reached[0]) if len(reached) else float("inf")


def _tested(entries: Sequence[Entry], reference: Entry, spared: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a task, all but the spared ones with p-values and effect sizes against the reference."""
    tests = [None if e in spared else statistics.mann_whitney(e.final, reference.final) for e in entries]
    corrected = statistics.holm([test and test.p for test in tests])
    return [
        entry if test is None else replace(entry, p=test.p, p_holm=p_holm, effect=test.effect)
        for entry, test, p_holm in zip(entries, tests, corrected, strict=True)
    ]


def _notes_on_references(tables: Sequence[TaskTable], reference: str | None) -> Iterator[str]:
    lacking = ", ".join(table.task for table in tables if table.reference is None)
    if lacking and reference is None:
        yield f"No p-values on {lacking}: no JEDi there, and no reference was chosen."
    elif lacking:
        yield f"No p-values on {lacking}: the reference {reference} has no results there."
    counts = {table.task: [len(entry.seeds) for entry in table.entries] for table in tables}
    unequal = [f"{task} ({min(n)} to {max(n)})" for task, n in counts.items() if min(n) < max(n)]
    if unequal:
        yield f"The methods have unequal numbers of seeds on {', '.join(unequal)}."


def _notes(table: TaskTable, records: Records) -> Iterator[str]:
    """Yield what limits the results on a task."""
    single = [entry.label for entry in table.entries if len(entry.seeds) < 2]
    if single:
        yield f"{table.task}: a single seed of {', '.join(single)}; no interval and no p-value with it."
    reference, tested = table.entry(table.reference or ""), [e for e in table.entries if e.p is not None]
    if reference is not None and tested:
        least = min(statistics.least_p(len(reference.seeds), len(entry.seeds)) for entry in tested)
        if least > SIGNIFICANT:
            yield f"{table.task}: with so few seeds no p-value can be below {least:.2g}; run more."
    mine = [record for record in records.records if record.task == table.task]
    for label in (entry.label for entry in table.entries):
        shares = [_restarts_a_generation(record) for record in mine if record.label == label]
        if all(share == 0 for share in shares):
            yield f"{table.task}: {label} never restarted in any of its runs: its restart_tolerance changed nothing."
        elif any(share is not None and share > 0.5 for share in shares):
            yield (f"{table.task}: {label} restarted in most generations; if differences in fitness are small on this "
                   "task, lower its restart_tolerance.")  # fmt: skip
    if table.goal is None and any(record.is_goal_unknown for record in mine):
        yield f"{table.task}: its code is not imported, and these runs of an earlier version do not tell its goal."
    stopped = [record for record in mine if record.stopped]
    if stopped:
        yield (f"{table.task}: seeds of {_labels(stopped)} that stopped at their stop_fitness or by a callback, before "
               f"the budget was spent: {len(stopped)}; what they would have reached is unknown.")  # fmt: skip
    short = [r for r in mine if not r.stopped and r.curve.index[-1] < _spent(r) * table.budget]
    if short:
        yield (f"{table.task}: seeds of {_labels(short)} that end before the budget of {table.budget:,} evaluations: "
               f"{len(short)}, the first at {min(r.curve.index[-1] for r in short):,.0f}; their last value stands for "
               "what they would have reached.")  # fmt: skip


def _restarts_a_generation(record: Record) -> float | None:
    """Return how often each ES of a run restarted, as a share of its generations; None where it could not.

    Where a method from outside has no `population`, it is the least that the share can be.
    """
    settings = record.settings or {}
    if settings.get("restart_tolerance") is None or "num_restarts" not in record.curve:
        return None
    return record.curve["num_restarts"].iloc[-1] * settings.get("population", 1) / record.curve.index[-1]


def _spent(record: Record) -> float:
    """Return the share of the budget that a record should reach; a run has no room for a part of a generation."""
    return 0.98 if record.replica is None else 0.8


def _labels(records: Iterable[Record]) -> str:
    return ", ".join(sorted({record.label for record in records}))
