"""The exact log marginal likelihood with its gradient and an estimate of its Hessian, from one factorisation.

With `A = K + s_n^2 W`, `a = A^-1 y` and `A_i` the derivative of `A` by the logarithm of hyperparameter `i`:

    L    = -1/2 y'a - 1/2 log|A| - n/2 log(2 pi)                              R&W eq. (2.30)
    L_i  =  1/2 a'A_i a - 1/2 tr(A^-1 A_i)                                    R&W eq. (5.9)
    L_ij = -a'A_i A^-1 A_j a + 1/2 a'A_ij a + 1/2 tr(A^-1 A_i A^-1 A_j) - 1/2 tr(A^-1 A_ij)

The noise is diagonal and the derivative by `log s` is `2 (A - noise)`, so that value and gradient take `n^3`
operations: a third for the Cholesky factor `L` of `A`, a third for `L^-1`, and a third for the entries of `A^-1` that
the trace with the derivative by the length scale needs. The Hessian has two traces of four factors that would cost
twice as much again. They are estimated with random signs `z`, for which `E[z z'] = I`:

    tr(A^-1 A_i A^-1 A_j) = E[(L^-1 A_i L'^-1 z)' (L^-1 A_j L'^-1 z)]         Hutchinson 1990

References:
    Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning" (R&W). Hutchinson 1990, "A Stochastic
    Estimator of the Trace of the Influence Matrix for Laplacian Smoothing Splines".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jedax.gp import tiles
from jedax.gp.model import GPData, GPSettings, kernel_and_distance
from jedax.gp.pooling import pool
from jedax.gp.tiles import Factor
from jedax.types import Array, Bool, Float, Int

_NUM_SIGNS = 16  # the traces come out to a few per cent, and curvature is good for no more than the next step


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Standardised:
    """Data as the likelihood sees them: standardised, in tiles (see `jedax.gp.tiles`), rows that are not real set to 0.

    Attributes:
        x: `(d, tiles, tile)`.
        y: `(tiles, tile)`, fitness with mean 0 and standard deviation 1 over real rows, or all 0 if all are equal.
        weights: `(tiles, tile)`, diagonal of `W`.
        mask: `(tiles, tile)`, real rows.
        num: Number of real rows.
        num_tiles: Tiles up to the last real row.
        num_more: Data beyond the rows, where neighbours were pooled (see `jedax.gp.pooling`).
        scatter: How far they lie from the rows they are pooled in, in units of the noise variance.
        log_weights: What pooling changes in the logarithm of the noise's determinant.
        fitness_mean: What was subtracted from fitness.
        fitness_scale: What fitness was divided by.
        varied: Whether there are real rows of different fitness.
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
    """Standardise fitness over the real rows, blank the others, pool what is too many, and cut all into tiles."""
    x = jnp.where(data.mask[:, None], data.x, 0.0)
    num = jnp.sum(data.mask).astype(x.dtype)
    rows = jnp.maximum(num, 1.0)
    # Deviations from one of the values: equal ones give exact zeros, and rounding a large mean cannot hurt.
    pivot = jnp.where(num > 0, data.fitness[jnp.argmax(data.mask)], 0.0)
    deviation = jnp.where(data.mask, data.fitness - pivot, 0.0)
    shift = jnp.sum(deviation) / rows
    deviation = jnp.where(data.mask, deviation - shift, 0.0)
    scale = jnp.sqrt(jnp.sum(jnp.square(deviation)) / rows)
    varied = scale > 0
    scale = jnp.where(varied, scale, 1.0)
    counts = jnp.maximum(data.counts.astype(x.dtype), 1.0)
    weights = 1.0 / counts if settings.weighted else jnp.ones_like(counts)
    pooled = pool(x, deviation / scale, jnp.where(data.mask, weights, 0.0), data.mask, settings.max_rows)
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


