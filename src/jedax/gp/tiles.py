"""Linear algebra in square tiles for the first rows of a padded symmetric matrix.

Arrays have the shape of the padded matrix, but loops run only over the tiles in use. So one compiled program serves any
number of rows, at a cost that depends on that number. Products of tiles are as fast as products of whole matrices.

References:
    Golub & Van Loan 2013, "Matrix Computations", section 4.2.9 (Cholesky factorisation by blocks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jedax.types import Array, Bool, Float, Int

T = TypeVar("T")

TILE = 128


def cut(rows: Array) -> Array:
    """Return rows cut into tiles, `(tiles, tile, ...)`; the last tile is padded with zeros."""
    tile = max(1, min(TILE, rows.shape[0]))
    padded = jnp.pad(rows, ((0, -rows.shape[0] % tile), *[(0, 0)] * (rows.ndim - 1)))
    return padded.reshape(-1, tile, *rows.shape[1:])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Factor:
    """The lower Cholesky factor `L` of a matrix.

    Attributes:
        lower: `(tiles, tiles, tile, tile)`, the tiles of `L`; those above the diagonal or not in use are meaningless.
        corners: `(tiles, tile, tile)`, inverses of the tiles on the diagonal.
        num_tiles: Number of rows of tiles in use.
        log_determinant: Log determinant of `L`; not finite if the matrix is not positive definite.
    """

    lower: Float[Array, "tiles tiles tile tile"]
    corners: Float[Array, "tiles tile tile"]
    num_tiles: Int[Array, ""]
    log_determinant: Float[Array, ""]

    @classmethod
    def placeholder(cls, like: Float[Array, "tiles tile"]) -> Factor:
        """Return a failed factor for the rows of `like`, to start a loop with."""
        lower = jnp.zeros((like.shape[0], *like.shape, like.shape[1]), like.dtype)
        return cls(lower, lower[0], jnp.int32(0), jnp.full((), -jnp.inf, like.dtype))

    @property
    def ok(self) -> Bool[Array, ""]:
        """Whether the matrix is positive definite."""
        return jnp.isfinite(self.log_determinant)


def build(
    num_tiles: Int[Array, ""],
    into: Float[Array, "tiles tiles tile tile"],
    entry: Callable[[Array, Array], Array],
) -> Float[Array, "tiles tiles tile tile"]:
    """Return `into` with tile `(i, j)`, `j <= i < num_tiles`, replaced by `entry(i, j)`."""

    def row(i: Array, matrix: Array) -> Array:
        return loop(0, i + 1, lambda j, matrix: put(matrix, entry(i, j), i, j), matrix)

    return loop(0, num_tiles, row, into)


def factorise(matrix: Float[Array, "tiles tiles tile tile"], num_tiles: Int[Array, ""]) -> Factor:
    """Factorise a matrix given by its tiles on and below the diagonal; stop if it is not positive definite."""
    identity = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)

    def column(state: tuple[Array, Factor]) -> tuple[Array, Factor]:
        k, factor = state

        def rest(i: Array, lower: Array) -> Array:
            return get(lower, i, k) - add_up(0, k, lambda j: times(get(lower, i, j), get(lower, k, j), "nt"))

        corner = lax.linalg.cholesky(rest(k, factor.lower), symmetrize_input=False)
        inverse = lax.linalg.triangular_solve(corner, identity, left_side=True, lower=True)

        def below(i: Array, lower: Array) -> Array:
            tile = lax.linalg.triangular_solve(corner, rest(i, lower), lower=True, transpose_a=True)
            return put(lower, tile, i, k)

        lower = loop(k + 1, num_tiles, below, put(factor.lower, corner, k, k))
        log_determinant = factor.log_determinant + jnp.sum(jnp.log(jnp.diagonal(corner)))
        return k + 1, Factor(lower, put(factor.corners, inverse, k), num_tiles, log_determinant)

    start = Factor(matrix, jnp.zeros_like(matrix[0]), num_tiles, jnp.zeros((), matrix.dtype))
    return lax.while_loop(lambda state: (state[0] < num_tiles) & state[1].ok, column, (jnp.int32(0), start))[1]


def invert(factor: Factor) -> Float[Array, "tiles tiles tile tile"]:
    """Return the tiles of `L^-1` on and below the diagonal."""

    def column(j: Array, inverse: Array) -> Array:
        def below(i: Array, inverse: Array) -> Array:
            known = add_up(j, i, lambda k: times(get(factor.lower, i, k), get(inverse, k, j)))
            return put(inverse, -times(get(factor.corners, i), known), i, j)

        return loop(j + 1, factor.num_tiles, below, put(inverse, get(factor.corners, j), j, j))

    return loop(0, factor.num_tiles, column, jnp.zeros_like(factor.lower))


def solve_lower(factor: Factor, right: Float[Array, "tiles tile columns"]) -> Float[Array, "tiles tile columns"]:
    """Return `L^-1 right`; rows not in use are unchanged."""

    def row(i: Array, rows: Array) -> Array:
        known = add_up(0, i, lambda k: times(get(factor.lower, i, k), get(rows, k)))
        return put(rows, times(get(factor.corners, i), get(rows, i) - known), i)

    return loop(0, factor.num_tiles, row, right)


def solve_upper(factor: Factor, right: Float[Array, "tiles tile columns"]) -> Float[Array, "tiles tile columns"]:
    """Return `L'^-1 right`; rows not in use are unchanged."""

    def row(turn: Array, rows: Array) -> Array:
        i = factor.num_tiles - 1 - turn
        known = add_up(i + 1, factor.num_tiles, lambda k: times(get(factor.lower, k, i), get(rows, k), "tn"))
        return put(rows, times(get(factor.corners, i), get(rows, i) - known, "tn"), i)

    return loop(0, factor.num_tiles, row, right)


def get(tiles: Array, *index: Array) -> Array:
    """Return the tile, or the row of tiles, at an index."""
    start = [*index, *[jnp.int32(0)] * (tiles.ndim - len(index))]
    shape = tiles.shape[len(index) :]
    found = lax.dynamic_slice(tiles, start, (*[1] * len(index), *shape), allow_negative_indices=False)
    return found.reshape(shape)


def put(tiles: Array, tile: Array, *index: Array) -> Array:
    """Return `tiles` with the tile at an index replaced."""
    start = [*index, *[jnp.int32(0)] * (tiles.ndim - len(index))]
    tile = tile.reshape(*[1] * len(index), *tile.shape)
    return lax.dynamic_update_slice(tiles, tile, start, allow_negative_indices=False)


def add_up(first: Array | int, end: Array | int, term: Callable[[Array], Array]) -> Array:
    """Return the sum of `term(k)` over `k` from `first` to `end - 1`."""
    like = jax.eval_shape(term, jnp.int32(0))
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
    return loop(first, end, lambda k, total: jax.tree.map(jnp.add, total, term(k)), zeros)


def loop(first: Array | int, end: Array | int, body: Callable[[Array, T], T], start: T) -> T:
    """Return `lax.fori_loop` with a counter of 32 bits, also where 64 bits are enabled."""
    return lax.fori_loop(jnp.int32(first), jnp.int32(end), body, start)


def times(a: Array, b: Array, transposed: str = "nn") -> Array:
    """Return the product of two tiles; "t" in `transposed` transposes the first or the second."""
    axes = int(transposed[0] == "n"), int(transposed[1] == "t")
    return lax.dot_general(a, b, (((axes[0],), (axes[1],)), ((), ())))
