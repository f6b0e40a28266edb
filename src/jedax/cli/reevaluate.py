"""The command `jedax reevaluate`."""

from __future__ import annotations

import sys
import time
from typing import Literal

from jedax.cli.options import Option, parse
from jedax.cli.run import nothing_to_save
from jedax.errors import JedaxError, fail

_SECONDS_BETWEEN_LINES = 10.0
_REEVALUATE = {
    "samples": Option("New evaluations of each solution; 2 where nothing is random.", int, 128),
    "seed": Option("Of their random numbers, which are never those of a search.", int, 0),
    "cells": Option("All elites, or only the best solution of each seed.", Literal["all", "best"], "all"),
}


def reevaluate(arguments: list[str]) -> None:
    """Evaluate what a run found again, and print how much of it was luck."""
    directory = arguments.pop(0) if arguments and not arguments[0].startswith("-") else None
    values = parse(
        arguments, _REEVALUATE, prog="jedax reevaluate DIR",
        description="Evaluate what a run found again, many times: corrected fitness, coverage and QD score. Writes "
        "reevaluated.json, .csv and .png beside the run's own files, which stay as they are.",
    )  # fmt: skip
    if directory is None:
        raise fail("jedax reevaluate", expected="a run's directory", received="none", remedy="see runs/")
    with nothing_to_save():
        from jedax.report import reevaluation
        from jedax.search.environment import keep_compiled_programs

        keep_compiled_programs()
    samples, seed = (_whole(name, values.get(name, str(_REEVALUATE[name].default))) for name in ("samples", "seed"))
    cells = values.get("cells", "all")
    found = reevaluation.reevaluate(directory, samples=samples, seed=seed, cells=cells, note=_Lines())
    print(reevaluation.table(found))
    print(f"\nthe numbers are in {directory}/{reevaluation.FILES[0]} and {reevaluation.FILES[1]}"
          + f", the figure in {reevaluation.FILES[2]}" * (found.scope == "all"))  # fmt: skip


class _Lines:
    """Says now and then on stderr how far it is."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, share: float) -> None:
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            print(f"{share:.0%} of the evaluations", file=sys.stderr, flush=True)


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise JedaxError(f"{name}: expected a whole number, got {text!r}; change it.") from None