def factorise(settings: GPSettings, theta: Float[Array, "3"], data: Standardised) -> tuple[Factor, Float[Array, ""]]:
    """Factorise `K + s_n^2 W + floor s^2 I`, raising the floor by factors of ten until it works.

    Args:
        settings: Gives the first and the highest floor.
        theta: Logs of `s`, `l`, `s_n`.
        data: Gives descriptors and weights.

    Returns:
        The factor (identity in rows that are not real), not `ok` if no floor worked, and the floor.
    """
    signal, noise = jnp.exp(2 * theta[0]), jnp.exp(2 * theta[2])

    def attempt(floor: Float[Array, ""]) -> tuple[Factor, Float[Array, ""]]:
        def entry(i: Array, j: Array) -> Array:
            kernel, _ = _kernel_tile(theta, data, i, j)
            real = tiles.get(data.mask, i)
            diagonal = jnp.where(real, noise * tiles.get(data.weights, i) + floor * signal, 1.0)
            return kernel + jnp.where(i == j, 1.0, 0.0) * jnp.diag(diagonal)

        matrix = tiles.build(data.num_tiles, data.y.shape[0], entry)
        return tiles.factorise(matrix, data.num_tiles), floor

    # The loop also holds the first attempt, so that it is compiled once.
    floor = jnp.asarray(settings.noise_floor / 10, data.y.dtype)
    return lax.while_loop(
        lambda found: ~found[0].ok & (found[1] < settings.max_noise_floor),
        lambda found: attempt(jnp.minimum(10 * found[1], settings.max_noise_floor)),
        (Factor.none(data.y), floor),
    )


def _kernel_tile(theta: Float[Array, "3"], data: Standardised, i: Array, j: Array) -> tuple[Array, Array]:
    """Return a tile of `K`, 0 where a row or column is not real, and that of `|x - x'|^2 / l^2`."""
    kernel, ratio = kernel_and_distance(theta, [tiles.get(x, i) for x in data.x], [tiles.get(x, j) for x in data.x])
    real = tiles.get(data.mask, i)[:, None] & tiles.get(data.mask, j)[None]
    return jnp.where(real, kernel, 0.0), ratio


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Visit:
    """What one factorisation tells at one point.

    Attributes:
        theta: Logs of `s`, `l`, `s_n`.
        factor: `L`.
        noise_floor: The floor that the factorisation needed.
        whitened: `(tiles, tile)`, `L^-1 y`.
        right: `(tiles, tile, columns)`: the first column is `a`, the others are `L'^-1` times random signs.
    """

    theta: Float[Array, "3"]
    factor: Factor
    noise_floor: Float[Array, ""]
    whitened: Float[Array, "tiles tile"]
    right: Float[Array, "tiles tile columns"]

    @classmethod
    def none(cls, theta: Float[Array, "3"], data: Standardised) -> Visit:
        """Return what stands for a visit that there was not."""
        zero = jnp.zeros_like(data.y)
        right = jnp.zeros((*data.y.shape, 1 + _NUM_SIGNS), data.y.dtype)
        return cls(theta, Factor.none(data.y), zero[0, 0], zero, right)

    def scatter(self, data: Standardised) -> Float[Array, ""]:
        """Return the squared distances of pooled data from their means, in units of their noise variance."""
        return data.scatter * jnp.exp(-2 * self.theta[2])

    def log_density(self, data: Standardised, shift: Float[Array, ""] | float = 0.0) -> Float[Array, ""]:
        """Return the log marginal likelihood, `shift` added to `log s` and `log s_n`. R&W eq. (2.30)."""
        quadratic = jnp.sum(jnp.square(self.whitened)) + self.scatter(data)
        log_determinant = self.factor.log_determinant + data.num_more * self.theta[2] - 0.5 * data.log_weights
        scale = (data.num + data.num_more) * (shift + 0.5 * jnp.log(2 * jnp.pi))
        return -0.5 * jnp.exp(-2 * jnp.asarray(shift)) * quadratic - log_determinant - scale


def visit(settings: GPSettings, theta: Float[Array, "3"], data: Standardised) -> Visit:
    """Factorise `A` at `theta`, and solve for `y` and the signs."""
    factor, noise_floor = factorise(settings, theta, data)
    whitened = tiles.solve_lower(factor, data.y[..., None])
    signs = jnp.asarray(_signs(data.y.shape), data.y.dtype)
    right = tiles.solve_upper(factor, jnp.concatenate([whitened, signs], axis=-1))
    return Visit(theta, factor, noise_floor, whitened[..., 0], right)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Likelihood:
    """The log marginal likelihood around one point.

    Attributes:
        theta: Logs of `s`, `l`, `s_n`.
        value: Log marginal likelihood; -inf if it could not be computed.
        gradient: By `theta`; 0 if it could not be computed.
        hessian: By `theta`, twice, to a few per cent; minus the identity if it could not be computed.
    """

    theta: Float[Array, "3"]
    value: Float[Array, ""]
    gradient: Float[Array, "3"]
    hessian: Float[Array, "3 3"]

    @classmethod
    def unknown(cls, theta: Float[Array, "3"]) -> Likelihood:
        """Return what stands for a likelihood that could not be computed."""
        return cls(theta, jnp.full((), -jnp.inf, theta.dtype), jnp.zeros_like(theta), -jnp.eye(3, dtype=theta.dtype))


