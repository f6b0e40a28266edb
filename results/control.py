"""The paper's ablations of JEDi on HalfCheetah: alpha, choice of targets, generations and pool, at a small size.

    python results/control.py [--runs runs/results] [--only alpha targets generations pool] [--report]

The paper's budget is 5 million evaluations. Here the population and the number of generations between two choices of
targets are those of `--preset cpu`, so 20,480 evaluations have room for 64 choices of targets; seeds 0 to 2. Runs that
are finished are not repeated and a run that was stopped goes on, so the command can be stopped and given again.
"""

from __future__ import annotations

from dataclasses import replace

from keeping import HERE, cross, differences, fill_in, keep, parser, run

from jedax.bench.comparison import Comparison
from jedax.bench.grids import Grid, grid_named
from jedax.tasks import make

SEEDS, EVALUATIONS = 3, 20_480
PARTS = ("alpha", "targets", "generations", "pool")


def grid(part: str) -> Grid:
    """Return an ablation of the paper on HalfCheetah, at the size for CPUs."""
    entries = tuple(replace(entry, preset="cpu") for entry in grid_named(f"ablation-{part}").entries)
    return Grid("", ("halfcheetah",), entries, SEEDS, EVALUATIONS)


def main() -> None:
    arguments = parser(PARTS).parse_args()
    for part in () if arguments.report else arguments.only:
        run(grid(part), arguments.runs / f"control-{part}")
    for part in arguments.only:  # afterwards, since it changes the checkout
        runs, folder = arguments.runs / f"control-{part}", HERE / "ablations" / f"halfcheetah-{part}"
        found = keep(runs, folder, f"python results/control.py --only {part}", mapped=())
        fill_in(HERE / "README.md", f"control-{part}", table(found))


def table(found: Comparison) -> str:
    """Return the median of the final best fitness of each entry, its range, and whether the entries differ.

    The head tells the share of the paper's budget.
    """
    values = {
        (entry.label, task.task): f"{entry.median:,.0f} ({min(entry.final):,.0f} to {max(entry.final):,.0f})"
        for task in found.tables
        for entry in task.entries
    }
    (task,) = grid(PARTS[0]).tasks
    share = f"{task} ({EVALUATIONS / make(task).default_evaluations:.1%} of the paper's budget)"
    return f"{cross(found, values).replace(task, share, 1)}\n{differences(found)}"


if __name__ == "__main__":
    main()
