"""Several methods side by side: `compare`, and each figure as a function of a matplotlib `Axes` and a `Comparison`."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jedax.bench import comparison as experiments
from jedax.bench.comparison import Comparison, TaskTable
from jedax.bench.statistics import BANDS, median_band
from jedax.errors import check_choice, fail
from jedax.report import cell_maps, tables
from jedax.report.numbers import REMARK, cut_axis, evaluations_axis
from jedax.report.pictures import write_figure, writing
from jedax.report.styles import Styles, ablations, styles
from jedax.store.directory import is_run
from jedax.store.files import write_atomic
from jedax.store.guard import check_plain
from jedax.tasks.drawing import plain

GOAL: dict[str, Any] = {"color": "#222222", "linestyle": ":", "linewidth": 1.2}

FORMATS = ("png", "pdf")

_PANEL = (4.2, 3.0)  # inches
_BAND_NAMES = {"quartiles": "quartiles", "std": "± 1 standard deviation"}
_MOST_BANDS = 3
_MOST_LINES = 8  # in a panel
_FAR = 10  # ratio of the first two reports, beyond which a logarithmic axis begins at the second
_EARLY = 0.1  # share of the budget; the axis is logarithmic where many curves have done most of their way by then
_FEWEST_FOR_VIOLIN = 10
_GAP = 0.1  # share of the range of the seeds; a violin does not bridge a longer one
_NAMES = ("convergence", "coverage", "final-fitness", "evaluations-to-fitness", "cells-", "ablation-")


def compare(
    directories: str | Path | Iterable[str | Path], *, out: str | Path | None = None, reference: str | None = None,
    band: str = "quartiles", fitness: Sequence[float] = (), formats: Sequence[str] = FORMATS,
    cells: Sequence[str] | None = None,
) -> Comparison:  # fmt: skip
    """Compare all runs below some directories, and write tables and figures; nothing is run.

    Example:
        `jedax.compare("bench").tables[0].entries`

    Args:
        directories: Directories, searched with everything below them, and CSV files of other programs (see
            `jedax.bench.reading.read_csv`).
        out: Where to write; None: the folder `compare` in the first directory, or beside it if it is a run.
        reference: Label that all others are tested against; None: the best JEDi of each task.
        band: Around the median in figures: "quartiles", or "std" for one standard deviation as in the paper.
        fitness: Fitness values, besides the goal, for which the evaluations to reach them are counted.
        formats: Of the figures: "png", "pdf".
        cells: Labels whose cells are drawn; None: the reference and the best others, four in all.

    Returns:
        The comparison as data.

    Raises:
        JedaxError: No results, results that do not belong together, an unknown name, or a directory that cannot be
            written.
    """
    paths = [Path(path) for path in ([directories] if isinstance(directories, str | Path) else directories)]
    if not paths:
        raise fail("directories", expected="at least one", received="none", remedy="name the directory of a bench")
    check_choice("band", band, BANDS)
    for kind in formats:
        check_choice("formats", kind, FORMATS)
    found = experiments.compare(paths, reference=reference, fitness=fitness)
    for label in cells or ():
        check_choice("cells", label, found.labels)
    folder = folder_for(paths[0], out)
    if out is None:
        check_plain(folder.parent, (), (folder.name,))
    write_comparison(found, folder, band=band, formats=formats, cells=cells)
    return found


def write_comparison(
    comparison: Comparison, folder: Path, *, band: str = "quartiles", formats: Sequence[str] = FORMATS,
    cells: Sequence[str] | None = None,
) -> None:  # fmt: skip
    """Write the tables and figures of a comparison; the arguments are those of `compare`."""
    figures = folder / "figures"
    with writing("a directory", folder):
        check_plain(folder, (), (figures.name,))
        _check_is_free(folder)
        figures.mkdir(parents=True, exist_ok=True)
        for name, text in tables.csv_files(comparison).items():  # by the first of which a comparison is known
            write_atomic(folder / f"{name}.csv", text)
        write_atomic(folder / "table.tex", tables.latex(comparison))
        drawn = write_comparison_figures(comparison, figures, band=band, formats=formats, cells=cells)
        pictures = [path.relative_to(folder).as_posix() for path in drawn if path.suffix == ".png"]
        write_atomic(folder / "table.md", tables.markdown(comparison, pictures))


def _check_is_free(folder: Path) -> None:
    """Raise an error if files would be replaced or removed that no comparison wrote."""
    if tables.is_comparison(folder):
        return
    known = (folder / name for name in ("table.md", "table.tex", "table.csv", "seeds.csv", "reached.csv"))
    taken = [*(path for path in known if path.exists()), *_drawn(folder / "figures")]
    if taken or is_run(folder):
        received = f"{folder} with {taken[0].relative_to(folder)}" if taken else f"{folder}, a run"
        expected, remedy = "a new directory, or that of an earlier comparison", "choose another"
        raise fail("out", expected=expected, received=received, remedy=remedy)


def _drawn(folder: Path) -> list[Path]:
    """Return the figures in a folder that have names of a comparison's."""
    every = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in every if path.name.startswith(_NAMES) and path.suffix.removeprefix(".") in FORMATS]