def evaluate(settings: GPSettings, at: Visit, data: Standardised) -> Likelihood:
    """Evaluate the log marginal likelihood with its first and second derivatives at a point, rescaled.

    First `s` and `s_n` are multiplied by their best common factor inside the bounds. It scales `A`, hence is
    known in closed form and costs nothing.

    Args:
        settings: Bounds.
        at: The point, inside the bounds.
        data: At least one real row.

    Returns:
        The likelihood around the rescaled point.
    """
    value, shift = best_density(settings, at, data)
    # A grows by exp(2 shift): the quadratic forms in y shrink by as much, traces stay.
    gradient, hessian = _derivatives(at, data, jnp.exp(-2 * shift))
    ok = jnp.isfinite(value) & jnp.all(jnp.isfinite(hessian)) & jnp.all(jnp.isfinite(gradient))
    found = Likelihood(at.theta + shift * jnp.array([1.0, 0.0, 1.0], shift.dtype), value, gradient, hessian)
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), found, Likelihood.unknown(at.theta))


def best_density(settings: GPSettings, at: Visit, data: Standardised) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the likelihood after adding to `log s` and `log s_n` what is best for both, and what was added.

    Without bounds that is `1/2 log(y' A^-1 y / n)`. The likelihood is -inf if it could not be computed.
    """
    low, high = log_bounds(settings, at.theta.dtype)
    down, up = low - at.theta, high - at.theta
    quadratic = jnp.sum(jnp.square(at.whitened)) + at.scatter(data)
    best = 0.5 * jnp.log(jnp.maximum(quadratic, 1e-12) / jnp.maximum(data.num + data.num_more, 1.0))
    shift = jnp.clip(best, jnp.maximum(down[0], down[2]), jnp.minimum(up[0], up[2]))
    value = at.log_density(data, shift)
    return jnp.where(jnp.isfinite(value), value, -jnp.inf), shift


def log_bounds(settings: GPSettings, dtype: jnp.dtype) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Return the lowest and the highest `theta`."""
    bounds = jnp.log(jnp.array(settings.bounds, dtype))
    return bounds[:, 0], bounds[:, 1]


class _Sums(NamedTuple):
    """Sums over all pairs of rows; `A_l` is the derivative by the log length scale, `N` the noise."""

    trace_length: Array  # tr(A^-1 A_l)
    trace_ratio: Array  # tr(A^-1 (A_l * |x - x'|^2 / l^2))
    trace_noise: Array  # tr(A^-1 N)
    trace_noise_noise: Array  # tr(A^-1 N A^-1 N)
    form_ratio: Array  # a'(A_l * |x - x'|^2 / l^2) a


