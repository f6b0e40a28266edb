"""A comparison as tables: Markdown for reading, CSV in full precision.

The first table is laid out as Table 1 of the paper: tasks as rows, methods as columns, the median of the final best
fitness and in brackets the p-value against the better JEDi; the best median bold, the second underlined, a star where
p > 0.05.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jedax.bench.comparison import SIGNIFICANT, Comparison, Entry, TaskTable
from jedax.bench.records import Records
from jedax.report.numbers import decimals_for, evaluations_text, fitness_text, p_text, share_text

_MARKED = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~#"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def markdown(comparison: Comparison, pictures: Sequence[str] = ()) -> str:
    """Return a whole comparison as a page of Markdown.

    Args:
        comparison: What to show.
        pictures: Paths of figures to show, relative to the page.
    """
    parts = ["# Comparison", "## Final best fitness", main_table(comparison), _legend(comparison)]
    for table in comparison.tables:
        goal = "no goal" if table.goal is None else f"goal {table.goal:g}"
        head = f"Budget {table.budget:,} evaluations, {goal}, reference: {_escape(table.reference or 'none')}."
        parts += [f"## {_escape(table.task)}", head, _detail_table(table)]
    if pictures:
        parts += ["## Figures", *(f"![{Path(picture).stem}]({picture})" for picture in pictures)]
    if comparison.notes:
        parts += ["## To bear in mind", "\n".join(f"- {_escape(note)}" for note in comparison.notes)]
    if comparison.records.left_out:
        left_out = (f"- {_escape(str(run.path))}: {_escape(run.reason)}" for run in comparison.records.left_out)
        parts += ["## Left out", "\n".join(left_out)]
    return "\n\n".join([*parts, "## Where it comes from", _sources(comparison.records)]) + "\n"


def main_table(comparison: Comparison) -> str:
    """Return the table of medians and p-values as Markdown, laid out as Table 1 of the paper."""
    rows = []
    for table in comparison.tables:
        decimals = table_decimals(table)
        entries = [table.entry(label) for label in comparison.labels]
        rows.append([_escape(table.task), *("-" if e is None else _median(e, decimals) for e in entries)])
    return _table(["task", *map(_escape, comparison.labels)], rows, right=False)


def table_decimals(table: TaskTable) -> int:
    """Return how many decimals the medians of a task are shown with."""
    return decimals_for(entry.median for entry in table.entries)


def _median(entry: Entry, decimals: int) -> str:
    text = fitness_text(entry.median, decimals)
    text = {1: f"**{text}**", 2: f"<ins>{text}</ins>"}.get(entry.place, text)
    if entry.p is not None:
        text += f" ({p_text(entry.p)})".replace("<", "&lt;")
    return f"{text} ★" if entry.similar else text


def has_tests(comparison: Comparison) -> bool:
    """Whether any method was tested against a reference."""
    return any(entry.p is not None for table in comparison.tables for entry in table.entries)


def _legend(comparison: Comparison) -> str:
    """Return what the marks of the tables mean, and how their numbers came about."""
    text = "Median over seeds of the best fitness at the end of the budget; **best**, <ins>second</ins>."
    if has_tests(comparison):
        text += (
            " In brackets the p-value of a two-sided Mann-Whitney U test against the reference of the task, not "
            f"corrected, as in the paper; ★: p > {SIGNIFICANT:g}, no significant difference found. Below, p (Holm) is "
            "corrected for all tests on the task, and A (Vargha and Delaney) is how likely a seed of the method ends "
            "above one of the reference, 0.5 for neither. Where the reference is the better of several versions of "
            "JEDi, it was picked on these same seeds, which flatters it."
        )
    return (
        f"{text} Intervals are of 95 %: bootstrap percentiles for medians, Wilson's for shares of seeds. Evaluations "
        "are the median over seeds of those at the first report that was there, a dash where half or more never were."
    )


def _detail_table(table: TaskTable) -> str:
    head = ["method", "seeds", "median", "interval", "lowest", "highest"]
    head += [] if table.goal is None else ["reached goal", "interval"]
    head += ["p", "p (Holm)", "A", "coverage"]
    head += [f"evaluations to {reached.fitness:g}" for reached in table.entries[0].reached]
    decimals = table_decimals(table)
    return _table(head, [_detail(entry, decimals) for entry in table.entries])


def _detail(entry: Entry, decimals: int) -> list[str]:
    def fitness(*values: float) -> str:
        return " to ".join(fitness_text(value, decimals) for value in values)

    seeds = len(entry.seeds)
    cells = [_escape(entry.label), str(seeds), fitness(entry.median)]
    cells += [fitness(*entry.interval) if entry.interval else "-", fitness(min(entry.final)), fitness(max(entry.final))]
    if entry.successes is not None and entry.success_interval is not None:
        cells += [f"{entry.successes} of {seeds}", " to ".join(map(share_text, entry.success_interval))]
    cells += ["-" if p is None else _escape(p_text(p)) for p in (entry.p, entry.p_holm)]
    cells += ["-" if entry.effect is None else f"{entry.effect:.2f}", share_text(entry.median_coverage)]
    for reached in entry.reached:
        count = "-" if np.isinf(reached.median) else evaluations_text(reached.median)
        cells.append(f"{count} ({reached.count} of {seeds})")
    return cells


def _sources(records: Records) -> str:
    """Return which files and directories each method's seeds on each task come from."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for record in records.records:
        found.setdefault((record.task, record.label), {})[str(record.source)] = None
    rows = [[_escape(task), _escape(label), "<br>".join(map(_escape, paths))] for (task, label), paths in found.items()]
    return _table(["task", "method", "directories and files"], rows, right=False)


