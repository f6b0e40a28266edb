"""`write_report`: a run, or a directory of runs, as one HTML page that opens from disk."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from jedax._version import __version__
from jedax.bench import comparison as experiments
from jedax.bench.comparison import Comparison, Entry, TaskTable
from jedax.bench.reading import Record
from jedax.bench.statistics import median_band, ranking
from jedax.errors import JedaxError, fail, printable
from jedax.imports import require
from jedax.report import tables
from jedax.report.numbers import fitness_text, p_text, share_text
from jedax.report.pictures import writing
from jedax.report.run_data import head_of, how_it_searched, how_to_read, run_data, words
from jedax.report.styles import LINES, styles
from jedax.store.directory import runs_below
from jedax.store.files import write_atomic
from jedax.store.run import load
from jedax.tasks.base import Task

FILE = "report.html"

_PLOTLY = "plotly.min.js"
_DASHES = ("solid", "dash", "dot")


def write_report(
    directory: str | Path, *, out: str | Path | None = None, task: Task | None = None, share: bool = False,
    runs: bool = False, trace_seconds: float = 60.0, trust: bool = False, say: Callable[[str], None] | None = None,
) -> Path:  # fmt: skip
    """Write a run, or all runs below a directory, as one HTML page, and return its path; nothing is searched.

    Example:
        `jedax.write_report("runs/maze-b-jedi-x-seed0")`

    Args:
        directory: Of a run, finished or not, or a directory of runs such as a bench.
        out: The page; None: report.html in the directory.
        task: The task, where it is an object of your own that the directory cannot name.
        share: Put the chart library beside the page, where all pages of the directory find it, instead of inside it.
        runs: For a directory of runs: also write the page of each run; they share the chart library.
        trace_seconds: Seconds, compilation included, for simulating policies again, so that the page shows their
            episodes: the best first, then the best of each region. At least one batch is simulated; 0: none.
        trust: Import the code that the settings name, as in `jedax.load`.
        say: Called with a line of progress from time to time.

    Raises:
        JedaxError: No run there, none that has ended in a directory of runs, settings of a newer format, the extra
            `report` is not installed, or the page cannot be written.
    """
    folder = Path(directory)
    page = Path(out) if out is not None else folder / FILE
    plotly_source()

    def shared(page: Path) -> str:
        return quote(Path(os.path.relpath(folder / _PLOTLY, page.parent)).as_posix())

    if runs_below(folder, 0):
        text = run_page(
            folder, task, shared(page) if share else None, trace_seconds=trace_seconds, trust=trust, say=say
        )
        if share:
            _share(folder)
        return _write(page, text)
    configs = [run / "config.yaml" for run in runs_below(folder)] if folder.is_dir() else []
    if not configs:
        remedy = "check the path, or make one with: jedax run maze-a"
        raise fail(
            "report", expected="the directory of a run or of several", received=f"no run in {folder}", remedy=remedy
        )
    share = share or runs
    if share:
        _share(folder)
    for config in configs if runs else ():
        own = config.parent / FILE
        try:
            text = run_page(config.parent, None, shared(own), trace_seconds=trace_seconds, trust=trust, say=say)
            _write(own, text)
        except JedaxError as error:
            raise JedaxError(f"{config.parent}: {error}") from None
    return _write(page, _comparison_page(folder, page, shared(page) if share else None))


def _write(page: Path, text: str) -> Path:
    with writing("a file", page):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(page, text)
    return page


def _share(folder: Path) -> None:
    """Put the chart library in a folder."""
    path = folder / _PLOTLY
    with writing("a file", path):
        if not _holds(path, source := plotly_source()):
            write_atomic(path, source)


def _holds(path: Path, text: str) -> bool:
    """Return whether a file has this content: the page runs it, and somebody else may have written another."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == text.encode()


def run_page(
    directory: Path, task: Task | None = None, plotly_path: str | None = None, live: Mapping[str, Any] | None = None,
    trace_seconds: float = 0.0, trust: bool = False, say: Callable[[str], None] | None = None,
) -> str:  # fmt: skip
    """Return the page of a run; `plotly_path` and `live` as in `_render`, the other arguments as in `write_report`."""
    found = load(directory, task, partial=True, trust=trust)
    head = head_of(found)
    return _render(
        "run.html",
        title=f"{head['task']}, {head['method']}, seed {found.config.run.seed}",
        data={**run_data(found, trace_seconds, say), "live": live},
        scripts=("common.js", "episodes.js", "explorer.js", "run.js"),
        plotly_path=plotly_path,
        live=bool(live),
        head=head,
        how=how_to_read(found),
        loops=how_it_searched(found),
        words=words(found),
        settings=found.config.dump(),
        environment=json.dumps(found.environment, indent=2, ensure_ascii=False) if found.environment else "",
    )


