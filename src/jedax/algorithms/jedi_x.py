"""JEDi-X: a pool of ES sent after fitness, and variation of all elites where the ES wait in vain.

| each generation | here |
|---|---|
| choose its kind: the longer the ES have waited, the likelier variation | `JEDiX.variation_share` |
| sample the populations of the ES | `JEDiX.ask` (`jedax.es`) |
| or vary elites from all over the repertoire, each at a scale of its own | `JEDiX.ask` (`jedax.variation`) |
| learn, restart what no longer gets better at one of the fittest elites | `JEDiX.tell` |
| update the repertoire | `JEDiX.tell` (`jedax.repertoire`) |

What JEDi's targets are for, to leave what is known, falls to variation, which needs no model of where to go; what its
ES are for, to make much of little, stays with them. docs/explanation/jedi-x.md says what was tried and why this stayed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax.algorithms.base import DrawingAlgorithm, strategy_of
from jedax.config.methods import JediXConfig
from jedax.es.pool import Pool
from jedax.repertoire import Repertoire
from jedax.types import Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import log_uniform_iso

_SPREAD_FROM = 64  # random genotypes whose spread is measured


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JEDiXState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        pool: States of the ES, leading axis `pool`.
        best: `(pool,)`, what each ES has to beat: the best of its own since it started; the first, of all.
        waited: `(pool,)`, generations of its own since it did.
        varies: Whether the generation that was asked for last is varied elites.
        spread: Standard deviation of random genotypes, all parameters together: the unit of variation.
        generation: Generations done.
        num_restarts: How often ES began anew, all together.
        num_varied: Generations that were varied elites.
    """

    repertoire: Repertoire
    pool: Any
    best: Float[Array, " pool"]
    waited: Int[Array, " pool"]
    varies: Bool[Array, ""]
    spread: Float[Array, ""]
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]
    num_varied: Int[Array, ""]


@dataclass(frozen=True)
class JEDiX(DrawingAlgorithm):
    """The search as pure functions of a `JEDiXState`; equal settings are equal objects.

    A generation is the populations of the ES, one after the other, or as many varied elites.
    """

    config: JediXConfig

    @functools.cached_property
    def pool(self) -> Pool:
        """The evolution strategies."""
        return Pool(strategy_of(self.config), self.config.pool)

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> JEDiXState:
        """Initialise the repertoire with the evaluated initial batch, and start every ES at one of its fittest."""
        size = self.config.pool
        start_key, elite_key, spread_key = jax.random.split(key, 3)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        return JEDiXState(
            repertoire=repertoire,
            pool=self.pool.start(start_key, self.choose_elites(elite_key, repertoire)),
            best=jnp.full(size, -jnp.inf),
            waited=jnp.zeros(size, jnp.int32),
            varies=jnp.bool_(False),
            spread=self._measure_spread(spread_key),
            generation=jnp.int32(0),
            num_restarts=jnp.int32(0),
            num_varied=jnp.int32(0),
        )

    def choose_elites(self, key: PRNGKeyArray, repertoire: Repertoire) -> Float[Array, "pool params"]:
        """Return where each ES may start: the first at the fittest elite, the rest at one of the `elites` fittest.

        Elites lie in cells of their own, so that the ES begin with behaviours that differ.
        """
        number = min(self.config.elites, self.cells.num_cells)
        fitness, cell = jax.lax.top_k(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf), number)
        known = jnp.maximum(jnp.isfinite(fitness).sum(), 1)
        place = jax.random.randint(key, (self.config.pool,), 0, known).at[0].set(0)
        genotypes = repertoire.genotypes[cell[place]].astype(repertoire.best_genotype.dtype)
        return jnp.where(repertoire.filled.any(), genotypes, repertoire.best_genotype)

    def variation_share(self, state: JEDiXState) -> Float[Array, ""]:
        """Return how likely the next generation is to vary elites, 0 to 1.

        By default the share of its patience that the ES in the mean have spent: as long as they get better, all
        evaluations are theirs.
        """
        config = self.config
        if config.variation_share != "waiting":
            return jnp.float32(config.variation_share)
        return state.waited.mean() / config.patience

    def ask(self, key: PRNGKeyArray, state: JEDiXState) -> tuple[Float[Array, "batch params"], JEDiXState]:
        """Sample one generation of every ES, or vary elites, each drawn alike."""
        config = self.config
        kind_key, pool_key, parent_key, vary_key = jax.random.split(key, 4)
        varies = jax.random.bernoulli(kind_key, self.variation_share(state))

        def vary() -> tuple[Float[Array, "batch params"], Any]:
            parents = state.repertoire.sample(parent_key, config.batch)
            return log_uniform_iso(vary_key, parents, state.spread * jnp.asarray(config.variation)), state.pool

        genotypes, pool = jax.lax.cond(varies, vary, lambda: self.pool.ask(pool_key, state.pool))
        return genotypes, replace(state, pool=pool, varies=varies)

    def tell(
        self, key: PRNGKeyArray, state: JEDiXState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[JEDiXState, Insertion]:
        """Add what was evaluated to the repertoire; if the ES sampled it, update them, and restart those that wait."""
        repertoire, insertion = self.store(state, genotypes, evaluation)

        def learn() -> tuple[Any, Array, Array, Int[Array, ""]]:
            tell_key, elite_key, restart_key = jax.random.split(key, 3)
            scores = self.pool.split(evaluation.fitness_or_worst)
            pool = self.pool.tell(tell_key, state.pool, genotypes, scores)
            # The first ES is to lead: where others have found better, small gains of its own are not worth it.
            to_beat = state.best.at[0].max(state.repertoire.best_fitness)
            best = jnp.maximum(scores.max(axis=1), to_beat)
            waited = jnp.where(best > to_beat, 0, state.waited + 1)
            stuck = waited >= self.config.patience
            pool = self.pool.restart(restart_key, pool, stuck, self.choose_elites(elite_key, repertoire))
            num_restarts = state.num_restarts + stuck.sum()
            return pool, jnp.where(stuck, -jnp.inf, best), jnp.where(stuck, 0, waited), num_restarts

        def wait() -> tuple[Any, Array, Array, Int[Array, ""]]:
            return state.pool, state.best, state.waited, state.num_restarts

        pool, best, waited, num_restarts = jax.lax.cond(state.varies, wait, learn)
        state = replace(
            state,
            repertoire=repertoire,
            pool=pool,
            best=best,
            waited=waited,
            generation=state.generation + 1,
            num_restarts=num_restarts,
            num_varied=state.num_varied + state.varies,
        )
        return state, insertion

    def numbers(self, state: JEDiXState) -> dict[str, Array]:
        """Return the number of restarts, and of generations that varied elites."""
        return {"num_restarts": state.num_restarts, "num_varied": state.num_varied}

    def _measure_spread(self, key: PRNGKeyArray) -> Float[Array, ""]:
        genotypes = jax.vmap(self.problem.init)(jax.random.split(key, _SPREAD_FROM))
        spread = jnp.sqrt(genotypes.var(axis=0).mean())
        return jnp.where(spread > 0, spread, 1.0)
