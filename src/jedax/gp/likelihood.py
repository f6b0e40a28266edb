"""The exact log marginal likelihood of the process, from one Cholesky factorisation.

With `A = K + s_n^2 W` and `a = A^-1 y`:

    L = -1/2 y'a - 1/2 log|A| - n/2 log(2 pi)                              R&W eq. (2.30)

The point `theta` of the hyperparameters holds the logs of `s`, `l` and `s_n`. Derivatives are in
`jedax.gp.derivatives`.

References:
    Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning" (R&W).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jedax.gp import tiles
from jedax.gp.data import Tiled
from jedax.gp.model import kernel_and_distance
from jedax.gp.settings import GPSettings
from jedax.gp.tiles import Factor
from jedax.types import Array, Float

NUM_SIGNS = 16
"""Random vectors for the estimates of traces: an error of a few per cent, enough to choose the next step."""


def log_bounds(settings: GPSettings, dtype: jnp.dtype) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Return the lower and the upper bounds of `theta`."""
    bounds = jnp.log(jnp.array(settings.gp_bounds, dtype))
    return bounds[:, 0], bounds[:, 1]


def kernel_tile(
    theta: Float[Array, "3"], data: Tiled, i: Array, j: Array
) -> tuple[Float[Array, "tile tile"], Float[Array, "tile tile"]]:
    """Return a tile of `K`, 0 in rows and columns of padding, and the same tile of `|x - x'|^2 / l^2`."""
    kernel, ratio = kernel_and_distance(theta, [tiles.get(x, i) for x in data.x], [tiles.get(x, j) for x in data.x])
    real = tiles.get(data.mask, i)[:, None] & tiles.get(data.mask, j)[None]
    return jnp.where(real, kernel, 0.0), ratio


def factorise(settings: GPSettings, theta: Float[Array, "3"], data: Tiled) -> tuple[Factor, Float[Array, ""]]:
    """Factorise `K + s_n^2 W + floor s^2 I`, and raise the floor by factors of ten until this succeeds.

    Returns:
        The factor, with the identity in padding rows, and the floor. The factor is not `ok` if it failed with
        `gp_max_noise_floor`, too.
    """
    signal, noise = jnp.exp(2 * theta[0]), jnp.exp(2 * theta[2])

    def attempt(before: Factor, floor: Float[Array, ""]) -> tuple[Factor, Float[Array, ""]]:
        def entry(i: Array, j: Array) -> Array:
            kernel, _ = kernel_tile(theta, data, i, j)
            real = tiles.get(data.mask, i)
            diagonal = jnp.where(real, noise * tiles.get(data.weights, i) + floor * signal, 1.0)
            return kernel + jnp.where(i == j, 1.0, 0.0) * jnp.diag(diagonal)

        matrix = tiles.build(data.num_tiles, before.lower, entry)
        return tiles.factorise(matrix, data.num_tiles), floor

    # The first attempt is a turn of the loop, too, so that the factorisation is compiled once.
    floor = jnp.asarray(settings.gp_noise_floor / 10, data.y.dtype)
    return lax.while_loop(
        lambda found: ~found[0].ok & (found[1] < settings.gp_max_noise_floor),
        lambda found: attempt(found[0], jnp.minimum(10 * found[1], settings.gp_max_noise_floor)),
        (Factor.placeholder(data.y), floor),
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Solved:
    """The factorised `A` at one `theta`, and the linear systems solved with it.

    Attributes:
        theta: Logs of `s`, `l`, `s_n`.
        factor: The Cholesky factor `L` of `A`.
        noise_floor: Noise floor of the factorisation.
        whitened: `(tiles, tile)`, `L^-1 y`.
        right: `(tiles, tile, 1 + NUM_SIGNS)`: `a` in the first column, then `L'^-1` times random signs.
    """

    theta: Float[Array, "3"]
    factor: Factor
    noise_floor: Float[Array, ""]
    whitened: Float[Array, "tiles tile"]
    right: Float[Array, "tiles tile columns"]

    @classmethod
    def placeholder(cls, theta: Float[Array, "3"], data: Tiled) -> Solved:
        """Return a value of the right shapes that holds no solution, to start a loop with."""
        zero = jnp.zeros_like(data.y)
        right = jnp.zeros((*data.y.shape, 1 + NUM_SIGNS), data.y.dtype)
        return cls(theta, Factor.placeholder(data.y), zero[0, 0], zero, right)

    def log_likelihood(self, data: Tiled, shift: Float[Array, ""] | float = 0.0) -> Float[Array, ""]:
        """Return the log marginal likelihood with `shift` added to `log s` and `log s_n`. R&W eq. (2.30)."""
        quadratic = jnp.sum(jnp.square(self.whitened))
        scale = data.num * (shift + 0.5 * jnp.log(2 * jnp.pi))
        return -0.5 * jnp.exp(-2 * jnp.asarray(shift)) * quadratic - self.factor.log_determinant - scale


def solve(settings: GPSettings, theta: Float[Array, "3"], data: Tiled) -> Solved:
    """Factorise `A` at `theta`, and solve for `y` and the random signs."""
    factor, noise_floor = factorise(settings, theta, data)
    whitened = tiles.solve_lower(factor, data.y[..., None])
    # The same signs every time, as constants, which compile faster than random numbers of JAX.
    signs = 2 * np.random.default_rng(0).integers(2, size=(*data.y.shape, NUM_SIGNS), dtype=np.int8) - 1
    right = tiles.solve_upper(factor, jnp.concatenate([whitened, jnp.asarray(signs, data.y.dtype)], axis=-1))
    return Solved(theta, factor, noise_floor, whitened[..., 0], right)


def rescale(settings: GPSettings, at: Solved, data: Tiled) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Multiply `s` and `s_n` by their best common factor inside the bounds.

    The factor scales `A`, so that it is known in closed form: without bounds its log is `1/2 log(y' A^-1 y / n)`.

    Returns:
        The log marginal likelihood, -inf if it cannot be computed, and the log of the factor.
    """
    low, high = log_bounds(settings, at.theta.dtype)
    down, up = low - at.theta, high - at.theta
    quadratic = jnp.sum(jnp.square(at.whitened))
    best = 0.5 * jnp.log(jnp.maximum(quadratic, 1e-12) / jnp.maximum(data.num, 1.0))
    shift = jnp.clip(best, jnp.maximum(down[0], down[2]), jnp.minimum(up[0], up[2]))
    value = at.log_likelihood(data, shift)
    return jnp.where(jnp.isfinite(value), value, -jnp.inf), shift
