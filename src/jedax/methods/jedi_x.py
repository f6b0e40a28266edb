"""JEDi-X: a pool of ES after fitness, and where they wait in vain, scouts and variation of all elites.

| each generation | here |
|---|---|
| choose its kind: the longer the pool has waited, the likelier it explores | `JEDiX.choose_kind` |
| sample the populations of the pool, ES that begin at the fittest elites | `JEDiX.ask` (`jedax.es`) |
| or those of the scouts, ES that begin at any elite | `JEDiX.ask` (`jedax.es`) |
| or vary elites from all over the repertoire | `JEDiX.vary` (`jedax.variation`) |
| learn; start anew an ES that gets no better, a scout by which the repertoire gains nothing | `JEDiX.tell` |
| update the repertoire | `JEDiX.tell` (`jedax.repertoire`) |

What JEDi's targets are for, to leave what is known, falls to scouts and variation, which need no model of where to go;
what its ES are for, to make much of little, stays with them. docs/explanation/jedi-x.md says what was tried and why
this stayed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es.pool import Pool
from jedax.methods.base import DrawingAlgorithm, strategy_of
from jedax.methods.settings import JediXConfig
from jedax.repertoire import Repertoire
from jedax.types import NOT_ADDED, Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line, log_uniform

POOL, SCOUTS, VARIATION = range(3)
"""The kinds of generations, as `JEDiXState.kind` has them."""

_SPREAD_FROM = 64  # random genotypes whose spread is measured


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JEDiXState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        pool: States of the ES that are after fitness, leading axis `pool`.
        best: `(pool,)`, what each of them has to beat: the best of its own since it started; the first, of all.
        waited: `(pool,)`, generations of its own since it did.
        scouts: States of the scouts, leading axis `scouts`.
        idle: `(scouts,)`, generations of its own since the repertoire gained by a scout.
        kind: Of the generation that was asked for last: `POOL`, `SCOUTS` or `VARIATION`.
        spread: Standard deviation of random genotypes, all parameters together: the unit of variation.
        generation: Generations done.
        num_restarts: How often ES of the pool began anew, all together.
        num_scouted: Generations that were the scouts'.
        num_varied: Generations that were varied elites.
    """

    repertoire: Repertoire
    pool: Any
    best: Float[Array, " pool"]
    waited: Int[Array, " pool"]
    scouts: Any
    idle: Int[Array, " scouts"]
    kind: Int[Array, ""]
    spread: Float[Array, ""]
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]
    num_scouted: Int[Array, ""]
    num_varied: Int[Array, ""]