def folder_for(first: Path, out: str | Path | None = None) -> Path:
    """Return where a comparison is written: `out`, else `compare` in the first directory, or beside a run or a file."""
    if out is not None:
        return Path(out)
    return (first.parent if first.is_file() or is_run(first) else first) / "compare"


def outcome(comparison: Comparison, folder: Path) -> str:
    """Return the text that the command line prints after a comparison was written to `folder`."""
    verdicts = [table.verdict for table in comparison.tables if table.verdict is not None]
    lines = [tables.plain_table(comparison), *verdicts, *comparison.notes]
    if left_out := comparison.records.left_out:
        lines.append(f"runs that have not ended, left out: {len(left_out)}; table.md lists them")
    return "\n".join([*lines, f"tables and figures are in {folder}: see {folder / 'table.md'}"])


def curves(
    ax: Axes, comparison: Comparison, table: TaskTable, style: Styles, column: str = "max_fitness", *,
    band: str | None = "quartiles", log: bool | None = None,
) -> None:  # fmt: skip
    """Draw the median over seeds of the methods in `style` against evaluations; the goal is dotted.

    A few values of fitness far below all others are cut off. `column` is "max_fitness" or "coverage"; `band` as in
    `jedax.bench.statistics.median_band`, None: no band. `log` tells whether the axis of evaluations is logarithmic;
    None: where `is_early` says so.
    """
    drawn = []
    for label, line in style.items():
        found = comparison.curves(table, label, column)
        if found.empty:
            continue
        low, median, high = median_band(found.to_numpy(), band or "quartiles")
        if not np.isfinite(median).any():
            continue
        drawn.append((found.index, median))
        ax.plot(found.index, median, **line, drawstyle="steps-post", linewidth=1.6, label=plain(label), clip_on=False)
        if band is not None:
            drawn += [(found.index, low), (found.index, high)]
            strength = min(0.15, 0.7 / len(style))
            ax.fill_between(found.index, low, high, color=line["color"], alpha=strength, step="post", linewidth=0)
    if table.goal is not None and column == "max_fitness":
        ax.axhline(table.goal, **GOAL, zorder=1)
    _evaluations_axis(ax, table, is_early(comparison, [table]) if log is None else log, _first_shown)
    if column == "max_fitness":
        goal = [] if table.goal is None else [table.goal]
        values = np.concatenate([goal, *(values[index >= ax.get_xlim()[0]] for index, values in drawn)])
        known = values[np.isfinite(values)]
        if ax.get_xscale() == "log" and len(known):  # the limits are those of what is seen
            margin = 0.05 * np.ptp(known) or 1.0
            ax.set_ylim(known.min() - margin, known.max() + margin)
        cut_axis(ax, values)
    if column == "coverage":
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")


def is_early(comparison: Comparison, tables: Sequence[TaskTable]) -> bool:
    """Return whether a third of the curves do nine tenths of their way to their final fitness in a tenth of the budget.

    The axis of evaluations is then logarithmic, in all panels of a figure.
    """
    early = []
    for table, entry in [(each, entry) for each in tables for entry in each.entries]:
        median = comparison.curves(table, entry.label, "max_fitness").median(axis=1)
        median = median.replace([-np.inf, np.inf], np.nan).dropna()
        if len(median) and median.iloc[-1] > median.iloc[0]:
            way = (median - median.iloc[0]) / (median.iloc[-1] - median.iloc[0])
            early.append(float((way >= 1 - _EARLY).idxmax()) <= _EARLY * table.budget)
    return bool(early) and float(np.mean(early)) >= 1 / 3


