"""Exact search for the nearest centroid that looks at a handful of candidates instead of all.

The box of descriptors is cut into small tiles; for each, the centroids that are nearest to some point of it are listed
once, on the host. Which of them is nearest is then decided by the same arithmetic as among all.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax.types import Array, Bool, Float, Int

# Eight tiles per centroid leave 2 to 3 candidates on average and about 8 at most in two dimensions.
_TILES_PER_CENTROID = 8
# Beyond three dimensions a tile touches too many cells; below this number of centroids looking at all is as fast.
_MOST_DIMENSIONS = 3
_FEWEST_CENTROIDS = 32
# Tiles are taken this much too large, against the rounding of float32 when a point looks for its own.
_MARGIN = 0.01


@dataclass(frozen=True, eq=False)
class Tiles:
    """Which centroids can be nearest to a point, by where it lies.

    Attributes:
        shape: Tiles along each dimension of the box.
        candidates: `(tiles, slots)`, indices of centroids, ascending in a row; the last one repeated where a tile has
            fewer.
    """

    shape: tuple[int, ...]
    candidates: Int[np.ndarray, "tiles slots"]


def make_tiles(
    centroids: Float[np.ndarray, "cells d"], lows: Float[np.ndarray, " d"], highs: Float[np.ndarray, " d"]
) -> Tiles | None:
    """List the candidates of every tile of a box; None where looking at all centroids is no slower, or safer."""
    from scipy.spatial import KDTree

    num_cells, dimensions = centroids.shape
    widths = highs - lows
    if dimensions > _MOST_DIMENSIONS or num_cells < _FEWEST_CENTROIDS:
        return None
    most = _TILES_PER_CENTROID * num_cells
    edge = (np.prod(widths) / most) ** (1 / dimensions)
    shape = np.clip(np.ceil(widths / edge), 1, most).astype(int)
    size = widths / shape
    # Far from the origin float32 could not tell the tiles apart.
    if np.any(np.maximum(abs(lows), abs(highs)) * np.finfo(np.float32).eps > _MARGIN / 10 * size):
        return None
    axes = [low + (np.arange(n) + 0.5) * step for low, n, step in zip(lows, shape, size, strict=True)]
    middles = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimensions)
    tree = KDTree(centroids)
    # A point is at most half a diagonal from the middle of its tile. So what is nearest to it is at most a whole one
    # farther from the middle than what is nearest to the middle.
    reach = tree.query(middles)[0] + (1 + _MARGIN) * np.linalg.norm(size)
    found = tree.query_ball_point(middles, reach, return_sorted=True)
    slots = max(map(len, found))
    if 4 * slots > num_cells:
        return None
    rows = [near + near[-1:] * (slots - len(near)) for near in found]
    return Tiles(tuple(shape.tolist()), np.array(rows, np.int32))


def nearest_of_all(centroids: Float[np.ndarray, "cells d"], points: Float[Array, "*batch d"]) -> Int[Array, "*batch"]:
    """Return the index of the centroid nearest to each point, the lowest of several equally near."""
    squared = sum((points[..., i, None] - jnp.asarray(axis)) ** 2 for i, axis in enumerate(centroids.T))
    return jnp.argmin(jnp.asarray(squared), axis=-1).astype(jnp.int32)


def nearest_of_tile(
    centroids: Float[np.ndarray, "cells d"],
    tiles: Tiles,
    points: Float[Array, "*batch d"],
    unit: Float[Array, "*batch d"],
    outside: Bool[Array, "*batch"],
) -> Int[Array, "*batch"]:
    """Return what `nearest_of_all` does.

    Args:
        centroids: `(cells, d)`.
        tiles: Made of them.
        points: Where to search.
        unit: The points scaled so that the box is 0 to 1.
        outside: Whether a point lies outside the box: all centroids are looked at, if there is such a point.
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
    # A loop of no or one turn, for under vmap a cond would always do both.
    return jax.lax.while_loop(
        lambda state: state[0],
        lambda state: (jnp.bool_(False), jnp.where(outside, nearest_of_all(centroids, points), state[1])),
        (outside.any(), nearest),
    )[1]
