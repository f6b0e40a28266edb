"""Fitting the hyperparameters: Newton's method with a trust region, on three logarithms inside their bounds.

Second derivatives cost a third more than the gradient alone (see `likelihood`) and save most of the steps: a warm
start takes two to four likelihood evaluations, a cold one about twice as many.

References:
    Nocedal & Wright 2006, "Numerical Optimization", chapters 4 (trust regions) and 16.7 (projection on bounds).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve

from jedax.gp.likelihood import (
    Likelihood,
    Standardised,
    covariance,
    evaluate,
    evaluate_value,
    factorise,
    log_bounds,
    log_density,
    standardise,
)
from jedax.gp.model import FittedGP, GPData, GPSettings, Hyperparameters
from jedax.types import Array, Bool, Float, Int

_MAX_RADIUS = 2.0  # longest step, in nats of a hyperparameter
_MIN_RADIUS = 1e-3  # a likelihood that gets worse that near is float32 noise: stop
_MIN_CURVATURE = 1e-3
_MIN_ROWS = 3  # as many data as hyperparameters


def fit(settings: GPSettings, start: Hyperparameters, data: GPData) -> FittedGP:
    """Maximise the log marginal likelihood over the hyperparameters, and condition the process on the data.

    With fewer than three data, or all of equal fitness, there is nothing to learn: the hyperparameters stay at
    `start`. Without data the process is its prior.

    Args:
        settings: Bounds, floors and limits; static under `jit`.
        start: Warm start, from the last fit or `settings.initial_hyperparameters()`; moved into the bounds.
        data: Padded to a fixed size.

    Returns:
        The fitted process; see its `ok` and `noise_floor`.
    """
    rows = standardise(settings, data)
    low, high = log_bounds(settings, rows.y.dtype)
    theta = jnp.clip(_theta(start, rows.y.dtype), low, high)
    search = lax.while_loop(
        lambda s: ~_finished(settings, s),
        lambda s: _advance(settings, rows, s),
        _begin(settings, theta, rows),
    )
    # The last step, worth less than the tolerance, is taken unchecked.
    last = jnp.where(search.promise < settings.tolerance, search.step, 0.0)
    learnt = rows.varied & (rows.num >= _MIN_ROWS)
    theta = jnp.where(learnt, search.best.theta + last, theta)
    return _condition(settings, theta, rows, search.num_evaluations)


def condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    """Condition the process on the data with the hyperparameters as they are, bounds not enforced.

    Args:
        settings: `weighted` and the floors are read; static under `jit`.
        hyperparameters: In units of the standardised fitness.
        data: Padded to a fixed size.

    Returns:
        The process; see its `ok` and `noise_floor`.
    """
    rows = standardise(settings, data)
    return _condition(settings, _theta(hyperparameters, rows.y.dtype), rows, jnp.zeros((), jnp.int32))


def _theta(hyperparameters: Hyperparameters, dtype: jnp.dtype) -> Float[Array, "3"]:
    h = hyperparameters
    return jnp.stack([h.log_signal, h.log_length_scale, h.log_noise]).astype(dtype)


def _condition(
    settings: GPSettings, theta: Float[Array, "3"], rows: Standardised, num_evaluations: Int[Array, ""]
) -> FittedGP:
    factor = factorise(settings, theta, covariance(theta, rows), rows)
    weights = cho_solve((factor.cholesky, True), rows.y)
    value = log_density(factor, rows.y @ weights, rows.num)
    ok = factor.ok & jnp.isfinite(value) & jnp.isfinite(rows.fitness_mean)
    return FittedGP(
        hyperparameters=Hyperparameters(theta[0], theta[1], theta[2]),
        x=rows.x,
        mask=rows.mask & ok,
        cholesky=jnp.where(ok, factor.cholesky, jnp.eye(rows.y.shape[0], dtype=theta.dtype)),
        weights=jnp.where(ok, weights, 0.0),
        fitness_mean=jnp.where(ok, rows.fitness_mean, 0.0),
        fitness_scale=jnp.where(ok, rows.fitness_scale, 1.0),
        log_likelihood=jnp.where(ok, value, -jnp.inf),
        noise_floor=factor.noise_floor,
        num_evaluations=num_evaluations,
        ok=ok,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Search:
    """Where the search stands: the best point so far and the step it will try next."""

    best: Likelihood
    radius: Float[Array, ""]
    step: Float[Array, "3"]
    promise: Float[Array, ""]
    num_evaluations: Int[Array, ""]


def _begin(settings: GPSettings, theta: Float[Array, "3"], rows: Standardised) -> _Search:
    """Evaluate the warm start; where the cold one is likelier, the first step jumps there."""
    best = evaluate(settings, theta, rows)
    radius = jnp.ones((), theta.dtype)
    step, promise = _newton_step(settings, best, radius)
    cold = _theta(settings.initial_hyperparameters(), theta.dtype)
    lead = evaluate_value(settings, cold, rows) - best.value
    jump = (lead > settings.tolerance) & rows.varied
    return _Search(
        best=best,
        radius=radius,
        step=jnp.where(jump, cold - best.theta, step),
        promise=jnp.where(jump, lead, promise),
        num_evaluations=jnp.full((), 2, jnp.int32),
    )


def _finished(settings: GPSettings, search: _Search) -> Bool[Array, ""]:
    converged = search.promise < settings.tolerance
    return converged | (search.radius < _MIN_RADIUS) | (search.num_evaluations >= settings.max_steps)


def _advance(settings: GPSettings, rows: Standardised, search: _Search) -> _Search:
    """Try the step, keep the better point, adapt the radius. Nocedal & Wright algorithm 4.1."""
    trial = evaluate(settings, search.best.theta + search.step, rows)
    gain = trial.value - search.best.value
    length = jnp.max(jnp.abs(search.step))
    radius = jnp.where(gain < 0.25 * search.promise, 0.25 * length, search.radius)
    radius = jnp.where(gain > 0.75 * search.promise, jnp.minimum(2 * radius, _MAX_RADIUS), radius)
    best = jax.tree.map(lambda new, old: jnp.where(gain > 0, new, old), trial, search.best)
    step, promise = _newton_step(settings, best, radius)
    return _Search(best, radius, step, promise, search.num_evaluations + 1)


def _newton_step(
    settings: GPSettings, at: Likelihood, radius: Float[Array, ""]
) -> tuple[Float[Array, "3"], Float[Array, ""]]:
    """Return the next step and the gain that the quadratic model promises.

    A hyperparameter that the gradient pushes against its bound stays there; directions of wrong curvature are
    climbed as if it were right; the step is shortened to the trust region and cut off at the bounds.
    """
    low, high = log_bounds(settings, at.theta.dtype)
    edge = 1e-6 * jnp.maximum(1.0, jnp.abs(at.theta))
    stuck = ((at.theta <= low + edge) & (at.gradient < 0)) | ((at.theta >= high - edge) & (at.gradient > 0))
    gradient = jnp.where(stuck, 0.0, at.gradient)
    curvature = jnp.where(stuck[:, None] | stuck[None], jnp.eye(3, dtype=gradient.dtype), -at.hessian)
    eigenvalues, basis = jnp.linalg.eigh(curvature)
    step = basis @ ((basis.T @ gradient) / jnp.maximum(jnp.abs(eigenvalues), _MIN_CURVATURE))
    step = step * jnp.minimum(1.0, radius / jnp.maximum(jnp.max(jnp.abs(step)), 1e-12))
    step = jnp.clip(at.theta + step, low, high) - at.theta
    return step, gradient @ step - 0.5 * step @ (curvature @ step)
