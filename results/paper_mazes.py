"""The paper's comparison on its mazes, and its ablations of alpha and of the choice of targets.

    python results/paper_mazes.py [--runs runs/results] [--only paper-mazes ablation-alpha ablation-targets]
                                  [--without pga-me]

For each of these grids it does what two commands do,

    jedax bench --preset GRID --out RUNS/GRID
    jedax compare RUNS/GRID

and keeps tables and figures beside this file, with versions, machine and duration, and the paper's own medians. Runs
that are finished are not repeated and a run that was stopped goes on, so the command can be stopped and given again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import jedax
from jedax.experiments.bench import bench
from jedax.experiments.comparison import Comparison
from jedax.experiments.grids import grid_named
from jedax.experiments.progress import BenchProgress
from jedax.runs import environment
from jedax.runs.files import write_atomic, write_json

HERE = Path(__file__).parent
FOLDERS = {"paper-mazes": "paper-mazes", "ablation-alpha": "ablations/alpha", "ablation-targets": "ablations/targets"}
# Median final best fitness in the paper: Table 1, and the table of additional baselines for CMA-ME Opt.
PAPER = {
    "jedi-paper tuned": (-120, -177, -180, -194),
    "jedi-paper decay": (-117, -176, -186, -189),
    "es": (-281, -319, -262, -319),
    "es-restart": (-280, -320, -262, -319),
    "map-elites": (-136, -202, -206, -210),
    "cma-me imp": (-138, -190, -236, -219),
    "cma-me opt": (-132, -197, -262, None),
    "cma-mae": (-125, -182, -167, -196),
    "pga-me": (-150, -207, -211, -213),
}
MAZES = ("maze-a", "maze-b", "maze-c", "maze-quad-b")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--only", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    parser.add_argument("--without", nargs="+", default=[], metavar="LABEL", help="methods to leave for another time")
    arguments = parser.parse_args()
    environment.keep_compiled_programs()
    for name in arguments.only:
        runs = arguments.runs / name
        grid = grid_named(name)
        entries = tuple(entry for entry in grid.entries if entry.label not in arguments.without)
        outcome = bench(replace(grid, entries=entries), runs, progress=BenchProgress(sys.stderr))
        for path, message in outcome.failed:
            print(f"failed: {path}: {message}")
        keep(name, runs)


def keep(name: str, runs: Path) -> None:
    """Compare the runs of a grid and keep what is worth keeping."""
    folder = HERE / FOLDERS[name]
    found = jedax.compare(runs, out=runs / "compare", formats=("png",))
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for file in ("table.csv", "seeds.csv", "reached.csv", "table.tex"):
        shutil.copyfile(runs / "compare" / file, folder / file)
    for picture in sorted((runs / "compare" / "figures").glob("*.png")):
        shutil.copyfile(picture, folder / "figures" / picture.name)
    text = (runs / "compare" / "table.md").read_text().partition("\n## Where it comes from")[0]
    write_atomic(folder / "table.md", text.rstrip() + "\n")
    summaries = [json.loads(path.read_text()) for path in sorted(runs.rglob("summary.json"))]
    environments = [json.loads(path.read_text()) for path in sorted(runs.rglob("environment.json"))]
    seconds = sum(summary["wall_seconds"] for summary in summaries)
    first = min(environments, key=lambda one: one["started"])
    write_json(folder / "environment.json", {
        **{key: value for key, value in first.items() if key != "command"},
        "command": f"python results/paper_mazes.py --only {name}",
        "revisions": sorted({str(one["git_revision"]) for one in environments}),
        "runs": len(summaries),
        "evaluations": sum(summary["evaluations"] * summary["replicas"] for summary in summaries),
        "hours": round(seconds / 3600, 2),
        "hours_by_method": _hours_by_label(runs),
    })  # fmt: skip
    if name == "paper-mazes":
        write_atomic(folder / "beside-the-paper.md", beside_the_paper(found))


def _hours_by_label(runs: Path) -> dict[str, float]:
    hours: dict[str, float] = {}
    for path in sorted(runs.rglob("summary.json")):
        label = path.parent.parent.name
        hours[label] = hours.get(label, 0.0) + json.loads(path.read_text())["wall_seconds"] / 3600
    return {label: round(value, 3) for label, value in hours.items()}


def beside_the_paper(found: Comparison) -> str:
    """Return our medians and shares of seeds that arrived, beside the paper's medians."""
    tables = {table.task: table for table in found.tables}
    lines = [f"| method | {' | '.join(f'{maze} | paper' for maze in MAZES)} |", "|---|" + "---:|" * (2 * len(MAZES))]
    for label in found.labels:
        columns = []
        for number, maze in enumerate(MAZES):
            entry = tables[maze].entry(label)
            ours = "" if entry is None else f"{entry.median:.0f} ({entry.successes} of {len(entry.seeds)})"
            theirs = PAPER.get(label, (None,) * len(MAZES))[number]
            columns += [ours, "" if theirs is None else str(theirs)]
        lines.append(f"| {label} | {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
