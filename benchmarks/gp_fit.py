"""How long fitting and predicting with the Gaussian process takes.

    python benchmarks/gp_fit.py [--repeats 9] [--unweighted] [--blas-threads 1] [--beside 0]

The data are cells of a square grid on the unit square, a tenth of them missing, with a fitness like that of a maze
(distance to a target, and steps where walls are) and 1 to 1e5 evaluations each. "Warm" refits after the fitness and the
counts of five per cent of the cells have changed; "condition" keeps the hyperparameters. "Predict" is for as many
places as there are cells. With more than 1,024 cells the fit takes 1,024 of them. A search gives the BLAS one
thread; `--beside` starts so many other busy processes first, to show why.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg  # noqa: F401, the BLAS whose threads are set
import threadpoolctl
from jax.scipy.linalg import cho_solve

from jedax.gp import GPData, GPSettings, condition, fit, predict

SIDE = 32
TARGET = np.array([0.9, 0.9])


def cells(seed: int, num: int, side: int = SIDE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return descriptors, fitness and counts of `num` random cells."""
    rng = np.random.default_rng(seed)
    centres = (np.stack(np.meshgrid(*2 * [np.arange(side)], indexing="ij"), -1).reshape(-1, 2) + 0.5) / side
    x = centres + rng.uniform(-0.5, 0.5, centres.shape) / side
    distance = np.hypot(*(x - TARGET).T)
    counts = np.floor(10 ** rng.uniform(0, 5, len(x)))
    fitness = -250 - 100 * distance + 130 * (distance < 0.12) + 25 * ((x[:, 1] > 0.6) & (x[:, 0] < 0.5))
    fitness -= rng.exponential(30, len(x)) / np.sqrt(counts)  # few evaluations: not yet the cell's best
    chosen = rng.permutation(len(x))[:num]
    return x[chosen], fitness[chosen], counts[chosen]


def data(size: int, changed: float = 0.0) -> GPData:
    """Return nine tenths of `size` filled cells, of which a share `changed` has just improved."""
    num = int(0.9 * size)
    x, fitness, counts = cells(size, num, max(SIDE, round(size**0.5)))
    rng = np.random.default_rng(1)
    improved = rng.random(num) < changed
    fitness = fitness + improved * rng.exponential(20, num)
    counts = counts + improved * rng.integers(1, 10_000, num)
    padding = ((0, size - num),)
    return GPData(
        x=jnp.asarray(np.pad(x, (*padding, (0, 0))), jnp.float32),
        fitness=jnp.asarray(np.pad(fitness, padding), jnp.float32),
        counts=jnp.asarray(np.pad(counts, padding), jnp.float32),
        mask=jnp.arange(size) < num,
    )


def milliseconds(function: Callable, *arguments: object, repeats: int) -> float:
    """Return the median time of a compiled call."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times[1:]))


def parts(size: int, repeats: int) -> dict[str, float]:
    """Return the times of what one likelihood evaluation consists of."""
    x = data(size).x
    distances = jnp.sum(jnp.square(x[:, None] - x[None]), -1)
    kernel = jnp.exp(-distances / 0.02) + 0.01 * jnp.eye(size)
    lower = jnp.linalg.cholesky(kernel)
    functions: dict[str, tuple[Callable, tuple]] = {
        "cholesky": (lambda k: jax.lax.linalg.cholesky(k, symmetrize_input=False), (kernel,)),
        "inverse": (lambda f: cho_solve((f, True), jnp.eye(size)), (lower,)),
        "product": (lambda a: a @ a, (kernel,)),
        "kernel": (lambda d: jnp.exp(-d / 0.02), (distances,)),
        "trace": (lambda a, b: jnp.sum(a * b.T), (kernel, lower)),
    }
    return {
        name: milliseconds(jax.jit(function), *arguments, repeats=repeats)
        for name, (function, arguments) in functions.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--unweighted", action="store_true")
    parser.add_argument("--blas-threads", type=int, default=1)
    parser.add_argument("--beside", type=int, default=0, help="busy processes beside this one")
    options = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.beside)]
    try:
        with threadpoolctl.threadpool_limits(options.blas_threads, user_api="blas"):
            measure(options)
    finally:
        for process in busy:
            process.kill()


def measure(options: argparse.Namespace) -> None:
    settings = GPSettings(gp="standard" if options.unweighted else "weighted")
    predict_ = jax.jit(predict)
    print(
        f"{os.cpu_count()} cores, {options.blas_threads} BLAS threads, {options.beside} busy processes beside; "
        f"milliseconds, median of {options.repeats}; (likelihood evaluations)"
    )
    print(
        f"{'cells':>6} {'cold fit':>14} {'warm fit':>14} {'condition':>10} {'predict':>8}   LAPACK and products alone"
    )
    for size in (128, 256, 512, 1024, 4096, 16384, 65536):
        start = settings.initial_hyperparameters()
        before, after = data(size), data(size, changed=0.05)
        queries = jax.random.uniform(jax.random.key(0), (size, 2))
        cold = fit(settings, start, before)
        warm = fit(settings, cold.hyperparameters, after)
        times = [
            milliseconds(fit, settings, start, before, repeats=options.repeats),
            milliseconds(fit, settings, cold.hyperparameters, after, repeats=options.repeats),
            milliseconds(condition, settings, cold.hyperparameters, after, repeats=options.repeats),
            milliseconds(predict_, warm, queries, repeats=options.repeats),
        ]
        alone = parts(size, options.repeats) if size <= 1024 else {}
        shown = ", ".join(f"{name} {ms:.2f}" for name, ms in alone.items())
        print(
            f"{size:6d} {times[0]:9.1f} ({int(cold.num_evaluations):2d}) {times[1]:9.1f}"
            f" ({int(warm.num_evaluations):2d}) {times[2]:10.1f} {times[3]:8.1f}   {shown}",
            flush=True,
        )


if __name__ == "__main__":
    main()
