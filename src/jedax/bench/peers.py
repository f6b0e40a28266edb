"""What `jedax doctor --speed` compares with: other packages if they are installed, and plain NumPy.

Each function returns a call to be timed, or None if its package is missing: `pip install 'jedax[compare]'`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks

Call = Callable[[], Any]


def installed(package: str) -> bool:
    """Return whether a package is installed."""
    return importlib.util.find_spec(package) is not None


def pyribs(centroids: np.ndarray, genotypes: np.ndarray, fitness: np.ndarray, descriptors: np.ndarray) -> Call | None:
    """Return a call that adds all batches to an empty archive of pyribs.

    Args:
        centroids: `(cells, 2)`, in the unit square.
        genotypes: `(batch, params)`, the same for all batches.
        fitness: `(batches, batch)`.
        descriptors: `(batches, batch, 2)`.
    """
    if not installed("ribs"):
        return None
    from ribs.archives import CVTArchive

    archive = CVTArchive(
        solution_dim=genotypes.shape[1], centroids=centroids, ranges=[(0.0, 1.0)] * 2, dtype=np.float32
    )

    def add() -> None:
        archive.clear()
        for one in zip(fitness, descriptors, strict=True):
            archive.add(genotypes, *one)

    return add


def cma(params: int, population: int) -> Call | None:
    """Return a generation of the separable CMA-ES of the package cma."""
    if not installed("cma"):
        return None
    from cma import CMAEvolutionStrategy

    options = {"CMA_diagonal": True, "popsize": population, "verbose": -9, "seed": 1}
    strategy = CMAEvolutionStrategy(np.zeros(params), 0.05, options)

    def generation() -> None:
        genotypes = strategy.ask()
        strategy.tell(genotypes, [float(np.square(genotype[:8]).sum()) for genotype in genotypes])

    return generation


def numpy_sep_cma_es(params: int, population: int) -> Call:
    """Return a generation of Sep-CMA-ES in NumPy, with the sums and products of jedax's own."""
    random = np.random.default_rng(0)
    elites = population // 2
    weights = np.log(elites + 0.5) - np.log(np.arange(1, elites + 1))
    weights = (weights / weights.sum()).astype(np.float32)
    mean, path, p_c = (np.zeros(params, np.float32) for _ in range(3))
    state = [mean, np.ones(params, np.float32), path, p_c, np.float32(0.05)]

    def generation() -> None:
        mean, variances, path, p_c, sigma = state
        y = np.sqrt(variances) * random.standard_normal((population, params), np.float32)
        genotypes = mean + sigma * y
        best = y[np.argsort(np.square(genotypes[:, :8]).sum(axis=1))[:elites]]
        step = weights @ best
        path = 0.9 * path + 0.4 * step / np.sqrt(variances)
        p_c = 0.9 * p_c + 0.4 * step
        variances = 0.8 * variances + 0.1 * p_c**2 + 0.1 * (weights @ best**2)
        sigma = sigma * np.exp(min(1.0, 0.1 * (np.linalg.norm(path) / math.sqrt(params) - 1)))
        state[:] = mean + sigma * step, variances, path, p_c, np.clip(sigma, 1e-12, 1e12)

    return generation


def numpy_gp(x: np.ndarray, fitness: np.ndarray, counts: np.ndarray) -> Call:
    """Return a fit of the weighted GP's three hyperparameters by SciPy's L-BFGS-B, with its gradient, in float64."""
    import scipy.linalg
    import scipy.optimize

    squared = np.square(x[:, None].astype(float) - x).sum(axis=-1)
    y = (fitness - fitness.mean()) / fitness.std()
    rows = np.arange(len(y))

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        signal, length, noise = np.exp(2 * logs)
        kernel = signal * np.exp(-0.5 * squared / length)
        covariance = kernel.copy()
        covariance[rows, rows] += noise / counts + 1e-6 * signal
        factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
        inverse = scipy.linalg.cho_solve((factor, True), np.eye(len(y)), check_finite=False)
        alpha = inverse @ y
        outer = inverse - np.outer(alpha, alpha)
        gradient = np.array([(outer * kernel).sum(), 0.5 * (outer * kernel * squared).sum() / length,
                             noise * (outer[rows, rows] / counts).sum()])  # fmt: skip
        return 0.5 * float(y @ alpha) + float(np.log(np.diag(factor)).sum()), gradient

    start, bounds = np.log([1.0, 0.2, 0.1]), [(-5.0, 5.0), (-5.0, 2.0), (-7.0, 2.0)]
    return lambda: scipy.optimize.minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x


def kheperax(task: Any, genotypes: np.ndarray) -> Call | None:
    """Return an evaluation of a batch of controllers in a maze by Kheperax 0.2."""
    if not installed("kheperax"):
        return None
    jax.tree_leaves = jax.tree.leaves  # type: ignore[attr-defined]  # Kheperax uses a name that JAX has since removed
    try:
        from kheperax.simu.geoms import Pos, Segment  # type: ignore[import-not-found]
        from kheperax.simu.maze import Maze  # type: ignore[import-not-found]
        from kheperax.tasks.final_distance import FinalDistKheperaxTask  # type: ignore[import-not-found]
        from kheperax.tasks.target import TargetKheperaxConfig  # type: ignore[import-not-found]
    except ImportError:
        return None
    config = task.config
    walls = [Segment(Pos(x1, y1), Pos(x2, y2)) for x1, y1, x2, y2 in config.walls]
    default = TargetKheperaxConfig.get_default_for_map("standard")
    setup = dataclasses.replace(
        default,
        maze=Maze.create(segments_list=walls, limits=config.limits),
        episode_length=config.steps,
        target_pos=tuple(config.target),
        target_radius=config.target_radius,
        robot=default.robot.replace(posture=type(default.robot.posture)(*config.start)),
    )
    key = jax.random.PRNGKey(0)
    score = jax.jit(FinalDistKheperaxTask.create_default_task(setup, key)[2])
    layers = networks.layers(jnp.asarray(genotypes), task.layer_sizes)
    parameters = {"params": {f"Dense_{i}": {"kernel": k, "bias": b} for i, (k, b) in enumerate(layers)}}
    return lambda: score(parameters, key)[0]
