"""Evaluations outside JAX with 1, 2 and 4 workers, local and on Ray: their rate, and the cost of the engine.

    python benchmarks/engines.py [--repeats 3] [--workers 1 2 4]

Three kinds of evaluation: one waits 5 ms without using a core; one keeps a core busy for 5 ms; one does nothing, 4,096
at a time, so that all of its time is the engine's. "One alone" is the round trip of a batch of a single solution. Times
are the best of several repeats. Ray runs on this machine, with as many cores as the largest number of workers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from jedax.search.engines import Engine, make
from jedax.tasks.work import Work

SECONDS = 0.005
PARAMS = 66


def work(kind: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the evaluation function."""

    def evaluate(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if kind == "wait":
            time.sleep(SECONDS * len(genotypes))
        end = time.thread_time() + SECONDS * len(genotypes)
        while kind == "busy" and time.thread_time() < end:
            pass
        return genotypes[:, 0], genotypes[:, :2]

    return evaluate


def best_seconds(engine: Engine, kind: str, workers: int, number: int, repeats: int) -> float:
    genotypes = np.random.default_rng(0).normal(size=(number, PARAMS)).astype(np.float32)
    pool = engine.open_pool(Work("engines:work", {"kind": kind}, 16), workers, 60.0, note=print)
    try:
        # Afterwards all workers have started, and the pool knows how long a chunk takes.
        for _ in range(3):
            pool.evaluate(genotypes[: 64 * workers] if number > 1 else genotypes)
        seconds = np.inf
        for _ in range(repeats if number > 1 else 50 * repeats):
            began = time.perf_counter()
            fitness, _ = pool.evaluate(genotypes)
            seconds = min(seconds, time.perf_counter() - began)
            np.testing.assert_array_equal(fitness, genotypes[:, 0])
        return seconds
    finally:
        pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    options = parser.parse_args()
    print("| engine | workers | waiting 5 ms, evaluations/s (of what is possible) | busy 5 ms, evaluations/s "
          "| nothing, evaluations/s | us each | one alone, ms |\n|---|---:|---:|---:|---:|---:|---:|")  # fmt: skip
    for name in options.engines:
        settings = {"settings": {"num_cpus": max(options.workers)}} if name == "ray" else {}
        with make(name, **settings) as engine:
            for workers in options.workers:
                waiting, busy = (
                    256 * workers / best_seconds(engine, kind, workers, 256 * workers, options.repeats)
                    for kind in ("wait", "busy")
                )
                nothing = best_seconds(engine, "nothing", workers, 4096, 5 * options.repeats) / 4096
                alone = best_seconds(engine, "nothing", workers, 1, options.repeats)
                print(f"| {name} | {workers} | {waiting:,.0f} ({waiting * SECONDS / workers:.0%}) | {busy:,.0f} "
                      f"| {1 / nothing:,.0f} | {1e6 * nothing:.1f} | {1e3 * alone:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
