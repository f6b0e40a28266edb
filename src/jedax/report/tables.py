"""A comparison as tables: Markdown, plain text for a terminal, and CSV in full precision.

The main table has the layout of Table 1 of the paper: tasks as rows, methods as columns, the median of the final best
fitness and in brackets the p-value against the reference; the best median bold, the second underlined, a star if
p > 0.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas

from jedax.bench.comparison import SIGNIFICANT, Comparison, Entry
from jedax.bench.statistics import FEWEST_FOR_INTERVAL
from jedax.report.numbers import decimals_for, evaluations_text, fitness_text, p_text, share_text

T = TypeVar("T")

_MARKED = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~#"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def markdown(comparison: Comparison, pictures: Sequence[str] = ()) -> str:
    """Return a comparison as a page of Markdown; `pictures` are paths of figures, relative to the page."""
    parts = ["# Comparison", "## Final best fitness", main_table(comparison), _legend(comparison)]
    for table in comparison.tables:
        goal = "no goal" if table.goal is None else f"goal {table.goal:g}"
        head = f"Budget {table.budget:,} evaluations, {goal}, reference: {_escape(table.reference or 'none')}."
        decimals = decimals_for(entry.median for entry in table.entries)
        rows = [details(entry, decimals) for entry in table.entries]
        body = _table(list(rows[0]), [map(_escape, row.values()) for row in rows], right=True)
        parts += [f"## {_escape(table.task)}", head, body]
    if pictures:
        parts += ["## Figures", *(f"![{Path(picture).stem}]({picture})" for picture in pictures)]
    if comparison.notes:
        parts += ["## Notes", "\n".join(f"- {_escape(note)}" for note in comparison.notes)]
    if comparison.records.left_out:
        left_out = (f"- {_escape(f'{path}: {reason}')}" for path, reason in comparison.records.left_out.items())
        parts += ["## Left out", "\n".join(left_out)]
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for record in comparison.records.records:
        sources.setdefault((record.task, record.label), {})[_escape(str(record.source))] = None
    rows = [[_escape(task), _escape(label), "<br>".join(paths)] for (task, label), paths in sources.items()]
    body = _table(["task", "method", "directories and files"], rows)
    return "\n\n".join([*parts, "## Sources", body]) + "\n"


def median_rows(comparison: Comparison, text: Callable[[Entry, int], T], empty: T) -> list[tuple[str, list[T]]]:
    """Return a row per task: its name, and for each label what `text` returns for the method's entry.

    Args:
        comparison: The comparison.
        text: Takes an entry and the number of decimals for fitness on its task.
        empty: Stands for a method without results on the task.
    """
    rows = []
    for table in comparison.tables:
        decimals = decimals_for(entry.median for entry in table.entries)
        entries = map(table.entry, comparison.labels)
        rows.append((table.task, [empty if entry is None else text(entry, decimals) for entry in entries]))
    return rows


def main_table(comparison: Comparison) -> str:
    """Return medians and p-values as a Markdown table in the layout of Table 1 of the paper."""

    def text(entry: Entry, decimals: int) -> str:
        median = fitness_text(entry.median, decimals)
        median = {1: f"**{median}**", 2: f"<ins>{median}</ins>"}.get(entry.place, median)
        p = "" if entry.p is None else f" ({_escape(p_text(entry.p))})"
        return median + p + " ★" * entry.similar

    rows = [[_escape(task), *cells] for task, cells in median_rows(comparison, text, "-")]
    return _table(["task", *map(_escape, comparison.labels)], rows)


def plain_table(comparison: Comparison) -> str:
    """Return medians and p-values for a terminal: a row per method, a column per task."""

    def text(entry: Entry, decimals: int) -> str:
        p = "" if entry.p is None else f" ({p_text(entry.p)})"
        return f"{'>' if entry.place == 1 else ' '}{fitness_text(entry.median, decimals)}{p}"

    columns = [["", *comparison.labels], *([task, *cells] for task, cells in median_rows(comparison, text, "-"))]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    p = "; (p-value against its reference)" if has_tests(comparison) else ""
    return "\n".join([*lines, f"median final best fitness; > best of the task{p}"])


def has_tests(comparison: Comparison) -> bool:
    """Return whether any method was tested against a reference."""
    return any(entry.p is not None for table in comparison.tables for entry in table.entries)


def has_ranges(comparison: Comparison) -> bool:
    """Return whether any method has so few seeds that their range is shown instead of an interval."""
    return any(entry.interval_kind == "range" for table in comparison.tables for entry in table.entries)


def _legend(comparison: Comparison) -> str:
    """Return the meaning of the marks and numbers of the tables."""
    text = "Median over seeds of the best fitness at the end of the budget; **best**, <ins>second</ins>."
    if has_tests(comparison):
        text += (
            " In brackets: p-value of a two-sided Mann-Whitney U test against the reference of the task, not "
            f"corrected, as in the paper; ★: p > {SIGNIFICANT:g}, no significant difference found. Below, p (Holm) is "
            "corrected for all tests on the task, and A (Vargha and Delaney) is the probability that a seed of the "
            "method ends above one of the reference, 0.5 for no difference. If the reference is the best of several "
            "versions of JEDi, it was chosen by these same seeds, which favours it."
        )
    text += " Intervals are of 95 %: bootstrap percentiles for medians, Wilson's for shares of seeds."
    if has_ranges(comparison):
        text += f" Of fewer than {FEWEST_FOR_INTERVAL} seeds the range of the fitness is shown, least to greatest."
    return (
        f"{text} Evaluations to a fitness are the median over seeds of the first report with at least this fitness, "
        "a dash if half of the seeds or more never reached it."
    )


def details(entry: Entry, decimals: int) -> dict[str, str]:
    """Return the statistics of a method on a task as texts by column, fitness with that many decimals."""

    def fitness(*values: float) -> str:
        return " to ".join(fitness_text(value, decimals) for value in values) or "-"

    seeds = len(entry.seeds)
    texts = {
        "method": entry.label,
        "seeds": str(seeds),
        "median": fitness(entry.median),
        "interval": fitness(*(entry.interval or ())) + " (range)" * (entry.interval_kind == "range"),
        "lowest": fitness(min(entry.final)),
        "highest": fitness(max(entry.final)),
    }
    if entry.success_interval is not None:
        texts |= {"reached goal": f"{entry.successes} of {seeds}",
                  "interval of that share": " to ".join(map(share_text, entry.success_interval))}  # fmt: skip
    texts |= {
        "p": "-" if entry.p is None else p_text(entry.p),
        "p (Holm)": "-" if entry.p_holm is None else p_text(entry.p_holm),
        "A": "-" if entry.effect is None else f"{entry.effect:.2f}",
        "coverage": share_text(entry.median_coverage),
    }
    for reached in entry.reached:
        count = "-" if np.isinf(reached.median) else evaluations_text(reached.median)
        texts[f"evaluations to {reached.fitness:g}"] = f"{count} ({reached.count} of {seeds})"
    return texts


def _table(head: Sequence[str], rows: Iterable[Iterable[str]], *, right: bool = False) -> str:
    """Return a Markdown table; that of pandas needs a package that jedax does not install."""
    lines = [head, [":---", *["---:" if right else ":---"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return " ".join(text.split()).translate(_MARKED)


def summary_csv(comparison: Comparison) -> str:
    """Return a row per task and method, in full precision; an empty cell: there is no such number."""
    return _csv({
        "task": table.task, "label": entry.label, "budget": table.budget, "goal": table.goal, "seeds": len(entry.seeds),
        "median": entry.median, **_ends("median", entry.interval), "median_interval": entry.interval_kind,
        "successes": entry.successes, **_ends("success", entry.success_interval), "reference": table.reference,
        "p": entry.p, "p_holm": entry.p_holm, "vargha_delaney_a": entry.effect,
        "median_coverage": entry.median_coverage,
    } for table in comparison.tables for entry in table.entries)  # fmt: skip


def _ends(name: str, interval: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def seeds_csv(comparison: Comparison) -> str:
    """Return a row per task, method and seed: its result, and where it comes from."""
    records = {(r.task, r.label, r.seed): r for r in comparison.records.records}
    return _csv({
        "task": table.task, "label": entry.label, "seed": seed, "final_fitness": fitness, "coverage": coverage,
        "source": (record := records[table.task, entry.label, seed]).source, "replica": record.replica,
    } for table in comparison.tables for entry in table.entries
      for seed, fitness, coverage in zip(entry.seeds, entry.final, entry.coverage, strict=True))  # fmt: skip


def reached_csv(comparison: Comparison) -> str:
    """Return a row per task, method, seed and fitness that was asked for: the evaluations to reach it, or inf."""
    return _csv(
        {"task": table.task, "label": entry.label, "seed": seed, "fitness": reached.fitness, "evaluations": count}
        for table in comparison.tables
        for entry in table.entries
        for reached in entry.reached
        for seed, count in zip(entry.seeds, reached.evaluations, strict=True)
    )


def _csv(rows: Iterable[Mapping[str, Any]]) -> str:
    frame = pandas.DataFrame(rows, dtype=object)
    return "" if frame.empty else frame.to_csv(index=False, lineterminator="\n")
