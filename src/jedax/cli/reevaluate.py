"""The command `jedax reevaluate`."""

from __future__ import annotations

import sys
import time
from typing import Literal

from jedax.cli.options import Option, directory_of, parse
from jedax.cli.run import nothing_to_save

_SECONDS_BETWEEN_LINES = 10.0
_REEVALUATE = {
    "samples": Option("New evaluations of each solution; 2 for a deterministic task.", int, 128),
    "seed": Option("Random seed; the random numbers differ from those of every search.", int, 0),
    "cells": Option("Evaluate all elites, or only the best solution of each seed.", Literal["all", "best"], "all"),
}


def reevaluate(arguments: list[str]) -> None:
    """Evaluate the solutions of a run again, and print how much of their fitness was luck."""
    directory = directory_of("reevaluate", arguments)
    values = parse(
        arguments, _REEVALUATE, prog="jedax reevaluate DIR",
        description="Evaluate the solutions of a run many times: corrected fitness, coverage and QD score. Writes "
        "reevaluated.json, .csv and .png to the directory; its other files are not changed.",
    )  # fmt: skip
    with nothing_to_save():
        from jedax.report import reevaluation
        from jedax.search.compile_cache import keep_compiled_programs
        from jedax.store.directory import REEVALUATED

        keep_compiled_programs()
    found = reevaluation.reevaluate(directory, **values, note=_Lines())
    print(reevaluation.table(found))
    print(f"\nthe numbers are in {directory}/{REEVALUATED[0]} and {REEVALUATED[1]}"
          + f", the figure in {REEVALUATED[2]}" * (found.scope == "all"))  # fmt: skip


class _Lines:
    """Prints the progress on stderr now and then."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, share: float) -> None:
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            print(f"{share:.0%} of the evaluations", file=sys.stderr, flush=True)
