"""Seeds 0 to 9 of maze A at the paper's budget, with each method and each alpha; then the table and the figure.

    python results/maze_a.py [--runs runs/results/maze-a] [--seeds 10] [--evaluations 1000000]

Every run is that of `jedax run maze-a --method METHOD --alpha ALPHA --seed SEED`. Runs that are finished are not
repeated and a run that was stopped goes on where it was, so the command can be stopped and given again.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import jedax
from jedax.config.run import method_defaults
from jedax.runs import environment
from jedax.runs.files import write_atomic

HERE = Path(__file__).parent / "maze-a"
CONFIGURATIONS = [(method, alpha) for method in ("jedi", "jedi-paper") for alpha in ("decay", 0.3)]
PAPER = {"decay": -117, 0.3: -120}  # the paper's medians over its seeds, table of final fitness
NEVER = -250  # fitness of arriving at the last step: what is lower has not arrived


def run_all(folder: Path, seeds: int, evaluations: int) -> list[dict[str, object]]:
    """Run what is not finished yet; return one row per run."""
    rows = []
    for method, alpha in CONFIGURATIONS:
        config = method_defaults(method, "maze-a").replace(alpha=alpha)
        for seed in range(seeds):
            out = folder / f"{method}-{alpha}-seed{seed}"
            if (out / "summary.json").exists():
                run = jedax.load(out)
            elif (out / "config.yaml").exists():
                run = jedax.resume(out)
            else:
                run = jedax.run(config, "maze-a", evaluations=evaluations, seed=seed, out=out)
            summary = run.summary
            row = {
                "method": method,
                "alpha": alpha,
                "seed": seed,
                "max_fitness": summary["max_fitness"],
                "arrived": summary["max_fitness"] >= NEVER,
                "coverage": round(summary["coverage"], 4),
                "evaluations": summary["evaluations"],
                "evaluations_per_second": round(summary["evaluations_per_second"]),
                "seconds": round(summary["wall_seconds"], 1),
            }
            print(*row.values(), flush=True)
            rows.append(row | {"run": run})
    return rows


def write_table(rows: list[dict[str, object]]) -> None:
    """Write all rows as CSV, and the final fitness of each seed as a Markdown table."""
    columns = [column for column in rows[0] if column != "run"]
    with (HERE / "runs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    seeds = sorted({row["seed"] for row in rows})
    lines = [
        "| method | alpha | " + " | ".join(f"seed {seed}" for seed in seeds) + " | median | arrived | paper's median |",
        "|---|---|" + "---:|" * (len(seeds) + 3),
    ]
    for method, alpha in CONFIGURATIONS:
        fitness = fitness_of(rows, method, alpha)
        arrived = f"{sum(f >= NEVER for f in fitness)} of {len(fitness)}"
        cells = [f"{f:.0f}" for f in fitness]
        lines.append(
            f"| {method} | {alpha} | {' | '.join(cells)} | {np.median(fitness):.1f} | {arrived} | {PAPER[alpha]} |"
        )
    write_atomic(HERE / "table.md", ("\n".join(lines) + "\n").encode())


def fitness_of(rows: list[dict[str, object]], method: str, alpha: object) -> list[float]:
    """Return the final fitness by seed."""
    return [float(row["max_fitness"]) for row in rows if (row["method"], row["alpha"]) == (method, alpha)]


def draw(rows: list[dict[str, object]]) -> None:
    """Draw best fitness over evaluations: each seed thin, the median thick."""
    figure, axes = plt.subplots(1, len(CONFIGURATIONS), figsize=(13, 3.6), sharey=True, layout="constrained")
    for axis, (method, alpha) in zip(axes, CONFIGURATIONS, strict=True):
        curves = []
        for row in rows:
            if (row["method"], row["alpha"]) == (method, alpha):
                metrics = row["run"].metrics
                curves.append(metrics["max_fitness"].to_numpy())
                axis.plot(metrics["evaluations"], curves[-1], color="#4477aa", alpha=0.45, linewidth=0.9)
        axis.plot(metrics["evaluations"], np.median(curves, axis=0), color="#222222", linewidth=2, label="median")
        axis.axhline(NEVER, color="#999999", linewidth=0.8, linestyle=":")
        axis.axhline(PAPER[alpha], color="#cc6677", linewidth=1.2, linestyle="--", label="paper's final median")
        axis.set_title(f"{method}, alpha {alpha}", fontsize=10)
        axis.set_xlabel("evaluations")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M")
        axis.set_xlim(0, metrics["evaluations"].max())
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("best fitness")
    axes[0].text(0.98, NEVER + 2, "arrives above this line", transform=axes[0].get_yaxis_transform(), ha="right",
                 va="bottom", fontsize=7, color="#777777")  # fmt: skip
    axes[-1].legend(loc="lower right", frameon=False, fontsize=8)
    figure.savefig(HERE / "convergence.png", dpi=150)
    plt.close(figure)


def main() -> None:
    """Run, then write `results/maze-a/`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/results/maze-a"), help="where the runs go")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    options = parser.parse_args()
    environment.keep_compiled_programs()
    began = time.perf_counter()
    rows = run_all(options.runs, options.seeds, options.evaluations)
    HERE.mkdir(exist_ok=True)
    write_table(rows)
    draw(rows)
    facts = environment.describe() | {
        "seconds_of_all_runs": round(sum(row["seconds"] for row in rows), 1),
        "seconds_of_this_command": round(time.perf_counter() - began, 1),
    }
    write_atomic(HERE / "environment.json", (json.dumps(facts, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
