"""Figures of several methods side by side, each as a function of a matplotlib `Axes` and a `Comparison`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from jedax.bench.comparison import Comparison, TaskTable
from jedax.bench.statistics import ecdf, median_band
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
    """Return a text of the user's so that matplotlib shows it as it is: dollars are no math, all are in legends."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def sequential_styles(labels: Sequence[str]) -> Styles:
    """Return colours from dark to light for labels such as `alpha=0.3`, in their order; orange for no numbers."""
    numbers = [label for label in labels if _is_number(label.rpartition("=")[2])]
    shades = colormaps["viridis"](np.linspace(0, 0.88, max(len(numbers), 1)))
    found: dict[str, dict[str, Any]] = {
        label: {"color": shades[n], "linestyle": "-"} for n, label in enumerate(numbers)
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
    """Draw each method's median over seeds against evaluations, with a band around it; the goal is dotted.

    A few values of fitness far below all others are cut off.

    Args:
        ax: Where to draw.
        comparison: What is compared.
        table: The task.
        style: Which methods to draw, and how.
        column: "max_fitness" or "coverage".
        band: "quartiles", "std" for one standard deviation under and over the median, None: no band.
    """
    drawn = []
    for label, line in style.items():
        grid, values = comparison.curves(table, label, column)
        if not len(grid):
            continue
        low, median, high = median_band(values, band or "quartiles")
        drawn += [low, median, high] if band is not None else [median]
        ax.plot(grid, median, **line, drawstyle="steps-post", linewidth=1.6, label=plain(label))
        if band is not None:
            strength = min(0.15, 0.7 / len(style))
            ax.fill_between(grid, low, high, color=line["color"], alpha=strength, step="post", linewidth=0)
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
    """Draw the final best fitness of each method as a violin: each seed a point, the median a line, the goal dotted.

    Methods stand from top to bottom; one without results on the task keeps its place.

    Args:
        ax: Where to draw.
        table: The task.
        style: Which methods to draw, and how.
        names: What to call them at the axis; None: their labels.
    """
    for place, (label, line) in enumerate(style.items()):
        entry = table.entry(label)
        values = np.array([] if entry is None else [value for value in entry.final if np.isfinite(value)])
        if not len(values):
            continue
        if np.ptp(values) > 0:
            where, width = _violin(values)
            ax.fill_between(where, place - width, place + width, color=line["color"], alpha=0.28, linewidth=0)
        # Beside each other where they would hide each other, the same way every time.
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
    """Return places between the least and the greatest value, and the half width of the violin at each."""
    from scipy.stats import gaussian_kde

    where = np.linspace(values.min(), values.max(), 200)
    density = gaussian_kde(values)(where)
    return where, 0.4 * density / density.max()


def reached(ax: Axes, table: TaskTable, style: Styles, fitness: float) -> None:
    """Draw the share of seeds that have reached a fitness, against evaluations."""
    there = 0
    for label, line in style.items():
        entry = table.entry(label)
        found = next((r for r in entry.reached if r.fitness == fitness), None) if entry is not None else None
        if found is None:
            continue
        steps, shares = ecdf(found.evaluations)
        there += found.count
        ends = shares[-1] if len(shares) else 0
        ax.plot([0, *steps, table.budget], [0, *shares, ends], **line, drawstyle="steps-post", linewidth=1.6,
                label=plain(label), clip_on=False)  # fmt: skip
    _evaluations_axis(ax, table)
    if not there:
        ax.text(0.5, 0.5, "no seed got there", transform=ax.transAxes, ha="center", color="#666666")
    goal = " (goal)" if fitness == table.goal else ""
    ax.set(ylim=(0, 1), title=f"{plain(table.task)}: fitness {fitness:g}{goal}")
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
