"""The paper's control tasks at a size for two CPU cores, and the ablations of alpha and of targets on HalfCheetah.

    python results/control.py [--runs runs/results] [--only control control-alpha control-targets]

Each of these grids is run, compared and kept beside this file; runs that are finished are not repeated and a run that
was stopped goes on, so the command can be stopped and given again, and given twice at once.
"""

from __future__ import annotations

from dataclasses import replace

from keeping import HERE, cross, fill_in, keep, parser, run

from jedax.bench.comparison import Comparison
from jedax.bench.grids import CONTROL, Grid, grid_named, parse_entry

METHODS = ("jedi-x", "jedi-uniform", "jedi", "es", "map-elites", "cma-mae", "pga-me")
COMPARED_CLOSELY = ("jedi-x", "es")
SEEDS, MORE_SEEDS = 3, 10
EVALUATIONS = 4096


def _on_all(methods: tuple[str, ...], seeds: int) -> Grid:
    """Return methods on the three tasks, at the size for CPUs."""
    return Grid("", CONTROL, tuple(parse_entry(f"{method},cpu") for method in methods), seeds, EVALUATIONS)


def _on_halfcheetah(ablation: str, without: tuple[str, ...] = ()) -> Grid:
    """Return an ablation of the paper, but for the entries of some labels, at the size for CPUs."""
    chosen = (entry for entry in grid_named(ablation).entries if entry.label not in without)
    entries = tuple(replace(entry, preset="cpu") for entry in chosen)
    return Grid("", ("halfcheetah",), entries, SEEDS, EVALUATIONS)


GRIDS = {
    "control": (_on_all(METHODS, SEEDS), _on_all(COMPARED_CLOSELY, MORE_SEEDS)),
    "control-alpha": (_on_halfcheetah("ablation-alpha", ("alpha=0.1", "alpha=0.7", "alpha=0.9")),),
    "control-targets": (_on_halfcheetah("ablation-targets"),),
}
MAPS = {"control": ("walker2d",)}
FOLDERS = {"control": "control", "control-alpha": "control/alpha", "control-targets": "control/targets"}


def main() -> None:
    arguments = parser(GRIDS).parse_args()
    for name in () if arguments.report else arguments.only:
        for grid in GRIDS[name]:
            run(grid, arguments.runs / name)
    for name in arguments.only:  # afterwards, since it changes the checkout
        command = f"python results/control.py --only {name}"
        found = keep(arguments.runs / name, HERE / FOLDERS[name], command, maps=MAPS.get(name, ()))
        fill_in(HERE / "README.md", name, table(found))


def table(found: Comparison) -> str:
    """Return a table of methods and tasks: the median of the final best fitness, and its range over how many seeds."""
    cell = {}
    for task in found.tables:
        for entry in task.entries:
            values = [record.curve["max_fitness"].iloc[-1] for record in found.records.of(task.task, entry.label)]
            ends = f"{min(values):,.0f} to {max(values):,.0f}; {len(values)}"
            cell[entry.label, task.task] = f"{entry.median:,.0f} ({ends})"
    return cross(found, cell)


if __name__ == "__main__":
    main()