def _evaluations_axis(ax: Axes, table: TaskTable, log: bool, first: Callable[[np.ndarray], float] = np.min) -> None:
    """Label the axis of evaluations; a logarithmic one begins at the lowest `first` of all lines."""
    ax.set(title=plain(table.task))
    if log:
        known = [np.asarray(line.get_xdata(), float) for line in ax.lines if not str(line.get_label()).startswith("_")]
        ax.set_xscale("log")
        for line in ax.lines:
            line.set_clip_on(True)  # it may begin at 0, infinitely far to the left
        lowest = min((first(x[x > 0]) for x in known if (x > 0).any()), default=1)
        ax.set_xlim(min(lowest, table.budget / 10), table.budget)
    else:
        ax.set_xlim(0, table.budget)
    evaluations_axis(ax)


def _first_shown(reports: np.ndarray) -> float:
    """Return the first report, or the second of at least three where the first is far to the left."""
    first, *others = np.unique(reports)
    return float(others[0] if len(others) > 1 and others[0] > _FAR * first else first)


def final_fitness(ax: Axes, table: TaskTable, style: Styles, *, names: Mapping[str, str] | None = None) -> None:
    """Draw the final best fitness of the methods in `style`, from top to bottom; the goal is dotted.

    Points are seeds, lines are medians of all seeds, also of those without a solution, whose number is written; ten
    seeds or more have violins. A method without results keeps its place.
    `names` replace labels at the axis.
    """
    from scipy.stats import gaussian_kde

    for place, (label, line) in enumerate(style.items()):
        entry = table.entry(label)
        if entry is None:
            continue
        values = np.array([value for value in entry.final if np.isfinite(value)])
        if len(values) < len(entry.final):
            text = f"{len(entry.final) - len(values)} of {len(entry.final)} seeds: no solution"
            ax.text(0.02, place + 0.3, text, transform=ax.get_yaxis_transform(), **REMARK)
        if not len(values):
            continue
        parts = _without_gaps(values) if len(values) >= _FEWEST_FOR_VIOLIN else []
        shapes, whole = [], values.max() / 2 - values.min() / 2
        for part in (part for part in parts if len(part) > 2 and part.max() > part.min()):
            # In units of the part's range, since squares of tiny and huge numbers are 0 and infinite.
            middle, reach = part.min() / 2 + part.max() / 2, part.max() / 2 - part.min() / 2
            where = np.linspace(-1, 1, 200)
            with contextlib.suppress(np.linalg.LinAlgError):  # equal but for rounding
                density = gaussian_kde((part - middle) / reach)(where) * len(part)
                shapes.append((middle + reach * where, density * (whole / reach)))
        for where, density in shapes:
            width = 0.4 * density / max(other.max() for _, other in shapes)
            ax.fill_between(where, place - width, place + width, color=line["color"], alpha=0.28, linewidth=0)
        # Points are spread so that they do not hide each other, the same way every time.
        height = place + np.random.default_rng(0).uniform(-0.16, 0.16, len(values))
        size = 12 if len(values) >= _FEWEST_FOR_VIOLIN else 26
        ax.scatter(
            values, height, s=size, color=line["color"], marker=line["marker"], linewidth=0, alpha=0.85, zorder=4
        )
        if np.isfinite(entry.median):
            ax.plot([entry.median] * 2, [place - 0.38, place + 0.38], color="#111111", linewidth=1.8, zorder=3)
    if table.goal is not None:
        ax.axvline(table.goal, **GOAL, zorder=1)
    shown = [plain(label if names is None else names[label]) for label in style]
    ax.set(yticks=range(len(shown)), yticklabels=shown, ylim=(len(shown) - 0.4, -0.6), title=plain(table.task),
           xlabel="final best fitness")  # fmt: skip
    ax.locator_params(axis="x", nbins=4)
    ax.grid(alpha=0.25, axis="x")


def _without_gaps(values: np.ndarray) -> list[np.ndarray]:
    """Return values in groups, cut where none lie."""
    values = np.sort(values)
    return np.split(values, np.flatnonzero(np.diff(values) > _GAP * np.ptp(values)) + 1)


