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
from jax.scipy.linalg import solve

from jedax.gp.likelihood import (
    Likelihood,
    Standardised,
    Visit,
    best_density,
    evaluate,
    log_bounds,
    standardise,
    visit,
)
from jedax.gp.model import FittedGP, GPData, GPSettings, Hyperparameters
from jedax.gp.sequential import one_by_one
from jedax.types import Array, Bool, Float, Int

_MAX_RADIUS = 1.0  # longest step, in nats of a hyperparameter
_MIN_RADIUS = 1e-2  # a likelihood that gets worse within one per cent is float32 noise: stop
_MIN_CURVATURE = 1e-3
_MIN_ROWS = 3  # as many data as hyperparameters


@partial(jax.jit, static_argnums=0)
def fit(settings: GPSettings, start: Hyperparameters, data: GPData, wanted: Bool[Array, ""] | bool = True) -> FittedGP:
    """Maximise the log marginal likelihood over the hyperparameters, and condition the process on the data.

    With fewer than three data, or all of equal fitness, there is nothing to learn: the hyperparameters stay
    at `start`. Without data the process is its prior. Under `vmap` the replicas are fitted one after the
    other, each with the steps it needs (see `jedax.gp.sequential`).

    Args:
        settings: Bounds, floors and limits.
        start: Warm start, from the last fit or `settings.initial_hyperparameters()`; moved into the bounds,
            and not used where it is not finite.
        data: Padded to a fixed size.
        wanted: If not, the process is conditioned with the hyperparameters `start` as they are.

    Returns:
        The fitted process; see its `ok` and `noise_floor`.
    """
    return one_by_one(partial(_fit, settings))(start, data, jnp.asarray(wanted))


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


def _fit(settings: GPSettings, start: Hyperparameters, data: GPData, wanted: Bool[Array, ""]) -> FittedGP:
    rows = standardise(settings, data)
    low, high = log_bounds(settings, rows.y.dtype)
    cold = _theta(settings.initial_hyperparameters(), rows.y.dtype)
    theta = _theta(start, rows.y.dtype)
    theta = jnp.where(wanted, jnp.clip(jnp.where(jnp.all(jnp.isfinite(theta)), theta, cold), low, high), theta)
    learnable = wanted & rows.varied & (rows.num + rows.num_more >= _MIN_ROWS)
    one = jnp.ones_like(rows.num)
    begin = _Search(
        stage=jnp.where(learnable, _COLD, _LAST),
        next=jnp.where(learnable, cold, theta),
        best=Likelihood.unknown(theta),
        radius=_MAX_RADIUS * one,
        promise=jnp.inf * one,
        cold_value=0 * one,
        num_evaluations=jnp.int32(0),
    )
    search, at = lax.while_loop(
        lambda state: state[0].stage != _DONE,
        lambda state: _turn(settings, rows, state[0]),
        (begin, Visit.none(theta, rows)),
    )
    return _process(at, rows, search.num_evaluations)


def _condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    rows = standardise(settings, data)
    return _process(visit(settings, _theta(hyperparameters, rows.y.dtype), rows), rows, jnp.zeros((), jnp.int32))


def _theta(hyperparameters: Hyperparameters, dtype: jnp.dtype) -> Float[Array, "3"]:
    h = hyperparameters
    return jnp.stack([h.log_signal, h.log_length_scale, h.log_noise]).astype(dtype)


def _process(at: Visit, rows: Standardised, num_evaluations: Int[Array, ""]) -> FittedGP:
    value = at.log_density(rows)
    ok = at.factor.ok & jnp.isfinite(value) & jnp.isfinite(rows.fitness_mean)
    return FittedGP(
        hyperparameters=Hyperparameters(at.theta[0], at.theta[1], at.theta[2]),
        x=rows.x,
        mask=rows.mask & ok,
        factor=replace(at.factor, num_tiles=jnp.where(ok, at.factor.num_tiles, 0)),
        weights=jnp.where(ok, at.right[..., 0], 0.0),
        fitness_mean=jnp.where(ok, rows.fitness_mean, 0.0),
        fitness_scale=jnp.where(ok, rows.fitness_scale, 1.0),
        log_likelihood=jnp.where(ok, value, -jnp.inf),
        noise_floor=at.noise_floor,
        num_evaluations=num_evaluations,
        ok=ok,
    )