def _comparison_page(folder: Path, page: Path, plotly_path: str | None) -> str:
    """Return the page that compares all finished runs below a directory; `page` is its path, for links to runs."""
    found = experiments.compare(folder)
    ranks = ranking(found.medians)
    return _render(
        "comparison.html",
        title=f"Comparison: {', '.join(table.task for table in found.tables)}",
        data={
            "labels": found.labels,
            "styles": {
                label: {"color": line["color"], "dash": _DASHES[LINES.index(line["linestyle"])]}
                for label, line in styles(found.labels).items()
            },
            "tables": [
                {
                    "task": table.task,
                    "budget": table.budget,
                    "goal": table.goal,
                    "entries": [_entry(found, table, entry, page) for entry in table.entries],
                }
                for table in found.tables
            ],
            "ranks": ranks and {name: getattr(ranks, name) for name in ("labels", "ranks", "difference", "groups")},
            "csv": tables.csv_files(found),
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
        p_text=p_text,
        lead=_lead(found),
    )


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
    named = {"low": low, "median": median, "high": high}
    rounded = {name: _finite([float(f"{value:.6g}") for value in numbers]) for name, numbers in named.items()}
    return {"x": curves.index.tolist(), **rounded}


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
        "similar": entry.similar,
        "success": "" if entry.successes is None else f"{entry.successes} of {len(entry.seeds)} reached the goal",
        "coverage": share_text(entry.median_coverage),
    }


def _lead(found: Comparison) -> str:
    seeds = {len(entry.seeds) for table in found.tables for entry in table.entries}
    many = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    firsts = {table.task: [entry.label for entry in table.entries if entry.place == 1] for table in found.tables}
    best = [f"{' and '.join(labels)} on {task}" for task, labels in firsts.items() if labels]
    return (
        f"{len(found.labels)} method{'s' * (len(found.labels) > 1)} on {len(found.tables)} "
        f"task{'s' * (len(found.tables) > 1)}, {many} seed{'s' * (seeds != {1})} each. "
        f"The highest median of the final best fitness: {', '.join(best) or 'none, since no seed has a solution'}."
    )


def _render(
    template: str, *, data: Mapping[str, Any], scripts: Sequence[str], plotly_path: str | None, live: bool = False,
    **texts: Any,
) -> str:  # fmt: skip
    """Return a page; all texts are escaped.

    `data` are JSON values for its scripts, `plotly_path` is where it finds the chart library (None: inside itself),
    `live` says whether it follows a run.
    """
    from markupsafe import Markup

    def static(name: str) -> Any:
        return Markup((Path(__file__).parent / "static" / name).read_text(encoding="utf-8"))

    # Neither the end of a script nor a comment can stand in JSON written so.
    packed = json.dumps(readable(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return templates().get_template(template).render(
        version=__version__,
        style=static("style.css"),
        data=Markup(packed),
        scripts=[static(name) for name in scripts],
        plotly=Markup("" if plotly_path else plotly_source().replace("</script", "<\\/script")),
        plotly_path=plotly_path,
        live=live,
        **texts,
    )  # fmt: skip


@functools.cache
def templates() -> Any:
    """Return the templates, which escape what they show."""
    jinja2: Any = require("jinja2", "report", "report")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("jedax.report", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, finalize=_readable_text,
    )  # fmt: skip


def readable(values: Any) -> Any:
    """Return JSON values whose texts, also names, hold no control characters and marks of direction, but escapes."""
    if isinstance(values, Mapping):
        return {_readable_text(name): readable(value) for name, value in values.items()}
    return [readable(value) for value in values] if isinstance(values, list | tuple) else _readable_text(values)


def _readable_text(value: Any) -> Any:
    return printable(value, keep="\n") if type(value) is str else value  # not Markup, which is ours


@functools.cache
def plotly_source() -> str:
    """Return the chart library; raises an error if the extra `report` is not installed."""
    require("jinja2", "report", "report")
    package: Any = require("plotly", "report", "report")
    folder = Path(package.__file__).parent
    return (folder / "package_data" / _PLOTLY).read_text(encoding="utf-8")
