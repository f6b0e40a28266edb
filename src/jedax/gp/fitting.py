"""Fitting the hyperparameters: Newton's method with a trust region, for three logarithms inside their bounds.

The second derivatives are cheap (see `jedax.gp.derivatives`) and save most of the steps: a fit from the previous
hyperparameters takes three or four likelihood evaluations, a first fit about twice as many.

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
from jax.scipy.linalg import solve as solve_dense

from jedax.gp.data import Standardised, standardise
from jedax.gp.derivatives import Likelihood, evaluate
from jedax.gp.likelihood import Solved, log_bounds, rescale, solve
from jedax.gp.model import FittedGP, GPData, Hyperparameters
from jedax.gp.sequential import one_by_one
from jedax.gp.settings import GPSettings
from jedax.types import Array, Bool, Float, Int

_MAX_RADIUS = 1.0  # longest step, as a change of the log of a hyperparameter
_MIN_RADIUS = 1e-2  # if the likelihood falls within one per cent, the difference is float32 noise: stop
_MIN_CURVATURE = 1e-3
_MIN_ROWS = 3  # the number of hyperparameters


@partial(jax.jit, static_argnums=0)
def fit(settings: GPSettings, start: Hyperparameters, data: GPData, wanted: Bool[Array, ""] | bool = True) -> FittedGP:
    """Maximise the log marginal likelihood over the hyperparameters, and condition the process on the data.

    With fewer than three data, or equal fitness of all data, the hyperparameters stay at `start`. Without data the
    process is its prior. Under `vmap` replicas are fitted one after the other, each with as many steps as it needs
    (see `jedax.gp.sequential`).

    Args:
        settings: Settings of the process.
        start: The hyperparameters of the previous fit, or `settings.initial_hyperparameters()`. They are clipped to the
            bounds, and replaced by the initial ones if they are not finite.
        data: The data, padded to a fixed size.
        wanted: If False, the hyperparameters are not fitted: the process is conditioned with `start` as it is.
    """
    return one_by_one(partial(_fit, settings))(start, data, jnp.asarray(wanted))


@partial(jax.jit, static_argnums=0)
def condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    """Return the process with the given hyperparameters, not clipped to the bounds, conditioned on the data."""
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
        best=Likelihood.failed(theta),
        radius=_MAX_RADIUS * one,
        promise=jnp.inf * one,
        cold_value=0 * one,
        num_evaluations=jnp.int32(0),
    )
    search, at = lax.while_loop(
        lambda state: state[0].stage != _DONE,
        lambda state: _step(settings, rows, state[0]),
        (begin, Solved.placeholder(theta, rows)),
    )
    return _fitted(at, rows, search.num_evaluations)


def _condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    rows = standardise(settings, data)
    return _fitted(solve(settings, _theta(hyperparameters, rows.y.dtype), rows), rows, jnp.zeros((), jnp.int32))


def _theta(hyperparameters: Hyperparameters, dtype: jnp.dtype) -> Float[Array, "3"]:
    h = hyperparameters
    return jnp.stack([h.log_signal, h.log_length_scale, h.log_noise]).astype(dtype)


def _fitted(at: Solved, rows: Standardised, num_evaluations: Int[Array, ""]) -> FittedGP:
    value = at.log_likelihood(rows)
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


# The purpose of the next factorisation: value at the initial hyperparameters, step of the climb, final process. All
# three share one loop, because a factorisation takes long to compile.
_COLD, _CLIMB, _LAST, _DONE = range(4)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Search:
    """State of the maximisation.

    Attributes:
        stage: Purpose of the next factorisation.
        next: `theta` of the next factorisation.
        best: The best point so far.
        radius: Radius of the trust region.
        promise: Expected gain of the next point over the best one.
        cold_value: Log likelihood at the initial hyperparameters.
        num_evaluations: Likelihood evaluations so far.
    """

    stage: Int[Array, ""]
    next: Float[Array, "3"]
    best: Likelihood
    radius: Float[Array, ""]
    promise: Float[Array, ""]
    cold_value: Float[Array, ""]
    num_evaluations: Int[Array, ""]


def _step(settings: GPSettings, rows: Standardised, search: _Search) -> tuple[_Search, Solved]:
    """Factorise at the next point, and use the result for the purpose of the stage."""
    at = solve(settings, search.next, rows)

    def look_at_cold_start() -> _Search:
        value, _ = rescale(settings, at, rows)
        return replace(search, stage=jnp.int32(_CLIMB), next=search.best.theta, cold_value=value,
                       num_evaluations=jnp.int32(1))  # fmt: skip

    def climb() -> _Search:
        return _climb(settings, evaluate(settings, at, rows), search)

    def end() -> _Search:
        return replace(search, stage=jnp.int32(_DONE))

    return lax.switch(search.stage, [look_at_cold_start, climb, end]), at


def _climb(settings: GPSettings, trial: Likelihood, search: _Search) -> _Search:
    """Keep the better point, adapt the radius, and choose the next step. Nocedal & Wright algorithm 4.1.

    If the initial hyperparameters have a higher likelihood than `start`, the first step goes there.
    """
    gain = trial.value - search.best.value
    length = jnp.max(jnp.abs(search.next - search.best.theta))
    radius = jnp.where(gain < 0.25 * search.promise, 0.25 * length, search.radius)
    radius = jnp.where(gain > 0.75 * search.promise, jnp.minimum(2 * radius, _MAX_RADIUS), radius)
    best = jax.tree.map(lambda new, old: jnp.where(gain > 0, new, old), trial, search.best)
    step, promise = _newton_step(settings, best, radius)
    lead = search.cold_value - best.value
    jump = (search.num_evaluations == 1) & (lead > settings.gp_tolerance)
    cold = _theta(settings.initial_hyperparameters(), step.dtype)
    step, promise = jnp.where(jump, cold - best.theta, step), jnp.where(jump, lead, promise)
    num_evaluations = search.num_evaluations + 1
    converged = promise < settings.gp_tolerance
    stops = converged | (radius < _MIN_RADIUS) | (num_evaluations >= settings.gp_max_steps)
    # At convergence the last step is taken without a check; otherwise it is not taken.
    taken = jnp.where(stops & ~converged, 0.0, step)
    return _Search(jnp.where(stops, _LAST, _CLIMB), best.theta + taken, best, radius, promise, search.cold_value,
                   num_evaluations)  # fmt: skip


def _newton_step(
    settings: GPSettings, at: Likelihood, radius: Float[Array, ""]
) -> tuple[Float[Array, "3"], Float[Array, ""]]:
    """Return the next step, and the gain expected from the quadratic model, at least 0.

    A hyperparameter at a bound stays there if the gradient points outside. Along directions of positive curvature the
    step is that for the opposite curvature, so that it is an ascent. Nocedal & Wright section 3.4.
    """
    low, high = log_bounds(settings, at.theta.dtype)
    edge = 1e-6 * jnp.maximum(1.0, jnp.abs(at.theta))
    stuck = ((at.theta <= low + edge) & (at.gradient < 0)) | ((at.theta >= high - edge) & (at.gradient > 0))
    gradient = jnp.where(stuck, 0.0, at.gradient)
    curvature = jnp.where(stuck[:, None] | stuck[None], jnp.eye(3, dtype=gradient.dtype), -at.hessian)
    eigenvalues, basis = jnp.linalg.eigh(curvature)
    curvature = (basis * jnp.maximum(jnp.abs(eigenvalues), _MIN_CURVATURE)) @ basis.T
    down, up = jnp.maximum(low - at.theta, -radius), jnp.minimum(high - at.theta, radius)
    step = _maximise_in_box(gradient, curvature, down, up, ~stuck)
    return step, gradient @ step + 0.5 * step @ (at.hessian @ step)


def _maximise_in_box(
    gradient: Float[Array, "3"],
    curvature: Float[Array, "3 3"],
    down: Float[Array, "3"],
    up: Float[Array, "3"],
    free: Bool[Array, "3"],
) -> Float[Array, "3"]:
    """Climb `gradient'p - 1/2 p'curvature p` from `p = 0` inside a box, in at most three legs.

    A leg leads to the maximum over the free coordinates, or to the first side of the box, whose coordinate is then
    fixed. Every leg is an ascent, because the model is concave. Nocedal & Wright section 16.7.
    """

    def climb(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        step, free = state
        matrix = jnp.where(free[:, None] & free[None], curvature, jnp.eye(3, dtype=step.dtype))
        leg = solve_dense(matrix, jnp.where(free, gradient - curvature @ step, 0.0), assume_a="pos")
        side = jnp.where(leg > 0, up, down)
        room = jnp.where(leg == 0, jnp.inf, (side - step) / jnp.where(leg == 0, 1.0, leg))
        share = jnp.clip(jnp.min(room), 0.0, 1.0)
        return jnp.clip(step + share * leg, down, up), free & (room > share)

    return lax.fori_loop(0, 3, climb, (jnp.zeros_like(gradient), free))[0]
