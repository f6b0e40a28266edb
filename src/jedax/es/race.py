"""A race of evolution strategies (ES): those that fall behind the best one restart, the others refine their steps.

What an ES finds depends on where it starts: most robots learn a gait that ends far below the best. An ES is judged by
its *level*, the mean fitness of the best quarter of its last populations, because the best solution of a population is
often lucky. After `trial` generations, and again after twice as many, and so on, each ES must have reached the level
that the best ES had at the same age.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from jedax.types import Array, Bool, Float, Int

_SMOOTHED = 16  # generations over which a level is averaged
_COUNTED = 4  # the best solutions that count for a level: one in so many
_MARKS = 20  # ages at which ES are compared


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RaceState:
    """State of a race.

    Attributes:
        age: Generations of each ES since it started; those of the ES that it descends from count as well.
        born: Age at which each ES started.
        level: Mean fitness of the best quarter of the population of each ES, averaged over its last generations.
        top: Highest level of each ES since it started.
        waited: Generations since `top` last rose.
        refined: How often each ES has halved its step.
        marks: Level of each ES at the ages of comparison; -inf: not reached yet.
        record: Marks of the best ES so far.
        record_level: The highest level of the best ES so far.
        record_age: The age that the best ES has reached.
        leader: Which ES is the best one; `size`: it has ended.
    """

    age: Int[Array, " size"]
    born: Int[Array, " size"]
    level: Float[Array, " size"]
    top: Float[Array, " size"]
    waited: Int[Array, " size"]
    refined: Int[Array, " size"]
    marks: Float[Array, "size marks"]
    record: Float[Array, " marks"]
    record_level: Float[Array, ""]
    record_age: Int[Array, ""]
    leader: Int[Array, ""]


@dataclass(frozen=True)
class Race:
    """The rule of a race.

    Attributes:
        size: Number of ES.
        trial: Age of the first comparison, in generations.
        patience: An ES stagnates after this many generations in which its level has not risen.
        refinements: How often an ES that stagnates goes on with half the step before it ends.
    """

    size: int
    trial: int
    patience: int
    refinements: int

    def begin(self) -> RaceState:
        """Return the state before the first generation."""
        zeros, lowest = jnp.zeros(self.size, jnp.int32), jnp.full(self.size, -jnp.inf)
        marks = jnp.full((self.size, _MARKS), -jnp.inf)
        none, nobody = jnp.int32(0), jnp.int32(self.size)
        return RaceState(zeros, zeros, lowest, lowest, zeros, zeros, marks, marks[0], lowest[0], none, nobody)

    def observe(
        self, state: RaceState, scores: Float[Array, "size population"]
    ) -> tuple[RaceState, Bool[Array, " size"], Bool[Array, " size"]]:
        """Return the state after a generation, which ES end, and which of the others go on with half the step.

        Args:
            state: The state before.
            scores: Fitness of the populations; values that are not finite are left out.
        """
        number = max(1, scores.shape[1] // _COUNTED)
        best = jnp.sort(jnp.where(jnp.isfinite(scores), scores, -jnp.inf), axis=1)[:, -number:]
        known = jnp.isfinite(best)
        mean = jnp.where(known.any(axis=1), jnp.mean(best, axis=1, where=known), state.level)
        age = state.age + 1
        since = age - state.born
        before = jnp.where(since == 1, mean, state.level)
        level = jnp.where(jnp.isfinite(before), before + (mean - before) / jnp.minimum(since, _SMOOTHED), mean)
        waited = jnp.where(level > state.top, 0, state.waited + 1)
        top = jnp.maximum(level, state.top)
        due = age[:, None] == self.trial * 2 ** jnp.arange(_MARKS)
        marks = jnp.where(due, level[:, None], state.marks)

        number = jnp.arange(self.size)
        ready = since >= _SMOOTHED
        first = jnp.argmax(jnp.where(ready, level, -jnp.inf))
        leads = ready[first] & (level[first] > state.record_level)
        leader = jnp.where(leads, first, state.leader)
        its = jnp.minimum(leader, self.size - 1)
        record = jnp.where(leader < self.size, marks[its], state.record)
        record_level = jnp.where(leads, level[first], state.record_level)

        # Behind: lower than the best one at the same age, or no younger than one that has just overtaken it.
        overtakes = leader != state.leader
        behind = (due & (level[:, None] < record)).any(axis=1)
        behind |= overtakes & (age >= age[first]) & (age > self.trial)
        stagnates = waited >= self.patience
        ends = (behind & (number != leader)) | (stagnates & (state.refined >= self.refinements))
        refines = stagnates & ~ends
        state = RaceState(
            age=jnp.where(ends, 0, age),
            born=jnp.where(ends, 0, state.born),
            level=level,
            top=jnp.where(ends, -jnp.inf, top),
            waited=jnp.where(ends | refines, 0, waited),
            refined=jnp.where(ends, 0, state.refined + refines),
            marks=jnp.where(ends[:, None], -jnp.inf, marks),
            record=record,
            record_level=record_level,
            record_age=jnp.where(leader < self.size, age[its], state.record_age),
            leader=jnp.where(ends[its], self.size, leader).astype(jnp.int32),
        )
        return state, ends, refines

    def descend(self, state: RaceState, which: Bool[Array, " size"]) -> RaceState:
        """Return the state with some ES as old as the best one, because they start from solutions that are known.

        Compared with random starts of their own age they would always be ahead.
        """
        return replace(
            state,
            age=jnp.where(which, state.record_age, state.age),
            born=jnp.where(which, state.record_age, state.born),
            marks=jnp.where(which[:, None], state.record, state.marks),
        )