# What the next visit is for. All go through one loop: a factorisation takes long to compile.
_COLD, _CLIMB, _LAST, _DONE = range(4)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Search:
    """Where the search stands: the best point so far, and the one to visit next.

    Attributes:
        stage: What the next visit is for.
        next: The point to visit next.
        best: The best point so far.
        radius: Longest step that is trusted.
        promise: What the next point should gain over the best one.
        cold_value: The likelihood at the settings' start.
        num_evaluations: Likelihood evaluations so far.
    """

    stage: Int[Array, ""]
    next: Float[Array, "3"]
    best: Likelihood
    radius: Float[Array, ""]
    promise: Float[Array, ""]
    cold_value: Float[Array, ""]
    num_evaluations: Int[Array, ""]


def _turn(settings: GPSettings, rows: Standardised, search: _Search) -> tuple[_Search, Visit]:
    """Visit the next point, and make of it what it is for."""
    at = visit(settings, search.next, rows)

    def look_at_cold_start() -> _Search:
        value, _ = best_density(settings, at, rows)
        return replace(search, stage=jnp.int32(_CLIMB), next=search.best.theta, cold_value=value,
                       num_evaluations=jnp.int32(1))  # fmt: skip

    def climb() -> _Search:
        return _climb(settings, evaluate(settings, at, rows), search)

    def end() -> _Search:
        return replace(search, stage=jnp.int32(_DONE))

    return lax.switch(search.stage, [look_at_cold_start, climb, end]), at


def _climb(settings: GPSettings, trial: Likelihood, search: _Search) -> _Search:
    """Keep the better point, adapt the radius, choose the next step. Nocedal & Wright algorithm 4.1.

    Where the cold start is likelier than the warm one, the first step jumps there.
    """
    gain = trial.value - search.best.value
    length = jnp.max(jnp.abs(search.next - search.best.theta))
    radius = jnp.where(gain < 0.25 * search.promise, 0.25 * length, search.radius)
    radius = jnp.where(gain > 0.75 * search.promise, jnp.minimum(2 * radius, _MAX_RADIUS), radius)
    best = jax.tree.map(lambda new, old: jnp.where(gain > 0, new, old), trial, search.best)
    step, promise = _newton_step(settings, best, radius)
    lead = search.cold_value - best.value
    jump = (search.num_evaluations == 1) & (lead > settings.tolerance)
    cold = _theta(settings.initial_hyperparameters(), step.dtype)
    step, promise = jnp.where(jump, cold - best.theta, step), jnp.where(jump, lead, promise)
    num_evaluations = search.num_evaluations + 1
    converged = promise < settings.tolerance
    stops = converged | (radius < _MIN_RADIUS) | (num_evaluations >= settings.max_steps)
    # The last step is taken unchecked where it is worth less than the tolerance, else not at all.
    taken = jnp.where(stops & ~converged, 0.0, step)
    return _Search(jnp.where(stops, _LAST, _CLIMB), best.theta + taken, best, radius, promise, search.cold_value,
                   num_evaluations)  # fmt: skip


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

    def climb(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        step, free = state
        matrix = jnp.where(free[:, None] & free[None], curvature, jnp.eye(3, dtype=step.dtype))
        leg = solve(matrix, jnp.where(free, gradient - curvature @ step, 0.0), assume_a="pos")
        side = jnp.where(leg > 0, up, down)
        room = jnp.where(leg == 0, jnp.inf, (side - step) / jnp.where(leg == 0, 1.0, leg))
        share = jnp.clip(jnp.min(room), 0.0, 1.0)
        return jnp.clip(step + share * leg, down, up), free & (room > share)

    return lax.fori_loop(0, 3, climb, (jnp.zeros_like(gradient), free))[0]