def plain_table(comparison: Comparison) -> str:
    """Return medians and p-values for a terminal: a row per method, a column per task."""
    columns = [["", *comparison.labels]]
    for table in comparison.tables:
        decimals = table_decimals(table)
        entries = [table.entry(label) for label in comparison.labels]
        columns.append([table.task, *("-" if e is None else _plain_median(e, decimals) for e in entries)])
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]
    p = "; (p-value against its reference)" if has_tests(comparison) else ""
    lines.append(f"median final best fitness; > best of the task{p}")
    return "\n".join(lines)


def _plain_median(entry: Entry, decimals: int) -> str:
    p = "" if entry.p is None else f" ({p_text(entry.p)})"
    return f"{'>' if entry.place == 1 else ' '}{fitness_text(entry.median, decimals)}{p}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = True) -> str:
    lines = [head, [":---", *(["---:"] if right else [":---"]) * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape(text: str) -> str:
    """Return a text of the user's so that Markdown shows it as it is, on one line."""
    return " ".join(text.split()).translate(_MARKED)


def summary_csv(comparison: Comparison) -> str:
    """Return one row per task and method, in full precision; empty: there is none."""
    rows = []
    for table in comparison.tables:
        for entry in table.entries:
            interval, success = entry.interval or (None, None), entry.success_interval or (None, None)
            rows.append({
                "task": table.task, "label": entry.label, "budget": table.budget, "goal": table.goal,
                "seeds": len(entry.seeds), "median": entry.median, "median_low": interval[0],
                "median_high": interval[1], "successes": entry.successes, "success_low": success[0],
                "success_high": success[1], "reference": table.reference, "p": entry.p, "p_holm": entry.p_holm,
                "vargha_delaney_a": entry.effect, "median_coverage": entry.median_coverage,
            })  # fmt: skip
    return _csv(rows)


def seeds_csv(comparison: Comparison) -> str:
    """Return one row per task, method and seed: what it reached, and where it comes from."""
    records = {(r.task, r.label, r.seed): r for r in comparison.records.records}
    rows = []
    for table in comparison.tables:
        for entry in table.entries:
            for seed, fitness, coverage in zip(entry.seeds, entry.final, entry.coverage, strict=True):
                record = records[table.task, entry.label, seed]
                rows.append({
                    "task": table.task, "label": entry.label, "seed": seed, "final_fitness": fitness,
                    "coverage": coverage, "source": record.source, "replica": record.replica,
                })  # fmt: skip
    return _csv(rows)


def reached_csv(comparison: Comparison) -> str:
    """Return one row per task, method, seed and fitness that was asked for: the evaluations to reach it, or inf."""
    return _csv([
        {"task": table.task, "label": entry.label, "seed": seed, "fitness": reached.fitness, "evaluations": count}
        for table in comparison.tables
        for entry in table.entries
        for reached in entry.reached
        for seed, count in zip(entry.seeds, reached.evaluations, strict=True)
    ])  # fmt: skip


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: "" if _missing(value) else value for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))
