"""The gradient of the log marginal likelihood, and an estimate of its Hessian, from the same factorisation.

With `A = K + s_n^2 W`, `a = A^-1 y` and `A_i` the derivative of `A` by the logarithm of hyperparameter `i`:

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

from jedax.gp import tiles
from jedax.gp.data import Tiled
from jedax.gp.likelihood import NUM_SIGNS, Solved, kernel_tile, rescale
from jedax.gp.settings import GPSettings
from jedax.types import Array, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Likelihood:
    """The log marginal likelihood and its derivatives at one point.

    Attributes:
        theta: Logs of `s`, `l`, `s_n`.
        value: Log marginal likelihood; -inf if it cannot be computed.
        gradient: First derivatives by `theta`; 0 if they cannot be computed.
        hessian: Second derivatives, to a few per cent; minus the identity if they cannot be computed.
    """

    theta: Float[Array, "3"]
    value: Float[Array, ""]
    gradient: Float[Array, "3"]
    hessian: Float[Array, "3 3"]

    @classmethod
    def failed(cls, theta: Float[Array, "3"]) -> Likelihood:
        """Return the value for a point at which the likelihood cannot be computed."""
        return cls(theta, jnp.full((), -jnp.inf, theta.dtype), jnp.zeros_like(theta), -jnp.eye(3, dtype=theta.dtype))


def evaluate(settings: GPSettings, at: Solved, data: Tiled) -> Likelihood:
    """Return the likelihood and its derivatives at `at.theta` with `s` and `s_n` rescaled (see `rescale`).

    Args:
        settings: Bounds of the hyperparameters.
        at: A solution inside the bounds.
        data: At least one real row.
    """
    value, shift = rescale(settings, at, data)
    # A grows by exp(2 shift): the quadratic forms in y shrink by the same factor, and traces do not change.
    gradient, hessian = _derivatives(at, data, jnp.exp(-2 * shift))
    ok = jnp.isfinite(value) & jnp.all(jnp.isfinite(hessian)) & jnp.all(jnp.isfinite(gradient))
    found = Likelihood(at.theta + shift * jnp.array([1.0, 0.0, 1.0], shift.dtype), value, gradient, hessian)
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), found, Likelihood.failed(at.theta))


def _derivatives(at: Solved, data: Tiled, shrink: Float[Array, ""]) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Return gradient and Hessian, with all quadratic forms in `y` multiplied by `shrink`."""
    right, num_columns = at.right, at.right.shape[-1]
    noise = jnp.exp(2 * at.theta[2]) * data.weights[..., None]
    sums, by_length = _sums_over_pairs(at, data, noise[..., 0])

    weights, by_length_a, by_noise_a = right[..., 0], by_length[..., 0], (noise * right)[..., 0]
    products = jnp.stack([2 * (data.y - by_noise_a), by_length_a, 2 * by_noise_a], axis=-1)
    solved = tiles.solve_lower(at.factor, jnp.concatenate([by_length, noise * right], axis=-1))
    white_length, white_noise = solved[..., :num_columns], solved[..., num_columns:]
    white = jnp.stack([2 * (at.whitened - white_noise[..., 0]), white_length[..., 0], 2 * white_noise[..., 0]])
    trace_length_length = jnp.sum(jnp.square(white_length[..., 1:])) / NUM_SIGNS
    trace_length_noise = jnp.sum(white_length[..., 1:] * white_noise[..., 1:]) / NUM_SIGNS

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
    return 0.5 * (form - first), hessian


class _Sums(NamedTuple):
    """Sums over all pairs of rows; `A_l` is the derivative by the log length scale, `N` the noise."""

    trace_length: Array  # tr(A^-1 A_l)
    trace_ratio: Array  # tr(A^-1 (A_l * |x - x'|^2 / l^2))
    trace_noise: Array  # tr(A^-1 N)
    trace_noise_noise: Array  # tr(A^-1 N A^-1 N)
    form_ratio: Array  # a'(A_l * |x - x'|^2 / l^2) a


def _sums_over_pairs(
    at: Solved, data: Tiled, noise: Float[Array, "tiles tile"]
) -> tuple[_Sums, Float[Array, "tiles tile columns"]]:
    """Return the sums and `A_l right` from one pass over the tiles; `noise` is the diagonal of `N`."""
    right, inverse = at.right, tiles.invert(at.factor)

    def pair(i: Array, j: Array, state: tuple[_Sums, Array]) -> tuple[_Sums, Array]:
        sums, products = state
        kernel, ratio = kernel_tile(at.theta, data, i, j)
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
        return tiles.loop(0, i + 1, lambda j, state: pair(i, j, state), state)

    nothing = _Sums(*[jnp.zeros((), right.dtype)] * len(_Sums._fields))
    return tiles.loop(0, data.num_tiles, row, (nothing, jnp.zeros_like(right)))


def _symmetric(aa: Array, ab: Array, ac: Array, bb: Array, bc: Array, cc: Array) -> Float[Array, "3 3"]:
    return jnp.stack([jnp.stack([aa, ab, ac]), jnp.stack([ab, bb, bc]), jnp.stack([ac, bc, cc])])
