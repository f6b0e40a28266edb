"""Posterior mean, variance and covariance of the fitness itself, that is without evaluation noise.

References:
    The paper's appendix "Weighted Gaussian Process"; Rasmussen & Williams 2006, algorithm 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jedax.gp.model import FittedGP, squared_distances
from jedax.gp.sequential import one_by_one
from jedax.types import Array, Float, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Posterior:
    """The posterior at a set of descriptors, in fitness units.

    Attributes:
        mean: `(queries,)`.
        variance: `(queries,)`, at least 0.
        x: `(queries, d)`, the descriptors, scaled to the unit box.
        explained: `(size, queries)`, whose product with its own transpose is the covariance that data took
            away.
        signal: Standard deviation of the prior.
        length_scale: `l`.
    """

    mean: Float[Array, " queries"]
    variance: Float[Array, " queries"]
    x: Float[Array, "queries d"]
    explained: Float[Array, "size queries"]
    signal: Float[Array, ""]
    length_scale: Float[Array, ""]

    def covariance(self, index: Int[Array, ""]) -> Float[Array, " queries"]:
        """Return `(queries,)`, the posterior covariance of query `index` with all queries."""
        distances = squared_distances(self.x[index][None], self.x)[0]
        prior = jnp.square(self.signal) * jnp.exp(-0.5 * distances / jnp.square(self.length_scale))
        return prior - self.explained[:, index] @ self.explained


@jax.jit
def posterior(gp: FittedGP, x: Float[Array, "queries d"]) -> Posterior:
    """Return the posterior at `x`, from which also covariances can be had.

    Under `vmap` the replicas take turns (see `jedax.gp.sequential`).

    Args:
        gp: The fitted process.
        x: `(queries, d)`, descriptors scaled to the unit box.

    Returns:
        The posterior; the prior if the process has no data or is not `ok`.
    """
    return one_by_one(_posterior)(gp, x)


def _posterior(gp: FittedGP, x: Float[Array, "queries d"]) -> Posterior:
    signal, length_scale = gp.hyperparameters.signal, gp.hyperparameters.length_scale
    distances = squared_distances(gp.x, x)
    cross = jnp.square(signal) * jnp.exp(-0.5 * distances / jnp.square(length_scale))
    cross = jnp.where(gp.mask[:, None], cross, 0.0)
    explained = solve_triangular(gp.cholesky, cross, lower=True)
    variance = jnp.square(signal) - jnp.sum(jnp.square(explained), axis=0)
    return Posterior(
        mean=gp.fitness_mean + gp.fitness_scale * (gp.weights @ cross),
        variance=jnp.square(gp.fitness_scale) * jnp.maximum(variance, 0.0),
        x=x,
        explained=gp.fitness_scale * explained,
        signal=gp.fitness_scale * signal,
        length_scale=length_scale,
    )


def predict(gp: FittedGP, x: Float[Array, "queries d"]) -> tuple[Float[Array, " queries"], Float[Array, " queries"]]:
    """Return the posterior mean and variance at `x`, as `posterior` does."""
    at = posterior(gp, x)
    return at.mean, at.variance
