"""A race of two evolution strategies (ES): the leader goes on, and rivals try to overtake it.

What an ES finds depends on where it starts: most robots learn a gait that ends far below the best. An ES is judged by
its *level*, the mean fitness of the best quarter of its last populations, because the best solution of a population is
often lucky. A leader that stagnates goes on with half the step, which raises its level, because the noise of steps
spoils solutions. Rivals never do that, so they are compared with the level that the leader had before. A rival above
that level takes the leader's place. After `trial` generations, and again after twice as many, and so on, a rival must
be on the way there, or the next rival begins: at the pace of the second half of its life it must reach that level
before the next comparison. Rivals start from random solutions, and half of them at the mean of the leader once that
has halved its step. A leader that stagnates although it has halved its step often enough leaves all generations to
rivals.

An ES is of one of two kinds, since no step size suits all tasks: a *bold* ES has longer steps. The first leader is not
bold, the first rival is, and so is half of those from random solutions; a rival at the leader's mean is of its kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from jedax.types import Array, Bool, Float, Int, PRNGKeyArray

_SMOOTHED = 16  # generations over which a level is averaged
_COUNTED = 4  # the best solutions that count for a level: one in so many
_LEAST_GAIN = 0.05  # share of what a leader has gained since it started; with less it stagnates


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Racer:
    """How one ES does.

    Attributes:
        age: Generations since it started.
        level: Mean fitness of the best quarter of its population, averaged over the last generations; -inf: none yet.
        first: Its level after the first generation, or that of an ES it has overtaken if lower.
        full: Its level before it first halved its step.
        halfway: Its level at the last of the ages `trial` / 2, `trial`, 2 `trial`, and so on.
        lately: Its level at the last multiple of `patience`.
        refined: How often it has halved its step.
        done: Whether it stagnates and may not halve its step again.
        bold: Whether it is bold.
    """

    age: Int[Array, ""]
    level: Float[Array, ""]
    first: Float[Array, ""]
    full: Float[Array, ""]
    halfway: Float[Array, ""]
    lately: Float[Array, ""]
    refined: Int[Array, ""]
    done: Bool[Array, ""]
    bold: Bool[Array, ""]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RaceState:
    """State of a race.

    Attributes:
        leader: The ES that has not been overtaken.
        rival: The ES that tries to overtake it.
    """

    leader: Racer
    rival: Racer


@dataclass(frozen=True)
class Race:
    """The rule of a race.

    Attributes:
        trial: Age at which a rival is first compared, in generations. Rivals begin when the leader is as old.
        patience: Generations over which a leader must gain, or it stagnates.
        refinements: How often a leader that stagnates goes on with half the step.
        share: Share of the generations that rivals get while the leader goes on.
        has_bold: Whether there are bold ES.
    """

    trial: int
    patience: int
    refinements: int
    share: float
    has_bold: bool = False

    def begin(self) -> RaceState:
        """Return the state before the first generation."""
        return RaceState(_fresh(jnp.bool_(False)), _fresh(jnp.bool_(self.has_bold)))

    def rival_share(self, state: RaceState) -> Float[Array, ""]:
        """Return the probability that the next generation is one of the rival."""
        shared = jnp.where(state.leader.age >= self.trial, self.share, 0.0)
        return jnp.where(state.leader.done, 1.0, shared)

    def choose_rival(self, key: PRNGKeyArray, leader: Racer) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
        """Return whether the next rival is bold, and whether it starts at the leader's mean, both drawn at random."""
        is_bold, at_leader = jax.random.bernoulli(key, shape=(2,))
        at_leader &= leader.refined > 0
        return jnp.where(at_leader, leader.bold, self.has_bold & is_bold), at_leader

    def observe_leader(
        self, state: RaceState, scores: Float[Array, " population"]
    ) -> tuple[RaceState, Bool[Array, ""]]:
        """Return the state after a generation of the leader, and whether the leader goes on with half the step.

        Args:
            state: The state before.
            scores: Fitness of the population; values that are not finite are left out.
        """
        before, leader = state.leader, self._observe(state.leader, scores)
        gain, all_gain = leader.level - before.lately, leader.level - leader.first
        stagnates = (leader.age % self.patience == 0) & (gain <= _LEAST_GAIN * all_gain)
        refines = stagnates & (leader.refined < self.refinements)
        leader = replace(leader, refined=leader.refined + refines, done=stagnates & ~refines)
        return replace(state, leader=leader), refines

    def observe_rival(
        self, key: PRNGKeyArray, state: RaceState, scores: Float[Array, " population"]
    ) -> tuple[RaceState, Bool[Array, ""], Bool[Array, ""], Bool[Array, ""]]:
        """Return the state after a generation of the rival, and what follows from it.

        Args:
            key: Random key, by which the next rival is chosen.
            state: The state before.
            scores: Fitness of the population; values that are not finite are left out.

        Returns:
            The state, whether the rival takes the leader's place, whether the next rival begins, and whether that
            starts at the leader's mean.
        """
        leader, rival = state.leader, self._observe(state.rival, scores)
        overtakes = (rival.age >= _SMOOTHED) & (rival.level > leader.full)
        # Early levels tell little: on some tasks those that learn fast end low. Gains tell more. Until the next
        # comparison, at twice its age, it gains at this pace twice what it has gained since half its age.
        hope = rival.level + 2 * (rival.level - state.rival.halfway)
        is_compared = (rival.age >= self.trial) & self._is_mark(rival.age)
        ends = overtakes | (is_compared & (hope < leader.full))
        lowest = jnp.minimum(leader.first, rival.first)  # a rival may start at the leader's mean
        winner = replace(rival, first=lowest)
        leader = jax.tree.map(lambda new, old: jnp.where(overtakes, new, old), winner, leader)
        bold, at_leader = self.choose_rival(key, leader)
        rival = jax.tree.map(lambda new, old: jnp.where(ends, new, old), _fresh(bold), rival)
        return RaceState(leader, rival), overtakes, ends, at_leader

    def _observe(self, racer: Racer, scores: Float[Array, " population"]) -> Racer:
        """Return an ES after a generation."""
        number = max(1, scores.shape[0] // _COUNTED)
        best = jnp.sort(jnp.where(jnp.isfinite(scores), scores, -jnp.inf))[-number:]
        known = jnp.isfinite(best)
        mean = jnp.where(known.any(), jnp.mean(best, where=known), racer.level)
        age, is_first = racer.age + 1, jnp.isneginf(racer.level)
        level = jnp.where(is_first, mean, racer.level + (mean - racer.level) / jnp.minimum(age, _SMOOTHED))
        return replace(
            racer,
            age=age,
            level=level,
            first=jnp.where(is_first, level, racer.first),
            full=jnp.where(racer.refined == 0, level, racer.full),
            halfway=jnp.where(self._is_mark(age), level, racer.halfway),
            lately=jnp.where(age % self.patience == 0, level, racer.lately),
        )

    def _is_mark(self, age: Int[Array, ""]) -> Bool[Array, ""]:
        """Return whether an age is half of `trial`, `trial`, or `trial` times a power of two."""
        times = age // self.trial
        return (age == self.trial // 2) | ((age == times * self.trial) & (times > 0) & (times & (times - 1) == 0))


def _fresh(bold: Bool[Array, ""]) -> Racer:
    none, lowest = jnp.int32(0), jnp.array(-jnp.inf)  # in the precision of the search
    return Racer(none, lowest, lowest, lowest, lowest, lowest, none, jnp.bool_(False), bold)
