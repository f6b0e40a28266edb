"""What the GP's factorisation would gain from products of matrices that are large enough for both cores.

    python benchmarks/gp_blocks.py [--rows 960]

jedax factorises tile by tile (`jedax.gp.tiles`); one core does it, since a product of 128 x 128 is too small for two.
Beside it, the same left-looking algorithm with all tiles under the diagonal of a column in one product, its loop
unrolled, since XLA wants the shapes; and LAPACK for the whole matrix. All three also invert the tiles on the diagonal,
with which solutions are found later. Prints the time to factorise, how far half the log determinant is from that in
float64, and the time to compile.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jedax.gp import GPData, GPSettings
from jedax.gp.data import Standardised, standardise
from jedax.gp.likelihood import factorise
from jedax.gp.model import kernel_and_distance
from jedax.gp.threads import one_blas_thread

_TILE = 128
_SETTINGS = GPSettings()
_THETA = jnp.log(jnp.array(_SETTINGS.gp_start))


def matrix(x: jax.Array, weights: jax.Array, first: int, last: int) -> jax.Array:
    """Return the columns from `first` up to `last` of `K + s_n^2 W`, from the diagonal down."""
    kernel, _ = kernel_and_distance(_THETA, list(x[:, first:]), list(x[:, first:last]))
    signal, noise = jnp.exp(2 * _THETA[0]), jnp.exp(2 * _THETA[2])
    diagonal = noise * weights[first:last] + _SETTINGS.gp_noise_floor * signal
    return kernel + jnp.pad(jnp.diag(diagonal), ((0, x.shape[1] - last), (0, 0)))


def inverted(corner: jax.Array) -> jax.Array:
    """Return the inverse of a tile on the diagonal."""
    identity = jnp.eye(len(corner), dtype=corner.dtype)
    return lax.linalg.triangular_solve(corner, identity, left_side=True, lower=True)


def by_tiles(x: jax.Array, weights: jax.Array, data: Standardised) -> tuple[jax.Array, ...]:
    """Return half the log determinant and the factor, as jedax does."""
    factor, _ = factorise(_SETTINGS, _THETA, data)
    return factor.log_determinant, factor.lower, factor.corners


def by_columns(x: jax.Array, weights: jax.Array, data: Standardised) -> tuple[jax.Array, ...]:
    """Return the same with one product for each column of tiles."""
    columns: list[jax.Array] = []
    corners: list[jax.Array] = []
    log_determinant = jnp.zeros(())
    for first in range(0, len(weights), _TILE):
        last = min(first + _TILE, len(weights))
        column = matrix(x, weights, first, last)
        if columns:
            known = [other[first - i * _TILE :] for i, other in enumerate(columns)]
            left = jnp.concatenate(known, axis=1)
            column = column - left @ left[: last - first].T
        corner = lax.linalg.cholesky(column[: last - first], symmetrize_input=False)
        below = column[last - first :]
        if len(below):
            below = lax.linalg.triangular_solve(corner, below, lower=True, transpose_a=True)
        columns.append(jnp.concatenate([corner, below]))
        corners.append(inverted(corner))
        log_determinant += jnp.sum(jnp.log(jnp.diagonal(corner)))
    return log_determinant, *columns, *corners


def by_lapack(x: jax.Array, weights: jax.Array, data: Standardised) -> tuple[jax.Array, ...]:
    """Return the same with one call."""
    lower = lax.linalg.cholesky(matrix(x, weights, 0, len(weights)), symmetrize_input=False)
    tiles = [slice(first, first + _TILE) for first in range(0, len(weights), _TILE)]
    return jnp.sum(jnp.log(jnp.diagonal(lower))), lower, *[inverted(lower[tile, tile]) for tile in tiles]


def measure(function: Callable[..., tuple[jax.Array, ...]], *args: object) -> tuple[float, float, float]:
    """Return seconds to call (fastest of 30) and to compile, and what it returns."""
    began = time.perf_counter()
    compiled = jax.jit(function).lower(*args).compile()
    compiling, fastest = time.perf_counter() - began, float("inf")
    for _ in range(30):
        began = time.perf_counter()
        value = jax.block_until_ready(compiled(*args))[0]
        fastest = min(fastest, time.perf_counter() - began)
    return fastest, compiling, float(value)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=960)
    rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(rows, 2)).astype(np.float32)
    counts = rng.integers(1, 5000, rows)
    data = GPData(jnp.asarray(x), jnp.asarray(np.sin(5 * x[:, 0])), jnp.asarray(counts), jnp.ones(rows, bool))
    cut = standardise(_SETTINGS, data)
    signal, length, noise = _SETTINGS.gp_start
    distance = np.square(x[:, None].astype(float) - x[None]).sum(axis=2)
    exact = signal**2 * np.exp(-distance / (2 * length**2))
    exact += np.diag(noise**2 / counts + _SETTINGS.gp_noise_floor * signal**2)
    right = np.linalg.slogdet(exact)[1] / 2
    args = jnp.asarray(x.T), jnp.asarray(1 / counts, jnp.float32), cut
    print(f"{rows} rows\tms\tnats off\tcompile s")
    with one_blas_thread():
        for function in (by_tiles, by_columns, by_lapack):
            seconds, compiling, value = measure(function, *args)
            print(f"{function.__name__}\t{1e3 * seconds:.1f}\t{value - right:+.3f}\t{compiling:.2f}")


if __name__ == "__main__":
    main()
