"""Posterior mean, variance and covariance of the fitness, without evaluation noise.

References:
    The paper's appendix "Weighted Gaussian Process"; Rasmussen & Williams 2006, algorithm 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jedax.gp import tiles
from jedax.gp.model import FittedGP, kernel_and_distance
from jedax.gp.sequential import one_by_one
from jedax.types import Array, Float, Int


class Prediction(NamedTuple):
    """Posterior mean and variance at a set of descriptors, in units of the fitness.

    Attributes:
        mean: `(queries,)`.
        variance: `(queries,)`, at least 0.
    """

    mean: Float[Array, " queries"]
    variance: Float[Array, " queries"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Posterior:
    """Posterior mean, variance and covariance at a set of descriptors, in units of the fitness.

    Attributes:
        mean: `(queries,)`.
        variance: `(queries,)`, at least 0.
        noise_variance: Noise variance of one evaluation.
        x: `(queries, d)`, the descriptors, scaled to the unit box.
        explained: `(rows, queries)`, `E`; the posterior covariance is that of the prior minus `E'E`.
        signal: `s`, the standard deviation of the prior.
        length_scale: `l`, in units of the unit box.
    """

    mean: Float[Array, " queries"]
    variance: Float[Array, " queries"]
    noise_variance: Float[Array, ""]
    x: Float[Array, "queries d"]
    explained: Float[Array, "rows queries"]
    signal: Float[Array, ""]
    length_scale: Float[Array, ""]

    def covariance(self, index: Int[Array, ""]) -> Float[Array, " queries"]:
        """Return the posterior covariance of query `index` with all queries, `(queries,)`."""
        theta = jnp.log(jnp.stack([self.signal, self.length_scale]))
        prior = kernel_and_distance(theta, list(self.x[index][:, None]), list(self.x.T))[0][0]
        return prior - self.explained[:, index] @ self.explained


@jax.jit
def posterior(gp: FittedGP, x: Float[Array, "queries d"]) -> Posterior:
    """Return the posterior at `x`, with covariances; the prior if the process has no data or is not `ok`.

    Under `vmap` replicas are computed one after the other (see `jedax.gp.sequential`).

    Args:
        gp: The fitted process.
        x: `(queries, d)`, descriptors scaled to the unit box.
    """
    return one_by_one(_posterior)(gp, x)


def _posterior(gp: FittedGP, x: Float[Array, "queries d"]) -> Posterior:
    theta = jnp.stack([gp.hyperparameters.log_signal, gp.hyperparameters.log_length_scale])
    queries = list(x.T)

    def row(i: Array, so_far: tuple[Array, Array]) -> tuple[Array, Array]:
        mean, cross = so_far
        kernel, _ = kernel_and_distance(theta, [tiles.get(a, i) for a in gp.x], queries)
        kernel = jnp.where(tiles.get(gp.mask, i)[:, None], kernel, 0.0)
        return mean + tiles.get(gp.weights, i) @ kernel, tiles.put(cross, kernel, i)

    empty = jnp.zeros((*gp.mask.shape, x.shape[0]), x.dtype)
    mean, cross = lax.fori_loop(0, gp.factor.num_tiles, row, (empty[0, 0], empty))
    explained = tiles.solve_lower(gp.factor, cross).reshape(-1, x.shape[0])
    signal = gp.hyperparameters.signal
    variance = jnp.square(signal) - jnp.sum(jnp.square(explained), axis=0)
    return Posterior(
        mean=gp.fitness_mean + gp.fitness_scale * mean,
        variance=jnp.square(gp.fitness_scale) * jnp.maximum(variance, 0.0),
        noise_variance=gp.noise_variance,
        x=x,
        explained=gp.fitness_scale * explained,
        signal=gp.fitness_scale * signal,
        length_scale=gp.hyperparameters.length_scale,
    )


def predict(gp: FittedGP, x: Float[Array, "queries d"]) -> Prediction:
    """Return the posterior mean and variance at `x`; see `posterior`."""
    at = posterior(gp, x)
    return Prediction(at.mean, at.variance)
