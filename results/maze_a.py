"""Seeds 0 to 9 of maze A at the paper's budget, in six configurations; then the table and the figures.

    python results/maze_a.py [--runs runs/results/maze-a] [--seeds 10] [--evaluations 1000000]

Every run is that of `jedax run maze-a --method METHOD --alpha ALPHA --targets TARGETS --seed SEED`. Runs that are
finished are not repeated and a run that was stopped goes on where it was, so the command can be stopped and given
again.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from keeping import fill_in

import jedax
from jedax.report import plots
from jedax.search.compiled import keep_compiled_programs
from jedax.store.files import write_atomic

HERE = Path(__file__).parent / "maze-a"
# Method, alpha, targets.
CONFIGURATIONS = [
    ("jedi-uniform", "decay", "uniform"),
    ("jedi-uniform", 0.3, "uniform"),
    ("jedi", "decay", "pareto"),
    ("jedi", 0.3, "pareto"),
    ("jedi-uniform", "decay", "gp-ucb"),
    ("jedi-uniform", "decay", "gp-bucb"),
]
PAPER = {"decay": -117, 0.3: -120}  # the paper's medians over its seeds, table of final fitness
NEVER = -250  # fitness of arriving at the last step: what is lower has not arrived


@dataclass
class Row:
    """One finished run."""

    method: str
    alpha: str | float
    targets: str
    seed: int
    run: jedax.Run

    @property
    def configuration(self) -> tuple:
        """Method, alpha, targets."""
        return self.method, self.alpha, self.targets

    @property
    def fitness(self) -> float:
        """Of the best robot."""
        return self.run.summary["max_fitness"]

    def columns(self) -> dict[str, object]:
        """Return what the table of all runs says of this one."""
        summary = self.run.summary
        return {
            "method": self.method,
            "alpha": self.alpha,
            "targets": self.targets,
            "seed": self.seed,
            "max_fitness": self.fitness,
            "arrived": self.fitness >= NEVER,
            "coverage": round(summary["coverage"], 4),
            "evaluations": summary["evaluations"],
            "seconds": round(summary["wall_seconds"], 1),
        }


def run_all(folder: Path, seeds: int, evaluations: int) -> list[Row]:
    """Run what is not finished yet."""
    rows = []
    for method, alpha, targets in CONFIGURATIONS:
        for seed in range(seeds):
            out = folder / f"{method}-{alpha}-{targets}-seed{seed}"
            if is_finished(out):
                run = jedax.load(out)
            elif (out / "config.yaml").exists():
                run = jedax.resume(out)
            else:
                settings = {"alpha": alpha, "targets": targets}
                run = jedax.run(method, "maze-a", evaluations=evaluations, seed=seed, out=out, **settings)
            rows.append(Row(method, alpha, targets, seed, run))
            print(*rows[-1].columns().values(), flush=True)
    return rows


def is_finished(out: Path) -> bool:
    """Return whether a run has spent its budget; an interrupted one leaves a summary too."""
    summary = out / "summary.json"
    return summary.exists() and json.loads(summary.read_text())["status"] == "finished"


def of(rows: list[Row], configuration: tuple) -> list[Row]:
    """Return the runs of one configuration, by seed."""
    return [row for row in rows if row.configuration == configuration]


def write_tables(rows: list[Row]) -> None:
    """Write all runs as CSV, and the final fitness of each seed into the table of `results/README.md`."""
    with (HERE / "runs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0].columns()), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.columns() for row in rows)
    seeds = [row.seed for row in of(rows, CONFIGURATIONS[0])]
    columns = " | ".join(f"seed {seed}" for seed in seeds)
    lines = [
        f"| method | alpha | targets | {columns} | median | arrived | paper's median |",
        "|---|---|---|" + "---:|" * (len(seeds) + 3),
    ]
    for configuration in CONFIGURATIONS:
        fitness = [row.fitness for row in of(rows, configuration)]
        method, alpha, targets = configuration
        paper = PAPER[alpha] if method == "jedi" else ""
        lines.append(
            f"| {method} | {alpha} | {targets} | {' | '.join(f'{f:.0f}' for f in fitness)} | {np.median(fitness):.1f} "
            f"| {sum(f >= NEVER for f in fitness)} of {len(fitness)} | {paper} |"
        )
    fill_in(HERE.parent / "README.md", "maze-a", "\n".join(lines) + "\n")


def draw_convergence(rows: list[Row]) -> None:
    """Draw best fitness over evaluations: each seed thin, the median thick."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), sharex=True, sharey=True, layout="constrained")
    for axis, configuration in zip(axes.flat, CONFIGURATIONS, strict=True):
        method, alpha, targets = configuration
        curves = [row.run.metrics["max_fitness"].to_numpy() for row in of(rows, configuration)]
        evaluations = of(rows, configuration)[0].run.metrics["evaluations"]
        axis.plot(evaluations, np.transpose(curves), color="#4477aa", alpha=0.45, linewidth=0.9)
        axis.plot(evaluations, np.median(curves, axis=0), color="#222222", linewidth=2, label="median of the seeds")
        axis.axhline(NEVER, color="#999999", linewidth=0.8, linestyle=":", label="arrives above")
        axis.axhline(PAPER[alpha], color="#cc6677", linewidth=1.2, linestyle="--", label="the paper's final median")
        axis.set_title(f"{method}, alpha {alpha}, targets {targets}", fontsize=10)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M")
        axis.set_xlim(0, evaluations.max())
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("evaluations")
    for axis in axes[:, 0]:
        axis.set_ylabel("best fitness")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=3, frameon=False, fontsize=9)
    figure.savefig(HERE / "convergence.png", dpi=130)
    plt.close(figure)


def draw_failure(rows: list[Row]) -> None:
    """Draw the end of the first run of `jedi` that did not arrive."""
    row = next(row for row in of(rows, CONFIGURATIONS[2]) if row.fitness < NEVER)
    run = row.run
    figure, axes = plt.subplots(1, 4, figsize=(18, 4.4), layout="constrained")
    plots.best(axes[0], run)
    plots.cell_values(axes[1], run, run.repertoire.counts[0], "evaluations", log=True, cmap="magma")
    plots.cell_values(axes[2], run, run.gp_mean[0], "GP mean of fitness")
    plots.targets(axes[2], run, 0)
    plots.cell_values(axes[3], run, run.gp_std[0], "GP standard deviation", cmap="cividis")
    plots.targets(axes[3], run, 0)
    figure.suptitle(f"jedi, alpha decay, seed {row.seed}")
    figure.savefig(HERE / "jedi-paper-stuck.png", dpi=100)
    plt.close(figure)


def main() -> None:
    """Run, then write `results/maze-a/`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/results/maze-a"), help="where the runs go")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    options = parser.parse_args()
    keep_compiled_programs()
    rows = run_all(options.runs, options.seeds, options.evaluations)
    HERE.mkdir(exist_ok=True)
    write_tables(rows)
    draw_convergence(rows)
    draw_failure(rows)
    first = json.loads((rows[0].run.path / "environment.json").read_text())
    facts = first | {"seconds_of_all_runs": round(sum(row.run.summary["wall_seconds"] for row in rows))}
    write_atomic(HERE / "environment.json", (json.dumps(facts, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
