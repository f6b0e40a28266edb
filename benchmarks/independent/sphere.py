"""Sphere and Rastrigin function with linear projection: jedax beside pyribs' CMA-ME and CMA-MAE.

    python benchmarks/independent/sphere.py [--functions sphere rastrigin] [--dims 20 100] [--seeds 10] [--workers 2]

The problems are those of Fontaine et al., "Covariance Matrix Adaptation for the Rapid Illumination of Behavior Space"
(GECCO 2020, arXiv:1912.02400, section 4), scaled as in pyribs' example `sphere.py`: the optimum is at 2.048 in every
parameter, 100 is the best fitness, and 0 that of the worst point of the box from -5.12 to 5.12. pyribs' settings are
those of that example: 15 emitters with batches of 36, a step size of 0.5, an archive of 100 x 100 cells, and a learning
rate of 0.01 for CMA-MAE. `jedax-cma-me` and `jedax-cma-mae` have the same settings; `jedax` has its defaults. For all
algorithms, QD score and coverage are those of one archive of 100 x 100 cells, to which all evaluated solutions are
added.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jedax_side
import numpy as np
import shared
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter

LIMIT, OPTIMUM = 5.12, 2.048
EMITTERS, BATCH, STEP_SIZE, LEARNING_RATE = 15, 36, 0.5, 0.01
DIMS = (100, 100)
EVALUATIONS = {20: 200_000, 100: 50_000}
_SAME = {
    "pool": EMITTERS,
    "population": BATCH,
    "step_size": STEP_SIZE,
    "cells": DIMS[0] * DIMS[1],
    "cell_layout": "grid",
}
JEDAX: dict[str, dict[str, Any]] = {
    "jedax": {},
    "jedax-cma-me": {"method": "cma-me", **_SAME},
    "jedax-cma-mae": {"method": "cma-mae", **_SAME, "threshold_min": 0.0, "learning_rate": LEARNING_RATE},
}
RIBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ribs-cma-me": ({}, {"ranker": "2imp", "selection_rule": "filter", "restart_rule": "no_improvement"}),
    "ribs-cma-mae": (
        {"threshold_min": 0.0, "learning_rate": LEARNING_RATE},
        {"ranker": "imp", "selection_rule": "mu", "restart_rule": "basic"},
    ),
}
"""Settings of the archive and of the emitters."""


class Job(NamedTuple):
    """One search."""

    function: str
    dim: int
    budget: int
    algorithm: str
    seed: int


def sphere(distance: np.ndarray) -> np.ndarray:
    return distance**2


def rastrigin(distance: np.ndarray) -> np.ndarray:
    return 10 + distance**2 - 10 * np.cos(2 * np.pi * distance)


FUNCTIONS = {"sphere": sphere, "rastrigin": rastrigin}


@functools.cache
def worst(function: str) -> float:
    """Return the largest value of a function of one parameter within the limits."""
    return float(FUNCTIONS[function](np.linspace(-LIMIT, LIMIT, 100_001) - OPTIMUM).max())


def evaluate(function: str, genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return fitness and the sums of both halves of the parameters; x outside the box counts as 5.12 / x."""
    fitness = 100 * (1 - FUNCTIONS[function](genotypes - OPTIMUM).mean(axis=1) / worst(function))
    outside = np.abs(genotypes) > LIMIT
    inside = np.where(outside, LIMIT / np.where(outside, genotypes, 1), genotypes)
    half = genotypes.shape[1] // 2
    return fitness, np.stack([inside[:, :half].sum(axis=1), inside[:, half:].sum(axis=1)], axis=1)


def with_ribs(recorder: shared.Recorder, job: Job, ranges: Any) -> None:
    of_archive, of_emitters = RIBS[job.algorithm]
    archive = GridArchive(solution_dim=job.dim, dims=DIMS, ranges=ranges, seed=job.seed, **of_archive)
    emitters = [
        EvolutionStrategyEmitter(
            archive,
            x0=np.zeros(job.dim),
            sigma0=STEP_SIZE,
            batch_size=BATCH,
            seed=EMITTERS * job.seed + number,
            **of_emitters,
        )
        for number in range(EMITTERS)
    ]
    shared.search_with_ribs(archive, emitters, recorder)


def run(job: Job) -> dict[str, Any]:
    """Return the row of one search."""
    recorder = shared.Recorder(functools.partial(evaluate, job.function), job.budget)
    most = job.dim / 2 * LIMIT
    ranges = ((-most, most), (-most, most))
    if job.algorithm in RIBS:
        with_ribs(recorder, job, ranges)
    else:
        bounds = ((-most, -most), (most, most))
        jedax_side.search(recorder, job.dim, bounds, job.budget, job.seed, **JEDAX[job.algorithm])
    return job._asdict() | recorder.results() | recorder.on_grid(DIMS, ranges, 0.0)


def main() -> None:
    parser = shared.parser(__doc__, "sphere", (*JEDAX, *RIBS))
    parser.add_argument("--functions", nargs="+", choices=tuple(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--dims", type=int, nargs="+", default=list(EVALUATIONS), help="default: 20 100")
    parser.add_argument("--evaluations", type=int, help="default: 200,000 for 20 parameters, 50,000 for 100")
    shared.add_seeds(parser)
    options = parser.parse_args()
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        jobs = [
            Job(function, dim, options.evaluations or EVALUATIONS.get(dim, 50_000), name, seed)
            for dim in options.dims
            for function in options.functions
            for seed in range(options.seeds)
            for name in options.algorithms
        ]
        shared.fill(table, jobs, run, options)
    print("\n".join(shared.report(table.rows, ("function", "dim", "budget"), 3)))
    print(f"Revisions: {table.revisions()}")


if __name__ == "__main__":
    main()
