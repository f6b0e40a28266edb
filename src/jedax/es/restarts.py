"""Restarts of converged evolution strategies (ES), with large and small populations in turn.

BIPOP [1]: restarts of one kind have populations that double each time and long first steps; those of the other kind
have small populations and short first steps. The kind that has used fewer generations is next; the first start counts
as small. Here an ES is also restarted where its population gathers at an optimum that was found before, and where it is
so far behind the best solution that it will not catch up.

References:
    [1] N. Hansen. Benchmarking a BI-Population CMA-ES on the BBOB-2009 Function Testbed. GECCO Workshop, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from jedax.types import Array, Bool, Float, Int, PRNGKeyArray

_REMEMBERED = 16  # optima
_FLAT = 10  # generations in a row with one fitness, in one place or too far behind, after which an ES has converged
_SAME_FITNESS = 1e-11  # differences of fitness up to this count as 0, as in pycma; times `width` where that is below 1
# An ES is too far behind the best solution by so many times the differences within its population, or by as many as the
# square of the number of parameters if that is more: these differences are the smaller the more parameters there are.
_BEHIND = 30
_SAME_PLACE = {"float64": 1e-9, "float32": 1e-6}  # a population of at most this extent, in spreads, is in one place


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RestartState:
    """What restarts depend on.

    Attributes:
        growth: By which factor the population of each ES is larger; one that cannot grow waits so much longer.
        largest: The largest growth of each ES so far.
        is_large: Whether the present population of each ES is of the kind that doubles.
        spent: Generations that each ES has used on large and on small populations; the first one counts as small.
        flat: Generations in a row in which the population of each ES had one fitness, lay in one place, or was too far
            behind.
        width: The largest difference of fitness within a population so far.
        optima: Where ES have converged; inf: not yet.
        num_optima: Number of optima that were found.
        num_known: Restarts at optima known before, since the best solution last improved.
    """

    growth: Int[Array, " size"]
    largest: Int[Array, " size"]
    is_large: Bool[Array, " size"]
    spent: Int[Array, "size 2"]
    flat: Int[Array, " size"]
    width: Float[Array, ""]
    optima: Float[Array, "remembered params"]
    num_optima: Int[Array, ""]
    num_known: Int[Array, ""]


@dataclass(frozen=True)
class Restarts:
    """The rule of restarts for a number of ES.

    Attributes:
        size: Number of ES.
        growth: The largest population, in generations; 1: populations do not grow, and no ES converges.
        radius: A population within this distance of a known optimum is at it, in units of the spread of random
            genotypes.
    """

    size: int
    growth: int
    radius: float

    def begin(self, num_params: int) -> RestartState:
        """Return the state before the first generation."""
        ones, zeros = jnp.ones(self.size, jnp.int32), jnp.zeros(self.size, jnp.int32)
        return RestartState(
            growth=ones,
            largest=ones,
            is_large=jnp.zeros(self.size, bool),
            spent=jnp.zeros((self.size, 2), jnp.int32),
            flat=zeros,
            width=jnp.zeros(()),
            optima=jnp.full((_REMEMBERED if self.growth > 1 else 0, num_params), jnp.inf),
            num_optima=jnp.int32(0),
            num_known=jnp.int32(0),
        )

    def observe(
        self,
        state: RestartState,
        genotypes: Float[Array, "size population params"],
        scores: Float[Array, "size population"],
        spread: Float[Array, ""],
        best_before: Float[Array, ""],
        has_improved: Bool[Array, ""],
    ) -> tuple[RestartState, Bool[Array, " size"]]:
        """Return the state after a generation, and which ES have converged or are at a known optimum.

        Args:
            state: The state before.
            genotypes: The populations.
            scores: Their scores; those that are not finite are left out.
            spread: Standard deviation of random genotypes.
            best_before: The best fitness so far, without this generation; -inf: there is none.
            has_improved: Whether the generation has a better solution. With constraints scores do not tell.
        """
        if self.growth == 1:
            return state, jnp.zeros(self.size, bool)
        known = jnp.isfinite(scores)
        highest = jnp.max(scores, axis=1, where=known, initial=-jnp.inf)
        lowest = jnp.min(scores, axis=1, where=known, initial=jnp.inf)
        rounding = 10 * jnp.finfo(scores.dtype).eps * jnp.abs(highest)
        extent = jnp.ptp(genotypes, axis=1).max(axis=1) / spread
        width = jnp.maximum(state.width, jnp.max(highest - lowest, where=known.any(axis=1), initial=0))
        is_flat = highest - lowest <= jnp.maximum(rounding, _SAME_FITNESS * jnp.minimum(width, 1))
        behind = max(_BEHIND, genotypes.shape[-1] ** 2)
        is_flat |= jnp.isfinite(best_before) & (best_before - highest > behind * (highest - lowest))
        is_flat |= extent <= _SAME_PLACE[str(genotypes.dtype)]
        flat = jnp.where(is_flat, state.flat + 1, 0)
        has_converged = flat >= _FLAT
        middle = genotypes.mean(axis=1)
        distance = jnp.abs(middle[:, None] - state.optima).max(axis=-1).min(axis=1) / spread
        is_known = jnp.maximum(distance, extent) <= self.radius
        is_new = has_converged & ~is_known
        place = jnp.where(is_new, (state.num_optima + jnp.cumsum(is_new) - 1) % _REMEMBERED, _REMEMBERED)
        num_known = state.num_known + is_known.sum(dtype=jnp.int32)
        used = jnp.stack([state.is_large, ~state.is_large], axis=1)
        state = replace(
            state,
            spent=state.spent + used,
            flat=flat,
            width=width.astype(state.width.dtype),
            optima=state.optima.at[place].set(middle.astype(state.optima.dtype), mode="drop"),
            num_optima=state.num_optima + is_new.sum(dtype=jnp.int32),
            num_known=jnp.where(has_improved & ~is_known.any(), 0, num_known),
        )
        return state, has_converged | is_known

    def restart(self, key: PRNGKeyArray, state: RestartState, which: Bool[Array, " size"]) -> RestartState:
        """Return the state with new populations for some ES: large ones unless these have used more generations."""
        if self.growth == 1:
            return state
        turn = state.spent[:, 0] <= state.spent[:, 1]
        largest = jnp.where(which & turn, jnp.minimum(2 * state.largest, self.growth), state.largest)
        share = jax.random.uniform(key, (self.size,)) ** 2
        small = jnp.maximum(1, jnp.floor((largest / 2) ** share)).astype(jnp.int32)
        return replace(
            state,
            growth=jnp.where(which, jnp.where(turn, largest, small), state.growth).astype(jnp.int32),
            largest=largest.astype(jnp.int32),
            is_large=jnp.where(which, turn, state.is_large),
            flat=jnp.where(which, 0, state.flat),
        )
