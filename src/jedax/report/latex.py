"""A comparison as LaTeX tables, for documents with the package booktabs."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence

from jedax.bench.comparison import SIGNIFICANT, Comparison, Entry
from jedax.report.numbers import fitness_text, p_text, share_text
from jedax.report.tables import has_tests, table_decimals

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def latex(comparison: Comparison) -> str:
    r"""Return two tables to \input: medians and p-values as in Table 1 of the paper, then all statistics."""
    return "\n".join([
        r"% Needs \usepackage{booktabs}.",
        *_main(comparison),
        "",
        *_detail(comparison),
        "",
    ])  # fmt: skip


def escape(text: str) -> str:
    """Return a text so that LaTeX prints it as it is, on one line; Greek letters become math."""
    return "".join(_SPECIAL.get(c) or _greek(c) for c in " ".join(text.split()))


def _greek(character: str) -> str:
    if "\N{GREEK SMALL LETTER ALPHA}" <= character <= "\N{GREEK SMALL LETTER OMEGA}":
        name = unicodedata.name(character).rpartition(" ")[2].lower().replace("lamda", "lambda")
        return "o" if name == "omicron" else rf"$\{name}$"
    return character


def _main(comparison: Comparison) -> list[str]:
    rows = []
    for table in comparison.tables:
        decimals = table_decimals(table)
        entries = [table.entry(label) for label in comparison.labels]
        rows.append([escape(table.task), *("--" if e is None else _median(e, decimals) for e in entries)])
    caption = "Median final best fitness. The highest is in bold, the second is underlined."
    if has_tests(comparison):
        caption += (
            " In brackets the p-value of a Mann--Whitney U test against the reference of the task;"
            rf" those $> {SIGNIFICANT:g}$ (no significant difference found) have a star $\star$."
        )
    head = ["Task", *map(escape, comparison.labels)]
    return _table("l" + "c" * len(comparison.labels), head, [rows], caption, "tab:comparison")


def _median(entry: Entry, decimals: int) -> str:
    number = _number(entry.median, decimals)
    text = {1: rf"$\mathbf{{{number}}}$", 2: rf"\underline{{${number}$}}"}.get(entry.place, f"${number}$")
    if entry.p is not None:
        text += f" ({_p(entry.p)})"
    return rf"{text} $^\star$" if entry.similar else text


def _detail(comparison: Comparison) -> list[str]:
    head = ["Task", "Method", "Seeds", "Median", "95\\,\\% interval", "Goal", "p", "p (Holm)", "A", "Coverage"]
    groups = []
    for table in comparison.tables:
        decimals = table_decimals(table)
        names = [escape(table.task), *[""] * (len(table.entries) - 1)]
        groups.append([[name, *_cells(entry, decimals)] for name, entry in zip(names, table.entries, strict=True)])
    caption = (
        "Seeds, median final best fitness with its bootstrap interval, seeds that reached the goal, p-values"
        " (Mann--Whitney U) as they are and corrected by Holm for all tests on the task, Vargha and Delaney's A,"
        " and median coverage."
    )
    return _table("llrrlrrrrr", head, groups, caption, "tab:comparison-detail")


def _cells(entry: Entry, decimals: int) -> list[str]:
    interval = [] if entry.interval is None else [f"${_number(value, decimals)}$" for value in entry.interval]
    return [
        escape(entry.label),
        str(len(entry.seeds)),
        f"${_number(entry.median, decimals)}$",
        " to ".join(interval) or "--",
        "--" if entry.successes is None else f"{entry.successes}/{len(entry.seeds)}",
        *("--" if p is None else _p(p) for p in (entry.p, entry.p_holm)),
        "--" if entry.effect is None else f"{entry.effect:.2f}",
        "--" if math.isnan(entry.median_coverage) else escape(share_text(entry.median_coverage)),
    ]


def _number(value: float, decimals: int) -> str:
    return fitness_text(value, decimals).replace("inf", r"\infty")


def _p(p: float) -> str:
    return p_text(p).replace("<", "$<$")


def _table(
    columns: str, head: Sequence[str], groups: Iterable[Sequence[Sequence[str]]], caption: str, label: str
) -> list[str]:
    r"""Return a table; between groups of rows stands a rule."""
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