def reached(ax: Axes, table: TaskTable, style: Styles, fitness: float, *, log: bool | None = None) -> None:
    """Draw the share of seeds that have reached a fitness, against evaluations.

    `log` tells whether the axis of evaluations is logarithmic; None: where most methods arrive early.
    """
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
    _evaluations_axis(ax, table, _arrive_early([(table, fitness)]) if log is None else log)
    if not count:
        ax.text(0.5, 0.5, "reached by no seed", transform=ax.transAxes, ha="center", color="#666666")
    goal = " (goal)" if fitness == table.goal else ""
    ax.set(ylim=(-0.03, 1.03), title=f"{plain(table.task)}: fitness {fitness:.12g}{goal}")
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def _arrive_early(levels: Sequence[tuple[TaskTable, float]]) -> bool:
    """Return whether most methods reach the fitness given for each task in the first tenth of its budget."""
    known = [
        r.median <= _EARLY * table.budget
        for table, fitness in levels
        for entry in table.entries
        for r in entry.reached
        if r.fitness == fitness and np.isfinite(r.median)
    ]
    return bool(known) and float(np.mean(known)) > 0.5


def write_comparison_figures(
    comparison: Comparison, folder: Path, *, band: str, formats: Sequence[str], cells: Sequence[str] | None
) -> list[Path]:
    """Draw all figures of a comparison into a folder and return their files; those of an earlier one are removed."""
    for old in _drawn(folder):
        old.unlink()
    paths: list[Path] = []
    for name, figure in _figures(comparison, band, cells):
        for kind in formats:
            paths.append(write_figure(_free(folder, name, kind, paths), figure))
            figure.set_layout_engine("none")  # a layout takes longer than drawing; the next file keeps this one
    return paths


def _free(folder: Path, name: str, kind: str, taken: Sequence[Path]) -> Path:
    """Return a path that no figure has yet: names of tasks can be equal without their odd characters."""
    stem = re.sub(r"[^\w.=-]+", "-", name)
    numbered = (folder / f"{stem}{'' if n == 1 else f'-{n}'}.{kind}" for n in range(1, len(taken) + 2))
    return next(path for path in numbered if path not in taken)


def _figures(comparison: Comparison, band: str, cells: Sequence[str] | None) -> Iterator[tuple[str, Figure]]:
    """Yield the name of each figure and the figure."""
    style, tables = styles(comparison.labels), comparison.tables
    groups = [{label: style[label] for label in group} for group in small_groups(comparison)]
    shade = Patch(color="#bbbbbb", label=_BAND_NAMES[band])
    log = is_early(comparison, tables)
    draws = [lambda ax, t=t, g=g: curves(ax, comparison, t, g, band=band, log=log) for g in groups for t in tables]
    yield "convergence", _panels(draws, style, "best fitness (median)", [shade, *_goal(tables)], len(groups))
    yield "final-fitness", _final_fitness(comparison, style)
    covered = [t for t in tables if np.isfinite([c for entry in t.entries for c in entry.coverage]).any()]
    if covered:
        each = [(group, table) for group in groups for table in covered]
        draws = [lambda ax, g=g, t=t: curves(ax, comparison, t, g, "coverage", band=band, log=log) for g, t in each]
        yield "coverage", _panels(draws, style, "coverage (median)", [shade], len(groups))
    levels = [(table, r.fitness) for table in tables for r in table.entries[0].reached]
    if levels:
        log = _arrive_early(levels)
        draws = [lambda ax, t=t, f=f, g=g, log=log: reached(ax, t, g, f, log=log) for g in groups for t, f in levels]
        yield "evaluations-to-fitness", _panels(draws, style, "share of seeds", (), len(groups))
    for table in tables:
        if maps := cell_maps.cell_maps(comparison, table, cells):
            yield f"cells-{table.task}", cell_maps.draw(maps, table.task)
    for prefix, labels in ablations(comparison.labels).items():
        shared = [t for t in tables if sum(t.entry(label) is not None for label in labels) > 1]
        if shared:
            yield (
                f"ablation-{prefix}",
                _ablation(comparison, prefix, {label: style[label] for label in labels}, shared, band),
            )


def small_groups(comparison: Comparison) -> list[list[str]]:
    """Return the labels in groups for panels with at most 8 lines each.

    Where there are more labels, every version of JEDi comes first; each later group begins with the one of them that is
    the reference most often.
    """
    labels = comparison.labels
    if len(labels) <= _MOST_LINES:
        return [list(labels)]
    methods = {record.label: record.method for record in comparison.records.records}
    ours = [label for label in labels if experiments.is_reference(methods[label])][:_MOST_LINES]
    references = [table.reference for table in comparison.tables if table.reference in ours]
    anchor = [max(references, key=references.count)] if references else []
    others, size = [label for label in labels if label not in ours], _MOST_LINES - len(anchor)
    number = math.ceil(len(others) / size)
    groups = [anchor + [str(label) for label in part] for part in np.array_split(others, number)] if others else []
    return ([ours] if ours else []) + groups


