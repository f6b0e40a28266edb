"""How much evaluations that overlap cost a search: the best value that `Optimizer` finds with 1 to 64 workers.

    python benchmarks/workers.py [--seeds 5]

The workers are simulated. Each evaluates one solution at a time; which of them answers next is drawn at random. So with
w workers a result is w - 1 other results late in the mean. All searches of a row have the same number of evaluations.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import jedax

PARAMS, WORKERS = 8, (1, 4, 16, 64)
TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(PARAMS, PARAMS)))[0]
AXES = 10.0 ** (6 * np.arange(PARAMS) / (PARAMS - 1))
CORNER = np.where(np.arange(PARAMS) < PARAMS // 2, 1.0, 0.4)  # half of the coordinates lie on a bound
FREE: dict[str, Any] = {"x0": np.zeros(PARAMS), "sigma0": 0.6}


def ellipsoid(x: np.ndarray) -> float:
    return float(np.square((x - 0.5) @ TURN) @ AXES)


def in_a_corner(x: np.ndarray) -> float:
    return float(np.square((10 * (x - CORNER)) @ TURN) @ AXES)


def rosenbrock(x: np.ndarray) -> float:
    return float((100 * np.square(x[1:] - np.square(x[:-1])) + np.square(1 - x[:-1])).sum())


PROBLEMS: dict[str, tuple[Callable[[np.ndarray], float], int, dict[str, Any]]] = {
    "sphere": (lambda x: float(np.square(x - 0.5).sum()), 1_200, FREE),
    "turned ellipsoid": (ellipsoid, 4_000, FREE),
    "the same, its best point at four of eight bounds": (in_a_corner, 4_000, {"bounds": (0.0, 1.0)}),
    "Rosenbrock": (rosenbrock, 4_000, FREE),
}


def search(problem: str, workers: int, seed: int) -> float:
    """Return the best value of one search."""
    function, evaluations, settings = PROBLEMS[problem]
    random = np.random.default_rng(seed)
    optimizer = jedax.Optimizer(PARAMS, evaluations=evaluations, minimise=True, seed=seed, **settings)
    busy: list[Any] = []
    for _ in range(evaluations):
        busy += [optimizer.ask(1) for _ in range(workers - len(busy))]
        solution = busy.pop(random.integers(workers))
        optimizer.tell(solution, [function(solution[0])])
    return optimizer.best.fitness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"| | evaluations | {' | '.join(f'{number} workers' for number in WORKERS)} |")
    print(f"|---|---:|{'---:|' * len(WORKERS)}")
    for problem, (_, evaluations, _) in PROBLEMS.items():
        medians = [np.median([search(problem, workers, seed) for seed in range(options.seeds)]) for workers in WORKERS]
        print(f"| {problem} | {evaluations:,} | {' | '.join(f'{median:.1e}' for median in medians)} |", flush=True)


if __name__ == "__main__":
    main()
