"""The page of a comparison: the paper's table and figures, to be looked into."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from jedax.bench import comparison as experiments
from jedax.bench.comparison import Comparison, Entry, TaskTable
from jedax.bench.ranks import ranking
from jedax.bench.records import Record
from jedax.bench.statistics import median_band
from jedax.report import tables
from jedax.report.comparisons import styles
from jedax.report.html import FILE, render
from jedax.report.numbers import decimals_for, fitness_text, p_text, share_text

_DASHES = ("solid", "dash", "dot")


def comparison_page(folder: Path, page: Path, plotly_path: str | None = None) -> str:
    """Return the page that compares all runs below a directory that have ended.

    Args:
        folder: The directory.
        page: Where the page will lie, for its links to the pages of runs.
        plotly_path: As in `jedax.report.pages.run_page`.

    Raises:
        JedaxError: As in `jedax.bench.comparison.compare`.
    """
    found = experiments.compare(folder)
    return render(
        "comparison.html",
        title=f"Comparison: {', '.join(table.task for table in found.tables)}",
        data=comparison_data(found, page),
        scripts=("common.js", "comparison.js"),
        plotly_path=plotly_path,
        folder=folder.resolve().name,
        labels=found.labels,
        rows=[_row(found, table) for table in found.tables],
        tested=tables.has_tests(found),
        tasks=found.tables,
        notes=found.notes,
        left_out=[(str(run.path), run.reason) for run in found.records.left_out],
        ranks=ranking(found),
        lead=_lead(found),
    )


def comparison_data(found: Comparison, page: Path) -> dict[str, Any]:
    """Return what the scripts of the page need, as JSON values."""
    style = styles(found.labels)
    ranks = ranking(found)
    return {
        "labels": list(found.labels),
        "styles": {
            label: {"color": line["color"], "dash": _DASHES[place // 7 % 3]}
            for place, (label, line) in enumerate(style.items())
        },
        "tables": [_table(found, table, page) for table in found.tables],
        "ranks": None if ranks is None else {
            "labels": ranks.labels, "ranks": ranks.ranks, "difference": ranks.difference, "groups": ranks.groups
        },
        "csv": {
            "table": tables.summary_csv(found), "seeds": tables.seeds_csv(found), "reached": tables.reached_csv(found)
        },
    }  # fmt: skip


def _table(found: Comparison, table: TaskTable, page: Path) -> dict[str, Any]:
    return {
        "task": table.task,
        "budget": table.budget,
        "goal": table.goal,
        "entries": [_entry(found, table, entry, page) for entry in table.entries],
    }


def _entry(found: Comparison, table: TaskTable, entry: Entry, page: Path) -> dict[str, Any]:
    records = found.records.of(table.task, entry.label)
    return {
        "label": entry.label,
        "seeds": entry.seeds,
        "final": _finite(entry.final),
        "median": _finite([entry.median])[0],
        "success": None if entry.success_interval is None or entry.successes is None
        else [entry.successes / len(entry.seeds), *entry.success_interval],
        "reached": [{"fitness": r.fitness, "evaluations": _finite(r.evaluations)} for r in entry.reached],
        "fitness": _band(found, table, entry.label, "max_fitness"),
        "coverage": _band(found, table, entry.label, "coverage"),
        "links": [_link(record, page) for record in records],
    }  # fmt: skip


def _band(found: Comparison, table: TaskTable, label: str, column: str) -> dict[str, Any] | None:
    grid, values = found.curves(table, label, column)
    if not len(grid):
        return None
    low, median, high = median_band(values, "quartiles")
    named = {"x": grid, "low": low, "median": median, "high": high}
    return {name: [float(f"{value:.6g}") for value in numbers] for name, numbers in named.items()}


def _finite(values: Any) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values]


def _link(record: Record, page: Path) -> str | None:
    """Return the address of a run's own page, seen from the comparison; None where there is none."""
    own = record.source / FILE
    if record.replica is None or not own.is_file():
        return None
    relative = Path(os.path.relpath(own, page.parent)).as_posix()
    from urllib.parse import quote

    return f"{quote(relative)}#seed={record.seed}"


def _row(found: Comparison, table: TaskTable) -> dict[str, Any]:
    """Return a row of the table: for each method what stands in its cell, None where it has no results."""
    decimals = decimals_for(entry.median for entry in table.entries)
    cells = []
    for label in found.labels:
        entry = table.entry(label)
        cells.append(None if entry is None else {
            "median": fitness_text(entry.median, decimals),
            "place": {1: "best", 2: "second"}.get(entry.place, ""),
            "p": "" if entry.p is None else f"({p_text(entry.p)})",
            "star": entry.similar,
            "success": "" if entry.successes is None else f"{entry.successes} of {len(entry.seeds)} there",
            "coverage": share_text(entry.median_coverage),
        })  # fmt: skip
    return {"task": table.task, "cells": cells}


def _lead(found: Comparison) -> str:
    seeds = sorted({len(entry.seeds) for table in found.tables for entry in table.entries})
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    best = [f"{max(table.entries, key=lambda e: e.median).label} on {table.task}" for table in found.tables]
    noun = "method" if len(found.labels) == 1 else "methods"
    return (
        f"{len(found.labels)} {noun} on {len(found.tables)} task{'s' * (len(found.tables) > 1)}, {many} seeds each. "
        f"The highest median of the final best fitness: {', '.join(best)}."
    )
