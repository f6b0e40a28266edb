"""Variation of genotypes without a model of what is good."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from jedax.types import Array, Bool, Float, PRNGKeyArray


def iso_line(
    key: PRNGKeyArray,
    parents: Float[Array, "batch params"],
    partners: Float[Array, "batch params"],
    iso_sigma: float | Float[Array, "batch 1"],
    line_sigma: float | Float[Array, "batch 1"],
    intermediate: Bool[Array, "batch 1"] | None = None,
) -> Float[Array, "batch params"]:
    """Vary each parent in all directions alike, and towards or away from its partner.

    Source: Vassiliades & Mouret 2018, "Discovering the elite hypervolume by leveraging interspecies correlation",
    arXiv:1804.03906, section 4: one step for all parameters, along the line. A separate step for each parameter is the
    extended intermediate recombination of Mühlenbein & Schlierkamp-Voosen 1993, "Predictive models for the breeder
    genetic algorithm", Evolutionary Computation 1(1), 25-49, with normal steps.

    Args:
        key: Drawn from for both parts.
        parents: What is varied.
        partners: The other end of each line.
        iso_sigma: Standard deviation of the part without direction, per parameter; of all, or of each parent.
        line_sigma: Standard deviation of the step, in lengths of the line; of all, or of each parent.
        intermediate: Which parents take a separate step for each parameter instead of one along the line; none by
            default.
    """
    iso_key, line_key = jax.random.split(key)
    iso = iso_sigma * jax.random.normal(iso_key, parents.shape, parents.dtype)
    if intermediate is None:
        step = jax.random.normal(line_key, (parents.shape[0], 1), parents.dtype)
    else:
        steps = jax.random.normal(line_key, parents.shape, parents.dtype)
        step = jnp.where(intermediate, steps, steps[:, :1])
    return parents + iso + line_sigma * step * (partners - parents)


def log_uniform(key: PRNGKeyArray, like: Float[Array, "..."], bounds: tuple[float, float]) -> Float[Array, "..."]:
    """Return as many numbers as are in `like`, between bounds above 0, whose logarithms are uniform."""
    low, high = map(math.log, bounds)
    return jnp.exp(jax.random.uniform(key, like.shape, like.dtype, low, high))
