"""Variation of genotypes without a model of what is good."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jedax.types import Array, Float, PRNGKeyArray


def iso_line(
    key: PRNGKeyArray,
    parents: Float[Array, "batch params"],
    partners: Float[Array, "batch params"],
    iso_sigma: float | Array,
    line_sigma: float,
) -> Float[Array, "batch params"]:
    """Vary each parent in all directions alike, and along the line to its partner.

    Source: Vassiliades & Mouret 2018, "Discovering the elite hypervolume by leveraging interspecies correlation",
    arXiv:1804.03906, section 4.

    Args:
        key: Drawn from for both parts.
        parents: What is varied.
        partners: The other end of each line.
        iso_sigma: Standard deviation of the part without direction, per parameter.
        line_sigma: Standard deviation along the line, in lengths of the line.
    """
    iso_key, line_key = jax.random.split(key)
    iso = iso_sigma * jax.random.normal(iso_key, parents.shape, parents.dtype)
    line = line_sigma * jax.random.normal(line_key, (parents.shape[0], 1), parents.dtype)
    return parents + iso + line * (partners - parents)


def log_uniform_iso(
    key: PRNGKeyArray, parents: Float[Array, "batch params"], scales: Float[Array, "2"]
) -> Float[Array, "batch params"]:
    """Vary each parent in all directions alike, with a standard deviation of its own.

    Args:
        key: Drawn from for the deviations and the steps.
        parents: What is varied.
        scales: Lowest and highest standard deviation, both above 0; between them its logarithm is uniform.
    """
    scale_key, step_key = jax.random.split(key)
    low, high = jnp.log(scales)
    sigma = jnp.exp(jax.random.uniform(scale_key, (parents.shape[0], 1), parents.dtype, low, high))
    return parents + sigma * jax.random.normal(step_key, parents.shape, parents.dtype)
