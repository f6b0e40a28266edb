"""Large genotypes, on all cores: normal numbers, and samples and updates of LM-MA-ES (`jedax.es.lm_ma_es`).

The numbers are those of JAX up to rounding: normals are drawn from the same random bits.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jedax.native import random
from jedax.native.core import Kernel
from jedax.types import Array, Float, PRNGKeyArray

KERNEL = Kernel("es", "sample", "normal", "recombine")
LARGE = 1 << 20
"""Fewer numbers than this are drawn by `jax.random`: threads would not pay."""


def fits(key: PRNGKeyArray, like: Float[Array, "..."]) -> bool:
    """Return whether the kernel is available, draws the numbers of this key, and computes in the type of `like`."""
    return KERNEL.available and random.draws(key) and like.dtype == jnp.float32


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Return standard normals, those of `jax.random.normal` up to rounding."""
    return KERNEL.call("normal", jax.ShapeDtypeStruct(shape, jnp.float32), jax.random.key_data(key))


def sample(
    key: PRNGKeyArray, mean: Float[Array, " n"], sigma: Float[Array, ""], directions: Float[Array, "m n"],
    gram: Float[Array, "m m"], rates: Float[Array, " m"], population: int
) -> Float[Array, "population n"]:  # fmt: skip
    """Return the genotypes of a generation.

    `gram` has the products of the directions, `rates` their weights c_d, 0 for those that are not used.
    """
    shape = jax.ShapeDtypeStruct((population, len(mean)), jnp.float32)
    return KERNEL.call("sample", shape, jax.random.key_data(key), mean, sigma, directions, gram, rates)


def recombine(
    weights: Float[Array, " population"], genotypes: Float[Array, "population n"], mean: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Return the weighted sum of the differences between genotypes and `mean`; members of weight 0 are left out."""
    shape = jax.ShapeDtypeStruct(mean.shape, jnp.float32)
    return KERNEL.call("recombine", shape, weights, genotypes, mean)
