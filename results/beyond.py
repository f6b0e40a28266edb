"""JEDi-X on the paper's mazes, whole and with one part removed at a time, and on problems it was not made for.

    python results/beyond.py [--runs runs/results] [--only beyond-mazes beyond-development beyond-held-out]

Each of these grids is run, compared and kept in results/beyond; runs that are finished are not repeated and a run that
was stopped goes on, so the command can be stopped and given again, and given twice at once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import problems
from keeping import HERE, fill_in, keep, run

from jedax.experiments.comparison import Comparison
from jedax.experiments.grids import MAZES, Entry, Grid
from jedax.experiments.records import Record

OURS = Entry("jedi-x", "jedi-x")
OTHERS = tuple(Entry(method, method) for method in ("jedi", "map-elites", "cma-mae"))
ABLATIONS = (
    Entry("no variation", "jedi-x", None, {"pool": 4, "offspring": 0}),
    Entry("hardly an ES", "jedi-x", None, {"pool": 1, "population": 2, "offspring": 254}),
    Entry("one ES", "jedi-x", None, {"pool": 1, "population": 128}),
    Entry("from the best elite", "jedi-x", None, {"elites": 1}),
    Entry("no restarts", "jedi-x", None, {"patience": 1_000_000}),
    Entry("one scale", "jedi-x", None, {"variation": (0.5, 0.51)}),
)
ELSEWHERE = (OURS, *OTHERS, Entry("es-restart", "es-restart"))

GRIDS = {
    "beyond-mazes": (Grid("", MAZES, (OURS, *OTHERS), 30), Grid("", MAZES, ABLATIONS, 10)),
    "beyond-development": (Grid("", problems.DEVELOPMENT, ELSEWHERE, 10, 250_000),),
    "beyond-held-out": (Grid("", problems.HELD_OUT, ELSEWHERE, 10, 250_000),),
}
FOLDERS = {name: f"beyond/{name.removeprefix('beyond-')}" for name in GRIDS}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--only", nargs="+", choices=GRIDS, default=list(GRIDS))
    arguments = parser.parse_args()
    for name in arguments.only:
        runs = arguments.runs / name
        for grid in GRIDS[name]:
            run(grid, runs)
        found = keep(runs, HERE / FOLDERS[name], f"python results/beyond.py --only {name}", OURS.label)
        fill_in(HERE / "beyond" / "README.md", name, table(found))


def table(found: Comparison) -> str:
    """Return for each method and task: median final fitness, seeds that arrived, how soon, and the mean on the way."""
    lines = ["| method | task | median | arrived | evaluations until then | mean over the budget | p |",
             "|---|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    for tasks in found.tables:
        for entry in tasks.entries:
            records = found.records.of(tasks.task, entry.label)
            arrived, soon = "", ""
            if entry.successes is not None and entry.success_interval is not None:
                low, high = entry.success_interval
                arrived = f"{entry.successes} of {len(entry.seeds)} ({low:.0%} to {high:.0%})"
                first = entry.reached[0].median
                soon = f"{first:,.0f}" if np.isfinite(first) else "never"
            mean = np.median([mean_on_the_way(record) for record in records])
            p = "" if entry.p is None else f"{entry.p:.2g}"
            lines.append(
                f"| {entry.label} | {tasks.task} | {entry.median:.4g} | {arrived} | {soon} | {mean:.4g} | {p} |"
            )
    return "\n".join(lines) + "\n"


def mean_on_the_way(record: Record) -> float:
    """Return the area under the curve of the best fitness, from the first report on, over the evaluations it spans."""
    span = record.evaluations[-1] - record.evaluations[0]
    return float(np.trapezoid(record.max_fitness, record.evaluations) / span)


if __name__ == "__main__":
    main()
