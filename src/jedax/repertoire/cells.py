"""The cells of the descriptor space: a centroidal Voronoi tessellation (CVT) or a grid.

References:
    Vassiliades, Chatzilygeroudis & Mouret 2018, "Using centroidal Voronoi tessellations to scale up the
    multidimensional archive of phenotypic elites algorithm" (CVT).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from jedax.errors import JedaxError, check_choice, fail
from jedax.native import choose
from jedax.native import repertoire as native
from jedax.repertoire.nearest import Tiles, make_tiles, nearest_of_all, nearest_of_tile
from jedax.types import Array, Float, Int

Bounds = tuple[tuple[float, ...], tuple[float, ...]]

_CVT_SEED = 0  # the same tessellation for every seed of a search
_LARGEST_CVT = 10_000


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a descriptor space, the same for all replicas; cells with equal contents are equal.

    Attributes:
        centroids: `(cells, d)`, in the units of the descriptors.
        bounds: `(lows, highs)` of the descriptor box.
        shape: Cells along each dimension of a grid; None for a CVT.
    """

    centroids: np.ndarray
    bounds: Bounds
    shape: tuple[int, ...] | None = None

    def __eq__(self, other: object) -> bool:
        """Compare by contents."""
        return isinstance(other, Cells) and self._identity == other._identity

    def __hash__(self) -> int:
        """Return a hash of the contents."""
        return hash(self._identity)

    @functools.cached_property
    def _identity(self) -> tuple:
        return self.centroids.tobytes(), self.bounds, self.shape

    @property
    def num_cells(self) -> int:
        """Number of cells."""
        return len(self.centroids)

    def assign(self, descriptors: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        """Return the index of the cell of each descriptor; outside the bounds, that of the nearest cell.

        In a CVT it is the cell of the nearest centroid, and the lowest index of several equally near ones. For a
        descriptor that is not finite the index is arbitrary.
        """
        descriptors = self.within_reach(descriptors)
        if self.shape is not None:
            return self._assign_grid(descriptors)
        tiles = self._tiles
        if tiles is None:
            return nearest_of_all(self.centroids, descriptors)
        # On an accelerator, comparing with all centroids is faster than a check whether a descriptor is outside.
        on_cpu = self._assign_natively if native.KERNEL.available else self._assign_by_tiles
        return choose(descriptors, on_cpu=on_cpu, elsewhere=lambda d: nearest_of_all(self.centroids, d))

    def _assign_natively(self, descriptors: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        assert self._tiles is not None
        return native.nearest(descriptors, self.centroids, self._tiles.candidates, self._tiles.shape, self.bounds)

    def _assign_by_tiles(self, descriptors: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        assert self._tiles is not None
        place = self.to_unit_box(descriptors), self.is_outside(descriptors)
        return nearest_of_tile(self.centroids, self._tiles, descriptors, *place)

    @functools.cached_property
    def _tiles(self) -> Tiles | None:
        return make_tiles(self.centroids.astype(float), np.asarray(self.bounds[0]), np.asarray(self.bounds[1]))

    def _assign_grid(self, descriptors: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        assert self.shape is not None
        unit = self.to_unit_box(jnp.where(jnp.isfinite(descriptors), descriptors, 0.0))
        place = jnp.clip(jnp.floor(unit * jnp.array(self.shape)), 0, jnp.array(self.shape) - 1).astype(jnp.int32)
        index = jnp.zeros(descriptors.shape[:-1], jnp.int32)
        for axis, size in enumerate(self.shape):
            index = index * size + place[..., axis]
        return index

    def within_reach(self, descriptors: Float[Array, "*batch descriptor"]) -> Float[Array, "*batch descriptor"]:
        """Return the descriptors clipped to ten box widths around the bounds.

        Beyond that, float32 cannot distinguish the distances to the centroids.
        """
        lows, highs = (np.asarray(bound) for bound in self.bounds)
        margin = 10 * (highs - lows)
        return jnp.clip(descriptors, lows - margin, highs + margin)

    def is_outside(self, descriptors: Float[Array, "*batch descriptor"]) -> Array:
        """Return whether each descriptor is outside the bounds, `(*batch)`."""
        lows, highs = jnp.array(self.bounds[0]), jnp.array(self.bounds[1])
        return ((descriptors < lows) | (descriptors > highs)).any(axis=-1)

    def to_unit_box(self, descriptors: Float[Array, "*batch descriptor"]) -> Float[Array, "*batch descriptor"]:
        """Return the descriptors scaled to bounds 0 and 1."""
        lows, highs = jnp.array(self.bounds[0]), jnp.array(self.bounds[1])
        return (descriptors - lows) / (highs - lows)


def make_cells(
    bounds: Bounds, num_cells: int, layout: str = "auto", samples: int | None = None, iterations: int = 20
) -> Cells:
    """Divide a descriptor box into cells.

    Args:
        bounds: `(lows, highs)`, finite, each low below its high.
        num_cells: Number of cells; for a grid in d dimensions the d-th power of a whole number.
        layout: "cvt", "grid", or "auto": a CVT up to 10,000 cells, else a grid.
        samples: Points of the k-means of a CVT; None: 5,000, or 10 per cell if that is more.
        iterations: Iterations of the k-means of a CVT.

    Raises:
        JedaxError: The bounds are not a box, or the number of cells does not fit a grid.
    """
    check_choice("cell_layout", layout, ("auto", "cvt", "grid"))
    if num_cells < 1:
        raise fail("cells", expected="at least 1", received=num_cells, remedy="raise it")
    try:
        lows, highs = (np.asarray(b, float) for b in bounds)
    except (TypeError, ValueError):
        raise _no_box(bounds) from None
    if (
        lows.shape != highs.shape
        or lows.ndim != 1
        or not lows.size
        or not np.all(np.isfinite([lows, highs]) & (lows < highs))
    ):
        raise _no_box(bounds)
    bounds = (tuple(lows.tolist()), tuple(highs.tolist()))
    if layout == "auto":
        layout = "cvt" if num_cells <= _LARGEST_CVT else "grid"
    if layout == "grid":
        return _grid(bounds, num_cells)
    return _cvt(bounds, num_cells, samples or max(5_000, 10 * num_cells), iterations)


def _no_box(bounds: object) -> JedaxError:
    return fail(
        "descriptor_bounds",
        expected="(lows, highs), finite, each low below its high",
        received=bounds,
        remedy="change them",
    )


def _grid(bounds: Bounds, num_cells: int) -> Cells:
    dimensions = len(bounds[0])
    side = round(num_cells ** (1 / dimensions))
    if side**dimensions != num_cells:
        below = side - (side**dimensions > num_cells)
        raise fail(
            "cells",
            expected=f"a whole number to the power of {dimensions} for a grid",
            received=num_cells,
            remedy=f"use {below**dimensions} or {(below + 1) ** dimensions}",
        )
    axes = [low + (np.arange(side) + 0.5) * (high - low) / side for low, high in zip(*bounds, strict=True)]
    centroids = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimensions)
    return Cells(centroids.astype(np.float32), bounds, (side,) * dimensions)


@functools.lru_cache(maxsize=16)
def _cvt(bounds: Bounds, num_cells: int, samples: int, iterations: int) -> Cells:
    """Return the cells of Lloyd's k-means over uniform samples of the box, initialised by k-means++."""
    from scipy.spatial import KDTree

    lows, highs = (np.asarray(b) for b in bounds)
    random = np.random.default_rng(_CVT_SEED)
    points = random.uniform(lows, highs, (max(samples, num_cells), len(lows)))
    centroids = _initial_centroids(random, points, num_cells)
    for _ in range(iterations):
        owner = KDTree(centroids).query(points)[1]
        size = np.bincount(owner, minlength=num_cells)
        sums = [np.bincount(owner, weights=axis, minlength=num_cells) for axis in points.T]
        # A cell without points keeps its centroid.
        centroids = np.where(size[:, None] > 0, np.stack(sums, axis=1) / np.maximum(size, 1)[:, None], centroids)
    return Cells(centroids.astype(np.float32), bounds)


def _initial_centroids(random: np.random.Generator, points: np.ndarray, num_cells: int) -> np.ndarray:
    """Draw centroids by k-means++ (Arthur & Vassilvitskii 2007): with probability in proportion to squared distance."""
    from scipy.spatial import KDTree

    tree = KDTree(points)
    chosen = [points[0]]
    squared = ((points - chosen[0]) ** 2).sum(axis=1)
    while len(chosen) < num_cells:
        cumulative = np.cumsum(squared)
        pick = points[np.searchsorted(cumulative, random.uniform(0, cumulative[-1]), side="right")]
        # Only points within the largest distance so far can get nearer.
        near = tree.query_ball_point(pick, np.sqrt(squared.max()))
        squared[near] = np.minimum(squared[near], ((points[near] - pick) ** 2).sum(axis=1))
        chosen.append(pick)
    return np.stack(chosen)
