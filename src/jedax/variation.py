"""Variation of genotypes without a model of what is good."""

from __future__ import annotations

import jax

from jedax.types import Array, Float, PRNGKeyArray


def iso_line(
    key: PRNGKeyArray,
    parents: Float[Array, "batch params"],
    partners: Float[Array, "batch params"],
    iso_sigma: float,
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
