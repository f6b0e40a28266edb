"""The figures of a comparison: panels for all tasks, the legend under them."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jedax.bench.comparison import Comparison, TaskTable
from jedax.report import cell_maps, comparisons
from jedax.report.comparisons import Styles, plain
from jedax.store.files import write_atomic

FORMATS = ("png", "pdf")

_DPI = 150
_PANEL = (4.2, 3.0)  # inches
_BAND_NAMES = {"quartiles": "quartiles", "std": "± 1 standard deviation"}
_MOST_BANDS = 3
_NAMES = ("convergence", "coverage", "final-fitness", "evaluations-to-fitness", "cells-", "ablation-")


def write_comparison_figures(
    comparison: Comparison,
    folder: Path,
    *,
    band: str = "quartiles",
    formats: Sequence[str] = FORMATS,
    cells: Sequence[str] | None = None,
) -> list[Path]:
    """Draw all figures of a comparison; those that an earlier one left in the folder are removed.

    Args:
        comparison: What to draw.
        folder: Where to; made if it is missing.
        band: As in `jedax.bench.statistics.median_band`.
        formats: Of `FORMATS`.
        cells: Methods whose cells are drawn; None: as in `jedax.report.cell_maps.cell_maps`.

    Returns:
        The files, in the order in which one would look at them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name.startswith(_NAMES) and old.suffix.removeprefix(".") in FORMATS:
            old.unlink()
    paths: list[Path] = []
    for name, figure in _figures(comparison, band, cells):
        for kind in formats:
            buffer = io.BytesIO()
            metadata = {"CreationDate": None} if kind == "pdf" else None
            figure.savefig(buffer, format=kind, dpi=_DPI, bbox_inches="tight", metadata=metadata)
            figure.set_layout_engine("none")  # the second file needs no new layout, which takes longer than drawing
            paths.append(_free(folder, name, kind, paths))
            write_atomic(paths[-1], buffer.getvalue())
    return paths


def _free(folder: Path, name: str, kind: str, taken: Sequence[Path]) -> Path:
    """Return a path that no figure has yet, for names that look the same once odd characters are gone."""
    stem = re.sub(r"[^\w.=-]+", "-", name)
    numbered = (folder / f"{stem}{'' if n == 1 else f'-{n}'}.{kind}" for n in range(1, len(taken) + 2))
    return next(path for path in numbered if path not in taken)


def _figures(comparison: Comparison, band: str, cells: Sequence[str] | None) -> Iterator[tuple[str, Figure]]:
    """Yield the figures one by one, each with its name."""
    style = comparisons.styles(comparison.labels)
    tables = comparison.tables
    yield "convergence", _convergence(comparison, style, band)
    yield "final-fitness", _final_fitness(comparison, style)
    covered = [t for t in tables if np.isfinite([c for entry in t.entries for c in entry.coverage]).any()]
    if covered:
        yield "coverage", _panels(
            [lambda ax, t=t: comparisons.curves(ax, comparison, t, style, "coverage", band=band) for t in covered],
            style, "coverage", [Patch(color="#bbbbbb", label=_BAND_NAMES[band])],
        )  # fmt: skip
    levels = [(table, r.fitness) for table in tables for r in table.entries[0].reached]
    if levels:
        yield (
            "evaluations-to-fitness",
            _panels(
                [lambda ax, t=t, f=f: comparisons.reached(ax, t, style, f) for t, f in levels], style, "seeds there"
            ),
        )
    for table in tables:
        if maps := cell_maps.cell_maps(comparison, table, cells):
            yield f"cells-{table.task}", cell_maps.draw(maps, table.task)
    for prefix, labels in ablations(comparison.labels).items():
        yield f"ablation-{prefix}", _ablation(comparison, prefix, labels, band)


