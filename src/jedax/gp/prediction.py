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

from jedax.gp import features, tiles
from jedax.gp.model import FittedGP, kernel_and_distance
from jedax.gp.sequential import in_float64, one_by_one
from jedax.types import Array, Bool, Float, Int


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
    """Posterior mean, variance and covariance at a set of descriptors, in units of the fitness and the type of `x`.

    Attributes:
        mean: `(queries,)`.
        variance: `(queries,)`, at least 0.
        noise_variance: Noise variance of one evaluation.
        x: `(queries, d)`, the descriptors, scaled to the unit box.
        explained: `(rows, queries)`, `E`, in float64; the posterior covariance is `scale^2` times that of the prior
            minus `E'E`, or `scale^2 E'E` if `is_rest`.
        is_rest: Whether `E` is that of the posterior covariance and not of what the data explain.
        theta: Logs of `s`, `l` and `s_n` of that prior, in float64.
        scale: From the units of that prior to those of the fitness.
    """

    mean: Float[Array, " queries"]
    variance: Float[Array, " queries"]
    noise_variance: Float[Array, ""]
    x: Float[Array, "queries d"]
    explained: Float[Array, "rows queries"]
    is_rest: Bool[Array, ""]
    theta: Float[Array, "3"]
    scale: Float[Array, ""]

    def covariance(self, index: Int[Array, ""]) -> Float[Array, " queries"]:
        """Return the posterior covariance of query `index` with all queries, `(queries,)`."""
        return one_by_one(in_float64(_covariance))(self, index)


def _covariance(at: Posterior, index: Int[Array, ""]) -> Float[Array, " queries"]:
    x = at.x.astype(jnp.float64)
    one = lax.dynamic_slice_in_dim(x, index, 1)
    prior = kernel_and_distance(at.theta, list(one.T), list(x.T))[0][0]
    explained = lax.dynamic_slice_in_dim(at.explained, index, 1, axis=1)[:, 0] @ at.explained
    return (jnp.square(at.scale) * jnp.where(at.is_rest, explained, prior - explained)).astype(at.x.dtype)


@jax.jit
def posterior(gp: FittedGP, x: Float[Array, "queries d"]) -> Posterior:
    """Return the posterior at `x`, with covariances; the prior if the process has no data or is not `ok`.

    Under `vmap` replicas are computed one after the other (see `jedax.gp.sequential`).

    Args:
        gp: The fitted process.
        x: `(queries, d)`, descriptors scaled to the unit box.
    """
    return one_by_one(in_float64(_posterior))(gp, x)


def _posterior(gp: FittedGP, x: Float[Array, "queries d"]) -> Posterior:
    queries = list(x.astype(jnp.float64).T)
    by_features = None
    if gp.by_features is not None:
        basis = features.basis(gp.theta[1], x.shape[1], len(gp.weights))
        by_features = lambda i: jnp.exp(gp.theta[0]) * basis.tile(i, x.astype(jnp.float64))  # noqa: E731

    def of_rows(i: Array) -> Array:
        kernel, _ = kernel_and_distance(gp.theta, [tiles.get(a, i) for a in gp.x], queries)
        return jnp.where(tiles.get(gp.mask, i)[:, None], kernel, 0.0)

    def row(i: Array, so_far: tuple[Array, Array]) -> tuple[Array, Array]:
        mean, cross = so_far
        kernel = of_rows(i) if by_features is None else lax.cond(gp.by_features, by_features, of_rows, i)
        return mean + tiles.get(gp.weights, i) @ kernel, tiles.put(cross, kernel, i)

    empty = jnp.zeros((*gp.weights.shape, x.shape[0]), jnp.float64)
    mean, cross = tiles.loop(0, gp.factor.num_tiles, row, (empty[0, 0], empty))
    explained = tiles.solve_lower(gp.factor, cross).reshape(-1, x.shape[0])
    variance = jnp.sum(jnp.square(explained), axis=0)
    less = jnp.exp(2 * gp.theta[0]) - variance
    variance = less if gp.by_features is None else jnp.where(gp.by_features, variance, less)
    scale = gp.fitness_scale * jnp.exp(gp.shift)
    return Posterior(
        mean=(gp.fitness_mean + gp.fitness_scale * mean).astype(x.dtype),
        variance=(jnp.square(scale) * jnp.maximum(variance, 0.0)).astype(x.dtype),
        noise_variance=jnp.square(scale * jnp.exp(gp.theta[2])).astype(x.dtype),
        x=x,
        explained=explained,
        is_rest=jnp.asarray(False) if gp.by_features is None else gp.by_features,
        theta=gp.theta,
        scale=scale,
    )


def predict(gp: FittedGP, x: Float[Array, "queries d"]) -> Prediction:
    """Return the posterior mean and variance at `x`; see `posterior`."""
    at = posterior(gp, x)
    return Prediction(at.mean, at.variance)
