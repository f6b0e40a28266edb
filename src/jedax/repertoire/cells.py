"""The cells of the descriptor space: a centroidal Voronoi tessellation (CVT) or a grid.

Distances are those in the unit box, to which the descriptor box is scaled: descriptors may have different units. In a
CVT the nearest centroid is searched among a few candidates. The unit box is divided into small tiles; for each tile the
centroids that can be nearest to one of its points are listed once, on the host. The distances to these candidates are
computed with the same arithmetic as those to all centroids.

References:
    Vassiliades, Chatzilygeroudis & Mouret 2018, "Using centroidal Voronoi tessellations to scale up the
    multidimensional archive of phenotypic elites algorithm" (CVT).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import check_choice, fail
from jedax.native import choose
from jedax.native import repertoire as native
from jedax.types import Array, Bool, Bounds, Float, Int

_CVT_SEED = 0  # the same tessellation for every seed of a search
_LARGEST_CVT = 10_000
# Eight tiles per centroid give 2 to 3 candidates on average, and about 8 at most, in two dimensions.
_TILES_PER_CENTROID = 8
# Above three dimensions a tile touches too many cells; for fewer centroids, comparing with all is as fast.
_MOST_DIMENSIONS = 3
_FEWEST_CENTROIDS = 32
_COARSE, _TOO_COARSE = 1e-5, 1e-3  # steps of float32, in widths of the box
# Tiles are enlarged by this share, because of the rounding of float32 when the tile of a point is computed.
_MARGIN = 0.01


@dataclass(frozen=True, eq=False)
class Tiles:
    """The tiles of the descriptor box, `shape` along its dimensions, and the centroids that can be nearest in each.

    The indices of the candidates `(tiles, slots)` are ascending in each row, which is padded with its last one.
    """

    shape: tuple[int, ...]
    candidates: Int[np.ndarray, "tiles slots"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a descriptor space, the same for all replicas; cells with equal contents are equal.

    Attributes:
        centroids: `(cells, d)`, in the units of the descriptors.
        bounds: `(lows, highs)` of the descriptor box.
        shape: Cells along each dimension of a grid; None for a CVT.

    Raises:
        JedaxError: The shape does not fit the number of centroids.
    """

    centroids: np.ndarray
    bounds: Bounds
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.shape is not None and math.prod(self.shape) != len(self.centroids):
            expected, remedy = f"a product of {len(self.centroids)}, the number of centroids", "change it"
            raise fail("shape", expected=expected, received=self.shape, remedy=remedy)

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

    @property
    def widths(self) -> Float[np.ndarray, " descriptor"]:
        """The widths of the descriptor box."""
        return np.subtract(self.bounds[1], self.bounds[0])

    def assign(self, descriptors: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        """Return the index of the cell of each descriptor; outside the bounds, that of the nearest cell.

        In a CVT it is the cell of the nearest centroid, and the lowest index of several equally near ones. For a
        descriptor that is not finite the index is arbitrary.
        """
        descriptors = jnp.asarray(descriptors)
        if descriptors.shape[-1:] != self.centroids.shape[1:]:
            expected = f"{self.centroids.shape[1]} numbers in each row"
            raise fail("descriptors", expected=expected, received=f"shape {descriptors.shape}", remedy="change them")
        unit = self.to_unit_box(descriptors)
        if self.shape is not None:
            return _flat_index(jnp.where(jnp.isfinite(unit), unit, 0.0), self.shape)
        unit, centroids, tiles = unit.astype(jnp.float32), self._unit_centroids, self._tiles
        if tiles is None:
            return nearest_of_all(centroids, unit)
        # On an accelerator, comparing with all centroids is faster than a check whether a descriptor is outside.
        on_cpu = self._assign_natively if native.KERNEL.available else self._assign_by_tiles
        return choose(
            unit, on_cpu=functools.partial(on_cpu, tiles), elsewhere=functools.partial(nearest_of_all, centroids)
        )

    def assign_on_host(self, descriptors: Float[np.ndarray, "*batch descriptor"]) -> Int[np.ndarray, "*batch"]:
        """Return what `assign` does outside compiled programs, in the precision of the descriptors."""
        descriptors = np.asarray(descriptors)
        with jax.enable_x64(descriptors.dtype == np.float64):
            return np.asarray(self.assign(jnp.asarray(descriptors)))

    def _assign_natively(self, tiles: Tiles, points: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        return native.nearest(points, self._unit_centroids, tiles.candidates, tiles.shape)

    def _assign_by_tiles(self, tiles: Tiles, points: Float[Array, "*batch descriptor"]) -> Int[Array, "*batch"]:
        """Return what `nearest_of_all` does; if any point is outside the box, those outside are compared with all."""
        centroids = self._unit_centroids
        candidates = jnp.asarray(tiles.candidates)[_flat_index(points, tiles.shape)]
        nearest, least = candidates[..., 0], jnp.full(points.shape[:-1], jnp.inf)
        for slot in range(candidates.shape[-1]):
            index = candidates[..., slot]
            terms = ((points[..., i] - jnp.asarray(axis)[index]) ** 2 for i, axis in enumerate(centroids.T))
            squared = jnp.asarray(sum(terms))
            nearest = jnp.where(squared < least, index, nearest)
            least = jnp.minimum(squared, least)
        outside = ((points < 0) | (points > 1)).any(axis=-1)
        # A loop of at most one turn, because a cond under vmap computes both branches.
        return jax.lax.while_loop(
            lambda state: state[0],
            lambda state: (jnp.bool_(False), jnp.where(outside, nearest_of_all(centroids, points), state[1])),
            (outside.any(), nearest),
        )[1]

    @functools.cached_property
    def _unit_centroids(self) -> Float[np.ndarray, "cells d"]:
        return ((self.centroids - np.asarray(self.bounds[0])) / self.widths).astype(np.float32)

    @functools.cached_property
    def _tiles(self) -> Tiles | None:
        return make_tiles(self._unit_centroids.astype(float))

    def is_outside(self, descriptors: Float[Array, "*batch descriptor"]) -> Bool[Array, "*batch"]:
        """Return whether each descriptor is outside the bounds."""
        lows, highs = jnp.array(self.bounds[0]), jnp.array(self.bounds[1])
        return ((descriptors < lows) | (descriptors > highs)).any(axis=-1)

    def to_unit_box(self, descriptors: Float[Array, "*batch descriptor"]) -> Float[Array, "*batch descriptor"]:
        """Return the descriptors scaled to bounds 0 and 1, and clipped to ten box widths around them.

        Beyond that, float32 cannot distinguish the distances to the centroids.
        """
        margin = 10 * self.widths
        near = jnp.clip(descriptors, np.subtract(self.bounds[0], margin), np.add(self.bounds[1], margin))
        lows, highs = jnp.array(self.bounds[0]), jnp.array(self.bounds[1])
        return (near - lows) / (highs - lows)

    def check_float32(self) -> None:
        """Raise a `JedaxError` for bounds between which float32, in which most searches compute, has few numbers."""
        if (_float32_steps(self.bounds) > _TOO_COARSE).any():
            raise fail(
                "descriptor_bounds",
                expected=f"bounds between which float32 has more than {1 / _TOO_COARSE:,.0f} numbers",
                received=self.bounds,
                remedy="subtract an offset from descriptors and bounds",
            )


def make_cells(
    bounds: Bounds, num_cells: int, layout: str = "auto", samples: int | None = None, iterations: int = 20,
    dims: Sequence[int] | None = None,
) -> Cells:  # fmt: skip
    """Divide a descriptor box into cells.

    Args:
        bounds: `(lows, highs)`, finite, each low below its high.
        num_cells: Number of cells; for a grid in d dimensions the d-th power of a whole number.
        layout: "cvt", "grid", or "auto": a CVT up to 10,000 cells, else a grid.
        samples: Points of the k-means of a CVT; None: 5,000, or 10 per cell if that is more.
        iterations: Iterations of the k-means of a CVT.
        dims: Cells along each dimension of a grid, in place of `num_cells` and `layout`; None: not given.

    Raises:
        JedaxError: The bounds are not a box, or the number of cells does not fit a grid.
    """
    check_choice("cell_layout", layout, ("auto", "cvt", "grid"))
    if num_cells < 1:
        raise fail("cells", expected="at least 1", received=num_cells, remedy="raise it")
    try:
        lows, highs = (np.asarray(b, float) for b in bounds)
        if lows.shape != highs.shape or lows.ndim != 1 or not lows.size:
            raise ValueError
        # Points are clipped to ten box widths around the box, in float32.
        if not np.all((np.abs([lows, highs]) < np.finfo(np.float32).max / 100) & (lows < highs)):
            raise ValueError
    except (TypeError, ValueError):
        raise fail(
            "descriptor_bounds",
            expected="(lows, highs), finite, each low below its high",
            received=bounds,
            remedy="change them; for two descriptors write ((low, low), (high, high))",
        ) from None
    bounds = (tuple(lows.tolist()), tuple(highs.tolist()))
    if dims is not None:
        if len(dims) != len(bounds[0]):
            expected = f"{len(bounds[0])} number{'s' * (len(bounds[0]) > 1)}, one per descriptor"
            raise fail("dims", expected=expected, received=list(dims), remedy="change them")
        return _grid(bounds, tuple(dims))
    if layout == "auto":
        layout = "cvt" if 1 < num_cells <= _LARGEST_CVT else "grid"
    if layout == "grid":
        return _grid(bounds, _equal_sides(num_cells, len(bounds[0])))
    return _cvt(bounds, num_cells, samples or max(5_000, 10 * num_cells), iterations)


def _equal_sides(num_cells: int, dimensions: int) -> tuple[int, ...]:
    side = round(num_cells ** (1 / dimensions))
    if side**dimensions != num_cells:
        below = side - (side**dimensions > num_cells)
        raise fail(
            "cells",
            expected=f"k^{dimensions} with a whole number k, for a grid",
            received=num_cells,
            remedy=f"use {below**dimensions} or {(below + 1) ** dimensions}, or give dims",
        )
    return (side,) * dimensions


def _grid(bounds: Bounds, shape: tuple[int, ...]) -> Cells:
    sides = zip(*bounds, shape, strict=True)
    centroids = _mesh([low + (np.arange(side) + 0.5) * (high - low) / side for low, high, side in sides])
    return Cells(_rounded(centroids, bounds), bounds, shape)


@functools.lru_cache(maxsize=16)
def _cvt(bounds: Bounds, num_cells: int, samples: int, iterations: int) -> Cells:
    """Return the cells of Lloyd's k-means over uniform samples of the box, initialised by k-means++."""
    from scipy.spatial import KDTree

    lows, highs = (np.asarray(b) for b in bounds)
    random = np.random.default_rng(_CVT_SEED)
    points = random.uniform(size=(max(samples, num_cells), len(lows)))
    centroids = _initial_centroids(random, points, num_cells)
    for _ in range(iterations):
        owner = KDTree(centroids).query(points)[1]
        size = np.bincount(owner, minlength=num_cells)
        sums = [np.bincount(owner, weights=axis, minlength=num_cells) for axis in points.T]
        # A cell without points keeps its centroid.
        centroids = np.where(size[:, None] > 0, np.stack(sums, axis=1) / np.maximum(size, 1)[:, None], centroids)
    return Cells(_rounded(lows + centroids * (highs - lows), bounds), bounds)


def _rounded(centroids: Float[np.ndarray, "cells d"], bounds: Bounds) -> Float[np.ndarray, "cells d"]:
    """Return centroids in float32, or as they are where it is too coarse for a box that is narrow and far from 0."""
    return centroids if (_float32_steps(bounds) > _COARSE).any() else centroids.astype(np.float32)


def _float32_steps(bounds: Bounds) -> Float[np.ndarray, " descriptor"]:
    """Return the distance between neighbouring numbers of float32, in widths of the box."""
    lows, highs = (np.asarray(bound) for bound in bounds)
    return np.spacing(np.maximum(np.abs(lows), np.abs(highs)).astype(np.float32)) / (highs - lows)


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


def make_tiles(centroids: Float[np.ndarray, "cells d"]) -> Tiles | None:
    """Return the tiles of the unit box; None if comparing with all centroids is as fast."""
    num_cells, dimensions = centroids.shape
    if dimensions > _MOST_DIMENSIONS or num_cells < _FEWEST_CENTROIDS:
        return None
    from scipy.spatial import KDTree

    most = _TILES_PER_CENTROID * num_cells
    side = math.ceil(most ** (1 / dimensions))
    middles = _mesh([(np.arange(side) + 0.5) / side] * dimensions)
    tree = KDTree(centroids)
    # A point is at most half a diagonal away from the middle of its tile. So its nearest centroid is at most a whole
    # diagonal farther from the middle than the centroid nearest to the middle.
    reach = tree.query(middles)[0] + (1 + _MARGIN) * math.sqrt(dimensions) / side
    found = tree.query_ball_point(middles, reach, return_sorted=True)
    slots = max(map(len, found))
    if 4 * slots > num_cells:
        return None
    rows = [near + near[-1:] * (slots - len(near)) for near in found]
    return Tiles((side,) * dimensions, np.array(rows, np.int32))


def nearest_of_all(centroids: Float[np.ndarray, "cells d"], points: Float[Array, "*batch d"]) -> Int[Array, "*batch"]:
    """Return the index of the nearest centroid of each point, the lowest of several equally near ones."""
    squared = sum((points[..., i, None] - jnp.asarray(axis)) ** 2 for i, axis in enumerate(centroids.T))
    return jnp.argmin(jnp.asarray(squared), axis=-1).astype(jnp.int32)


def _mesh(axes: list[np.ndarray]) -> Float[np.ndarray, "points d"]:
    """Return all points of a grid, the last coordinate changing fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _flat_index(unit: Float[Array, "*batch d"], shape: tuple[int, ...]) -> Int[Array, "*batch"]:
    """Return the index of the part of a divided unit box that holds each point, or is nearest along each axis."""
    place = jnp.floor(unit * jnp.array(shape)).astype(jnp.int32)
    return jnp.ravel_multi_index(tuple(jnp.moveaxis(place, -1, 0)), shape, mode="clip")