@dataclass(frozen=True)
class JEDiX(DrawingAlgorithm):
    """The search as pure functions of a `JEDiXState`; equal settings are equal objects.

    A generation is the populations of the pool, those of the scouts, one after the other, or as many varied elites.
    """

    config: JediXConfig

    @functools.cached_property
    def pool(self) -> Pool:
        """The ES that are after fitness."""
        return Pool(strategy_of(self.config), self.config.pool)

    @functools.cached_property
    def scouts(self) -> Pool:
        """The ES that share a generation of the same size."""
        config = self.config
        return Pool(strategy_of(config, config.batch // config.scouts), config.scouts)

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> JEDiXState:
        """Initialise the repertoire with the evaluated initial batch, and start the ES."""
        pool_key, elite_key, scout_key, place_key, spread_key = jax.random.split(key, 5)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        size, scouts = self.config.pool, self.config.scouts
        return JEDiXState(
            repertoire=repertoire,
            pool=self.pool.start(pool_key, self.choose_elites(elite_key, repertoire)),
            best=jnp.full(size, -jnp.inf),
            waited=jnp.zeros(size, jnp.int32),
            scouts=self.scouts.start(scout_key, repertoire.sample(place_key, scouts)),
            idle=jnp.zeros(scouts, jnp.int32),
            kind=jnp.int32(POOL),
            spread=self._measure_spread(spread_key),
            generation=jnp.int32(0),
            num_restarts=jnp.int32(0),
            num_scouted=jnp.int32(0),
            num_varied=jnp.int32(0),
        )

    def choose_elites(self, key: PRNGKeyArray, repertoire: Repertoire) -> Float[Array, "pool params"]:
        """Return where the ES of the pool may start: the first at the fittest elite, the rest at one of the fittest.

        Elites lie in cells of their own, so that the ES begin with behaviours that differ.
        """
        number = min(self.config.elites, self.cells.num_cells)
        fitness, cell = jax.lax.top_k(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf), number)
        known = jnp.maximum(jnp.isfinite(fitness).sum(), 1)
        place = jax.random.randint(key, (self.config.pool,), 0, known).at[0].set(0)
        genotypes = repertoire.genotypes[cell[place]].astype(repertoire.best_genotype.dtype)
        return jnp.where(repertoire.filled.any(), genotypes, repertoire.best_genotype)

    def shares(self, state: JEDiXState) -> Float[Array, "3"]:
        """Return how likely the next generation is of which kind: the pool's, the scouts', variation.

        What counts is the share of its patience that the pool in the mean has spent. By default variation gets that
        share, and the scouts `scout_share` times that share of the rest: as long as the ES of the pool get better, all
        evaluations are theirs.
        """
        config = self.config
        spent = state.waited.mean() / config.patience
        variation = spent if config.variation_share == "waiting" else jnp.float32(config.variation_share)
        scouts = (1 - variation) * config.scout_share * spent
        return jnp.stack([1 - variation - scouts, scouts, variation])

    def choose_kind(self, key: PRNGKeyArray, state: JEDiXState) -> Int[Array, ""]:
        """Draw the kind of the next generation."""
        return jnp.searchsorted(jnp.cumsum(self.shares(state)[:-1]), jax.random.uniform(key), side="right")

    def ask(self, key: PRNGKeyArray, state: JEDiXState) -> tuple[Float[Array, "batch params"], JEDiXState]:
        """Choose the kind of a generation and sample it."""
        kind_key, sample_key = jax.random.split(key)
        kind = self.choose_kind(kind_key, state)

        def of_pool() -> tuple[Float[Array, "batch params"], Any, Any]:
            genotypes, pool = self.pool.ask(sample_key, state.pool)
            return genotypes, pool, state.scouts

        def of_scouts() -> tuple[Float[Array, "batch params"], Any, Any]:
            genotypes, scouts = self.scouts.ask(sample_key, state.scouts)
            return genotypes, state.pool, scouts

        def of_variation() -> tuple[Float[Array, "batch params"], Any, Any]:
            return self.vary(sample_key, state), state.pool, state.scouts

        genotypes, pool, scout_states = jax.lax.switch(kind, (of_pool, of_scouts, of_variation))
        return genotypes, replace(state, pool=pool, scouts=scout_states, kind=kind)

    def vary(self, key: PRNGKeyArray, state: JEDiXState) -> Float[Array, "batch params"]:
        """Return varied elites: some moved to or from another elite, the others in all directions at any scale."""
        config = self.config
        parent_key, partner_key, kind_key, scale_key, vary_key = jax.random.split(key, 5)
        parents = state.repertoire.sample(parent_key, config.batch)
        partners = state.repertoire.sample(partner_key, config.batch)
        iso_sigma, line_sigma = config.line
        kind = jax.random.uniform(kind_key, (config.batch, 1), parents.dtype)
        recombined = kind < config.line_share
        intermediate = kind < config.line_share * config.intermediate_share
        scale = jnp.where(recombined, iso_sigma, log_uniform(scale_key, kind, config.variation))
        step = jnp.where(recombined, line_sigma, 0.0)
        return iso_line(vary_key, parents, partners, scale * state.spread, step, intermediate)

    def tell(
        self, key: PRNGKeyArray, state: JEDiXState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[JEDiXState, Insertion]:
        """Add what was evaluated to the repertoire; let those that sampled it learn, and start anew what is stuck."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        learn_key, elite_key, restart_key = jax.random.split(key, 3)
        config, scores = self.config, evaluation.fitness_or_worst

        def pool_learns() -> JEDiXState:
            by_es = self.pool.split(scores)
            # The first ES is to lead: where others have found better, small gains of its own are not worth it.
            to_beat = state.best.at[0].max(state.repertoire.best_fitness)
            best = jnp.maximum(by_es.max(axis=1), to_beat)
            waited = jnp.where(best > to_beat, 0, state.waited + 1)
            stuck = waited >= config.patience
            pool = self.pool.tell(learn_key, state.pool, genotypes, by_es)
            pool = self.pool.restart(restart_key, pool, stuck, self.choose_elites(elite_key, repertoire))
            return replace(
                state,
                pool=pool,
                best=jnp.where(stuck, -jnp.inf, best),
                waited=jnp.where(stuck, 0, waited),
                num_restarts=state.num_restarts + stuck.sum(),
            )

        def scouts_learn() -> JEDiXState:
            gains = self.scouts.split(insertion.status != NOT_ADDED).any(axis=1)
            idle = jnp.where(gains, 0, state.idle + 1)
            stuck = idle >= config.scout_patience
            scouts = self.scouts.tell(learn_key, state.scouts, genotypes, self.scouts.split(scores))
            scouts = self.scouts.restart(restart_key, scouts, stuck, repertoire.sample(elite_key, config.scouts))
            return replace(state, scouts=scouts, idle=jnp.where(stuck, 0, idle))

        state = jax.lax.switch(state.kind, (pool_learns, scouts_learn, lambda: state))
        state = replace(
            state,
            repertoire=repertoire,
            generation=state.generation + 1,
            num_scouted=state.num_scouted + (state.kind == SCOUTS),
            num_varied=state.num_varied + (state.kind == VARIATION),
        )
        return state, insertion

    def numbers(self, state: JEDiXState) -> dict[str, Array]:
        """Return the restarts of the pool, and the generations of scouts and of varied elites."""
        return {
            "num_restarts": state.num_restarts,
            "num_scouted": state.num_scouted,
            "num_varied": state.num_varied,
        }

    def _measure_spread(self, key: PRNGKeyArray) -> Float[Array, ""]:
        genotypes = jax.vmap(self.problem.init)(jax.random.split(key, _SPREAD_FROM))
        spread = jnp.sqrt(genotypes.var(axis=0).mean())
        return jnp.where(spread > 0, spread, 1.0)
