"""The paper's comparison on its mazes, and its ablations.

    python results/paper_mazes.py [--runs runs/results] [--only paper-mazes ...] [--without pga-me] [--report]

For each of these grids it does what two commands do,

    jedax bench --preset GRID --out RUNS/GRID
    jedax compare RUNS/GRID

and keeps tables, figures and thinned curves beside this file, with versions, machine and duration; then it judges the
paper's claims (results/claims.py). Runs that are finished are not repeated and a run that was stopped goes on, so the
command can be stopped and given again, and given twice at once.
"""

from __future__ import annotations

from dataclasses import replace

import claims
from keeping import HERE, cross, differences, fill_in, keep, parser, run
from stuck import keep_stuck

from jedax.bench.comparison import Comparison
from jedax.bench.grids import MAZES, Entry, Grid, grid_named

PARTS = ("alpha", "targets", "generations", "pool", "learning-rate")
FOLDERS = {"paper-mazes": "paper-mazes", **{f"ablation-{part}": f"ablations/{part}" for part in PARTS}}
MAPPED_TASKS, MAPPED = ("maze-b",), ("jedi decay", "jedi-x", "map-elites", "cma-mae")  # as in the paper's figure 1
SEEDS, SEEDS_OF_OURS, SEEDS_OF_PGA_ME = 20, 30, 10


def main() -> None:
    options = parser(FOLDERS)
    options.add_argument("--without", nargs="+", default=[], metavar="LABEL", help="methods to leave for another time")
    arguments = options.parse_args()
    for name in () if arguments.report else arguments.only:
        for grid in grids(name):
            entries = tuple(entry for entry in grid.entries if entry.label not in arguments.without)
            run(replace(grid, entries=entries), arguments.runs / name)
    for name in arguments.only:  # afterwards, since it changes the checkout
        command = f"python results/paper_mazes.py --only {name}"
        shown = {"maps": MAPPED_TASKS, "mapped": MAPPED} if name == "paper-mazes" else {}
        found = keep(arguments.runs / name, HERE / FOLDERS[name], command, **shown)
        fill_in(HERE / "README.md", name, (beside_the_paper if name == "paper-mazes" else medians)(found))
        if name == "paper-mazes":
            fill_in(HERE / "README.md", "stuck", keep_stuck(arguments.runs / name, HERE / FOLDERS[name]))
    claims.main()


def grids(name: str) -> list[Grid]:
    """Return a grid of the paper as one grid for each number of seeds."""
    grid = grid_named(name)
    entries = grid.entries
    if name == "paper-mazes":
        entries += (Entry("jedi-x", "jedi-x"),)
    if name in ("ablation-generations", "ablation-pool"):  # as in the paper's figure 11: with the decay and without it
        entries = tuple(replace(e, preset=p, label=f"{p} {e.label}") for p in ("decay", "tuned") for e in entries)
    by_seeds: dict[int, list[Entry]] = {}
    for entry in entries:
        by_seeds.setdefault(_seeds(name, entry), []).append(entry)
    return [replace(grid, entries=tuple(found), seeds=seeds) for seeds, found in by_seeds.items()]


def _seeds(name: str, entry: Entry) -> int:
    if name in ("ablation-generations", "ablation-pool") or entry.method == "pga-me":
        return SEEDS_OF_PGA_ME
    return SEEDS_OF_OURS if str(entry.method).startswith("jedi") else SEEDS


def beside_the_paper(found: Comparison) -> str:
    """Return our medians and shares of seeds that arrived, beside the paper's medians."""
    tables = {table.task: table for table in found.tables}
    lines = [f"| method | {' | '.join(f'{maze} | paper' for maze in MAZES)} |", "|---|" + "---:|" * (2 * len(MAZES))]
    for label in found.labels:
        columns = []
        for number, maze in enumerate(MAZES):
            entry = tables[maze].entry(label)
            ours = "" if entry is None else claims.with_arrivals(entry.final)
            theirs = claims.PAPER.get(label, (None,) * len(MAZES))[number]
            columns += [ours, "" if theirs is None else str(theirs)]
        lines.append(f"| {label} | {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def medians(found: Comparison) -> str:
    """Return the median of the final best fitness and the number of seeds that arrived, by method and maze.

    Below the table stands whether the methods differ, by the test of Kruskal and Wallis.
    """
    values = {
        (entry.label, table.task): claims.with_arrivals(entry.final)
        for table in found.tables
        for entry in table.entries
    }
    return f"{cross(found, values)}\n{differences(found)}"


if __name__ == "__main__":
    main()
