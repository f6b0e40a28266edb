"""Figures of several methods side by side, each a function of a matplotlib `Axes` and a `Comparison`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from jedax.bench.comparison import Comparison, TaskTable
from jedax.bench.statistics import median_band
from jedax.report.numbers import evaluations_text
from jedax.report.scales import cut_axis

Styles = Mapping[str, dict[str, Any]]

GOAL: dict[str, Any] = {"color": "#222222", "linestyle": ":", "linewidth": 1.2}

# Okabe & Ito, safe for colour-blind readers, without their yellow, which is too pale for lines on white; then black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222")
_LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
_NO_NUMBER = "#d55e00"


def styles(labels: Sequence[str]) -> Styles:
    """Return a colour and a line style for each method: 7 colours, then the same dashed, then dotted."""
    return {
        label: {"color": _COLOURS[n % len(_COLOURS)], "linestyle": _LINES[n // len(_COLOURS) % len(_LINES)]}
        for n, label in enumerate(labels)
    }


def plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: dollars are no math, and a leading underscore hides no label."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def sequential_styles(labels: Sequence[str]) -> Styles:
    """Return colours from dark to light for labels such as `alpha=0.3`, in their order; orange for `alpha=decay`."""
    numbers = [label for label in labels if _is_number(label.rpartition("=")[2])]
    shades = colormaps["viridis"](np.linspace(0, 0.88, max(len(numbers), 1)))
    found: dict[str, dict[str, Any]] = {
        n: {"color": c, "linestyle": "-"} for n, c in zip(numbers, shades, strict=False)
    }
    others = [label for label in labels if label not in found]
    return found | {label: {"color": _NO_NUMBER, "linestyle": _LINES[(n + 1) % 3]} for n, label in enumerate(others)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def curves(
    ax: Axes, comparison: Comparison, table: TaskTable, style: Styles, column: str = "max_fitness", *,
    band: str | None = "quartiles",
) -> None:  # fmt: skip
    """Draw the median over seeds of the methods in `style` against evaluations; the goal is dotted.

    A few values of fitness far below all others are cut off. `column` is "max_fitness" or "coverage"; `band` as in
    `jedax.bench.statistics.median_band`, None: no band.
    """
    drawn = []
    for label, line in style.items():
        found = comparison.curves(table, label, column)
        if found.empty:
            continue
        low, median, high = median_band(found.to_numpy(), band or "quartiles")
        drawn.append(median)
        ax.plot(found.index, median, **line, drawstyle="steps-post", linewidth=1.6, label=plain(label))
        if band is not None:
            drawn += [low, high]
            strength = min(0.15, 0.7 / len(style))
            ax.fill_between(found.index, low, high, color=line["color"], alpha=strength, step="post", linewidth=0)
    if column == "max_fitness":
        if table.goal is not None:
            ax.axhline(table.goal, **GOAL, zorder=1)
            drawn.append([table.goal])
        cut_axis(ax, np.concatenate([[], *drawn]))
    if column == "coverage":
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    _evaluations_axis(ax, table)


def _evaluations_axis(ax: Axes, table: TaskTable) -> None:
    ax.set(xlim=(0, table.budget), xlabel="evaluations", title=plain(table.task))
    ax.xaxis.set_major_formatter(lambda x, _: evaluations_text(x))
    ax.locator_params(axis="x", nbins=5)
    ax.grid(alpha=0.25)


def final_fitness(ax: Axes, table: TaskTable, style: Styles, *, names: Mapping[str, str] | None = None) -> None:
    """Draw the final best fitness of the methods in `style` as violins, from top to bottom; the goal is dotted.

    Points are seeds, lines are medians. A method without results keeps its place. `names` replace labels at the axis.
    """
    for place, (label, line) in enumerate(style.items()):
        entry = table.entry(label)
        values = np.array([] if entry is None else [value for value in entry.final if np.isfinite(value)])
        if not len(values):
            continue
        if np.ptp(values) > 0:
            where, width = _violin(values)
            ax.fill_between(where, place - width, place + width, color=line["color"], alpha=0.28, linewidth=0)
        # Points are spread so that they do not hide each other, the same way every time.
        height = place + np.random.default_rng(0).uniform(-0.16, 0.16, len(values))
        ax.scatter(values, height, s=9, color=line["color"], linewidth=0, alpha=0.85, zorder=3)
        ax.plot([np.median(values)] * 2, [place - 0.38, place + 0.38], color="#111111", linewidth=1.8, zorder=4)
    if table.goal is not None:
        ax.axvline(table.goal, **GOAL, zorder=1)
    shown = [plain(label if names is None else names[label]) for label in style]
    ax.set(yticks=range(len(shown)), yticklabels=shown, ylim=(len(shown) - 0.4, -0.6), title=plain(table.task),
           xlabel="final best fitness")  # fmt: skip
    ax.locator_params(axis="x", nbins=5)
    ax.grid(alpha=0.25, axis="x")


def _violin(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places between the lowest and the highest value, and the half width of the violin at each."""
    from scipy.stats import gaussian_kde

    where = np.linspace(values.min(), values.max(), 200)
    density = gaussian_kde(values)(where)
    return where, 0.4 * density / density.max()


def reached(ax: Axes, table: TaskTable, style: Styles, fitness: float) -> None:
    """Draw the share of seeds that have reached a fitness, against evaluations."""
    count = 0
    for label, line in style.items():
        entry = table.entry(label)
        found = next((r for r in entry.reached if r.fitness == fitness), None) if entry is not None else None
        if found is None:
            continue
        count += found.count
        steps, counts = np.unique([n for n in found.evaluations if np.isfinite(n)], return_counts=True)
        shares = [0, *counts.cumsum() / len(found.evaluations)]
        ax.plot([0, *steps, table.budget], [*shares, shares[-1]], **line, drawstyle="steps-post", linewidth=1.6,
                label=plain(label), clip_on=False)  # fmt: skip
    _evaluations_axis(ax, table)
    if not count:
        ax.text(0.5, 0.5, "reached by no seed", transform=ax.transAxes, ha="center", color="#666666")
    goal = " (goal)" if fitness == table.goal else ""
    ax.set(ylim=(0, 1), title=f"{plain(table.task)}: fitness {fitness:g}{goal}")
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
