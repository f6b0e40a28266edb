"""How far the fits of the Gaussian process are from the best that SciPy finds in float64.

    python benchmarks/gp_against_scipy.py [--make]

The data are 30 repertoires of JEDi on the four mazes, in `tests/data/gp_repertoires.npz`; `--make` makes them anew. The
reference is that of the tests (`tests/gp/reference.py`): the exact log marginal likelihood in NumPy, maximised by
L-BFGS-B from six starts with the same bounds. Prints for each repertoire the number of filled cells, the gap in nats
between the best of SciPy and the likelihood (in NumPy, too) at the hyperparameters of jedax, both sets of
hyperparameters, and the share of cells on the Pareto front of mean and variance that the weighted and the standard
process have in common.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax.numpy as jnp
import numpy as np

import jedax
from jedax.gp import GPData, GPSettings, fit, predict
from jedax.gp.threads import one_blas_thread

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.gp.reference import best_fit, front, log_likelihood  # noqa: E402

FILE = ROOT / "tests" / "data" / "gp_repertoires.npz"
RUNS = ((30_000, 1), (200_000, 2), (600_000, 3))  # evaluations, first of three seeds
LEFT_OUT = {(maze, 30_000, 3) for maze in ("maze-a", "maze-b", "maze-c", "maze-quad-b")}
LEFT_OUT |= {("maze-b", 30_000, 2), ("maze-c", 30_000, 2)}
STARTS = [(1, 0.1, 1), (1, 0.03, 0.3), (1, 0.5, 3), (2, 0.2, 0.05), (5, 0.6, 0.05), (1, 0.05, 10)]
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
    arguments = x, fitness, 1 / counts
    best = best_fit(GPSettings(), *arguments, STARTS)
    h = processes[0].hyperparameters
    ours = np.array([h.log_signal, h.log_length_scale, h.log_noise], float)
    gap = -float(best.fun) - float(log_likelihood(ours, *arguments))
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
