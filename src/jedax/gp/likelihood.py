"""The exact log marginal likelihood with its gradient and Hessian, all from one factorisation.

With `A = K + s_n^2 W`, `a = A^-1 y` and `A_i` the derivative of `A` by the logarithm of hyperparameter `i`:

    L    = -1/2 y'a - 1/2 log|A| - n/2 log(2 pi)                              R&W eq. (2.30)
    L_i  =  1/2 a'A_i a - 1/2 tr(A^-1 A_i)                                    R&W eq. (5.9)
    L_ij = -a'A_i A^-1 A_j a + 1/2 a'A_ij a + 1/2 tr(A^-1 A_i A^-1 A_j) - 1/2 tr(A^-1 A_ij)

The noise is diagonal and the derivative by `log s` is `2 (A - noise)`, so that of all these traces only those
of the length scale need a matrix product: the Hessian costs one product on top of the gradient.

References:
    Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning" (R&W).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve, solve_triangular

from jedax.gp.model import GPData, GPSettings, squared_distances
from jedax.types import Array, Bool, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Standardised:
    """Data as the likelihood sees them: standardised, rows that are not real set to 0.

    Attributes:
        x: `(size, d)`.
        squared_distances: `(size, size)`, between rows of `x`.
        y: `(size,)`, fitness with mean 0 and standard deviation 1 over real rows, or all 0 if all are equal.
        weights: `(size,)`, diagonal of `W`.
        mask: `(size,)`, real rows.
        num: Number of real rows.
        fitness_mean: What was subtracted from fitness.
        fitness_scale: What fitness was divided by.
        varied: Whether there are real rows of different fitness.
    """

    x: Float[Array, "size d"]
    squared_distances: Float[Array, "size size"]
    y: Float[Array, " size"]
    weights: Float[Array, " size"]
    mask: Bool[Array, " size"]
    num: Float[Array, ""]
    fitness_mean: Float[Array, ""]
    fitness_scale: Float[Array, ""]
    varied: Bool[Array, ""]


def standardise(settings: GPSettings, data: GPData) -> Standardised:
    """Standardise fitness over the real rows and blank the others."""
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
    return Standardised(
        x=x,
        squared_distances=squared_distances(x, x),
        y=deviation / scale,
        weights=jnp.where(data.mask, weights, 0.0),
        mask=data.mask,
        num=num,
        fitness_mean=pivot + shift,
        fitness_scale=scale,
        varied=varied,
    )


class Factor(NamedTuple):
    """A Cholesky factor, as the upper triangle `U` of `A = U'U`, and how it was come by."""

    upper: Float[Array, "size size"]
    noise_floor: Float[Array, ""]
    ok: Bool[Array, ""]


def covariance(theta: Float[Array, "3"], data: Standardised) -> Float[Array, "size size"]:
    """Return the kernel matrix `K`, 0 in rows and columns that are not real."""
    signal, length = jnp.exp(2 * theta[0]), jnp.exp(2 * theta[1])
    real = data.mask[:, None] & data.mask[None]
    return jnp.where(real, signal * jnp.exp(-0.5 * data.squared_distances / length), 0.0)


def factorise(
    settings: GPSettings, theta: Float[Array, "3"], kernel: Float[Array, "size size"], data: Standardised
) -> Factor:
    """Factorise `K + s_n^2 W + floor s^2 I`, raising the floor by factors of ten until it works.

    Args:
        settings: Gives the first and the highest floor.
        theta: Logs of `s`, `l`, `s_n`.
        kernel: `K`.
        data: Gives the weights.

    Returns:
        The factor (identity in rows that are not real), the floor used, and whether it worked at all.
    """
    signal, noise = jnp.exp(2 * theta[0]), jnp.exp(2 * theta[2])

    def attempt(floor: Float[Array, ""]) -> Factor:
        diagonal = jnp.where(data.mask, noise * data.weights + floor * signal, 1.0)
        cholesky = lax.linalg.cholesky((kernel + jnp.diag(diagonal)).T, symmetrize_input=False)
        return Factor(cholesky.T, floor, jnp.all(jnp.isfinite(jnp.log(jnp.diagonal(cholesky)))))

    factor = lax.while_loop(
        lambda factor: ~factor.ok & (factor.noise_floor < settings.max_noise_floor),
        lambda factor: attempt(jnp.minimum(10 * factor.noise_floor, settings.max_noise_floor)),
        attempt(jnp.asarray(settings.noise_floor, kernel.dtype)),
    )
    return lax.optimization_barrier(factor)


def log_density(factor: Factor, quadratic: Float[Array, ""], num: Float[Array, ""]) -> Float[Array, ""]:
    """Return the log marginal likelihood of `num` data, given `y' A^-1 y`. R&W eq. (2.30)."""
    half_log_determinant = jnp.sum(jnp.log(jnp.diagonal(factor.upper)))
    return -0.5 * quadratic - half_log_determinant - 0.5 * num * jnp.log(2 * jnp.pi)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Likelihood:
    """The log marginal likelihood around one point.

    Attributes:
        theta: Logs of `s`, `l`, `s_n`.
        value: Log marginal likelihood; -inf if it could not be computed.
        gradient: By `theta`; 0 if it could not be computed.
        hessian: By `theta`, twice; minus the identity if it could not be computed.
    """

    theta: Float[Array, "3"]
    value: Float[Array, ""]
    gradient: Float[Array, "3"]
    hessian: Float[Array, "3 3"]


def evaluate(settings: GPSettings, theta: Float[Array, "3"], data: Standardised) -> Likelihood:
    """Evaluate the log marginal likelihood with its first and second derivatives at `theta`, rescaled.

    First `s` and `s_n` are multiplied by their best common factor inside the bounds. It scales `A`, hence is
    known in closed form and costs nothing.

    Args:
        settings: Bounds, and floors of the noise.
        theta: Logs of `s`, `l`, `s_n`, inside the bounds.
        data: At least one real row.

    Returns:
        The likelihood around the rescaled `theta`.
    """
    # LAPACK wants columns first, all else wants rows first. A barrier after a transpose, which is free for a
    # symmetric matrix, keeps XLA from reading memory across the grain in every later operation.
    kernel = lax.optimization_barrier(covariance(theta, data))
    factor = factorise(settings, theta, kernel, data)
    identity = jnp.eye(data.y.shape[0], dtype=kernel.dtype)
    inverse = lax.optimization_barrier(cho_solve((factor.upper.T, True), identity).T)
    weights = inverse @ data.y
    value, shift = _rescale(settings, theta, factor, data.y @ weights, data.num)
    # A grows by exp(2 shift): the quadratic forms in y shrink by as much, traces stay.
    gradient, hessian = _derivatives(theta, data, kernel, inverse, weights, jnp.exp(-2 * shift))
    ok = jnp.isfinite(value) & jnp.all(jnp.isfinite(hessian)) & jnp.all(jnp.isfinite(gradient))
    return Likelihood(
        theta=theta + jnp.where(ok, shift, 0.0) * jnp.array([1.0, 0.0, 1.0], theta.dtype),
        value=jnp.where(ok, value, -jnp.inf),
        gradient=jnp.where(ok, gradient, 0.0),
        hessian=jnp.where(ok, hessian, -jnp.eye(3, dtype=theta.dtype)),
    )


def evaluate_value(settings: GPSettings, theta: Float[Array, "3"], data: Standardised) -> Float[Array, ""]:
    """Return what `evaluate` gives as `value`, a third as costly; -inf if it could not be computed."""
    factor = factorise(settings, theta, covariance(theta, data), data)
    whitened = solve_triangular(factor.upper.T, data.y, lower=True)
    value, _ = _rescale(settings, theta, factor, whitened @ whitened, data.num)
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


def _rescale(
    settings: GPSettings,
    theta: Float[Array, "3"],
    factor: Factor,
    quadratic: Float[Array, ""],
    num: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the likelihood after adding to `log s` and `log s_n` what is best for both, and what was added.

    Without bounds that is `1/2 log(y' A^-1 y / n)`.
    """
    low, high = log_bounds(settings, theta.dtype)
    down, up = low - theta, high - theta
    best = 0.5 * jnp.log(jnp.maximum(quadratic, 1e-12) / jnp.maximum(num, 1.0))
    shift = jnp.clip(best, jnp.maximum(down[0], down[2]), jnp.minimum(up[0], up[2]))
    return log_density(factor, jnp.exp(-2 * shift) * quadratic, num) - num * shift, shift


