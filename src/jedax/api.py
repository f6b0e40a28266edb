"""`jedax.run` and `jedax.resume`: the search of `jedax.search.api` with the figures of `jedax.report.figures`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jedax.search import api
from jedax.store.run import Run


def draw_figures(run: Run, folder: Path) -> None:
    """Draw the figures of a run into a folder."""
    from jedax.report import figures

    figures.write_figures(run, folder)


@functools.wraps(api.run)
def run(*args: Any, **settings: Any) -> Run:
    """See `jedax.search.api.run`."""
    return api.run(*args, **{"draw": draw_figures, **settings})


@functools.wraps(api.resume)
def resume(*args: Any, **settings: Any) -> Run:
    """See `jedax.search.api.resume`."""
    return api.resume(*args, **{"draw": draw_figures, **settings})
