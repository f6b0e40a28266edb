"""`write_report`: a run, or a directory of runs, as one page that opens from disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jedax.errors import JedaxError, fail
from jedax.report.head import head_of, how_it_searched, how_to_read, words
from jedax.report.html import FILE, PLOTLY, plotly_source, render
from jedax.report.run_data import run_data
from jedax.store.files import write_atomic
from jedax.store.run import load
from jedax.tasks.base import Task

TRACE_SECONDS = 60.0
"""How long policies may act again for a page, unless another time is asked for."""


def write_report(
    directory: str | Path, *, out: str | Path | None = None, task: Task | None = None, share: bool = False,
    runs: bool = False, trace_seconds: float = TRACE_SECONDS, say: Callable[[str], None] | None = None,
) -> Path:  # fmt: skip
    """Write a run, or all runs below a directory, as one HTML page, and return its path; nothing is searched.

    Example:
        `jedax.write_report("runs/maze-b-jedi-x-seed0")`

    Args:
        directory: Of a run, finished or not, or a directory of runs such as a bench.
        out: The page; None: report.html in the directory.
        task: The task, where it is an object of your own that the directory cannot name.
        share: Put the library that draws charts beside the page, for all pages of the directory, and not into it.
        runs: Of a directory of runs: write the page of each run as well; they share the library.
        trace_seconds: Of a run whose solutions are policies: how long they may act again, compilation included, so that
            the page can show their episodes: the best first, then the best of each region. At least one batch acts;
            0: none.
        say: What shows progress, a line now and then.

    Raises:
        JedaxError: No run there, none that has ended in a directory of runs, settings of a newer format, the extra
            `report` is not installed, or the page cannot be written.
    """
    folder = Path(directory)
    page = Path(out) if out is not None else folder / FILE
    plotly_source()

    def shared(page: Path) -> str:
        return Path(os.path.relpath(folder / PLOTLY, page.parent)).as_posix()

    if (folder / "config.yaml").is_file():
        text = run_page(folder, task, shared(page) if share else None, trace_seconds=trace_seconds, say=say)
        return _write(page, text, folder, share)
    configs = sorted(folder.rglob("config.yaml")) if folder.is_dir() else []
    if not configs:
        raise fail(
            "report",
            expected="the directory of a run or of several",
            received=f"no run in {folder}",
            remedy="check the path, or make one with: jedax run maze-a",
        )
    share = share or runs
    for config in configs if runs else ():
        own = config.parent / FILE
        try:
            _write(own, run_page(config.parent, None, shared(own), trace_seconds=trace_seconds, say=say), folder, share)
        except JedaxError as error:
            raise JedaxError(f"{config.parent}: {error}") from None
    from jedax.report.comparison_page import comparison_page

    return _write(page, comparison_page(folder, page, shared(page) if share else None), folder, share)


def _write(page: Path, text: str, folder: Path, share: bool) -> Path:
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        if share and not (folder / PLOTLY).exists():
            write_atomic(folder / PLOTLY, plotly_source())
        write_atomic(page, text)
    except OSError as error:
        received = f"{page} ({error.strerror or error})"
        raise fail("out", expected="a file that can be written", received=received, remedy="give --out") from None
    return page


def run_page(
    directory: Path, task: Task | None = None, plotly_path: str | None = None, live: Mapping[str, Any] | None = None,
    trace_seconds: float = 0.0, say: Callable[[str], None] | None = None,
) -> str:  # fmt: skip
    """Return the page of a run; arguments and errors as in `write_report`.

    Args:
        directory: Of the run.
        task: The task.
        plotly_path: Where the page finds the library that draws charts; None: inside itself.
        live: What a page needs that follows a run; None: it follows none.
        trace_seconds: How long policies may act again.
        say: What shows progress.
    """
    found = load(directory, task, partial=True)
    head = head_of(found)
    return render(
        "run.html",
        title=f"{head.task}, {head.method}, seed {found.config.run.seed}",
        data={**run_data(found, trace_seconds, say), "live": live},
        scripts=("common.js", "episodes.js", "strip.js", "explorer.js", "run.js"),
        plotly_path=plotly_path,
        live=bool(live),
        head=head,
        how=how_to_read(found),
        loops=how_it_searched(found),
        words=words(found),
        settings=found.config.dump(),
        environment=json.dumps(found.environment, indent=2, ensure_ascii=False) if found.environment else "",
    )
