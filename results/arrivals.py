"""Which evaluation first reaches the goal of each of the paper's mazes, JEDi-X beside MAP-Elites, thirty seeds.

    python results/arrivals.py [--out results/beyond/arrivals.csv]

Seeds 0 to 29, fixed in advance. A quarter of a million evaluations suffice for all of them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pandas
from scipy.stats import mannwhitneyu

import jedax
from jedax.store import environment

TASKS = ("maze-a", "maze-b", "maze-c", "maze-quad-b")
METHODS = ("jedi-x", "map-elites")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/beyond/arrivals.csv"))
    out = parser.parse_args().out
    rows, revision = [], environment.describe()["git_revision"]
    for task in TASKS:
        for method in METHODS:
            summary = jedax.run(method, task, evaluations=250_000, replicas=30).summary
            rows += [
                {"task": task, "method": method, "seed": seed, "goal_evaluations": first, "revision": revision}
                for seed, first in enumerate(summary["goal_evaluations"])
            ]
    table = pandas.DataFrame(rows)
    table.to_csv(out, index=False)
    print(
        "| maze | " + " | ".join(f"{method}: median (quartiles)" for method in METHODS) + " | p |\n|---|---:|---:|---:|"
    )
    for task in TASKS:
        of = {m: table[(table.task == task) & (table.method == m)].goal_evaluations.fillna(np.inf) for m in METHODS}
        cells = [
            f"{v.median():,.0f} ({v.quantile(0.25):,.0f} to {v.quantile(0.75):,.0f}; {np.isfinite(v).sum()} of 30)"
            for v in of.values()
        ]
        print(f"| {task} | {' | '.join(cells)} | {mannwhitneyu(*of.values()).pvalue:.2g} |")


if __name__ == "__main__":
    main()
