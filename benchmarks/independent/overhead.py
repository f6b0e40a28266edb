"""Time of one ask and tell of 128 solutions: jedax beside pyribs' CMA-ME.

    python benchmarks/independent/overhead.py [--params 10 1000] [--turns 200]
    python benchmarks/independent/overhead.py --first

Both sides have 1,024 cells in two dimensions and take turns. Their evaluation is part of the time: 0.02 ms with 10
parameters, 0.14 ms with 1,000. pyribs has one emitter of 128 solutions, with full
covariance (its default) and, as jedax above 300 parameters, with a diagonal one. The first turns of each side are left
out. `--first`: seconds from the start of a new process to its first solutions, imports included, for jedax without and
with the programs that an earlier process compiled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import jedax_side
import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler

BATCH, WARM = 128, 20


def evaluate(solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -np.square(solutions - 0.3).sum(axis=1), np.clip(solutions[:, :2], -1, 1)


def with_jedax(num_params: int) -> Callable[[], None]:
    optimizer = jedax_side.jedax.Optimizer(num_params, ([-1, -1], [1, 1]), dims=(32, 32), seed=1)

    def turn() -> None:
        solutions = optimizer.ask(BATCH) if optimizer.evaluations == 0 else optimizer.ask()
        optimizer.tell(solutions, *evaluate(solutions))

    return turn


def with_pyribs(num_params: int, es: str) -> Callable[[], None]:
    archive = GridArchive(solution_dim=num_params, dims=(32, 32), ranges=[(-1, 1), (-1, 1)])
    emitter = EvolutionStrategyEmitter(archive, x0=np.zeros(num_params), sigma0=0.5, es=es, batch_size=BATCH, seed=1)
    scheduler = Scheduler(archive, [emitter])

    def turn() -> None:
        scheduler.tell(*evaluate(scheduler.ask()))

    return turn


FIRST = {
    "jedax": "import jedax; jedax.Optimizer({params}, ([-1, -1], [1, 1])).ask()",
    "pyribs": "from ribs.archives import GridArchive as A; from ribs.emitters import EvolutionStrategyEmitter as E; "
    "from ribs.schedulers import Scheduler as S; a = A(solution_dim={params}, dims=(32, 32), ranges=[(-1, 1)] * 2); "
    "S(a, [E(a, x0=[0.0] * {params}, sigma0=0.5)]).ask()",
}


def first(num_params: int, repeats: int = 5) -> None:
    """Print the seconds to the first solutions of new processes."""
    for side, code in FIRST.items():
        with tempfile.TemporaryDirectory() as cache:
            seconds = []
            for _ in range(1 + repeats):
                began = time.perf_counter()
                environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
                environment["XDG_CACHE_HOME"] = cache
                subprocess.run([sys.executable, "-c", code.format(params=num_params)], env=environment, check=True)
                seconds.append(time.perf_counter() - began)
        print(f"{side}, {num_params} parameters: {seconds[0]:.2f} s with an empty cache, then {min(seconds[1:]):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--params", type=int, nargs="+", default=[10, 1000], help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=200, help="of each side (default: %(default)s)")
    parser.add_argument("--first", action="store_true", help="time the first solutions of new processes instead")
    options = parser.parse_args()
    if options.first:
        for num_params in options.params:
            first(num_params)
        return
    print("| parameters | jedax | pyribs, full covariance | pyribs, diagonal |\n|---:|---:|---:|---:|")
    for num_params in options.params:
        sides = [with_jedax(num_params), with_pyribs(num_params, "cma_es"), with_pyribs(num_params, "sep_cma_es")]
        seconds: list[list[float]] = [[] for _ in sides]
        for _ in range(options.turns + WARM):
            for side, times in zip(sides, seconds, strict=True):
                began = time.perf_counter()
                side()
                times.append(time.perf_counter() - began)
        medians = [1e3 * np.median(times[WARM:]) for times in seconds]
        print(f"| {num_params} | " + " | ".join(f"{median:.2f} ms" for median in medians) + " |", flush=True)


if __name__ == "__main__":
    main()
