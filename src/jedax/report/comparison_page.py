"""The HTML page of a comparison, with interactive figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from jedax.bench import comparison as experiments
from jedax.bench.comparison import Comparison, Entry, TaskTable
from jedax.bench.reading import Record
from jedax.bench.statistics import median_band, ranking
from jedax.report import tables
from jedax.report.comparisons import styles
from jedax.report.html import FILE, render
from jedax.report.numbers import fitness_text, p_text, share_text

_DASHES = ("solid", "dash", "dot")


def comparison_page(folder: Path, page: Path, plotly_path: str | None = None) -> str:
    """Return the page that compares all finished runs below a directory.

    Args:
        folder: The directory.
        page: Path of the page, for its links to the pages of runs.
        plotly_path: As in `jedax.report.pages.run_page`.

    Raises:
        JedaxError: As in `jedax.bench.comparison.compare`.
    """
    found = experiments.compare(folder)
    ranks = ranking(found.medians)
    return render(
        "comparison.html",
        title=f"Comparison: {', '.join(table.task for table in found.tables)}",
        data={
            "labels": found.labels,
            "styles": {
                label: {"color": line["color"], "dash": _DASHES[place // 7 % 3]}
                for place, (label, line) in enumerate(styles(found.labels).items())
            },
            "tables": [_table(found, table, page) for table in found.tables],
            "ranks": ranks and {name: getattr(ranks, name) for name in ("labels", "ranks", "difference", "groups")},
            "csv": {
                "table": tables.summary_csv(found),
                "seeds": tables.seeds_csv(found),
                "reached": tables.reached_csv(found),
            },
        },
        scripts=("common.js", "comparison.js"),
        plotly_path=plotly_path,
        folder=folder.resolve().name,
        labels=found.labels,
        rows=tables.median_rows(found, _cell, None),
        tested=tables.has_tests(found),
        tasks=found.tables,
        notes=found.notes,
        left_out=found.records.left_out,
        ranks=ranks,
        lead=_lead(found),
    )


def _table(found: Comparison, table: TaskTable, page: Path) -> dict[str, Any]:
    entries = [_entry(found, table, entry, page) for entry in table.entries]
    return {"task": table.task, "budget": table.budget, "goal": table.goal, "entries": entries}


def _entry(found: Comparison, table: TaskTable, entry: Entry, page: Path) -> dict[str, Any]:
    return {
        "label": entry.label,
        "seeds": entry.seeds,
        "final": _finite(entry.final),
        "success": None if entry.success_interval is None or entry.successes is None
        else [entry.successes / len(entry.seeds), *entry.success_interval],
        "reached": [{"fitness": r.fitness, "evaluations": _finite(r.evaluations)} for r in entry.reached],
        "fitness": _band(found, table, entry.label, "max_fitness"),
        "coverage": _band(found, table, entry.label, "coverage"),
        "links": [_link(record, page) for record in found.records.of(table.task, entry.label)],
    }  # fmt: skip


def _band(found: Comparison, table: TaskTable, label: str, column: str) -> dict[str, Any] | None:
    curves = found.curves(table, label, column)
    if curves.empty:
        return None
    low, median, high = median_band(curves.to_numpy())
    named = {"x": curves.index, "low": low, "median": median, "high": high}
    return {name: [float(f"{value:.6g}") for value in numbers] for name, numbers in named.items()}


def _finite(values: Any) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values]


def _link(record: Record, page: Path) -> str | None:
    """Return the address of a run's own page, relative to the comparison; None if it has none."""
    own = record.source / FILE
    if record.replica is None or not own.is_file():
        return None
    return f"{quote(Path(os.path.relpath(own, page.parent)).as_posix())}#seed={record.seed}"


def _cell(entry: Entry, decimals: int) -> dict[str, Any]:
    """Return the content of a cell of the table."""
    return {
        "median": fitness_text(entry.median, decimals),
        "place": {1: "best", 2: "second"}.get(entry.place, ""),
        "p": "" if entry.p is None else f"({p_text(entry.p)})",
        "star": entry.similar,
        "success": "" if entry.successes is None else f"{entry.successes} of {len(entry.seeds)} reached the goal, ",
        "coverage": share_text(entry.median_coverage),
    }


def _lead(found: Comparison) -> str:
    seeds = {len(entry.seeds) for table in found.tables for entry in table.entries}
    many = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    best = [f"{max(table.entries, key=lambda e: e.median).label} on {table.task}" for table in found.tables]
    return (
        f"{len(found.labels)} method{'s' * (len(found.labels) > 1)} on {len(found.tables)} "
        f"task{'s' * (len(found.tables) > 1)}, {many} seeds each. "
        f"The highest median of the final best fitness: {', '.join(best)}."
    )
