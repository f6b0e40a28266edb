"""The data of the likelihood: standardised, pooled and cut into tiles."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jedax.gp import tiles
from jedax.gp.model import GPData
from jedax.gp.pooling import pool
from jedax.gp.settings import GPSettings
from jedax.types import Array, Bool, Float, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Standardised:
    """Standardised data in tiles (see `jedax.gp.tiles`); padding rows are 0.

    Attributes:
        x: `(d, tiles, tile)`, descriptors in the unit box.
        y: `(tiles, tile)`, fitness with mean 0 and standard deviation 1, or all 0 if all fitness is equal.
        weights: `(tiles, tile)`, the diagonal of `W`.
        mask: `(tiles, tile)`, which rows are real.
        num: Number of real rows.
        num_tiles: Number of tiles up to the last real row.
        num_more: Number of data beyond the rows, if neighbours were pooled (see `jedax.gp.pooling`).
        scatter: Squared distances of pooled data from their rows, in units of the noise variance.
        log_weights: Change of the log determinant of `W` by pooling.
        fitness_mean: Mean of the fitness.
        fitness_scale: Standard deviation of the fitness; 1 if that is 0.
        varied: Whether the fitness of at least two real rows differs.
    """

    x: Float[Array, "d tiles tile"]
    y: Float[Array, "tiles tile"]
    weights: Float[Array, "tiles tile"]
    mask: Bool[Array, "tiles tile"]
    num: Float[Array, ""]
    num_tiles: Int[Array, ""]
    num_more: Float[Array, ""]
    scatter: Float[Array, ""]
    log_weights: Float[Array, ""]
    fitness_mean: Float[Array, ""]
    fitness_scale: Float[Array, ""]
    varied: Bool[Array, ""]


def standardise(settings: GPSettings, data: GPData) -> Standardised:
    """Standardise fitness over the real rows, set padding to 0, pool rows beyond `gp_max_rows`, and cut into tiles."""
    x = jnp.where(data.mask[:, None], data.x, 0.0)
    num = jnp.sum(data.mask).astype(x.dtype)
    rows = jnp.maximum(num, 1.0)
    # Deviations from one of the values: equal values give exact zeros, and a large mean causes no rounding error.
    pivot = jnp.where(num > 0, data.fitness[jnp.argmax(data.mask)], 0.0)
    deviation = jnp.where(data.mask, data.fitness - pivot, 0.0)
    shift = jnp.sum(deviation) / rows
    deviation = jnp.where(data.mask, deviation - shift, 0.0)
    scale = jnp.sqrt(jnp.sum(jnp.square(deviation)) / rows)
    varied = scale > 0
    scale = jnp.where(varied, scale, 1.0)
    counts = jnp.maximum(data.counts.astype(x.dtype), 1.0)
    weights = 1.0 / counts if settings.gp == "weighted" else jnp.ones_like(counts)
    pooled = pool(x, deviation / scale, jnp.where(data.mask, weights, 0.0), data.mask, settings.gp_max_rows)
    mask = tiles.cut(pooled.mask)
    return Standardised(
        x=jnp.moveaxis(tiles.cut(pooled.x), -1, 0),
        y=tiles.cut(pooled.y),
        weights=tiles.cut(pooled.weights),
        mask=mask,
        num=num - pooled.num_more,
        num_tiles=jnp.max(jnp.where(mask.any(axis=1), jnp.arange(1, len(mask) + 1, dtype=jnp.int32), 0)),
        num_more=pooled.num_more,
        scatter=pooled.scatter,
        log_weights=pooled.log_weights,
        fitness_mean=pivot + shift,
        fitness_scale=scale,
        varied=varied,
    )