def log_bounds(settings: GPSettings, dtype: jnp.dtype) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Return the lowest and the highest `theta`."""
    bounds = jnp.log(jnp.array(settings.bounds, dtype))
    return bounds[:, 0], bounds[:, 1]


def _derivatives(
    theta: Float[Array, "3"],
    data: Standardised,
    kernel: Float[Array, "size size"],
    inverse: Float[Array, "size size"],
    weights: Float[Array, " size"],
    shrink: Float[Array, ""],
) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Return gradient and Hessian; all quadratic forms in `y` are multiplied by `shrink`."""
    ratio = data.squared_distances / jnp.exp(2 * theta[1])
    by_length = kernel * ratio
    noise = jnp.exp(2 * theta[2]) * data.weights

    # A_i a and A^-1 A_i a; the derivatives by log s and log s_n carry a factor 2, put in below.
    by_length_a, by_noise_a = by_length @ weights, noise * weights
    by_signal_a = data.y - by_noise_a
    solved = inverse @ jnp.stack([by_length_a, by_noise_a], axis=1)
    products = jnp.stack([2 * by_signal_a, by_length_a, 2 * by_noise_a])
    solved = jnp.stack([2 * (weights - solved[:, 1]), solved[:, 0], 2 * solved[:, 1]])

    inverse_by_length = inverse @ by_length
    trace_noise = jnp.diagonal(inverse) @ noise
    trace_length = jnp.sum(inverse * by_length)
    trace_noise_noise = noise @ (jnp.square(inverse) @ noise)
    trace_length_length = jnp.sum(inverse_by_length * inverse_by_length.T)
    trace_length_noise = jnp.sum(inverse_by_length * inverse, axis=1) @ noise
    first = jnp.stack([2 * (data.num - trace_noise), trace_length, 2 * trace_noise])
    second = _symmetric(
        4 * (data.num - 2 * trace_noise + trace_noise_noise),
        2 * (trace_length - trace_length_noise),
        4 * (trace_noise - trace_noise_noise),
        trace_length_length,
        2 * trace_length_noise,
        4 * trace_noise_noise,
    )
    # A_ij: 4 (A - noise), 2 A_l, 0; (ratio - 2) A_l, 0; 4 noise.
    form = shrink * (products @ weights)
    zero = jnp.zeros_like(shrink)
    form_ll = shrink * (weights @ ((by_length * ratio) @ weights)) - 2 * form[1]
    trace_ll = jnp.sum(inverse * by_length * ratio) - 2 * first[1]
    mixed_form = _symmetric(2 * form[0], 2 * form[1], zero, form_ll, zero, 2 * form[2])
    mixed_trace = _symmetric(2 * first[0], 2 * first[1], zero, trace_ll, zero, 2 * first[2])
    hessian = -shrink * (products @ solved.T) + 0.5 * (mixed_form + second - mixed_trace)
    return 0.5 * (form - first), hessian


def _symmetric(aa: Array, ab: Array, ac: Array, bb: Array, bc: Array, cc: Array) -> Float[Array, "3 3"]:
    return jnp.stack([jnp.stack([aa, ab, ac]), jnp.stack([ab, bb, bc]), jnp.stack([ac, bc, cc])])
