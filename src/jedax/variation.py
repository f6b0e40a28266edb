"""Variation of genotypes by random mutation and recombination."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from jedax.native import es as native
from jedax.types import Array, Bool, Float, PRNGKeyArray


def iso_line(
    key: PRNGKeyArray,
    parents: Float[Array, "batch params"],
    partners: Float[Array, "batch params"],
    iso_sigma: float | Float[Array, "batch 1"],
    line_sigma: float | Float[Array, "batch 1"],
    intermediate: Bool[Array, "batch 1"] | None = None,
) -> Float[Array, "batch params"]:
    """Return offspring: each parent plus isotropic noise plus a random step along the line to its partner.

    Source: Vassiliades & Mouret 2018, "Discovering the elite hypervolume by leveraging interspecies correlation",
    arXiv:1804.03906, section 4, where all parameters share one step. A separate step for each parameter is the extended
    intermediate recombination of Mühlenbein & Schlierkamp-Voosen 1993, "Predictive models for the breeder
    genetic algorithm", Evolutionary Computation 1(1), 25-49, with normal steps.

    Args:
        key: Random key.
        parents: Genotypes to vary.
        partners: The other end of each line.
        iso_sigma: Standard deviation of the isotropic noise per parameter; one number, or one per parent.
        line_sigma: Standard deviation of the step, relative to the length of the line; one number, or one per parent.
        intermediate: Parents with a separate step for each parameter instead of one step along the line; None: none.
    """
    iso_key, line_key = jax.random.split(key)
    iso = iso_sigma * _normal(iso_key, parents)
    if intermediate is None:
        step = jax.random.normal(line_key, (parents.shape[0], 1), parents.dtype)
    else:
        steps = _normal(line_key, parents)
        step = jnp.where(intermediate, steps, steps[:, :1])
    return parents + iso + line_sigma * step * (partners - parents)


def _normal(key: PRNGKeyArray, like: Float[Array, "batch params"]) -> Float[Array, "batch params"]:
    """Return standard normals with the shape and type of `like`."""
    if like.size >= native.LARGE and native.fits(key, like):
        return native.normal(key, like.shape)
    return jax.random.normal(key, like.shape, like.dtype)


def log_uniform(key: PRNGKeyArray, like: Float[Array, "..."], bounds: tuple[float, float]) -> Float[Array, "..."]:
    """Draw numbers with the shape and type of `like`, log-uniformly between two bounds above 0."""
    low, high = map(math.log, bounds)
    return jnp.exp(jax.random.uniform(key, like.shape, like.dtype, low, high))
