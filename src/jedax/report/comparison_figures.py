"""The figures of a comparison: panels for all tasks with one legend."""

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
    """Draw all figures of a comparison and return their files; those of an earlier comparison are removed.

    Args:
        comparison: The comparison.
        folder: Where to write.
        band: As in `jedax.bench.statistics.median_band`.
        formats: Of `FORMATS`.
        cells: Methods whose cells are drawn; None: as in `jedax.report.cell_maps.cell_maps`.
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
            figure.set_layout_engine("none")  # a layout takes longer than drawing; the next file keeps this one
            paths.append(_free(folder, name, kind, paths))
            write_atomic(paths[-1], buffer.getvalue())
    return paths


def _free(folder: Path, name: str, kind: str, taken: Sequence[Path]) -> Path:
    """Return a path that no figure has yet: names of tasks can be equal without their odd characters."""
    stem = re.sub(r"[^\w.=-]+", "-", name)
    numbered = (folder / f"{stem}{'' if n == 1 else f'-{n}'}.{kind}" for n in range(1, len(taken) + 2))
    return next(path for path in numbered if path not in taken)


def _figures(comparison: Comparison, band: str, cells: Sequence[str] | None) -> Iterator[tuple[str, Figure]]:
    """Yield the name of each figure and the figure."""
    style, tables = comparisons.styles(comparison.labels), comparison.tables
    shade = Patch(color="#bbbbbb", label=_BAND_NAMES[band])
    draws = [lambda ax, t=t: comparisons.curves(ax, comparison, t, style, band=band) for t in tables]
    yield "convergence", _panels(draws, style, "best fitness (median)", [shade, *_goal(tables)])
    yield "final-fitness", _final_fitness(comparison, style)
    covered = [t for t in tables if np.isfinite([c for entry in t.entries for c in entry.coverage]).any()]
    if covered:
        draws = [lambda ax, t=t: comparisons.curves(ax, comparison, t, style, "coverage", band=band) for t in covered]
        yield "coverage", _panels(draws, style, "coverage", [shade])
    levels = [(table, r.fitness) for table in tables for r in table.entries[0].reached]
    if levels:
        draws = [lambda ax, t=t, f=f: comparisons.reached(ax, t, style, f) for t, f in levels]
        yield "evaluations-to-fitness", _panels(draws, style, "share of seeds")
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


def _goal(tables: Sequence[TaskTable]) -> list[Line2D]:
    return [Line2D([], [], **comparisons.GOAL, label="goal")] if any(t.goal is not None for t in tables) else []


def _grid(
    draws: Sequence[Callable[[Axes], None]], columns: int, panel: tuple[float, float], sharey: bool = False
) -> Figure:
    """Return a figure with a panel for each drawing, in rows of equal size."""
    rows = math.ceil(len(draws) / columns)
    figure = Figure(figsize=(panel[0] * columns, panel[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey).flatten()
    for ax in axes[len(draws) :]:
        ax.remove()
    for ax, draw in zip(axes, draws, strict=False):
        draw(ax)
    return figure


def _panels(
    draws: Sequence[Callable[[Axes], None]], style: Styles, ylabel: str, extra: Sequence[Patch | Line2D] = ()
) -> Figure:
    """Return a figure with a panel for each drawing and one legend below."""
    columns = {1: 1, 2: 2, 3: 3, 4: 2}.get(len(draws), 3 if len(draws) <= 6 else 4)
    figure = _grid(draws, columns, _PANEL)
    for place, ax in enumerate(figure.axes):
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
    draws = [lambda ax, t=t: comparisons.final_fitness(ax, t, style) for t in tables]
    columns = min(len(tables), 4)
    figure = _grid(draws, columns, (3.1 + 1.3 / columns, 1.2 + 0.36 * len(style)), sharey=True)
    marks = [Line2D([], [], color="#111111", linewidth=1.8, label="median"),
             Line2D([], [], color="#666666", marker="o", markersize=3.5, linestyle="", label="a seed")]  # fmt: skip
    _legend_below(figure, {}, [*marks, *_goal(tables)])
    return figure


def _ablation(comparison: Comparison, prefix: str, labels: Sequence[str], band: str) -> Figure:
    """Return a column per task: convergence, coverage, final fitness, as in the paper's appendix."""
    style = comparisons.sequential_styles(labels)
    tables = [t for t in comparison.tables if sum(t.entry(label) is not None for label in labels) > 1]
    shown_band = band if len(labels) <= _MOST_BANDS else None
    names = {label: label.removeprefix(f"{prefix}=") for label in labels}
    figure = Figure(figsize=(0.6 + 3.3 * len(tables), 5.6 + 0.3 * len(labels)), layout="constrained")
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
