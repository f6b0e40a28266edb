"""How much of the best fitness on chaotic robots is luck: the fitness of close neighbours of the best solution.

    python results/luck.py [--report]

JEDi-X searches HalfCheetah with 40,000 evaluations and AntMaze with 60,000, with normalised observations and seed 301,
which no table of results has. Then the neighbours of the best solution are evaluated, whose parameters have normal
noise. Each task and noise is a row of results/robots/luck.csv. The next command makes the rows that are missing.
"""

from __future__ import annotations

import argparse
import functools
import os
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import pandas
from keeping import HERE, add_rows, fill_in, of_revisions, rows_of

import jedax
from jedax.tasks.base import Task

PATH, SEED, NEIGHBOURS = HERE / "robots" / "luck.csv", 301, 192
EVALUATIONS = {"halfcheetah": 40_000, "ant-maze": 60_000}
NOISE = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="run nothing, only write the table anew")
    options = parser.parse_args()
    if not options.report:
        add_rows(PATH, ({"task": task, "noise": noise} for task in EVALUATIONS for noise in NOISE), neighbours)
    fill_in(HERE / "README.md", "luck", table(pandas.DataFrame(rows_of(PATH))))


@functools.cache
def searched(task: str) -> tuple[Task, np.ndarray, float]:
    """Return the robot, and genotype and fitness of the best solution of a search."""
    robot = jedax.tasks.make(task, normalise=True).settled()  # type: ignore[attr-defined]
    best = jedax.run("jedi-x", robot, evaluations=EVALUATIONS[task], seed=SEED).best()
    return robot, np.asarray(best.genotype, np.float32), float(best.fitness)


def neighbours(task: str, noise: float) -> dict[str, Any]:
    """Return the row of one noise: mean, standard deviation and greatest fitness of the neighbours."""
    robot, genotype, best = searched(task)
    found = genotype + noise * np.random.default_rng(0).standard_normal((NEIGHBOURS, len(genotype)), np.float32)
    fitness = np.asarray(jax.jit(robot.evaluate_batch)(jax.random.key(0), jnp.asarray(found, jnp.float32)).fitness)
    numbers = {"best": best, "mean": fitness.mean(), "std": fitness.std(), "greatest": fitness.max()}
    return {name: round(float(number), 1) for name, number in numbers.items()}


def table(rows: pandas.DataFrame) -> str:
    """Return mean, standard deviation and greatest fitness by noise and task."""
    tasks = [task for task in EVALUATIONS if task in set(rows.task)]
    bests = {task: rows.best[rows.task == task].iloc[0] for task in tasks}
    lines = [f"| noise | {' | '.join(f'{task} (best {bests[task]:,.0f})' for task in tasks)} |"]
    lines.append("|---:|" + "---:|" * len(tasks))
    for noise in NOISE:
        each = [rows[(rows.task == task) & (rows.noise == noise)].iloc[0] for task in tasks]
        cells = (f"{row['mean']:,.0f} ± {row['std']:,.0f}, {row['greatest']:,.0f}" for row in each)
        lines.append(f"| {noise:f} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", of_revisions(rows)]) + "\n"


if __name__ == "__main__":
    main()
