"""Which evaluation first reaches the goal of each of the paper's mazes, JEDi-X beside MAP-Elites, thirty seeds.

    python results/arrivals.py [--report]

Seeds 0 to 29, fixed in advance. A quarter of a million evaluations suffice for all of them. Each seed is a row of
results/beyond/arrivals.csv.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pandas
from keeping import HERE, clean_revision, fill_in

import jedax
from jedax.bench.grids import MAZES
from jedax.bench.statistics import mann_whitney
from jedax.store.files import write_atomic

METHODS, SEEDS, EVALUATIONS = ("jedi-x", "map-elites"), 30, 250_000
PATH = HERE / "beyond" / "arrivals.csv"
PAGES = HERE / "beyond" / "README.md", HERE.parent / "docs" / "explanation" / "jedi-x.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="only write the tables anew")
    if not parser.parse_args().report:
        write_atomic(PATH, found(clean_revision("*.md")).to_csv(index=False))
    for page in PAGES:
        fill_in(page, "arrivals", table(pandas.read_csv(PATH)))


def found(revision: str) -> pandas.DataFrame:
    """Return the evaluation that first reaches the goal in each seed."""
    rows = []
    for task in MAZES:
        for method in METHODS:
            firsts = jedax.run(method, task, evaluations=EVALUATIONS, replicas=SEEDS).summary["goal_evaluations"]
            rows += [
                {"task": task, "method": method, "seed": seed, "goal_evaluations": first, "revision": revision}
                for seed, first in enumerate(firsts)
            ]
    return pandas.DataFrame(rows)


def table(rows: pandas.DataFrame) -> str:
    """Return medians and quartiles by maze and method, and whether the methods differ."""
    lines = [f"| maze | {' | '.join(METHODS)} | p (Mann-Whitney U) |", "|---|---:|---:|---:|"]
    for task in MAZES:
        firsts = rows[rows.task == task].fillna({"goal_evaluations": np.inf}).groupby("method").goal_evaluations
        both = [list(firsts.get_group(method)) for method in METHODS]
        cells = [
            "{1:,.0f} ({0:,.0f} to {2:,.0f})".format(*pandas.Series(each).quantile([0.25, 0.5, 0.75])) for each in both
        ]
        test = mann_whitney(*both)
        lines.append(f"| {task} | {' | '.join(cells)} | {'' if test is None else f'{test.p:.2g}'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
