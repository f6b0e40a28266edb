"""A race of two evolution strategies (ES), and policy gradients that move them: JEDi-X where policies are large.

The leader takes the place of the pool, its rival that of the scouts; `jedax.es.race` has the rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es.placed import placed
from jedax.es.pool import PlacedPool
from jedax.es.race import Race, RaceState
from jedax.methods.base import Problem
from jedax.methods.critic import has_steps, observation_scale, steps_of
from jedax.methods.jedi_x.config import JediXConfig
from jedax.methods.jedi_x.generation import EvaluatedGeneration
from jedax.repertoire import Repertoire
from jedax.rl import PPO, PPOState
from jedax.types import Array, Bool, Float, Int, PRNGKeyArray

_REPORTED = ("age", "level", "refined")  # of each ES


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RacingState:
    """State of a race between two generations.

    Attributes:
        pool: The leader.
        scouts: Its rival.
        race: Ages and levels of both.
        learners: What PPO knows of both; None where it moves neither.
    """

    pool: Any
    scouts: Any
    race: RaceState
    learners: tuple[PPOState | None, PPOState | None]


@dataclass(frozen=True)
class Racing:
    """Leader and rival as pure functions of a `RacingState`.

    Attributes:
        config: The settings.
        problem: What is known about the task.
    """

    config: JediXConfig
    problem: Problem

    @functools.cached_property
    def pool(self) -> PlacedPool:
        """The ES of the leader."""
        return PlacedPool(placed(self.config.make_strategy(step_size=1.0), self.problem.space), 1)

    @property
    def scouts(self) -> PlacedPool:
        """The ES of the rival, like that of the leader."""
        return self.pool

    @functools.cached_property
    def rule(self) -> Race:
        """The rule by which rivals begin and end."""
        config = self.config
        has_bold = config.bold_step > 0
        return Race(config.trial, config.patience, config.refinements, config.scout_share, has_bold, config.starts)

    @functools.cached_property
    def ppo(self) -> PPO | None:
        """PPO, which moves both ES; None where it moves none, or genotypes are no policies."""
        config, problem = self.config, self.problem
        if not (config.gradient_steps and has_steps(problem)):
            return None
        return PPO(
            problem,  # type: ignore[arg-type]
            problem.observation_size,  # type: ignore[attr-defined]
            *observation_scale(problem),
            actor_rate=config.gradient_rate,
            steps=config.gradient_steps,
        )

    @property
    def needs_transitions(self) -> bool:
        """Whether evaluations must bring transitions."""
        return self.ppo is not None

    def begin(self, keys: Sequence[PRNGKeyArray], repertoire: Repertoire, spread: Float[Array, ""]) -> RacingState:
        """Return the state before the first generation: the leader at the best solution, its rival at a random one.

        `keys` are those of `Restarting.begin`.
        """
        pool_key, _, scout_key, place_key, _, _ = keys
        race, best, place = self.rule.begin(), repertoire.best_genotype, self.problem.init(place_key)
        return RacingState(
            pool=self.start(pool_key, best, race.leader.bold, spread),
            scouts=self.start(scout_key, place, race.rival.bold, spread),
            race=race,
            learners=(self.start_learner(pool_key, best), self.start_learner(scout_key, place)),
        )

    def start(
        self, key: PRNGKeyArray, mean: Float[Array, " params"], bold: Bool[Array, ""], spread: Float[Array, ""]
    ) -> Any:
        """Return an ES that starts at a genotype with the first step of its kind."""
        unit = jnp.where(bold, spread * self.config.bold_step, self.config.first_unit(spread))
        return self.pool.place(key, mean[None], unit[None])

    def start_learner(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> PPOState | None:
        """Return what PPO knows before the first generation of an ES, for genotypes like this."""
        return None if self.ppo is None else self.ppo.init(key, genotype)

    def shares(self, state: RacingState, generation: Int[Array, ""]) -> Float[Array, "3"]:
        """Return the probabilities of the next generation's kinds: leader, rival, variation.

        Variation has probability `exploration`. The rival has `scout_share` of the rest, or 1 - `scout_share`
        if that is more and its prospect has reached its goal. It has nothing before the leader is `trial` generations
        old, and all of it in the heats and once the leader is done.
        """
        exploration = self.config.exploration
        rival = (1 - exploration) * self.rule.rival_share(state.race)
        return jnp.stack([1 - exploration - rival, rival, exploration])

    def tell_pool(self, state: RacingState, told: EvaluatedGeneration) -> RacingState:
        """Return the state after a generation of the leader."""
        _, _, restart_key, _, _ = told.keys
        race, refines = self.rule.observe_leader(state.race, told.evaluation.achieved)
        pool, learner = self._learn(state.pool, state.learners[0], race.leader.bold, told)
        pool = jax.lax.cond(refines, lambda: self.pool.refine(restart_key, pool), lambda: pool)
        return replace(state, pool=pool, race=race, learners=(learner, state.learners[1]))

    def tell_scouts(self, state: RacingState, told: EvaluatedGeneration) -> RacingState:
        """Return the state after a generation of the rival, which may overtake, and after which the next may begin."""
        _, elite_key, restart_key, unit_key, _ = told.keys
        race, fate = self.rule.observe_rival(unit_key, state.race, told.evaluation.achieved)
        rival = self._learn(state.scouts, state.learners[1], state.race.rival.bold, told)
        pool, leader = jax.lax.cond(fate.overtakes, lambda: rival, lambda: (state.pool, state.learners[0]))

        def another() -> tuple[Any, PPOState | None]:
            mean = self.problem.init(elite_key)
            started = self.start(restart_key, mean, race.rival.bold, told.spread)
            return started, self.start_learner(restart_key, mean)

        def goes_on() -> tuple[Any, PPOState | None]:
            states, learnt = rival
            return jax.lax.cond(fate.refines, lambda: self.pool.refine(restart_key, states), lambda: states), learnt

        scouts, learner = jax.lax.cond(fate.ends, another, goes_on)
        return replace(state, pool=pool, scouts=scouts, race=race, learners=(leader, learner))

    def _learn(
        self, es: Any, learner: PPOState | None, bold: Bool[Array, ""], told: EvaluatedGeneration
    ) -> tuple[Any, PPOState | None]:
        """Return an ES and its learner after a generation of that ES."""
        config, learn_key = self.config, told.keys[0]
        updated = self.pool.tell(learn_key, es, told.sampled, self.pool.split(told.evaluation.fitness_or_worst))

        def guided() -> tuple[Any, PPOState | None]:
            moved, learnt = updated, learner
            if self.ppo is not None and learner is not None:
                before, pace = self.pool.means(es), es.unit[0] / config.first_unit(told.spread)
                steps = steps_of(told.evaluation, "jedi-x")
                actor, learnt = self.ppo.train(learn_key, learner, before[0], steps, pace)
                moved = self.pool.move(updated, actor - before)
            # Random steps increase the norm of the mean without limit.
            longest = config.longest * told.spread * math.sqrt(told.genotypes.shape[1])
            return self.pool.shorten(moved, longest) if config.longest else moved, learnt

        return jax.lax.cond(bold, lambda: (updated, learner), guided)

    def metrics(self, state: RacingState) -> dict[str, Array]:
        """Return columns of metrics.csv."""
        found = {"num_restarts": state.race.num_rivals}
        for who, racer in (("leader", state.race.leader), ("rival", state.race.rival)):
            found |= {f"{who}_{name}": getattr(racer, name) for name in _REPORTED}
            found[f"{who}_bold"] = racer.bold.astype(jnp.int32)
        return found

    def glossary(self) -> list[tuple[str, str]]:
        """Return terms and their meaning."""
        gradient = "A step of the mean of an ES, learnt from all steps of the episodes of its solutions (PPO)."
        return [
            ("level", "The mean fitness of the best quarter of an ES' solutions, over its last generations."),
            ("leader", "The ES that rivals try to overtake."),
            ("rival", "An ES from a random solution; it replaces the leader once its level is higher."),
            *([("policy gradient", gradient)] if self.ppo is not None else []),
        ]
