"""A comparison as tables: Markdown, plain text for a terminal, CSV in full precision, and LaTeX.

The main table has the layout of Table 1 of the paper: tasks as rows, methods as columns, the median of the final best
fitness and in brackets the p-value against the reference; the best median bold, the second underlined, ≈ where
p > 0.05.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas

from jedax.bench.comparison import SIGNIFICANT, Comparison, Entry
from jedax.bench.statistics import FEWEST_FOR_INTERVAL
from jedax.errors import printable
from jedax.report.numbers import decimals_for, evaluations_text, fitness_text, p_text, share_text

T = TypeVar("T")

# Own tables: those of pandas in Markdown and LaTeX need packages that jedax does not install.
_MARKED = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~#"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip
_TABLE = "task,label,budget,goal,seeds,median,"  # the beginning of table.csv
_FORMULA = ("=", "+", "-", "@")  # what formulas of spreadsheets begin with
_LATEX_COLUMNS = {
    "method": "Method", "seeds": "Seeds", "median": "Median", "interval": r"95\,\% interval", "reached goal": "Goal",
    "p": "p", "p (Holm)": "p (Holm)", "A": "A", "coverage": "Coverage",
}  # fmt: skip
"""Columns of `details` that LaTeX shows, and their heads."""


def markdown(comparison: Comparison, pictures: Sequence[str] = ()) -> str:
    """Return a comparison as a page of Markdown; `pictures` are paths of figures, relative to the page."""
    parts = ["# Comparison", "## Final best fitness", main_table(comparison), _legend(comparison)]
    for table in comparison.tables:
        goal = "no goal" if table.goal is None else f"goal {table.goal:g}"
        verdict = [] if table.verdict is None else [_text(table.verdict)]
        head = f"Budget {table.budget:,} evaluations, {goal}, reference: {_text(table.reference or 'none')}."
        decimals = decimals_for(entry.median for entry in table.entries)
        rows = [details(entry, decimals) for entry in table.entries]
        body = _table(list(rows[0]), [map(_text, row.values()) for row in rows], right=True)
        parts += [f"## {_text(table.task)}", head, *verdict, body]
    if pictures:
        parts += ["## Figures", *(f"![{Path(picture).stem}]({picture})" for picture in pictures)]
    if comparison.notes:
        parts += ["## Notes", "\n".join(f"- {_text(note)}" for note in comparison.notes)]
    if comparison.records.left_out:
        left_out = (f"- {_text(f'{path}: {reason}')}" for path, reason in comparison.records.left_out.items())
        parts += ["## Left out", "\n".join(left_out)]
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for record in comparison.records.records:
        sources.setdefault((record.task, record.label), {})[_text(str(record.source))] = None
    rows = [[_text(task), _text(label), "<br>".join(paths)] for (task, label), paths in sources.items()]
    body = _table(["task", "method", "directories and files"], rows)
    return "\n\n".join([*parts, "## Sources", body]) + "\n"


def median_rows(comparison: Comparison, text: Callable[[Entry, int], T], empty: T) -> list[tuple[str, list[T]]]:
    """Return a row per task: its name, and per label `text(entry, decimals of fitness)`; `empty`: no results."""
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
        p = "" if entry.p is None else f" ({_text(p_text(entry.p))})"
        return median + p + " ≈" * entry.similar

    rows = [[_text(task), *cells] for task, cells in median_rows(comparison, text, "-")]
    return _table(["task", *map(_text, comparison.labels)], rows)


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
            f"corrected, as in the paper; ≈: p > {SIGNIFICANT:g}, not distinguishable from it. Below, p (Holm) is "
            "corrected for all tests on the task, and A (Vargha and Delaney) is the probability that a seed of the "
            "method ends above one of the reference, 0.5 for no difference. If the reference is the best of several "
            "versions of JEDi, it was chosen by these same seeds, which favours it."
        )
    text += " Intervals are of 95 %: bootstrap percentiles for medians, Wilson's for shares of seeds."
    if has_ranges(comparison):
        text += f" Of fewer than {FEWEST_FOR_INTERVAL} seeds the range of the fitness is shown, least to greatest."
    return (
        f"{text} Evaluations to a fitness are medians over seeds, to the evaluation for the goal, else to the first "
        "report with at least this fitness; a dash if half of the seeds or more never reached it."
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
        texts[f"evaluations to {reached.fitness:.12g}"] = f"{count} ({reached.count} of {seeds})"
    return texts


def _table(head: Sequence[str], rows: Iterable[Iterable[str]], *, right: bool = False) -> str:
    """Return a Markdown table."""
    lines = [head, [":---", *["---:" if right else ":---"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _text(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return printable(" ".join(text.split())).translate(_MARKED)


def csv_files(comparison: Comparison) -> dict[str, str]:
    """Return the text of three CSV files by their names, in full precision; an empty cell: there is no such number.

    `table`: a row per task and method. `seeds`: a row per seed, with its source. `reached`: a row per seed and fitness
    that was asked for, with the evaluations to reach it, or inf. Names that a spreadsheet would take for a formula have
    an apostrophe before them.
    """
    records = {(r.task, r.label, r.seed): r for r in comparison.records.records}
    rows: dict[str, list[dict[str, Any]]] = {"table": [], "seeds": [], "reached": []}
    for table, entry in ((t, e) for t in comparison.tables for e in t.entries):
        named = {"task": table.task, "label": entry.label}
        rows["table"].append({
            **named, "budget": table.budget, "goal": table.goal, "seeds": len(entry.seeds), "median": entry.median,
            **_ends("median", entry.interval), "median_interval": entry.interval_kind, "successes": entry.successes,
            **_ends("success", entry.success_interval), "reference": table.reference, "p": entry.p,
            "p_holm": entry.p_holm, "vargha_delaney_a": entry.effect, "median_coverage": entry.median_coverage,
        })  # fmt: skip
        for seed, fitness, coverage in zip(entry.seeds, entry.final, entry.coverage, strict=True):
            record = records[table.task, entry.label, seed]
            rows["seeds"].append({**named, "seed": seed, "final_fitness": fitness, "coverage": coverage,
                                  "source": record.source, "replica": record.replica})  # fmt: skip
        for level in entry.reached:
            for seed, count in zip(entry.seeds, level.evaluations, strict=True):
                rows["reached"].append({**named, "seed": seed, "fitness": level.fitness, "evaluations": count})
    frames = {name: pandas.DataFrame(found, dtype=object).map(_cell) for name, found in rows.items()}
    return {n: "" if f.empty else f.to_csv(index=False, lineterminator="\n") for n, f in frames.items()}


def is_comparison(folder: Path) -> bool:
    """Return whether a folder has the `table.csv` of a comparison."""
    with contextlib.suppress(OSError, UnicodeDecodeError), open(folder / "table.csv", encoding="utf-8") as file:
        return file.readline(len(_TABLE)) == _TABLE
    return False


def _cell(value: Any) -> Any:
    """Return a value for a CSV file: text that begins like a formula gets an apostrophe before it."""
    if not isinstance(value, str | Path):
        return value
    text = printable(str(value))
    return f"'{text}" if text.startswith(_FORMULA) else text


def _ends(name: str, interval: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def latex(comparison: Comparison) -> str:
    r"""Return two tables to \input: medians and p-values as in Table 1 of the paper, then all statistics."""
    return "\n".join([r"% Needs \usepackage{booktabs}.", *_latex_main(comparison), "", *_latex_detail(comparison), ""])


def latex_text(text: str) -> str:
    """Return a text that LaTeX prints as it is, on one line; Greek letters become math."""
    return "".join(_SPECIAL.get(c) or _greek(c) for c in printable(" ".join(text.split())))


def _greek(character: str) -> str:
    if "\N{GREEK SMALL LETTER ALPHA}" <= character <= "\N{GREEK SMALL LETTER OMEGA}":
        name = unicodedata.name(character).rpartition(" ")[2].lower().replace("lamda", "lambda")
        return "o" if name == "omicron" else rf"$\{name}$"
    return character


def _latex_main(comparison: Comparison) -> list[str]:
    def text(entry: Entry, decimals: int) -> str:
        median = _in_math(fitness_text(entry.median, decimals))
        median = {1: rf"$\mathbf{{{median.strip('$')}}}$", 2: rf"\underline{{{median}}}"}.get(entry.place, median)
        p = "" if entry.p is None else f" ({latex_text(p_text(entry.p))})"
        return median + p + r" $\approx$" * entry.similar

    caption = "Median final best fitness. The highest is in bold, the second is underlined."
    if has_tests(comparison):
        caption += (
            " In brackets the p-value of a Mann--Whitney U test against the reference of the task;"
            rf" those $> {SIGNIFICANT:g}$ (not distinguishable from the reference) have $\approx$."
        )
    rows = [[latex_text(task), *cells] for task, cells in median_rows(comparison, text, "--")]
    columns = "l" + "c" * len(comparison.labels)
    return _latex_table(columns, ["Task", *map(latex_text, comparison.labels)], [rows], caption, "tab:comparison")


def _latex_detail(comparison: Comparison) -> list[str]:
    groups: list[list[list[str]]] = []
    for table in comparison.tables:
        decimals = decimals_for(entry.median for entry in table.entries)
        groups.append([])
        for place, entry in enumerate(table.entries):
            texts = details(entry, decimals)
            shown = {name: "--" if texts.get(name, "-") == "-" else latex_text(texts[name]) for name in _LATEX_COLUMNS}
            shown |= {name: _in_math(shown[name]) for name in ("median", "interval")}
            groups[-1].append([latex_text(table.task) if place == 0 else "", *shown.values()])
    ranges = f" (of fewer than {FEWEST_FOR_INTERVAL} seeds the range, least to greatest)" * has_ranges(comparison)
    caption = (
        f"Seeds, median final best fitness with its bootstrap interval{ranges}, seeds that reached the goal, p-values"
        " (Mann--Whitney U) uncorrected and corrected by Holm's method for all tests on the task, Vargha and Delaney's"
        " A, and median coverage."
    )
    return _latex_table("llrrlrrrrr", ["Task", *_LATEX_COLUMNS.values()], groups, caption, "tab:comparison-detail")


def _in_math(text: str) -> str:
    """Return a text with its numbers in math mode."""

    def number(found: re.Match[str]) -> str:
        power = rf" \times 10^{{{int(found['power'])}}}" if found["power"] else ""
        return f"${found['factor']}{power}$".replace("inf", r"\infty")

    return re.sub(r"(?P<factor>-?(?:inf|\d[\d.]*))(?:e(?P<power>[-+]?\d+))?", number, text)


def _latex_table(
    columns: str, head: Sequence[str], groups: Iterable[Sequence[Sequence[str]]], caption: str, label: str
) -> list[str]:
    """Return a table with rules between the groups of rows."""
    body = "\n\\midrule\n".join("\n".join(" & ".join(row) + r" \\" for row in group) for group in groups)
    return [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        body,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{caption}}}",
        rf"\label{{{label}}}",
        r"\end{table*}",
    ]
