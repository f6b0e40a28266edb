"""How the descriptor space is cut into cells: a centroidal Voronoi tessellation (CVT) or a grid.

CVT: Vassiliades, Chatzilygeroudis & Mouret 2018, "Using centroidal Voronoi tessellations to scale up the
multidimensional archive of phenotypic elites algorithm".
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

_CVT_SEED = 0  # the tessellation is the same for every seed of a search
_LARGEST_CVT = 10_000


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of a descriptor space, the same for all replicas; equal contents are equal objects.

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
        """Hash of the contents."""
        return hash(self._identity)

    @functools.cached_property
    def _identity(self) -> tuple:
        return self.centroids.tobytes(), self.bounds, self.shape

    @property
    def num_cells(self) -> int:
        """Number of cells."""
        return len(self.centroids)

    def assign(self, descriptors: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        """Return the index of the nearest cell; a descriptor outside the bounds gets the nearest one too.

        A CVT's cell is that of the nearest centroid (the lowest index where several are equally near); a grid's
        is found by arithmetic. Descriptors that are not finite get some cell or other.
        """
        descriptors = self.within_reach(descriptors)
        if self.shape is not None:
            return self._assign_grid(descriptors)
        tiles = self._tiles
        if tiles is None:
            return nearest_of_all(self.centroids, descriptors)
        # Accelerators look at all centroids in less time than it takes to see whether a descriptor is outside.
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
        """Return descriptors with those that lie farther than ten box widths outside moved to there.

        Farther away float32 could not tell centroids apart by their distance.
        """
        lows, highs = (np.asarray(bound) for bound in self.bounds)
        margin = 10 * (highs - lows)
        return jnp.clip(descriptors, lows - margin, highs + margin)

    def is_outside(self, descriptors: Float[Array, "*batch descriptor"]) -> Array:
        """Return `(*batch)`, whether a descriptor lies outside the bounds."""
        lows, highs = jnp.array(self.bounds[0]), jnp.array(self.bounds[1])
        return ((descriptors < lows) | (descriptors > highs)).any(axis=-1)

    def to_unit_box(self, descriptors: Float[Array, "*batch descriptor"]) -> Float[Array, "*batch descriptor"]:
        """Return descriptors scaled so that the bounds are 0 and 1."""
        lows, highs = jnp.array(self.bounds[0]), jnp.array(self.bounds[1])
        return (descriptors - lows) / (highs - lows)


def make_cells(
    bounds: Bounds, num_cells: int, layout: str = "auto", samples: int | None = None, iterations: int = 20
) -> Cells:
    """Cut a descriptor box into cells.

    Args:
        bounds: `(lows, highs)`, finite, each low under its high.
        num_cells: How many cells; for a grid a number with a whole root (1,024 is 32 x 32).
        layout: "cvt", "grid", or "auto": a CVT of up to 10,000 cells, above them a grid.
        samples: Points that k-means gets for a CVT; None: the larger of 5,000 and 10 times the cells.
        iterations: Steps of k-means.

    Raises:
        JedaxError: Bounds that are no box, or a grid whose number of cells has no whole root.
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
        expected="(lows, highs), finite, each low under its high",
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
            remedy=f"take {below**dimensions} or {(below + 1) ** dimensions}",
        )
    axes = [low + (np.arange(side) + 0.5) * (high - low) / side for low, high in zip(*bounds, strict=True)]
    centroids = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimensions)
    return Cells(centroids.astype(np.float32), bounds, (side,) * dimensions)


@functools.lru_cache(maxsize=16)
def _cvt(bounds: Bounds, num_cells: int, samples: int, iterations: int) -> Cells:
    """Lloyd's k-means, started by k-means++, over uniform samples of the box."""
    from scipy.spatial import KDTree

    lows, highs = (np.asarray(b) for b in bounds)
    random = np.random.default_rng(_CVT_SEED)
    points = random.uniform(lows, highs, (max(samples, num_cells), len(lows)))
    centroids = _spread_out(random, points, num_cells)
    for _ in range(iterations):
        owner = KDTree(centroids).query(points)[1]
        size = np.bincount(owner, minlength=num_cells)
        sums = [np.bincount(owner, weights=axis, minlength=num_cells) for axis in points.T]
        # A cell that owns no point stays where it is.
        centroids = np.where(size[:, None] > 0, np.stack(sums, axis=1) / np.maximum(size, 1)[:, None], centroids)
    return Cells(centroids.astype(np.float32), bounds)


def _spread_out(random: np.random.Generator, points: np.ndarray, num_cells: int) -> np.ndarray:
    """Pick starts by k-means++ (Arthur & Vassilvitskii 2007): each in proportion to its squared distance."""
    from scipy.spatial import KDTree

    tree = KDTree(points)
    chosen = [points[0]]
    squared = ((points - chosen[0]) ** 2).sum(axis=1)
    while len(chosen) < num_cells:
        cumulative = np.cumsum(squared)
        pick = points[np.searchsorted(cumulative, random.uniform(0, cumulative[-1]), side="right")]
        # No point farther away than the one worst off can get nearer.
        near = tree.query_ball_point(pick, np.sqrt(squared.max()))
        squared[near] = np.minimum(squared[near], ((points[near] - pick) ** 2).sum(axis=1))
        chosen.append(pick)
    return np.stack(chosen)
