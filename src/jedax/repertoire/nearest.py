"""Exact search for the nearest centroid among a few candidates.

The descriptor box is divided into small tiles. For each tile the centroids that can be nearest to one of its points are
listed once, on the host. The nearest of these candidates is found with the same arithmetic as among all centroids.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax.types import Array, Bool, Float, Int

# Eight tiles per centroid give 2 to 3 candidates on average, and about 8 at most, in two dimensions.
_TILES_PER_CENTROID = 8
# Above three dimensions a tile touches too many cells; for fewer centroids, comparing with all is as fast.
_MOST_DIMENSIONS = 3
_FEWEST_CENTROIDS = 32
# Tiles are enlarged by this share, because of the rounding of float32 when the tile of a point is computed.
_MARGIN = 0.01


@dataclass(frozen=True, eq=False)
class Tiles:
    """The centroids that can be nearest to a point, by tile.

    Attributes:
        shape: Tiles along each dimension of the box.
        candidates: `(tiles, slots)`, indices of centroids, ascending in each row and padded with the last one.
    """

    shape: tuple[int, ...]
    candidates: Int[np.ndarray, "tiles slots"]


def make_tiles(
    centroids: Float[np.ndarray, "cells d"], lows: Float[np.ndarray, " d"], highs: Float[np.ndarray, " d"]
) -> Tiles | None:
    """Return the tiles of a box; None if comparing with all centroids is as fast, or float32 is too coarse."""
    from scipy.spatial import KDTree

    num_cells, dimensions = centroids.shape
    widths = highs - lows
    if dimensions > _MOST_DIMENSIONS or num_cells < _FEWEST_CENTROIDS:
        return None
    most = _TILES_PER_CENTROID * num_cells
    edge = (np.prod(widths) / most) ** (1 / dimensions)
    shape = np.clip(np.ceil(widths / edge), 1, most).astype(int)
    size = widths / shape
    # Far from the origin float32 cannot distinguish the tiles.
    if np.any(np.maximum(abs(lows), abs(highs)) * np.finfo(np.float32).eps > _MARGIN / 10 * size):
        return None
    axes = [low + (np.arange(n) + 0.5) * step for low, n, step in zip(lows, shape, size, strict=True)]
    middles = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimensions)
    tree = KDTree(centroids)
    # A point is at most half a diagonal away from the middle of its tile. So its nearest centroid is at most a whole
    # diagonal farther from the middle than the centroid nearest to the middle.
    reach = tree.query(middles)[0] + (1 + _MARGIN) * np.linalg.norm(size)
    found = tree.query_ball_point(middles, reach, return_sorted=True)
    slots = max(map(len, found))
    if 4 * slots > num_cells:
        return None
    rows = [near + near[-1:] * (slots - len(near)) for near in found]
    return Tiles(tuple(shape.tolist()), np.array(rows, np.int32))


def nearest_of_all(centroids: Float[np.ndarray, "cells d"], points: Float[Array, "*batch d"]) -> Int[Array, "*batch"]:
    """Return the index of the nearest centroid of each point, the lowest of several equally near ones."""
    squared = sum((points[..., i, None] - jnp.asarray(axis)) ** 2 for i, axis in enumerate(centroids.T))
    return jnp.argmin(jnp.asarray(squared), axis=-1).astype(jnp.int32)


def nearest_of_tile(
    centroids: Float[np.ndarray, "cells d"],
    tiles: Tiles,
    points: Float[Array, "*batch d"],
    unit: Float[Array, "*batch d"],
    outside: Bool[Array, "*batch"],
) -> Int[Array, "*batch"]:
    """Return the index of the nearest centroid of each point, as `nearest_of_all` does.

    Args:
        centroids: `(cells, d)`.
        tiles: The tiles made from these centroids.
        points: The points.
        unit: The points scaled to the unit box.
        outside: Whether a point is outside the box; if any is, all points outside are compared with all centroids.
    """
    place = jnp.clip((unit * jnp.array(tiles.shape)).astype(jnp.int32), 0, jnp.array(tiles.shape) - 1)
    tile = place[..., 0]
    for axis, size in enumerate(tiles.shape[1:], start=1):
        tile = tile * size + place[..., axis]
    candidates = jnp.asarray(tiles.candidates)[tile]
    nearest, least = candidates[..., 0], jnp.full(tile.shape, jnp.inf)
    for slot in range(candidates.shape[-1]):
        index = candidates[..., slot]
        squared = jnp.asarray(
            sum((points[..., i] - jnp.asarray(axis)[index]) ** 2 for i, axis in enumerate(centroids.T))
        )
        nearest = jnp.where(squared < least, index, nearest)
        least = jnp.minimum(squared, least)
    # A loop of at most one turn, because a cond under vmap computes both branches.
    return jax.lax.while_loop(
        lambda state: state[0],
        lambda state: (jnp.bool_(False), jnp.where(outside, nearest_of_all(centroids, points), state[1])),
        (outside.any(), nearest),
    )[1]
