"""Fitting the hyperparameters: Newton's method with a trust region, on three logarithms inside their bounds.

Second derivatives cost a third more than the gradient alone (see `likelihood`) and save most of the steps: a
warm start takes three or four likelihood evaluations, a cold one about twice as many.

References:
    Nocedal & Wright 2006, "Numerical Optimization", chapters 4 (trust regions) and 16.7 (projection on
    bounds).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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
from jedax.gp.sequential import one_by_one
from jedax.types import Array, Bool, Float, Int

_MAX_RADIUS = 1.0  # longest step, in nats of a hyperparameter
_MIN_RADIUS = 1e-2  # a likelihood that gets worse within one per cent is float32 noise: stop
_MIN_CURVATURE = 1e-3
_MIN_ROWS = 3  # as many data as hyperparameters


@partial(jax.jit, static_argnums=0)
def fit(settings: GPSettings, start: Hyperparameters, data: GPData) -> FittedGP:
    """Maximise the log marginal likelihood over the hyperparameters, and condition the process on the data.

    With fewer than three data, or all of equal fitness, there is nothing to learn: the hyperparameters stay
    at `start`. Without data the process is its prior. Under `vmap` the replicas are fitted one after the
    other, each with the steps it needs (see `jedax.gp.sequential`).

    Args:
        settings: Bounds, floors and limits.
        start: Warm start, from the last fit or `settings.initial_hyperparameters()`; moved into the bounds,
            and not used where it is not finite.
        data: Padded to a fixed size.

    Returns:
        The fitted process; see its `ok` and `noise_floor`.
    """
    return one_by_one(partial(_fit, settings))(start, data)


@partial(jax.jit, static_argnums=0)
def condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    """Condition the process on the data with the hyperparameters as they are, bounds not enforced.

    Args:
        settings: `weighted` and the floors are read.
        hyperparameters: In units of the standardised fitness.
        data: Padded to a fixed size.

    Returns:
        The process; see its `ok` and `noise_floor`.
    """
    return one_by_one(partial(_condition, settings))(hyperparameters, data)


def _fit(settings: GPSettings, start: Hyperparameters, data: GPData) -> FittedGP:
    rows = standardise(settings, data)
    learnable = rows.varied & (rows.num >= _MIN_ROWS)
    low, high = log_bounds(settings, rows.y.dtype)
    cold = _theta(settings.initial_hyperparameters(), rows.y.dtype)
    theta = _theta(start, rows.y.dtype)
    theta = jnp.clip(jnp.where(jnp.all(jnp.isfinite(theta)), theta, cold), low, high)
    search = lax.while_loop(
        lambda s: learnable & ~_finished(settings, s),
        lambda s: _advance(settings, rows, s),
        _begin(settings, theta, cold, rows),
    )
    # The last step, worth less than the tolerance, is taken unchecked.
    last = jnp.where(search.promise < settings.tolerance, search.step, 0.0)
    theta = jnp.where(learnable, search.best.theta + last, theta)
    return _process(settings, theta, rows, search.num_evaluations)


def _condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    rows = standardise(settings, data)
    return _process(settings, _theta(hyperparameters, rows.y.dtype), rows, jnp.zeros((), jnp.int32))


def _theta(hyperparameters: Hyperparameters, dtype: jnp.dtype) -> Float[Array, "3"]:
    h = hyperparameters
    return jnp.stack([h.log_signal, h.log_length_scale, h.log_noise]).astype(dtype)


def _process(
    settings: GPSettings, theta: Float[Array, "3"], rows: Standardised, num_evaluations: Int[Array, ""]
) -> FittedGP:
    factor = factorise(settings, theta, covariance(theta, rows), rows)
    weights = cho_solve((factor.upper.T, True), rows.y)
    value = log_density(factor, rows.y @ weights, rows.num)
    ok = factor.ok & jnp.isfinite(value) & jnp.isfinite(rows.fitness_mean)
    return FittedGP(
        hyperparameters=Hyperparameters(theta[0], theta[1], theta[2]),
        x=rows.x,
        mask=rows.mask & ok,
        cholesky=jnp.where(ok, factor.upper.T, jnp.eye(rows.y.shape[0], dtype=theta.dtype)),
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


def _begin(settings: GPSettings, theta: Float[Array, "3"], cold: Float[Array, "3"], rows: Standardised) -> _Search:
    """Evaluate the warm start; where the cold one is likelier, the first step jumps there."""
    best = evaluate(settings, theta, rows)
    radius = jnp.ones((), theta.dtype)
    step, promise = _newton_step(settings, best, radius)
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
    """Return the next step and the gain that the quadratic model promises, never below 0.

    A hyperparameter that the gradient pushes against its bound stays there; directions of wrong curvature are
    climbed as if it were right, which promises more than it would. Nocedal & Wright section 3.4.
    """
    low, high = log_bounds(settings, at.theta.dtype)
    edge = 1e-6 * jnp.maximum(1.0, jnp.abs(at.theta))
    stuck = ((at.theta <= low + edge) & (at.gradient < 0)) | ((at.theta >= high - edge) & (at.gradient > 0))
    gradient = jnp.where(stuck, 0.0, at.gradient)
    curvature = jnp.where(stuck[:, None] | stuck[None], jnp.eye(3, dtype=gradient.dtype), -at.hessian)
    eigenvalues, basis = jnp.linalg.eigh(curvature)
    curvature = (basis * jnp.maximum(jnp.abs(eigenvalues), _MIN_CURVATURE)) @ basis.T
    down, up = jnp.maximum(low - at.theta, -radius), jnp.minimum(high - at.theta, radius)
    step = _climb_in_box(gradient, curvature, down, up, ~stuck)
    return step, gradient @ step + 0.5 * step @ (at.hessian @ step)


def _climb_in_box(
    gradient: Float[Array, "3"],
    curvature: Float[Array, "3 3"],
    down: Float[Array, "3"],
    up: Float[Array, "3"],
    free: Bool[Array, "3"],
) -> Float[Array, "3"]:
    """Climb `gradient'p - 1/2 p'curvature p` from 0 inside a box: to the top, or to a side and on along it.

    Every leg climbs, since the model is concave. Nocedal & Wright section 16.7.
    """
    step = jnp.zeros_like(gradient)
    for _ in range(3):
        matrix = jnp.where(free[:, None] & free[None], curvature, jnp.eye(3, dtype=step.dtype))
        leg = jnp.linalg.solve(matrix, jnp.where(free, gradient - curvature @ step, 0.0))
        side = jnp.where(leg > 0, up, down)
        room = jnp.where(leg == 0, jnp.inf, (side - step) / jnp.where(leg == 0, 1.0, leg))
        share = jnp.clip(jnp.min(room), 0.0, 1.0)
        step = jnp.clip(step + share * leg, down, up)
        free = free & (room > share)
    return step
