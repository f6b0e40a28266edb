"""A comparison as LaTeX tables, for documents with the package booktabs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from jedax.bench.comparison import SIGNIFICANT, Comparison, Entry
from jedax.bench.statistics import FEWEST_FOR_INTERVAL
from jedax.report.numbers import decimals_for, fitness_text, p_text
from jedax.report.tables import details, has_ranges, has_tests, median_rows

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip
_COLUMNS = {
    "method": "Method", "seeds": "Seeds", "median": "Median", "interval": r"95\,\% interval", "reached goal": "Goal",
    "p": "p", "p (Holm)": "p (Holm)", "A": "A", "coverage": "Coverage",
}  # fmt: skip
"""Columns of `jedax.report.tables.details` that are shown, and their heads."""


def latex(comparison: Comparison) -> str:
    r"""Return two tables to \input: medians and p-values as in Table 1 of the paper, then all statistics.

    They are written here since those of pandas need a package that jedax does not install.
    """
    return "\n".join([r"% Needs \usepackage{booktabs}.", *_main(comparison), "", *_detail(comparison), ""])


def escape(text: str) -> str:
    """Return a text that LaTeX prints as it is, on one line; Greek letters become math."""
    return "".join(_SPECIAL.get(c) or _greek(c) for c in " ".join(text.split()))


def _greek(character: str) -> str:
    if "\N{GREEK SMALL LETTER ALPHA}" <= character <= "\N{GREEK SMALL LETTER OMEGA}":
        name = unicodedata.name(character).rpartition(" ")[2].lower().replace("lamda", "lambda")
        return "o" if name == "omicron" else rf"$\{name}$"
    return character


def _main(comparison: Comparison) -> list[str]:
    def text(entry: Entry, decimals: int) -> str:
        median = _in_math(fitness_text(entry.median, decimals))
        median = {1: rf"$\mathbf{{{median.strip('$')}}}$", 2: rf"\underline{{{median}}}"}.get(entry.place, median)
        p = "" if entry.p is None else f" ({escape(p_text(entry.p))})"
        return median + p + r" $^\star$" * entry.similar

    caption = "Median final best fitness. The highest is in bold, the second is underlined."
    if has_tests(comparison):
        caption += (
            " In brackets the p-value of a Mann--Whitney U test against the reference of the task;"
            rf" those $> {SIGNIFICANT:g}$ (no significant difference found) have a star $\star$."
        )
    rows = [[escape(task), *cells] for task, cells in median_rows(comparison, text, "--")]
    columns = "l" + "c" * len(comparison.labels)
    return _table(columns, ["Task", *map(escape, comparison.labels)], [rows], caption, "tab:comparison")


def _detail(comparison: Comparison) -> list[str]:
    groups = []
    for table in comparison.tables:
        decimals = decimals_for(entry.median for entry in table.entries)
        rows = [_cells(details(entry, decimals)) for entry in table.entries]
        groups.append([[escape(table.task) if place == 0 else "", *row] for place, row in enumerate(rows)])
    ranges = f" (of fewer than {FEWEST_FOR_INTERVAL} seeds the range, least to greatest)" * has_ranges(comparison)
    caption = (
        f"Seeds, median final best fitness with its bootstrap interval{ranges}, seeds that reached the goal, p-values"
        " (Mann--Whitney U) uncorrected and corrected by Holm's method for all tests on the task, Vargha and Delaney's"
        " A, and median coverage."
    )
    return _table("llrrlrrrrr", ["Task", *_COLUMNS.values()], groups, caption, "tab:comparison-detail")


def _cells(texts: dict[str, str]) -> list[str]:
    shown = {name: "--" if texts.get(name, "-") == "-" else escape(texts[name]) for name in _COLUMNS}
    return list((shown | {name: _in_math(shown[name]) for name in ("median", "interval")}).values())


def _in_math(text: str) -> str:
    """Return a text with its numbers in math mode."""
    return re.sub(r"-?(inf|\d[\d.]*)", lambda number: f"${number[0]}$".replace("inf", r"\infty"), text)


def _table(
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
