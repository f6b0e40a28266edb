"""A race of two evolution strategies (ES): the leader goes on, and rivals try to overtake it.

What an ES finds depends on where it starts: most robots learn a gait that ends far below the best. An ES is judged by
its *level*, the mean fitness of the best quarter of its last populations, because the best solution of a population is
often lucky.

The race begins with *heats*: several ES from random solutions make `trial` generations each, one after the other, and
the one with the best *prospect* leads. The prospect is what an ES would reach with twice as many generations at the
pace of the second half of its life. Then the leader goes on, and rivals follow one another. A rival whose level is
higher takes the leader's place, from its 16th generation on.

A leader that stagnates goes on with half the step, which raises its level, because the noise of steps spoils solutions.
So a rival is compared with the level that the leader had when it had halved its step as often, its goal. After `trial`
generations, and again after twice as many, and so on, its prospect must be at least its goal, or the next rival begins.
A rival that goes on gets most of the generations from then on.
A rival that stagnates halves its step, too, if it has reached its goal and the leader has halved its own more often;
otherwise it ends. Rivals start from random solutions. A leader that stagnates although it has halved its step often
enough leaves all generations to them.

An ES is of one of two kinds, since no step size suits all tasks: a *bold* ES has longer steps. The first leader is not
bold; the first rival is bold, and so are half of the later rivals, unless there are no bold ES (`Race.has_bold`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jedax.types import Array, Bool, Float, Int, PRNGKeyArray

_SMOOTHED = 16  # generations over which a level is averaged
_COUNTED = 4  # a level is the mean of the best quarter of the scores
_LEAST_GAIN = 0.05  # share of what an ES has gained since it started; with less it stagnates


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Racer:
    """How one ES does.

    Attributes:
        age: Generations since it started.
        level: Mean fitness of the best quarter of its population, averaged over the last generations; -inf: none yet.
        first: Its level after the first generation.
        reached: `(refinements + 1,)`, the last level that it had after 0, 1, ... halvings of its step; -inf: none yet.
        halfway: Its level at the last of the ages `trial` / 2, `trial`, 2 `trial`, and so on.
        lately: Its level at the last multiple of `patience`.
        prospect: The predicted level at twice its age, as of the last of the ages `trial`, 2 `trial`, 4 `trial`, and so
            on; -inf: none yet.
        refined: How often it has halved its step.
        done: Whether it stagnates and may not halve its step again.
        bold: Whether it is bold.
    """

    age: Int[Array, ""]
    level: Float[Array, ""]
    first: Float[Array, ""]
    reached: Float[Array, " lengths"]
    halfway: Float[Array, ""]
    lately: Float[Array, ""]
    prospect: Float[Array, ""]
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
        num_rivals: Rivals that have ended or have overtaken.
    """

    leader: Racer
    rival: Racer
    num_rivals: Int[Array, ""]


class RivalFate(NamedTuple):
    """What follows from a generation of a rival.

    Attributes:
        overtakes: Whether it takes the leader's place.
        refines: Whether it goes on with half the step.
        ends: Whether the next rival begins.
    """

    overtakes: Bool[Array, ""]
    refines: Bool[Array, ""]
    ends: Bool[Array, ""]