def _derivatives(
    at: Visit, data: Standardised, shrink: Float[Array, ""]
) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Return gradient and Hessian; all quadratic forms in `y` are multiplied by `shrink`."""
    right, num_columns = at.right, at.right.shape[-1]
    noise = jnp.exp(2 * at.theta[2]) * data.weights[..., None]
    sums, by_length = _pair_sums(at, data, tiles.invert(at.factor), noise[..., 0])

    weights, by_length_a, by_noise_a = right[..., 0], by_length[..., 0], (noise * right)[..., 0]
    products = jnp.stack([2 * (data.y - by_noise_a), by_length_a, 2 * by_noise_a], axis=-1)
    solved = tiles.solve_lower(at.factor, jnp.concatenate([by_length, noise * right], axis=-1))
    white_length, white_noise = solved[..., :num_columns], solved[..., num_columns:]
    white = jnp.stack([2 * (at.whitened - white_noise[..., 0]), white_length[..., 0], 2 * white_noise[..., 0]])
    trace_length_length = jnp.sum(jnp.square(white_length[..., 1:])) / _NUM_SIGNS
    trace_length_noise = jnp.sum(white_length[..., 1:] * white_noise[..., 1:]) / _NUM_SIGNS

    first = jnp.stack([2 * (data.num - sums.trace_noise), sums.trace_length, 2 * sums.trace_noise])
    second = _symmetric(
        4 * (data.num - 2 * sums.trace_noise + sums.trace_noise_noise),
        2 * (sums.trace_length - trace_length_noise),
        4 * (sums.trace_noise - sums.trace_noise_noise),
        trace_length_length,
        2 * trace_length_noise,
        4 * sums.trace_noise_noise,
    )
    # A_ij: 4 (A - noise), 2 A_l, 0; (ratio - 2) A_l, 0; 4 noise.
    form = shrink * jnp.einsum("tri,tr->i", products, weights)
    zero = jnp.zeros_like(shrink)
    form_ll = shrink * sums.form_ratio - 2 * form[1]
    trace_ll = sums.trace_ratio - 2 * first[1]
    mixed_form = _symmetric(2 * form[0], 2 * form[1], zero, form_ll, zero, 2 * form[2])
    mixed_trace = _symmetric(2 * first[0], 2 * first[1], zero, trace_ll, zero, 2 * first[2])
    hessian = -shrink * jnp.einsum("itr,jtr->ij", white, white) + 0.5 * (mixed_form + second - mixed_trace)
    # Pooled data: -1/2 scatter / s_n^2 - num_more log s_n.
    scatter = shrink * at.scatter(data)
    by_noise = jnp.array([0.0, 0.0, 1.0], scatter.dtype)
    gradient = 0.5 * (form - first) + (scatter - data.num_more) * by_noise
    return gradient, hessian - 2 * scatter * jnp.diag(by_noise)


def _pair_sums(
    at: Visit,
    data: Standardised,
    inverse: Float[Array, "tiles tiles tile tile"],
    noise: Float[Array, "tiles tile"],
) -> tuple[_Sums, Float[Array, "tiles tile columns"]]:
    """Go through the tiles once; return the sums, and `A_l right`.

    Args:
        at: Gives `theta` and `right`.
        data: Gives descriptors.
        inverse: `L^-1`.
        noise: Diagonal of `N`.
    """
    right = at.right

    def pair(i: Array, j: Array, state: tuple[_Sums, Array]) -> tuple[_Sums, Array]:
        sums, products = state
        kernel, ratio = _kernel_tile(at.theta, data, i, j)
        by_length = kernel * ratio
        of_inverse = tiles.add_up(
            i, data.num_tiles, lambda k: tiles.times(tiles.get(inverse, k, i), tiles.get(inverse, k, j), "tn")
        )
        right_i, right_j, noise_i, noise_j = (tiles.get(a, k) for a in (right, noise) for k in (i, j))
        on_diagonal = i == j
        twice = jnp.where(on_diagonal, 1.0, 2.0)
        found = _Sums(
            trace_length=twice * jnp.sum(of_inverse * by_length),
            trace_ratio=twice * jnp.sum(of_inverse * by_length * ratio),
            trace_noise=jnp.where(on_diagonal, jnp.diagonal(of_inverse) @ noise_i, 0.0),
            trace_noise_noise=twice * (noise_i @ (jnp.square(of_inverse) @ noise_j)),
            form_ratio=twice * (right_i[:, 0] @ ((by_length * ratio) @ right_j[:, 0])),
        )
        products = tiles.put(products, tiles.get(products, i) + by_length @ right_j, i)
        mirrored = jnp.where(on_diagonal, 0.0, 1.0) * (by_length.T @ right_i)
        products = tiles.put(products, tiles.get(products, j) + mirrored, j)
        return jax.tree.map(jnp.add, sums, found), products

    def row(i: Array, state: tuple[_Sums, Array]) -> tuple[_Sums, Array]:
        return lax.fori_loop(0, i + 1, lambda j, state: pair(i, j, state), state)

    nothing = _Sums(*[jnp.zeros((), right.dtype)] * len(_Sums._fields))
    return lax.fori_loop(0, data.num_tiles, row, (nothing, jnp.zeros_like(right)))


def _signs(shape: tuple[int, ...]) -> np.ndarray:
    """Return random signs, `(*shape, _NUM_SIGNS)`, always the same: constants, which compile faster than JAX draws."""
    return 2 * np.random.default_rng(0).integers(2, size=(*shape, _NUM_SIGNS), dtype=np.int8) - 1


def _symmetric(aa: Array, ab: Array, ac: Array, bb: Array, bc: Array, cc: Array) -> Float[Array, "3 3"]:
    return jnp.stack([jnp.stack([aa, ab, ac]), jnp.stack([ab, bb, bc]), jnp.stack([ac, bc, cc])])
