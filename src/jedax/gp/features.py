"""The process for many rows: the kernel as a sum of products of features, to a stated error.

On the unit box the kernel is `s^2 F(x)'F(x')`. Each feature in `F` is a product of one-dimensional ones: eigenvectors
of the kernel on a fixed set of points of the interval, extended to the whole interval (Nystroem). The longer the length
scale, the fewer features are needed. With `r` features, `n` rows cost `n r^2 + r^3` and not `n^3`:

    A = s^2 F'F + N,   B = I + s^2 F N^-1 F',   log|A| = log|B| + log|N|,   y'A^-1 y = y'N^-1 y - |L_B^-1 s F N^-1 y|^2

The kernel that is left out, `R = K - s^2 F'F`, is positive semidefinite, so that the log marginal likelihood is wrong
by at most `1/2 (tr(R N^-1) + tr(R) |A^-1 y|^2)`. The features serve where this bound is below `gp_tolerance`.

References:
    Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", sections 4.3 and 8.1.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jedax.gp import tiles
from jedax.gp.data import Rows
from jedax.gp.settings import GPSettings
from jedax.gp.tiles import Factor
from jedax.types import Array, Bool, Float, Int

MOST_ROWS = 4  # times `gp_max_rows`: up to there the whole matrix is factorised where features do not suffice
_POINTS = 64  # on the interval, at the nodes of Gauss and Legendre
_PRODUCTS = 2**14  # products of one-dimensional features among which the largest are chosen
_NEGLIGIBLE = 1e-14  # smaller eigenvalues, as a share of the largest, are rounding errors
_WEIGHT_OF_TAIL = 1e-2  # a feature is left out if its mean error is below this share of the tolerance
_NODES, _QUADRATURE = (np.polynomial.legendre.leggauss(_POINTS)[i] for i in range(2))
_NODES, _QUADRATURE = (_NODES + 1) / 2, _QUADRATURE / 2


class Basis(NamedTuple):
    """The features at one length scale, in the order of their eigenvalues.

    Attributes:
        per_point: `(points, j)`; the kernel to the points, times this matrix, gives the `j` one-dimensional features.
        log_length_scale: Log of `l`.
        which: `(tiles, tile, d)`, the one-dimensional features of each product.
        mask: `(tiles, tile)`, which products are real.
        tail: `(tiles,)`, sum of the eigenvalues after each tile of products.
    """

    per_point: Float[Array, "points j"]
    log_length_scale: Float[Array, ""]
    which: Int[Array, "tiles tile d"]
    mask: Bool[Array, "tiles tile"]
    tail: Float[Array, " tiles"]

    def tile(self, i: Array, x: Float[Array, "n d"]) -> Float[Array, "tile n"]:
        """Return a tile of features at `x`."""
        which, found = tiles.get(self.which, i), jnp.where(tiles.get(self.mask, i), 1.0, 0.0)[:, None]
        for axis, along in enumerate(x.T):
            squared = jnp.square(along[:, None] - _NODES) / jnp.exp(2 * self.log_length_scale)
            found = found * ((jnp.exp(-0.5 * squared) @ self.per_point).T)[which[:, axis]]
        return found


def num_tiles(settings: GPSettings) -> int:
    """Return the largest number of tiles of features: as many as `gp_max_rows` rows have."""
    return -(-settings.gp_max_rows // tiles.TILE)


def basis(log_length_scale: Float[Array, ""], num_descriptors: int, num: int) -> Basis:
    """Return `num` tiles of features."""
    squared = np.square(_NODES[:, None] - _NODES) / jnp.exp(2 * log_length_scale)
    root = np.sqrt(_QUADRATURE)
    values, vectors = jnp.linalg.eigh(root[:, None] * jnp.exp(-0.5 * squared) * root)
    values, vectors = jnp.maximum(values[::-1], 0.0), vectors[:, ::-1]
    known = values > _NEGLIGIBLE * values[0]
    per_point = jnp.asarray(root)[:, None] * jnp.where(known, vectors / jnp.sqrt(jnp.where(known, values, 1.0)), 0.0)
    products = _products(num_descriptors)
    value = jnp.prod(jnp.where(known, values, 0.0)[products], axis=1)
    descending, order = lax.sort_key_val(-value, jnp.arange(len(products), dtype=jnp.int32))
    size = num * tiles.TILE
    largest = jnp.pad(-descending[:size], (0, max(0, size - len(products))))
    which = jnp.asarray(products, jnp.int32)[jnp.pad(order[:size], (0, max(0, size - len(products))))]
    after = jnp.maximum(1.0 - jnp.cumsum(largest.reshape(num, -1).sum(axis=1)), 0.0)
    mask = (largest > 0).reshape(num, -1)
    return Basis(per_point, log_length_scale, which.reshape(num, tiles.TILE, -1), mask, after)


def conditioned(
    settings: GPSettings, theta: Float[Array, "3"], rows: Rows
) -> tuple[Factor, Float[Array, "tiles tile"], Float[Array, ""], Float[Array, ""]]:
    """Return the process with `theta`, conditioned on all rows.

    Returns:
        The Cholesky factor of `B`, the weights of the features in the mean divided by `s`, the log marginal likelihood,
        and a bound of its error; the bound is not finite if the process cannot be computed.
    """
    signal, noise = jnp.exp(2 * theta[0]), jnp.exp(2 * theta[2])
    variance = noise * rows.weights + settings.gp_noise_floor * signal
    precision = jnp.where(rows.mask, 1.0 / variance, 0.0)
    found = basis(theta[1], rows.x.shape[1], num_tiles(settings))
    allowed = _WEIGHT_OF_TAIL * settings.gp_tolerance / (signal * jnp.sum(precision))
    used = jnp.minimum(jnp.sum(found.tail > allowed, dtype=jnp.int32) + 1, len(found.tail)).astype(jnp.int32)
    num = len(found.tail)
    if len(rows.mask) <= MOST_ROWS * settings.gp_max_rows:  # do not begin where the error is too large in any case
        used = jnp.where(found.tail[-1] * signal * jnp.sum(precision) > 10 * settings.gp_tolerance, 0, used)

    features = tiles.loop(
        0, used, lambda i, all_: tiles.put(all_, jnp.exp(theta[0]) * found.tile(i, rows.x), i),
        jnp.zeros((num, tiles.TILE, len(rows.mask)), rows.y.dtype),
    )  # fmt: skip

    def entry(i: Array, j: Array) -> Array:
        product = tiles.times(tiles.get(features, i) * precision, tiles.get(features, j), "nt")
        return product + jnp.where(i == j, 1.0, 0.0) * jnp.eye(tiles.TILE, dtype=product.dtype)

    empty = jnp.zeros((num, num, tiles.TILE, tiles.TILE), rows.y.dtype)
    factor = tiles.factorise(tiles.build(used, empty, entry), used)
    whitened = tiles.solve_lower(factor, jnp.einsum("trn,n->tr", features, precision * rows.y)[..., None])
    weights = tiles.solve_upper(factor, whitened)[..., 0]
    log_determinant = factor.log_determinant + 0.5 * jnp.sum(jnp.where(rows.mask, jnp.log(variance), 0.0))
    quadratic = jnp.sum(precision * jnp.square(rows.y)) - jnp.sum(jnp.square(whitened))
    value = -0.5 * quadratic - log_determinant - 0.5 * jnp.log(2 * jnp.pi) * rows.num
    solution = precision * (rows.y - jnp.einsum("trn,tr->n", features, weights))
    left = jnp.where(rows.mask, jnp.maximum(signal - jnp.sum(jnp.square(features), axis=(0, 1)), 0.0), 0.0)
    bound = 0.5 * (jnp.sum(left * precision) + jnp.sum(left) * jnp.sum(jnp.square(solution)))
    return factor, weights, value, jnp.where(factor.ok & jnp.isfinite(value) & (used > 0), bound, jnp.inf)


def shortest_length_scale(settings: GPSettings, num_descriptors: int) -> float:
    """Return the length scale from which on the features leave out less than 1e-8 of the kernel on average."""
    size, products = num_tiles(settings) * tiles.TILE, _products(num_descriptors)
    root = np.sqrt(_QUADRATURE)

    def tail(length_scale: float) -> float:
        kernel = np.exp(-0.5 * np.square(_NODES[:, None] - _NODES) / length_scale**2)
        values = np.maximum(np.linalg.eigvalsh(root[:, None] * kernel * root)[::-1], 0.0)
        return 1.0 - float(np.sort(np.prod(values[products], axis=1))[::-1][:size].sum())

    choices = np.geomspace(0.01, 10.0, 61)
    return float(next((choice for choice in choices if tail(choice) < 1e-8), choices[-1]))


def _products(num_descriptors: int) -> np.ndarray:
    """Return the one-dimensional features of each product, `(products, d)`."""
    most = _PRODUCTS.bit_length() - 1  # of the descriptors that can vary: each has at least two features
    varied = min(num_descriptors, most)
    each = max(2, min(_POINTS, int(_PRODUCTS ** (1 / varied) + 1e-9)))
    products = np.array(list(itertools.product(range(each), repeat=varied)), np.int32)
    return np.pad(products, ((0, 0), (0, num_descriptors - varied)))