@dataclass(frozen=True)
class Race:
    """The rule of a race.

    Attributes:
        trial: Age at which a rival is first compared, in generations. Rivals begin when the leader is as old.
        patience: Generations over which an ES must gain, or it stagnates.
        refinements: How often an ES that stagnates goes on with half the step, at most.
        share: Share of the generations that rivals get while the leader goes on; a rival whose prospect has reached its
            goal gets 1 - `share`, if that is more.
        has_bold: Whether there are bold ES.
        starts: Number of ES in the heats, the first leader included; 1: there are no heats.
    """

    trial: int
    patience: int
    refinements: int
    share: float
    has_bold: bool = False
    starts: int = 1

    def begin(self) -> RaceState:
        """Return the state before the first generation."""
        return RaceState(self._fresh(jnp.bool_(False)), self._fresh(jnp.bool_(self.has_bold)), jnp.int32(0))

    def rival_share(self, state: RaceState) -> Float[Array, ""]:
        """Return the probability that the next generation is one of the rival."""
        leader, prospect = state.leader, state.rival.prospect
        promises = jnp.isfinite(prospect) & (prospect >= self._goal(leader, state.rival))
        share = jnp.where(promises, max(self.share, 1 - self.share), self.share)
        share = jnp.where(self._is_heat(state), 1.0, share)
        return jnp.where(leader.done, 1.0, jnp.where(leader.age >= self.trial, share, 0.0))

    def observe_leader(
        self, state: RaceState, scores: Float[Array, " population"]
    ) -> tuple[RaceState, Bool[Array, ""]]:
        """Return the state after a generation of the leader, and whether the leader goes on with half the step.

        Args:
            state: The state before.
            scores: Fitness of the population; values that are not finite are left out.
        """
        leader, stagnates = self._observe(state.leader, scores)
        refines = stagnates & (leader.refined < self.refinements)
        leader = replace(leader, refined=leader.refined + refines, done=stagnates & ~refines)
        return replace(state, leader=leader), refines

    def observe_rival(
        self, key: PRNGKeyArray, state: RaceState, scores: Float[Array, " population"]
    ) -> tuple[RaceState, RivalFate]:
        """Return the state after a generation of the rival, and what follows from it.

        Args:
            key: Random key, by which the kind of the next rival is drawn.
            state: The state before.
            scores: Fitness of the population; values that are not finite are left out.
        """
        leader = state.leader
        rival, stagnates = self._observe(state.rival, scores)
        of_heat, of_race = self._fate_in_heat(leader, rival), self._fate_in_race(leader, rival, stagnates)
        fate = jax.tree.map(functools.partial(jnp.where, self._is_heat(state)), of_heat, of_race)
        rival = replace(rival, refined=rival.refined + fate.refines)
        leader = jax.tree.map(functools.partial(jnp.where, fate.overtakes), rival, leader)
        fresh = self._fresh(self.has_bold & jax.random.bernoulli(key))
        rival = jax.tree.map(functools.partial(jnp.where, fate.ends), fresh, rival)
        return RaceState(leader, rival, state.num_rivals + fate.ends), fate

    def _fate_in_heat(self, leader: Racer, rival: Racer) -> RivalFate:
        """Return what follows from a generation of a rival in the heats."""
        ends = self._is_compared(rival.age)
        return RivalFate(overtakes=ends & (rival.prospect > leader.prospect), refines=jnp.bool_(False), ends=ends)

    def _fate_in_race(self, leader: Racer, rival: Racer, stagnates: Bool[Array, ""]) -> RivalFate:
        """Return what follows from a generation of a rival after the heats."""
        goal = self._goal(leader, rival)
        overtakes = (rival.age >= _SMOOTHED) & (rival.level > leader.level)
        falls_short = self._is_compared(rival.age) & ~(jnp.isfinite(rival.prospect) & (rival.prospect >= goal))
        may_refine = (rival.level >= goal) & (rival.refined < leader.refined)
        ends = overtakes | falls_short | (stagnates & ~may_refine)
        return RivalFate(overtakes, refines=stagnates & ~ends, ends=ends)

    def _observe(self, racer: Racer, scores: Float[Array, " population"]) -> tuple[Racer, Bool[Array, ""]]:
        """Return an ES after a generation, and whether it stagnates."""
        number = max(1, scores.shape[0] // _COUNTED)
        best = jnp.sort(jnp.where(jnp.isfinite(scores), scores, -jnp.inf))[-number:]
        known = jnp.isfinite(best)
        mean = jnp.where(known.any(), jnp.mean(best, where=known), racer.level)
        age, is_first = racer.age + 1, jnp.isneginf(racer.level)
        level = jnp.where(is_first, mean, racer.level + (mean - racer.level) / jnp.minimum(age, _SMOOTHED))
        first, is_looked_at = jnp.where(is_first, level, racer.first), age % self.patience == 0
        # An ES all of whose solutions fail has no level, and stagnates: -inf - -inf is not above anything.
        stagnates = is_looked_at & ~(level - racer.lately > _LEAST_GAIN * (level - first))
        # Early levels tell little: on some tasks those that learn fast end low. Gains tell more. An ES has gained
        # `level - halfway` in the last age / 2 generations; at this pace it gains twice that in the next `age` ones.
        prospect = jnp.where(jnp.isneginf(racer.halfway), level, level + 2 * (level - racer.halfway))
        return replace(
            racer,
            age=age,
            level=level,
            first=first,
            reached=racer.reached.at[racer.refined].set(level),
            halfway=jnp.where(self._is_mark(age), level, racer.halfway),
            lately=jnp.where(is_looked_at, level, racer.lately),
            prospect=jnp.where(self._is_compared(age), prospect, racer.prospect),
        ), stagnates

    def _goal(self, leader: Racer, rival: Racer) -> Float[Array, ""]:
        """Return the level that the leader had when it had halved its step as often as the rival; -inf: never."""
        return leader.reached[rival.refined]

    def _is_heat(self, state: RaceState) -> Bool[Array, ""]:
        """Return whether not all ES of the heats have made their generations."""
        return state.num_rivals < self.starts - 1

    def _is_compared(self, age: Int[Array, ""]) -> Bool[Array, ""]:
        """Return whether a rival of an age is compared."""
        return (age >= self.trial) & self._is_mark(age)

    def _is_mark(self, age: Int[Array, ""]) -> Bool[Array, ""]:
        """Return whether an age is half of `trial`, `trial`, or `trial` times a power of two."""
        times = age // self.trial
        return (age == self.trial // 2) | ((age == times * self.trial) & (times > 0) & (times & (times - 1) == 0))

    def _fresh(self, bold: Bool[Array, ""]) -> Racer:
        """Return an ES before its first generation."""
        none, lowest = jnp.int32(0), jnp.array(-jnp.inf)  # in the precision of the search
        reached = jnp.full(1 + self.refinements, lowest)
        return Racer(none, lowest, lowest, reached, lowest, lowest, lowest, none, jnp.bool_(False), bold)