def ablations(labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels that differ in one value only, such as `alpha=0` and `alpha=0.3`, by what is before the `=`."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        prefix, equals, _ = label.rpartition("=")
        if equals:
            groups.setdefault(prefix, []).append(label)
    return {prefix: group for prefix, group in groups.items() if len(group) > 1}


def _convergence(comparison: Comparison, style: Styles, band: str) -> Figure:
    draws = [lambda ax, t=t: comparisons.curves(ax, comparison, t, style, band=band) for t in comparison.tables]
    extra = [Patch(color="#bbbbbb", label=_BAND_NAMES[band]), *_goal(comparison.tables)]
    return _panels(draws, style, "best fitness (median)", extra)


def _goal(tables: Sequence[TaskTable]) -> list[Line2D]:
    return [Line2D([], [], **comparisons.GOAL, label="goal")] if any(t.goal is not None for t in tables) else []


def _panels(
    draws: Sequence[Callable[[Axes], None]], style: Styles, ylabel: str, extra: Sequence[Patch | Line2D] = ()
) -> Figure:
    """Return a figure with a panel for each drawing and one legend under them."""
    columns = {1: 1, 2: 2, 3: 3, 4: 2}.get(len(draws), 3 if len(draws) <= 6 else 4)
    rows = math.ceil(len(draws) / columns)
    figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for ax in axes[len(draws) :]:
        ax.remove()
    for place, (ax, draw) in enumerate(zip(axes, draws, strict=False)):
        draw(ax)
        ax.set_ylabel(ylabel if place % columns == 0 else "")
        if place + columns < len(draws):
            ax.set_xlabel("")
    _legend_below(figure, style, extra)
    return figure


def _legend_below(
    figure: Figure, style: Styles, extra: Sequence[Patch | Line2D] = (), names: Mapping[str, str] | None = None
) -> None:
    lines = [
        Line2D([], [], **line, linewidth=2, label=plain(label if names is None else names[label]))
        for label, line in style.items()
    ]
    handles = [*lines, *extra]
    columns = max(1, min(len(handles), int(figure.get_figwidth() / 1.9)))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def _final_fitness(comparison: Comparison, style: Styles) -> Figure:
    tables = comparison.tables
    columns = min(len(tables), 4)
    rows = math.ceil(len(tables) / columns)
    size = (1.3 + 3.1 * columns, (1.1 + 0.36 * len(style)) * rows + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten()
    for ax in axes[len(tables) :]:
        ax.remove()
    for ax, table in zip(axes, tables, strict=False):
        comparisons.final_fitness(ax, table, style)
    marks = [Line2D([], [], color="#111111", linewidth=1.8, label="median"),
             Line2D([], [], color="#666666", marker="o", markersize=3.5, linestyle="", label="a seed")]  # fmt: skip
    handles = [*marks, *_goal(tables)]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _ablation(comparison: Comparison, prefix: str, labels: Sequence[str], band: str) -> Figure:
    """Return a column per task: convergence, coverage, final fitness, as in the paper's appendix."""
    style = comparisons.sequential_styles(labels)
    tables = [t for t in comparison.tables if sum(t.entry(label) is not None for label in labels) > 1]
    shown_band = band if len(labels) <= _MOST_BANDS else None
    names = {label: label.removeprefix(f"{prefix}=") for label in labels}
    size = (0.6 + 3.3 * len(tables), 5.6 + 0.3 * len(labels))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(3, len(tables), squeeze=False, height_ratios=(2.6, 2.0, 0.8 + 0.3 * len(labels)))
    for place, table in enumerate(tables):
        top, middle, bottom = axes[:, place]
        comparisons.curves(top, comparison, table, style, band=shown_band)
        comparisons.curves(middle, comparison, table, style, "coverage", band=shown_band)
        comparisons.final_fitness(bottom, table, style, names=names)
        top.set_xlabel("")
        for ax, ylabel in ((top, "best fitness (median)"), (middle, "coverage"), (bottom, plain(prefix))):
            ax.set_ylabel(ylabel if place == 0 else "")
            ax.set_title(ax.get_title() if ax is top else "")
    extra = [] if shown_band is None else [Patch(color="#bbbbbb", label=_BAND_NAMES[shown_band])]
    _legend_below(figure, style, [*extra, *_goal(tables)], {n: f"{prefix} = {names[n]}" for n in labels})
    return figure
