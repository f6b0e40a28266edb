"""Fitting the hyperparameters: Newton's method with a trust region, on three logarithms inside their bounds.

Second derivatives cost next to nothing (see `likelihood`) and save most of the steps: a warm start takes three or four
likelihood evaluations, a cold one about twice as many.

References:
    Nocedal & Wright 2006, "Numerical Optimization", chapters 4 (trust regions) and 16.7 (projection on
    bounds).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jedax.gp import tiles
from jedax.gp.likelihood import (
    Likelihood,
    Standardised,
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
    search = lax.cond(
        learnable,
        lambda: lax.while_loop(
            lambda s: ~_finished(settings, s),
            lambda s: _advance(settings, rows, cold, s),
            _begin(theta, evaluate_value(settings, cold, rows)),
        ),
        lambda: _begin(theta, jnp.zeros_like(theta[0])),
    )
    # The last step, worth less than the tolerance, is taken unchecked.
    last = jnp.where(search.promise < settings.tolerance, search.step, 0.0)
    return _process(settings, search.best.theta + last, rows, jnp.where(learnable, search.num_evaluations, 0))


def _condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    rows = standardise(settings, data)
    return _process(settings, _theta(hyperparameters, rows.y.dtype), rows, jnp.zeros((), jnp.int32))


def _theta(hyperparameters: Hyperparameters, dtype: jnp.dtype) -> Float[Array, "3"]:
    h = hyperparameters
    return jnp.stack([h.log_signal, h.log_length_scale, h.log_noise]).astype(dtype)


def _process(
    settings: GPSettings, theta: Float[Array, "3"], rows: Standardised, num_evaluations: Int[Array, ""]
) -> FittedGP:
    factor, noise_floor = factorise(settings, theta, rows)
    whitened = tiles.solve_lower(factor, rows.y[..., None])
    weights = tiles.solve_upper(factor, whitened)[..., 0]
    value = log_density(factor, jnp.sum(jnp.square(whitened)), rows.num)
    ok = factor.ok & jnp.isfinite(value) & jnp.isfinite(rows.fitness_mean)
    return FittedGP(
        hyperparameters=Hyperparameters(theta[0], theta[1], theta[2]),
        x=rows.x,
        mask=rows.mask & ok,
        factor=replace(factor, num_tiles=jnp.where(ok, factor.num_tiles, 0)),
        weights=jnp.where(ok, weights, 0.0),
        fitness_mean=jnp.where(ok, rows.fitness_mean, 0.0),
        fitness_scale=jnp.where(ok, rows.fitness_scale, 1.0),
        log_likelihood=jnp.where(ok, value, -jnp.inf),
        noise_floor=noise_floor,
        num_evaluations=num_evaluations,
        ok=ok,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Search:
    """Where the search stands: the best point so far, the step it will try next, and what a cold start is worth."""

    best: Likelihood
    radius: Float[Array, ""]
    step: Float[Array, "3"]
    promise: Float[Array, ""]
    cold_value: Float[Array, ""]
    num_evaluations: Int[Array, ""]


def _begin(theta: Float[Array, "3"], cold_value: Float[Array, ""]) -> _Search:
    """Return a search whose first step evaluates `theta` itself."""
    return _Search(
        best=Likelihood.unknown(theta),
        radius=jnp.ones_like(cold_value),
        step=jnp.zeros_like(theta),
        promise=jnp.full_like(cold_value, jnp.inf),
        cold_value=cold_value,
        num_evaluations=jnp.ones((), jnp.int32),
    )


def _finished(settings: GPSettings, search: _Search) -> Bool[Array, ""]:
    converged = search.promise < settings.tolerance
    return converged | (search.radius < _MIN_RADIUS) | (search.num_evaluations >= settings.max_steps)


def _advance(settings: GPSettings, rows: Standardised, cold: Float[Array, "3"], search: _Search) -> _Search:
    """Try the step, keep the better point, adapt the radius. Nocedal & Wright algorithm 4.1.

    Where the cold start is likelier than the warm one, the next step jumps there.
    """
    trial = evaluate(settings, search.best.theta + search.step, rows)
    gain = trial.value - search.best.value
    length = jnp.max(jnp.abs(search.step))
    radius = jnp.where(gain < 0.25 * search.promise, 0.25 * length, search.radius)
    radius = jnp.where(gain > 0.75 * search.promise, jnp.minimum(2 * radius, _MAX_RADIUS), radius)
    best = jax.tree.map(lambda new, old: jnp.where(gain > 0, new, old), trial, search.best)
    step, promise = _newton_step(settings, best, radius)
    lead = search.cold_value - best.value
    jump = (search.num_evaluations == 1) & (lead > settings.tolerance)
    return _Search(
        best=best,
        radius=radius,
        step=jnp.where(jump, cold - best.theta, step),
        promise=jnp.where(jump, lead, promise),
        cold_value=search.cold_value,
        num_evaluations=search.num_evaluations + 1,
    )


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
