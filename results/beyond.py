"""JEDi-X on the paper's mazes, whole and with one part removed at a time, and on problems it was not made for.

    python results/beyond.py [--runs runs/results] [--only beyond-mazes beyond-development beyond-held-out]

Each of these grids is run, compared and kept in results/beyond; runs that are finished are not repeated and a run that
was stopped goes on, so the command can be stopped and given again, and given twice at once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import problems
from keeping import HERE, keep, run

from jedax.experiments.grids import MAZES, Entry, Grid

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
    "beyond-mazes": Grid("", MAZES, (OURS, *OTHERS, *ABLATIONS), 30),
    "beyond-development": Grid("", problems.DEVELOPMENT, ELSEWHERE, 10, 250_000),
    "beyond-held-out": Grid("", problems.HELD_OUT, ELSEWHERE, 10, 250_000),
}
FOLDERS = {name: f"beyond/{name.removeprefix('beyond-')}" for name in GRIDS}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--only", nargs="+", choices=GRIDS, default=list(GRIDS))
    arguments = parser.parse_args()
    for name in arguments.only:
        runs = arguments.runs / name
        run(GRIDS[name], runs)
        keep(runs, HERE / FOLDERS[name], f"python results/beyond.py --only {name}", OURS.label)


if __name__ == "__main__":
    main()
