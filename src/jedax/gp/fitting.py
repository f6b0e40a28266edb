"""Fitting the hyperparameters: Newton's method with a trust region, for three logarithms inside their bounds.

The second derivatives are cheap (see `jedax.gp.derivatives`) and save most of the steps: a fit from the previous
hyperparameters takes three or four likelihood evaluations, a climb from elsewhere about twice as many. The likelihood
of a repertoire often has several maxima, tens of nats apart, so a thorough fit climbs from several starts.

References:
    Nocedal & Wright 2006, "Numerical Optimization", chapters 4 (trust regions) and 16.7 (projection on
    bounds).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve as solve_dense

from jedax.gp import features, tiles
from jedax.gp.data import Rows, Tiled, cut, draw, standardise
from jedax.gp.derivatives import Likelihood, evaluate
from jedax.gp.likelihood import Solved, log_bounds, rescale, solve
from jedax.gp.model import FittedGP, GPData, Hyperparameters
from jedax.gp.sequential import in_float64, one_by_one
from jedax.gp.settings import GPSettings
from jedax.gp.tiles import TILE, Factor
from jedax.types import Array, Bool, Float, Int

_MAX_RADIUS = 1.0  # longest step, as a change of the log of a hyperparameter
_MIN_RADIUS = 1e-3
_MIN_CURVATURE = 1e-3
_MIN_ROWS = 3  # the number of hyperparameters
# Factors of `gp_start` for the other starts of a thorough fit: a shorter or a longer length scale, less noise.
_OTHER_STARTS = np.log([[1.0, 0.3, 0.1], [1.0, 4.0, 0.1]])


@partial(jax.jit, static_argnums=0)
def fit(
    settings: GPSettings,
    start: Hyperparameters,
    data: GPData,
    wanted: Bool[Array, ""] | bool = True,
    thorough: Bool[Array, ""] | bool | None = None,
) -> FittedGP:
    """Maximise the log marginal likelihood over the hyperparameters, and condition the process on the data.

    The fit climbs from `start`, or from `gp_start` if the likelihood is higher there. A thorough fit climbs from two
    more starts; the highest maximum wins. With fewer than three data, or equal fitness of all data, the hyperparameters
    stay at `start`. Without data the process is its prior. Under `vmap` replicas are fitted one after the other, each
    with as many steps as it needs (see `jedax.gp.sequential`).

    Args:
        settings: Settings of the process.
        start: The hyperparameters of the previous fit, or `settings.initial_hyperparameters()`. They are clipped to the
            bounds, and replaced by the initial ones if they are not finite.
        data: The data, padded to a fixed size.
        wanted: If False, the hyperparameters are not fitted: the process is conditioned with `start` as it is.
        thorough: Whether to climb from more starts; None: if `start` are the initial hyperparameters.
    """
    if thorough is None:
        initial = settings.initial_hyperparameters()
        thorough = jnp.all(jnp.stack([a == b for a, b in zip(*map(jax.tree.leaves, (start, initial)), strict=True)]))
    return one_by_one(in_float64(partial(_fit, settings)))(start, data, jnp.asarray(wanted), jnp.asarray(thorough))


@partial(jax.jit, static_argnums=0)
def condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    """Return the process with the given hyperparameters, not clipped to the bounds, conditioned on the data."""
    return one_by_one(in_float64(partial(_condition, settings)))(hyperparameters, data)


def _fit(
    settings: GPSettings, start: Hyperparameters, data: GPData, wanted: Bool[Array, ""], thorough: Bool[Array, ""]
) -> FittedGP:
    rows = standardise(settings, data)
    settings = _with_bounds(settings, rows)
    low, high = log_bounds(settings, rows.y.dtype)
    cold = _theta(settings.initial_hyperparameters())
    theta = _theta(start)
    theta = jnp.where(wanted, jnp.clip(jnp.where(jnp.all(jnp.isfinite(theta)), theta, cold), low, high), theta)
    few = rows if _is_exact(settings, rows) else draw(rows, settings.gp_max_rows)
    full = cut(few)
    starts = jnp.concatenate([theta[None], jnp.clip(cold + _OTHER_STARTS, low, high)])
    learnable = wanted & rows.varied & (few.num >= _MIN_ROWS)
    begin = _Search(
        stage=jnp.where(learnable, _COLD, _LAST).astype(jnp.int32),
        next=jnp.where(learnable, cold, theta),
        turn=jnp.int32(0),
        last_turn=jnp.where(thorough, len(starts) - 1, 0).astype(jnp.int32),
        best=Likelihood.failed(theta),
        top=Likelihood.failed(theta),
        radius=jnp.asarray(_MAX_RADIUS),
        promise=jnp.asarray(jnp.inf),
        cold_value=jnp.asarray(0.0),
        shift=jnp.asarray(0.0),
        num_climbed=jnp.int32(0),
        num_evaluations=jnp.int32(0),
    )
    search, at = lax.while_loop(
        lambda state: state[0].stage != _DONE,
        lambda state: _step(settings, full, starts, state[0]),
        (begin, Solved.placeholder(theta, full)),
    )
    if _is_exact(settings, rows):
        return _fitted(at, full, rows, search.shift, search.num_evaluations)
    best = at.theta + search.shift * jnp.array([1.0, 0.0, 1.0])
    return _with_all_rows(settings, best, rows, search.num_evaluations)


def _condition(settings: GPSettings, hyperparameters: Hyperparameters, data: GPData) -> FittedGP:
    rows = standardise(settings, data)
    if not _is_exact(settings, rows):
        return _with_all_rows(settings, _theta(hyperparameters), rows, jnp.int32(0))
    full = cut(rows)
    return _fitted(solve(settings, _theta(hyperparameters), full), full, rows, jnp.zeros(()), jnp.int32(0))


def _is_exact(settings: GPSettings, rows: Rows) -> bool:
    return len(rows.mask) <= max(settings.gp_max_rows, TILE)  # features come in whole tiles


def _with_bounds(settings: GPSettings, rows: Rows) -> GPSettings:
    """Return the settings with length scales that the features resolve, if there are too many rows for all of them."""
    if len(rows.mask) <= features.MOST_ROWS * settings.gp_max_rows:
        return settings
    low, high = settings.gp_length_scale_bounds
    shortest = min(max(low, features.shortest_length_scale(settings, rows.x.shape[1])), high / 1.01)
    return settings.model_copy(update={"gp_length_scale_bounds": (shortest, high)})


def _with_all_rows(
    settings: GPSettings, theta: Float[Array, "3"], rows: Rows, num_evaluations: Int[Array, ""]
) -> FittedGP:
    """Return the process with `theta`: by features if their error is below the tolerance, else with all rows."""
    factor, weights, value, bound = features.conditioned(settings, theta, rows)
    full, floor = cut(rows), jnp.asarray(settings.gp_noise_floor)
    enough = bound <= settings.gp_tolerance
    if len(rows.mask) <= features.MOST_ROWS * settings.gp_max_rows:
        num = len(full.y)

        def by_features() -> tuple[Factor, Float[Array, "tiles tile"], Float[Array, ""], Float[Array, ""]]:
            more = (0, num - len(weights))
            lower = jnp.pad(factor.lower, (more, more, (0, 0), (0, 0)))
            corners = jnp.pad(factor.corners, (more, (0, 0), (0, 0)))
            padded = replace(factor, lower=lower, corners=corners)
            return padded, jnp.pad(weights, (more, (0, 0))), value, floor

        def by_rows() -> tuple[Factor, Float[Array, "tiles tile"], Float[Array, ""], Float[Array, ""]]:
            at = solve(settings, theta, full)
            return at.factor, at.right[..., 0], at.log_likelihood(full), at.noise_floor

        factor, weights, value, floor = lax.cond(enough, by_features, by_rows)
    else:
        enough = jnp.asarray(True)
    ok = factor.ok & jnp.isfinite(value) & jnp.isfinite(rows.fitness_mean)
    return FittedGP(
        hyperparameters=Hyperparameters(*theta.astype(jnp.float32)),
        theta=theta,
        shift=jnp.zeros(()),
        x=full.x,
        mask=full.mask & ok,
        factor=replace(factor, num_tiles=jnp.where(ok, factor.num_tiles, 0)),
        weights=jnp.where(ok, weights, 0.0),
        by_features=enough & ok,
        fitness_mean=jnp.where(ok, rows.fitness_mean, 0.0),
        fitness_scale=jnp.where(ok, rows.fitness_scale, 1.0),
        log_likelihood=jnp.where(ok, value, -jnp.inf).astype(jnp.float32),
        noise_floor=floor.astype(jnp.float32),
        num_evaluations=num_evaluations,
        ok=ok,
    )


def _theta(hyperparameters: Hyperparameters) -> Float[Array, "3"]:
    h = hyperparameters
    return jnp.stack([h.log_signal, h.log_length_scale, h.log_noise]).astype(jnp.float64)


def _fitted(at: Solved, data: Tiled, rows: Rows, shift: Float[Array, ""], num_evaluations: Int[Array, ""]) -> FittedGP:
    """Return the process at `at.theta` with `shift` added to `log s` and `log s_n`."""
    value = at.log_likelihood(data, shift)
    ok = at.factor.ok & jnp.isfinite(value) & jnp.isfinite(rows.fitness_mean)
    return FittedGP(
        hyperparameters=Hyperparameters(*(at.theta + shift * jnp.array([1.0, 0.0, 1.0])).astype(jnp.float32)),
        theta=at.theta,
        shift=shift,
        x=data.x,
        mask=data.mask & ok,
        factor=replace(at.factor, num_tiles=jnp.where(ok, at.factor.num_tiles, 0)),
        weights=jnp.where(ok, at.right[..., 0], 0.0),
        by_features=None,
        fitness_mean=jnp.where(ok, rows.fitness_mean, 0.0),
        fitness_scale=jnp.where(ok, rows.fitness_scale, 1.0),
        log_likelihood=jnp.where(ok, value, -jnp.inf).astype(jnp.float32),
        noise_floor=at.noise_floor.astype(jnp.float32),
        num_evaluations=num_evaluations,
        ok=ok,
    )


# The purpose of the next factorisation: value at the initial hyperparameters, step of a climb, final process. All
# three share one loop, because a factorisation takes long to compile.
_COLD, _CLIMB, _LAST, _DONE = range(4)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Search:
    """State of the maximisation.

    Attributes:
        stage: Purpose of the next factorisation.
        next: `theta` of the next factorisation.
        turn: Index of the start of this climb.
        last_turn: Index of the last start.
        best: The best point of this climb.
        top: The best point of the climbs before.
        radius: Radius of the trust region.
        promise: Expected gain of the next point over the best one.
        cold_value: Log likelihood at the initial hyperparameters.
        shift: Change of `log s` and `log s_n` since the last factorisation.
        num_climbed: Likelihood evaluations of this climb.
        num_evaluations: Likelihood evaluations so far.
    """

    stage: Int[Array, ""]
    next: Float[Array, "3"]
    turn: Int[Array, ""]
    last_turn: Int[Array, ""]
    best: Likelihood
    top: Likelihood
    radius: Float[Array, ""]
    promise: Float[Array, ""]
    cold_value: Float[Array, ""]
    shift: Float[Array, ""]
    num_climbed: Int[Array, ""]
    num_evaluations: Int[Array, ""]


def _step(
    settings: GPSettings, data: Tiled, starts: Float[Array, "starts 3"], search: _Search
) -> tuple[_Search, Solved]:
    """Factorise at the next point, and use the result for the purpose of the stage."""
    at = solve(settings, search.next, data)

    def look_at_cold_start() -> _Search:
        value, _ = rescale(settings, at, data)
        return replace(search, stage=jnp.int32(_CLIMB), next=starts[0], cold_value=value, num_evaluations=jnp.int32(1))

    def climb() -> _Search:
        return _climb(settings, evaluate(settings, at, data), starts, search)

    def end() -> _Search:
        return replace(search, stage=jnp.int32(_DONE))

    # The last factorisation is at `theta` before it was rescaled.
    found = lax.switch(search.stage, [look_at_cold_start, climb, end])
    shift = jnp.where(found.stage == _DONE, found.top.theta[0] - at.theta[0], 0.0)
    return replace(found, shift=jnp.where(search.stage == _CLIMB, shift, 0.0)), at


def _climb(settings: GPSettings, trial: Likelihood, starts: Float[Array, "starts 3"], search: _Search) -> _Search:
    """Keep the better point, adapt the radius, and choose the next step. Nocedal & Wright algorithm 4.1.

    If the initial hyperparameters have a higher likelihood than the first start, the first step goes there.
    """
    gain = trial.value - search.best.value
    length = jnp.max(jnp.abs(search.next - search.best.theta))
    radius = jnp.where(gain < 0.25 * search.promise, 0.25 * length, search.radius)
    radius = jnp.where(gain > 0.75 * search.promise, jnp.minimum(2 * radius, _MAX_RADIUS), radius)
    best = _better(trial, search.best)
    step, promise = _newton_step(settings, best, radius)
    lead = search.cold_value - best.value
    jump = (search.turn == 0) & (search.num_climbed == 0) & (lead > settings.gp_tolerance)
    cold = _theta(settings.initial_hyperparameters())
    step, promise = jnp.where(jump, cold - best.theta, step), jnp.where(jump, lead, promise)
    num_climbed = search.num_climbed + 1
    on = replace(search, next=best.theta + step, best=best, radius=radius, promise=promise, num_climbed=num_climbed,
                 num_evaluations=search.num_evaluations + 1)  # fmt: skip
    stops = (promise < settings.gp_tolerance) | (radius < _MIN_RADIUS) | (num_climbed >= settings.gp_max_steps)

    top = _better(best, search.top)
    ends = search.turn == search.last_turn
    # The last factorisation serves the final process, unless it is that of a worse point.
    stage = jnp.where(jnp.all(top.theta == trial.theta) & jnp.isfinite(trial.value), _DONE, _LAST)
    start = starts[jnp.minimum(search.turn + 1, len(starts) - 1)]
    stopped = replace(
        on,
        stage=jnp.where(ends, stage, _CLIMB).astype(jnp.int32),
        next=jnp.where(ends, top.theta, start),
        turn=search.turn + 1,
        best=Likelihood.failed(start),
        top=top,
        radius=jnp.asarray(_MAX_RADIUS / 2),
        promise=jnp.asarray(jnp.inf),
        num_climbed=jnp.int32(0),
    )
    return jax.tree.map(lambda a, b: jnp.where(stops, a, b), stopped, on)


def _better(one: Likelihood, other: Likelihood) -> Likelihood:
    """Return the point with the higher likelihood; on a tie the second."""
    return jax.tree.map(lambda a, b: jnp.where(one.value > other.value, a, b), one, other)


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

    def climb(_: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        step, free = state
        matrix = jnp.where(free[:, None] & free[None], curvature, jnp.eye(3, dtype=step.dtype))
        leg = solve_dense(matrix, jnp.where(free, gradient - curvature @ step, 0.0), assume_a="pos")
        side = jnp.where(leg > 0, up, down)
        room = jnp.where(leg == 0, jnp.inf, (side - step) / jnp.where(leg == 0, 1.0, leg))
        share = jnp.clip(jnp.min(room), 0.0, 1.0)
        return jnp.clip(step + share * leg, down, up), free & (room > share)

    return tiles.loop(0, 3, climb, (jnp.zeros_like(gradient), free))[0]
