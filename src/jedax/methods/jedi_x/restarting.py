"""A pool of evolution strategies (ES) that restart when they stagnate, and scouts that restart when they find nothing.

The ES of the pool start from the fittest elites and maximise fitness. Scouts are small ES from random elites.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es.placed import placed
from jedax.es.pool import PlacedPool
from jedax.es.restarts import Restarts, RestartState
from jedax.methods.base import Problem
from jedax.methods.jedi_x.config import JediXConfig
from jedax.methods.jedi_x.generation import EvaluatedGeneration
from jedax.repertoire import Repertoire
from jedax.types import NOT_ADDED, Array, Bool, Float, Int, PRNGKeyArray

_WITH_CONSTRAINTS = 5  # times the patience: feasible solutions improve late, after the penalties have adapted


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RestartingState:
    """State of pool and scouts between two generations.

    Attributes:
        pool: The ES of the pool.
        best: Best fitness of each since it started; the first of several must beat the best of the run, too.
        waited: Generations of each since its `best` last improved.
        restarts: Populations and optima of the pool.
        scouts: The scouts.
        idle: Generations of each scout since it last added to the repertoire.
        num_restarts: Restarts of all ES of the pool together.
    """

    pool: Any
    best: Float[Array, " pool"]
    waited: Int[Array, " pool"]
    restarts: RestartState
    scouts: Any
    idle: Int[Array, " scouts"]
    num_restarts: Int[Array, ""]


@dataclass(frozen=True)
class Restarting:
    """Pool and scouts as pure functions of a `RestartingState`.

    Attributes:
        config: The settings.
        problem: What is known about the task.
    """

    config: JediXConfig
    problem: Problem

    @functools.cached_property
    def pool(self) -> PlacedPool:
        """The ES that maximise fitness."""
        strategy = self.config.make_strategy(step_size=1.0).growing(self.config.growth)
        return PlacedPool(placed(strategy, self.problem.space), self.config.pool)

    @functools.cached_property
    def scouts(self) -> PlacedPool:
        """The scouts: together they sample as many solutions as the pool."""
        config, number = self.config, self.config.num_scouts
        strategy = config.make_strategy(config.batch // number, step_size=1.0)
        return PlacedPool(placed(strategy, self.problem.space), number)

    @functools.cached_property
    def rule(self) -> Restarts:
        """The rule by which ES of the pool restart."""
        return Restarts(self.config.pool, self.config.growth, self.config.optimum_radius)

    @property
    def needs_transitions(self) -> bool:
        """Whether evaluations must bring transitions."""
        return False

    def begin(self, keys: Sequence[PRNGKeyArray], repertoire: Repertoire, spread: Float[Array, ""]) -> RestartingState:
        """Return the state before the first generation, with all ES started from elites.

        `keys` are six, to start the pool, draw its elites, start the scouts, draw theirs, and draw the units of both.
        """
        pool_key, elite_key, scout_key, place_key, unit_key, scout_unit_key = keys
        config, number = self.config, self.config.num_scouts
        restarts = self.rule.begin(repertoire.genotypes.shape[1])
        units = config.units(unit_key, config.pool, spread).at[0].set(config.first_unit(spread))
        scout_units = config.units(scout_unit_key, number, spread)
        return RestartingState(
            pool=self.pool.place(pool_key, self.choose_elites(elite_key, repertoire), units, restarts.growth),
            best=jnp.full(config.pool, -jnp.inf),
            waited=jnp.zeros(config.pool, jnp.int32),
            restarts=restarts,
            scouts=self.scouts.place(scout_key, repertoire.sample(place_key, number), scout_units),
            idle=jnp.zeros(number, jnp.int32),
            num_restarts=jnp.int32(0),
        )

    def shares(self, state: RestartingState, generation: Int[Array, ""]) -> Float[Array, "3"]:
        """Return the probabilities of the next generation's kinds: pool, scouts, variation.

        Let w be the mean share of patience that the pool has used up, at most `exploration`, and larger the more often
        the pool has found known optima (`rediscovery`). By default variation has probability w, at the start of the
        search more (`head_start`), scouts have `scout_share` * w of the rest, and the pool has what remains.
        """
        config = self.config
        waiting = (state.waited / state.restarts.growth).mean() / config.patience
        known = 1 - config.rediscovery**state.restarts.num_known
        spent = jnp.maximum(jnp.minimum(waiting, config.exploration), known)
        early = config.exploration * jnp.exp(-generation / config.head_start) if config.head_start else 0.0
        most = jnp.maximum(spent, early)
        variation = most if config.variation_share == "waiting" else jnp.float32(config.variation_share)
        scouts = (1 - variation) * config.scout_share * spent
        return jnp.stack([1 - variation - scouts, scouts, variation])

    def tell_pool(self, state: RestartingState, told: EvaluatedGeneration) -> RestartingState:
        """Return the state after a generation of the pool; ES that stagnate or have converged restart."""
        learn_key, elite_key, restart_key, unit_key, kind_key = told.keys
        config, repertoire, spread = self.config, told.repertoire, told.spread
        achieved = self.pool.split(told.evaluation.achieved)
        # With several ES the first must beat the best of the run: small gains below it do not count.
        to_beat = state.best.at[0].max(told.best_before) if config.pool > 1 else state.best
        best = jnp.maximum(achieved.max(axis=1), to_beat)
        waited = jnp.where(best > to_beat, 0, state.waited + 1)
        has_improved = achieved.max() > told.best_before
        scores = self.pool.split(told.evaluation.fitness_or_worst)
        found, compared = self.without_margin(self.pool.split(told.genotypes), scores)
        restarts, has_converged = self.rule.observe(
            state.restarts, found, compared, spread, told.best_before, has_improved
        )
        pool = self.pool.tell(learn_key, state.pool, told.sampled, scores)
        # Where exploration may take all generations, a pool that waits beyond its patience would never have a turn.
        waits_longer = told.evaluation.score is not None and config.exploration < 1
        longer = _WITH_CONSTRAINTS if waits_longer else 1
        stuck = (waited // (longer * restarts.growth) >= config.patience) | has_converged
        restarts = self.rule.restart(kind_key, restarts, stuck)

        def restarted() -> Any:
            means, units = self.choose_starts(elite_key, unit_key, restarts.is_large, repertoire, spread)
            return self.pool.replace(pool, stuck, self.pool.place(restart_key, means, units, restarts.growth))

        return replace(
            state,
            pool=jax.lax.cond(stuck.any(), restarted, lambda: pool),
            best=jnp.where(stuck, -jnp.inf, best),
            waited=jnp.where(stuck, 0, waited),
            restarts=restarts,
            num_restarts=state.num_restarts + stuck.sum(dtype=jnp.int32),
        )

    def without_margin(
        self, genotypes: Float[Array, "pool population params"], scores: Float[Array, "pool population"]
    ) -> tuple[Float[Array, "pool population params"], Float[Array, "pool population"]]:
        """Return populations whose solutions have the whole numbers and options of the fittest, where most have them.

        A population that has converged still has a few solutions with others (`jedax.es.placed`). They become copies of
        the fittest without a score.
        """
        space = self.problem.space
        if space is None or space.is_real:
            return genotypes, scores
        canonical = space.canonical(genotypes)
        fittest = jnp.argmax(jnp.where(jnp.isfinite(scores), scores, -jnp.inf), axis=1)
        best = jnp.take_along_axis(canonical, fittest[:, None, None], axis=1)
        is_same = ((canonical == best) | space.is_real_coordinate).all(axis=-1)
        is_same |= is_same.mean(axis=1, keepdims=True) < 0.5
        return jnp.where(is_same[..., None], canonical, best), jnp.where(is_same, scores, -jnp.inf)

    def tell_scouts(self, state: RestartingState, told: EvaluatedGeneration) -> RestartingState:
        """Return the state after a generation of the scouts; those that add nothing to the repertoire restart."""
        learn_key, elite_key, restart_key, unit_key, _ = told.keys
        config, number = self.config, self.config.num_scouts
        gains = self.scouts.split(told.insertion.status != NOT_ADDED).any(axis=1)
        idle = jnp.where(gains, 0, state.idle + 1)
        stuck = idle >= config.scout_patience
        means, units = told.repertoire.sample(elite_key, number), config.units(unit_key, number, told.spread)
        scores = self.scouts.split(told.evaluation.fitness_or_worst)
        scouts = self.scouts.tell(learn_key, state.scouts, told.sampled, scores)
        scouts = self.scouts.replace(scouts, stuck, self.scouts.place(restart_key, means, units))
        return replace(state, scouts=scouts, idle=jnp.where(stuck, 0, idle))

    def choose_elites(self, key: PRNGKeyArray, repertoire: Repertoire) -> Float[Array, "pool params"]:
        """Return starting genotypes for the pool: the fittest elite first, then random ones among the fittest.

        Elites come from different cells, so the ES start from different behaviours.
        """
        number = min(self.config.elites, repertoire.fitness.shape[0])
        fitness, cell = jax.lax.top_k(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf), number)
        known = jnp.maximum(jnp.isfinite(fitness).sum(), 1)
        place = jax.random.randint(key, (self.config.pool,), 0, known).at[0].set(0)
        genotypes = repertoire.genotypes[cell[place]].astype(repertoire.best_genotype.dtype)
        return jnp.where(repertoire.filled.any(), genotypes, repertoire.best_genotype)

    def choose_starts(
        self,
        elite_key: PRNGKeyArray,
        unit_key: PRNGKeyArray,
        is_random: Bool[Array, " pool"],
        repertoire: Repertoire,
        spread: Float[Array, ""],
    ) -> tuple[Float[Array, "pool params"], Float[Array, " pool"]]:
        """Return where ES of the pool start, and with which step sizes.

        Some start from a random genotype with the step of restarts, the others from one of the fittest elites.
        """
        config = self.config
        fittest, units = self.choose_elites(elite_key, repertoire), config.units(unit_key, config.pool, spread)
        if config.growth == 1:
            return fittest, units
        anywhere = jax.vmap(self.problem.init)(jax.random.split(jax.random.fold_in(elite_key, 1), config.pool))
        restart_unit = config.restart_unit(spread)
        return jnp.where(is_random[:, None], anywhere, fittest), jnp.where(is_random, restart_unit, units)

    def metrics(self, state: RestartingState) -> dict[str, Array]:
        """Return columns of metrics.csv."""
        return {"num_restarts": state.num_restarts}

    def glossary(self) -> list[tuple[str, str]]:
        """Return terms and their meaning."""
        return [
            ("pool", f"The {self.config.pool} ES that maximise fitness, started from the fittest elites."),
            ("scouts", "Small ES that start from random elites, and restart when they find nothing new."),
        ]
