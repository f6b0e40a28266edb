"""How far the fits of the Gaussian process are from the best that SciPy finds in float64.

    python benchmarks/gp_against_scipy.py [--make]

The data are 30 repertoires of JEDi on the four mazes, in `tests/data/gp_repertoires.npz`; `--make` makes them anew. The
reference is the exact log marginal likelihood in NumPy, maximised by L-BFGS-B from six starts with the same bounds; it
takes nothing from jedax. Prints for each repertoire the number of filled cells, the gap in nats between the best of
SciPy and the likelihood (in NumPy, too) at the hyperparameters of jedax, both sets of hyperparameters, and the share of
cells on the Pareto front of mean and variance that the weighted and the standard process have in common.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize

import jedax
from jedax.gp import GPData, GPSettings, fit, predict
from jedax.gp.threads import one_blas_thread

FILE = Path(__file__).parents[1] / "tests" / "data" / "gp_repertoires.npz"
RUNS = ((30_000, 1), (200_000, 2), (600_000, 3))  # evaluations, first of three seeds
LEFT_OUT = {(maze, 30_000, 3) for maze in ("maze-a", "maze-b", "maze-c", "maze-quad-b")}
LEFT_OUT |= {("maze-b", 30_000, 2), ("maze-c", 30_000, 2)}
STARTS = [(1, 0.1, 1), (1, 0.03, 0.3), (1, 0.5, 3), (2, 0.2, 0.05), (5, 0.6, 0.05), (1, 0.05, 10)]
BOUNDS = np.log([(0.05, 20), (0.01, 10), (1e-3, 100)])
CENTRES = (np.stack(np.meshgrid(*2 * [np.arange(32)]), axis=-1).reshape(-1, 2) + 0.5) / 32


def make() -> None:
    """Write the file: descriptor in the unit box, fitness and number of evaluations of each filled cell."""
    found = {}
    for maze in ("maze-a", "maze-b", "maze-c", "maze-quad-b"):
        for evaluations, seed in RUNS:
            run = jedax.run(
                "jedi", maze, evaluations=evaluations, seed=seed, replicas=3, generations=100 if seed > 1 else 50
            )
            cells, (low, high) = run.repertoire, np.asarray(run.task.descriptor_bounds)
            for r in range(3):
                filled = np.isfinite(cells.fitness[r]) & (cells.counts[r] > 0)
                x = (cells.descriptors[r][filled] - low) / (high - low)
                rows = np.column_stack([x, cells.fitness[r][filled], cells.counts[r][filled]])
                if (maze, evaluations, seed + r) not in LEFT_OUT:
                    found[f"{maze}-{evaluations}-{seed + r}"] = rows.astype(np.float32)
    np.savez_compressed(FILE, **found)


def loss(theta: np.ndarray, squared: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Return minus the log marginal likelihood and its gradient by the logs of s, l and s_n."""
    signal, length, noise = np.exp(2 * theta)
    kernel = signal * np.exp(-squared / (2 * length))
    try:
        lower = np.linalg.cholesky(kernel + np.diag(noise * weights + 1e-10 * signal))
    except np.linalg.LinAlgError:
        return 1e10, np.zeros(3)
    inverse = scipy.linalg.cho_solve((lower, True), np.eye(len(y)))
    solution = inverse @ y
    value = 0.5 * y @ solution + np.log(np.diag(lower)).sum() + 0.5 * len(y) * np.log(2 * np.pi)
    rest = np.outer(solution, solution) - inverse
    by_signal = (rest * kernel).sum() + 1e-10 * signal * np.trace(rest)
    by_length = 0.5 * (rest * kernel * squared).sum() / length
    return float(value), -np.array([by_signal, by_length, noise * np.diag(rest) @ weights])


def front(mean: np.ndarray, variance: np.ndarray) -> set[int]:
    """Return the cells that no other cell beats in mean and variance."""
    beaten = (mean[:, None] < mean) & (variance[:, None] <= variance)
    return set(np.flatnonzero(~beaten.any(axis=1)).tolist())


def compare(name: str, rows: np.ndarray) -> tuple[float, str]:
    """Return the gap in nats, and a row of the table."""
    num, padding = len(rows), ((0, 1024 - len(rows)),)
    data = GPData(
        jnp.asarray(np.pad(rows[:, :2], (*padding, (0, 0)))), jnp.asarray(np.pad(rows[:, 2], padding)),
        jnp.asarray(np.pad(rows[:, 3], padding)), jnp.arange(1024) < num,
    )  # fmt: skip
    processes = [
        fit(settings, settings.initial_hyperparameters(), data)
        for settings in (GPSettings(), GPSettings(gp="standard"))
    ]
    weighted, standard = (front(*map(np.asarray, predict(gp, jnp.asarray(CENTRES, jnp.float32)))) for gp in processes)
    x, fitness, counts = rows[:, :2].astype(float), rows[:, 2].astype(float), rows[:, 3].astype(float)
    squared = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    arguments = squared, (fitness - fitness.mean()) / fitness.std(), 1 / counts
    results = [
        scipy.optimize.minimize(loss, np.log(start), arguments, jac=True, bounds=BOUNDS, method="L-BFGS-B")
        for start in STARTS
    ]
    best = min(results, key=lambda result: result.fun)
    h = processes[0].hyperparameters
    ours = np.array([h.log_signal, h.log_length_scale, h.log_noise], float)
    gap = loss(ours, *arguments)[0] - float(best.fun)
    share = len(weighted & standard) / len(weighted | standard)
    shown = [", ".join(f"{value:.3g}" for value in np.exp(theta)) for theta in (ours, best.x)]
    return gap, f"| {name} | {num} | {gap:.3f} | {shown[0]} | {shown[1]} | {share:.0%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", action="store_true", help="make the repertoires anew")
    if parser.parse_args().make:
        make()
    print("| repertoire | cells | gap (nats) | s, l, s_n of jedax | of SciPy | fronts share |")
    print("|---|---:|---:|---|---|---:|")
    gaps = []
    with one_blas_thread():
        for name, rows in np.load(FILE).items():
            gap, shown = compare(name, rows)
            gaps.append(gap)
            print(shown, flush=True)
    print(f"gap below 0.5 nats: {sum(gap < 0.5 for gap in gaps)} of {len(gaps)}; largest {max(gaps):.3f}")


if __name__ == "__main__":
    main()
