"""Memory of a process that works for long: it should be flat after the first tenth.

    python benchmarks/soak.py run [--evaluations 1000000]      one run, looked at from report to report
    python benchmarks/soak.py bench [--hours 2]    trials of a bench, one after another, until the time is up

Both print a table and end with code 1 where memory in the last tenth is above that in the second by more than --allowed
(a share). Give them MALLOC_ARENA_MAX=1: with a heap for each thread, glibc takes long until each has its size.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

import jedax
from jedax.bench.bench import bench
from jedax.bench.grids import Entry, Grid

_LINES = 20
_METHODS = ("jedi", "cma-me", "map-elites", "es")


def resident() -> float:
    """Return the process's anonymous memory in MB: without files that are mapped."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def one_run(evaluations: int) -> list[tuple[float, float]]:
    """Return pairs of evaluations done and memory."""
    seen: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        jedax.run(
            "jedi", "maze-a", evaluations=evaluations, out=Path(folder) / "run", report_every=100,
            checkpoint_seconds=1.0, callbacks=[lambda report: seen.append((report.evaluations, resident()))],
        )  # fmt: skip
    return seen


def many_trials(hours: float) -> list[tuple[float, float]]:
    """Return pairs of seconds and memory, one for each trial of a bench, with varying methods and settings."""
    began, seen = time.monotonic(), []
    for number in itertools.count():
        if time.monotonic() - began > hours * 3600 and number >= 3 * len(_METHODS):
            return seen
        method = _METHODS[number % len(_METHODS)]
        entry = Entry(f"{method} {number}", method, None, {"cells": 1024 + number % 97})
        with tempfile.TemporaryDirectory() as out:
            outcome = bench(Grid("", ("maze-a",), (entry,), 2, 20_000), out)
        if outcome.failed:
            raise SystemExit(f"{outcome.failed[0][1]}")
        seen.append((time.monotonic() - began, resident()))
    raise AssertionError


def growth(seen: list[tuple[float, float]]) -> float:
    """Return the median memory of the last tenth as a multiple of that of the second tenth (of a round of methods).

    Medians, for what is looked at between two programs now and then holds a buffer of the one before.
    """
    tenth = max(len(_METHODS), len(seen) // 10)
    second, last = ([memory for _, memory in part] for part in (seen[tenth : 2 * tenth], seen[-tenth:]))
    return statistics.median(last) / statistics.median(second)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("run", "bench"))
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--allowed", type=float, default=0.05)
    arguments = parser.parse_args()
    seen = one_run(arguments.evaluations) if arguments.what == "run" else many_trials(arguments.hours)
    print("evaluations" if arguments.what == "run" else "seconds", "memory in MB", sep="\t")
    for at, memory in seen[:: max(1, len(seen) // _LINES)] + seen[-1:]:
        print(f"{at:.0f}\t{memory:.1f}")
    ratio = growth(seen)
    print(f"most at any time: {max(memory for _, memory in seen):.1f}")
    print(f"last tenth over second tenth: {ratio:.3f}")
    if ratio > 1 + arguments.allowed:
        sys.exit(1)


if __name__ == "__main__":
    main()
