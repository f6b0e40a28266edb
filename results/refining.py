"""An evolution strategy with long steps, and one with short steps that goes on from its mean, in turns.

    python results/refining.py [--tasks ant-maze halfcheetah walker2d] [--seeds 302 303 ...] [--report]

The explorer is the ES of the paper (LM-MA-ES, population 256, step 0.05). Its solutions are far worse than its mean,
because long steps spoil a gait. After `ALONE` evaluations of the explorer a share of `SHARE` is the refiner's, an
LM-MA-ES of 64. It begins at the explorer's mean with `RATIO` of the explorer's step, and begins anew at the mean that
the explorer then has after `BURST` evaluations of its own.
Each finished search is a row of results/refining/rows.csv. This is a prototype for JEDi-X where policies are large, so
its seeds are those that settings are chosen on.
"""

from __future__ import annotations

import argparse
import os
from itertools import product
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import pandas
from keeping import HERE, add_rows, fill_in, rows_of

import jedax
from jedax.bench.grids import CONTROL
from jedax.es.lm_ma_es import LMMAES

EVALUATIONS, ALONE, BURST = 250_000, 20_000, 16_000
SHARE, RATIO = 1 / 3, 1 / 8
FOLDER = HERE / "refining"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=CONTROL, default=["ant-maze"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[302, 303, 304, 305])
    parser.add_argument("--report", action="store_true", help="only write the table anew")
    options = parser.parse_args()
    path = FOLDER / "rows.csv"
    if not options.report:
        keys = product(options.seeds, options.tasks)
        add_rows(path, ({"task": task, "seed": seed} for seed, task in keys), search)
    if rows := rows_of(path):
        fill_in(HERE / "beyond" / "README.md", "refining", table(pandas.DataFrame(rows)))


def search(task: str, seed: int) -> dict[str, Any]:
    """Return the row of one search."""
    robot = jedax.tasks.make(task, normalise=True).settled()
    evaluate = jax.jit(robot.evaluate_batch)
    explorer = LMMAES(population=256, elite_ratio=0.5, step_size=0.05)
    refiner = LMMAES(population=64, elite_ratio=0.5, step_size=1.0)  # in units of RATIO of the explorer's step
    (ask, tell), (ask_fine, tell_fine) = ((jax.jit(es.ask), jax.jit(es.tell)) for es in (explorer, refiner))

    start_key, key = jax.random.split(jax.random.key(seed))
    state = explorer.init(start_key, robot.init(start_key))
    spent = {"explorer": 0, "refiner": 0}
    best = dict.fromkeys(spent, -np.inf)
    curve: list[str] = []
    left = 0
    while (done := sum(spent.values())) < EVALUATIONS:
        key, ask_key, evaluate_key, tell_key = jax.random.split(key, 4)
        refines = spent["explorer"] >= ALONE and spent["refiner"] < SHARE * done
        if refines and left <= 0:
            origin, unit, left = state.mean, RATIO * state.sigma, BURST
            fine = refiner.init(tell_key, jnp.zeros_like(origin))
        if refines:
            steps, fine = ask_fine(ask_key, fine)
            fitness = evaluate(evaluate_key, origin + unit * steps).fitness
            fine = tell_fine(tell_key, fine, steps, fitness)
            left -= len(fitness)
        else:
            genotypes, state = ask(ask_key, state)
            fitness = evaluate(evaluate_key, genotypes).fitness
            state = tell(tell_key, state, genotypes, fitness)
        who = "refiner" if refines else "explorer"
        spent[who] += len(fitness)
        best[who] = max(best[who], float(fitness.max()))
        if sum(spent.values()) // 25_000 > done // 25_000:
            curve.append(f"{sum(spent.values())}:{max(best.values()):.5g}:{best['explorer']:.5g}")
    return {"best": round(max(best.values()), 2), "explorer": round(best["explorer"], 2), "curve": " ".join(curve)}


def table(rows: pandas.DataFrame) -> str:
    """Return the best fitness of both together and of the explorer alone, on the way and at the end."""
    lines = [
        "| robot, seed | best after 50,000 | 100,000 | 150,000 | 200,000 | 250,000 | best of the explorer |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows.sort_values(["task", "seed"]).itertuples():
        points = [point.split(":") for point in row.curve.split()][1::2]
        values = [f"{float(value):,.0f}" for _, value, _ in points]
        lines.append(f"| {row.task}, {row.seed} | {' | '.join(values)} | {row.explorer:,.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
