"""The data of the likelihood: standardised, thinned where there are many, and cut into tiles."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jedax.gp import tiles
from jedax.gp.model import GPData
from jedax.gp.settings import GPSettings
from jedax.types import Array, Bool, Float, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rows:
    """Standardised data in float64; padding rows are 0.

    Attributes:
        x: `(size, d)`, descriptors in the unit box.
        y: `(size,)`, fitness with mean 0 and standard deviation 1, or all 0 if all fitness is equal.
        weights: `(size,)`, the diagonal of `W`.
        mask: `(size,)`, which rows are real.
        num: Number of real rows.
        fitness_mean: Mean of the fitness.
        fitness_scale: Standard deviation of the fitness; 1 if that is 0.
        varied: Whether the fitness of at least two real rows differs.
    """

    x: Float[Array, "size d"]
    y: Float[Array, " size"]
    weights: Float[Array, " size"]
    mask: Bool[Array, " size"]
    num: Int[Array, ""]
    fitness_mean: Float[Array, ""]
    fitness_scale: Float[Array, ""]
    varied: Bool[Array, ""]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tiled:
    """Rows in tiles (see `jedax.gp.tiles`).

    Attributes:
        x: `(d, tiles, tile)`, descriptors.
        y: `(tiles, tile)`, standardised fitness.
        weights: `(tiles, tile)`, the diagonal of `W`.
        mask: `(tiles, tile)`, which rows are real.
        num: Number of real rows.
        num_tiles: Number of tiles up to the last real row.
    """

    x: Float[Array, "d tiles tile"]
    y: Float[Array, "tiles tile"]
    weights: Float[Array, "tiles tile"]
    mask: Bool[Array, "tiles tile"]
    num: Float[Array, ""]
    num_tiles: Int[Array, ""]


def standardise(settings: GPSettings, data: GPData) -> Rows:
    """Return the data in float64: fitness standardised over the real rows, padding set to 0."""
    x = jnp.where(data.mask[:, None], data.x, 0.0).astype(jnp.float64)
    num = jnp.sum(data.mask, dtype=jnp.int32)
    rows = jnp.maximum(num, 1)
    # Deviations from one of the values: equal values give exact zeros.
    pivot = jnp.where(num > 0, data.fitness[lax.argmax(data.mask, 0, jnp.int32)], 0.0).astype(jnp.float64)
    deviation = jnp.where(data.mask, data.fitness.astype(jnp.float64) - pivot, 0.0)
    shift = jnp.sum(deviation) / rows
    deviation = jnp.where(data.mask, deviation - shift, 0.0)
    scale = jnp.sqrt(jnp.sum(jnp.square(deviation)) / rows)
    varied = scale > 0
    scale = jnp.where(varied, scale, 1.0)
    counts = jnp.maximum(data.counts.astype(jnp.float64), 1.0)
    weights = 1.0 / counts if settings.gp == "weighted" else jnp.ones_like(counts)
    weights = jnp.where(data.mask, weights, 0.0)
    return Rows(x, deviation / scale, weights, data.mask, num, pivot + shift, scale, varied)


def cut(rows: Rows) -> Tiled:
    """Return all rows in tiles."""
    mask = tiles.cut(rows.mask)
    used = jnp.where(mask.any(axis=1), jnp.arange(1, len(mask) + 1, dtype=jnp.int32), jnp.int32(0))
    x = jnp.moveaxis(tiles.cut(rows.x), -1, 0)
    return Tiled(x, tiles.cut(rows.y), tiles.cut(rows.weights), mask, rows.num.astype(rows.y.dtype), jnp.max(used))


def draw(rows: Rows, num: int) -> Rows:
    """Return `num` of the rows, the same ones at every call; of fewer real ones all, and padding."""
    index = jnp.arange(len(rows.mask), dtype=jnp.int32)
    rank = jnp.asarray(np.random.default_rng(0).permutation(len(rows.mask)), jnp.float64)
    _, order = lax.sort_key_val(jnp.where(rows.mask, rank, jnp.inf), index)
    order = order[:num]
    drawn = jnp.minimum(rows.num, num)
    mask = jnp.arange(len(order), dtype=jnp.int32) < drawn
    x, y, weights = (jnp.where(mask.reshape(-1, *[1] * (a.ndim - 1)), a[order], 0.0)
                     for a in (rows.x, rows.y, rows.weights))  # fmt: skip
    return Rows(x, y, weights, mask, drawn, rows.fitness_mean, rows.fitness_scale, rows.varied)