def _goal(tables: Sequence[TaskTable]) -> list[Line2D]:
    return [Line2D([], [], **GOAL, label="goal")] if any(t.goal is not None for t in tables) else []


def _grid(
    draws: Sequence[Callable[[Axes], None]], columns: int, panel: tuple[float, float], sharey: bool = False,
    groups: int = 1,
) -> tuple[Figure, np.ndarray]:  # fmt: skip
    """Return a figure with a panel for each drawing, and its axes in rows of equal size; a group begins a new row.

    Axes without a drawing are not in the figure.
    """
    each = len(draws) // groups
    rows = math.ceil(each / columns)
    figure = Figure(figsize=(panel[0] * columns, panel[1] * rows * groups), layout="constrained")
    axes = figure.subplots(rows * groups, columns, squeeze=False, sharey=sharey)
    for group, own in enumerate(np.split(axes, groups)):
        for ax, draw in zip(own.flat, draws[group * each : (group + 1) * each], strict=False):
            draw(ax)
        for ax in own.flat[each:]:
            ax.remove()
    return figure, axes


def _panels(
    draws: Sequence[Callable[[Axes], None]],
    style: Styles,
    ylabel: str,
    extra: Sequence[Patch | Line2D] = (),
    groups: int = 1,
) -> Figure:
    """Return a figure with a panel for each drawing, several groups one below the other, and one legend."""
    each = len(draws) // groups
    columns = {1: 1, 2: 2, 3: 3, 4: 2 if groups == 1 else 4}.get(each, 3 if each <= 6 else 4)
    figure, axes = _grid(draws, columns, _PANEL, groups=groups)
    for ax in axes[:, 0]:
        ax.set_ylabel(ylabel)
    for above, below in zip(axes[:-1].flat, axes[1:].flat, strict=True):
        if below.figure is not None:
            above.set_xlabel("")
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
    columns = max(1, min(len(handles), int(figure.get_figwidth() / 2.0)))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, handlelength=3.2
    )


def _final_fitness(comparison: Comparison, style: Styles) -> Figure:
    tables = comparison.tables
    draws = [lambda ax, t=t: final_fitness(ax, t, style) for t in tables]
    columns = min(len(tables), 4)
    names = max(1.3, 0.085 * max(map(len, style)))  # inches; those of a few words would leave no room for the points
    figure, _ = _grid(draws, columns, (3.1 + names / columns, 1.2 + 0.36 * len(style)), sharey=True)
    marks = [Line2D([], [], color="#111111", linewidth=1.8, label="median"),
             Line2D([], [], color="#666666", marker="o", markersize=3.5, linestyle="", label="a seed")]  # fmt: skip
    _legend_below(figure, {}, [*marks, *_goal(tables)])
    return figure


def _ablation(comparison: Comparison, prefix: str, style: Styles, tables: Sequence[TaskTable], band: str) -> Figure:
    """Return a column per task: convergence, coverage, final fitness, as in the paper's appendix."""
    shown_band = band if len(style) <= _MOST_BANDS else None
    names = {label: label.removeprefix(f"{prefix}=") for label in style}
    figure = Figure(figsize=(0.6 + 3.3 * len(tables), 5.6 + 0.3 * len(style)), layout="constrained")
    axes = figure.subplots(3, len(tables), squeeze=False, height_ratios=(2.6, 2.0, 0.8 + 0.3 * len(style)))
    log = is_early(comparison, tables)
    for place, table in enumerate(tables):
        top, middle, bottom = axes[:, place]
        curves(top, comparison, table, style, band=shown_band, log=log)
        curves(middle, comparison, table, style, "coverage", band=shown_band, log=log)
        final_fitness(bottom, table, style, names=names)
        top.set_xlabel("")
        for ax, ylabel in ((top, "best fitness (median)"), (middle, "coverage"), (bottom, plain(prefix))):
            ax.set_ylabel(ylabel if place == 0 else "")
            ax.set_title(ax.get_title() if ax is top else "")
    extra = [] if shown_band is None else [Patch(color="#bbbbbb", label=_BAND_NAMES[shown_band])]
    _legend_below(figure, style, [*extra, *_goal(tables)], {n: f"{prefix} = {names[n]}" for n in style})
    return figure
