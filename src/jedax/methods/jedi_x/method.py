"""The method JEDi-X."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax.methods.base import Method, Preset, cpu_preset, spread_of
from jedax.methods.jedi_x.config import JediXConfig
from jedax.methods.jedi_x.generation import EvaluatedGeneration
from jedax.methods.jedi_x.racing import Racing, RacingState
from jedax.methods.jedi_x.restarting import Restarting, RestartingState
from jedax.repertoire import Repertoire
from jedax.types import Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line, log_uniform

POOL, SCOUTS, VARIATION = range(3)
"""The kinds of generations, as in `JEDiXState.kind`."""

_MOST_OF_FULL_COVARIANCE = 300  # parameters
_LARGEST_GROWTH = 64  # of a population
_MOST_NUMBERS = 200_000  # of the largest population


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JEDiXState:
    """State of a search between two generations.

    Attributes:
        es: Pool and scouts, or the leader of a race and its rival.
        kind: Kind of the last generation asked for: `POOL`, `SCOUTS` or `VARIATION`.
        spread: Standard deviation of random genotypes over all parameters, the unit of variation.
        num_scouted: Generations of scouts, or of rivals.
        num_varied: Generations of varied elites.
    """

    repertoire: Repertoire
    es: RestartingState | RacingState
    kind: Int[Array, ""]
    spread: Float[Array, ""]
    generation: Int[Array, ""]
    num_scouted: Int[Array, ""]
    num_varied: Int[Array, ""]


class JEDiX(Method):
    """JEDi-X as pure functions of a `JEDiXState`.

    A generation is either one population of every ES of the pool, one of every scout, or a batch of varied elites. In a
    race the pool is its leader, and its rival is the scout.
    """

    config: JediXConfig
    Config = JediXConfig
    name = "jedi-x"
    summary = "JEDi-X, the default: ES that maximise fitness and, while they stagnate, scouts and varied elites."
    presets = {
        "default": Preset("one setting for most tasks; others for Brax's robots and where evaluations are few"),
        "cpu": cpu_preset(starts=1),
    }
    large_policies = {
        "es": "lm-ma-es", "population": 64, "pool": 1, "scouts": 1, "growth": 1, "patience": 100, "trial": 96,
        "starts": 12, "scout_share": 0.25, "exploration": 0.05, "head_start": 0.0, "first_step": 0.36, "longest": 1.0,
        "bold_step": 0.6, "gradient_steps": 32,
    }  # fmt: skip
    is_reference = True
    has_branches = True

    @functools.cached_property
    def es(self) -> Any:
        """Pool and scouts, or leader and rival (`trial`)."""
        return (Racing if self.config.trial else Restarting)(self.config, self.problem)

    @property
    def needs_transitions(self) -> bool:  # type: ignore[override]
        """Whether evaluations must bring transitions: policy gradients learn from them."""
        return self.es.needs_transitions

    @classmethod
    def few_evaluations(
        cls,
        num_params: int,
        batch: int | None,
        *,
        in_box: bool = False,
        has_descriptors: bool = True,
        is_categorical: bool = False,
        gathered: float = 1.0,
    ) -> dict[str, Any]:
        """Return settings of one ES with about CMA-ES's population, and a full covariance up to 300 parameters.

        Without descriptors the ES has all generations. With options and without real numbers, mutations of the best
        solution have the first generations, and others while the ES waits: they find options sooner.
        """
        default = 4 * math.ceil((4 + math.floor(3 * math.log(num_params))) / 4)  # a multiple of the scouts
        population = max(8, default, 4 * math.ceil((batch or 1) / 4))  # at least two for each scout
        es = "cma-es" if num_params <= _MOST_OF_FULL_COVARIANCE else "lm-ma-es"
        growth = max(1, min(_LARGEST_GROWTH, _MOST_NUMBERS // (population * num_params)))
        patience = min(60, 10 + 2 * num_params)
        if has_descriptors:
            exploration: dict[str, Any] = {"exploration": 0.1}
        elif is_categorical:
            exploration = {"exploration": 1.0, "head_start": 40.0, "scout_share": 0.0, "rediscovery": 1.0}
        else:
            exploration = {"exploration": 0.0, "rediscovery": 1.0}
        return {
            "population": population,
            "pool": 1,
            "es": es,
            "growth": growth,
            "first_step": min(gathered, 0.5 if in_box else 1.0),
            "restart_step": 1.0,
            "patience": patience,
            **exploration,
        }

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> JEDiXState:
        """Return the state after the evaluated initial batch, with all ES started."""
        *keys, spread_key, unit_key, scout_unit_key = jax.random.split(key, 7)
        repertoire, spread = self.begin_repertoire(genotypes, evaluation), spread_of(spread_key, self.problem)
        return JEDiXState(
            repertoire=repertoire,
            es=self.es.begin((*keys, unit_key, scout_unit_key), repertoire, spread),
            kind=jnp.int32(POOL),
            spread=spread,
            generation=jnp.int32(0),
            num_scouted=jnp.int32(0),
            num_varied=jnp.int32(0),
        )

    def climbs(self, state: JEDiXState) -> Bool[Array, ""]:
        """Return whether the last generation asked for is one of the pool."""
        return state.kind == POOL

    def shares(self, state: JEDiXState) -> Float[Array, "3"]:
        """Return the probabilities of the next generation's kinds: pool, scouts, variation."""
        return self.es.shares(state.es, state.generation)

    def choose_kind(self, key: PRNGKeyArray, state: JEDiXState) -> Int[Array, ""]:
        """Draw the kind of the next generation."""
        return jnp.searchsorted(jnp.cumsum(self.shares(state)[:-1]), jax.random.uniform(key), side="right")

    def ask(self, key: PRNGKeyArray, state: JEDiXState) -> tuple[Float[Array, "batch params"], JEDiXState]:
        """Choose the kind of a generation and sample it."""
        kind_key, sample_key = jax.random.split(key)
        return self._sample(sample_key, self.choose_kind(kind_key, state), state)

    def again(self, key: PRNGKeyArray, asked: JEDiXState) -> Float[Array, "batch params"]:
        """Return further solutions of the same kind and of the same ES."""
        return self._sample(key, asked.kind, asked)[0]

    def could_ask(self, asked: JEDiXState, genotypes: Float[Array, "batch params"]) -> Bool[Array, " batch"]:
        """Return which solutions the ES of the generation could have sampled; all if it varies elites."""
        of_pool = self.es.pool.could_sample(asked.es.pool, genotypes)
        of_scouts = self.es.scouts.could_sample(asked.es.scouts, genotypes)
        return jnp.stack([of_pool, of_scouts, jnp.ones(len(genotypes), bool)])[asked.kind]

    def _sample(
        self, key: PRNGKeyArray, kind: Int[Array, ""], state: JEDiXState
    ) -> tuple[Float[Array, "batch params"], JEDiXState]:
        def of_pool() -> tuple[Array, Any]:
            genotypes, pool = self.es.pool.ask(key, state.es.pool)
            return genotypes, replace(state.es, pool=pool)

        def of_scouts() -> tuple[Array, Any]:
            genotypes, scouts = self.es.scouts.ask(key, state.es.scouts)
            return genotypes, replace(state.es, scouts=scouts)

        genotypes, es = jax.lax.switch(kind, (of_pool, of_scouts, lambda: (self.vary(key, state), state.es)))
        return genotypes, replace(state, es=es, kind=kind)

    def vary(self, key: PRNGKeyArray, state: JEDiXState) -> Float[Array, "batch params"]:
        """Return varied elites: some recombined with another elite, the rest with isotropic noise at a random scale.

        Where all parameters are whole numbers or options, the rest are mutated instead (`Space.mutated`), and so are
        elites that were drawn as their own partner.
        """
        config, space = self.config, self.problem.space
        parent_key, partner_key, kind_key, scale_key, vary_key, mutate_key = jax.random.split(key, 6)
        parents = state.repertoire.sample(parent_key, config.batch)
        partners = state.repertoire.sample(partner_key, config.batch)
        iso_sigma, line_sigma = config.line
        kind = jax.random.uniform(kind_key, (config.batch, 1), parents.dtype)
        recombined = kind < config.line_share
        intermediate = kind < config.line_share * config.intermediate_share
        scale = jnp.where(recombined, iso_sigma, log_uniform(scale_key, kind, config.variation))
        step = jnp.where(recombined, line_sigma, 0.0)
        varied = iso_line(vary_key, parents, partners, scale * state.spread, step, intermediate)
        if space is None or not space.is_discrete:
            return varied
        has_other = (parents != partners).any(axis=1, keepdims=True)
        return jnp.where(recombined & has_other, varied, space.mutated(mutate_key, parents))

    def tell(
        self, key: PRNGKeyArray, state: JEDiXState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[JEDiXState, Insertion]:
        """Add the generation to the repertoire; update the ES that sampled it and restart those that stagnate."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        keys, best_before = jax.random.split(key, 5), state.repertoire.best_fitness
        told = EvaluatedGeneration(keys, genotypes, evaluation, insertion, best_before, repertoire, state.spread)
        by_kind = self.es.tell_pool, self.es.tell_scouts, lambda es, told: es
        after = replace(
            state,
            repertoire=repertoire,
            es=jax.lax.switch(state.kind, by_kind, state.es, told),
            generation=state.generation + 1,
            num_scouted=state.num_scouted + (state.kind == SCOUTS),
            num_varied=state.num_varied + (state.kind == VARIATION),
        )
        return after, insertion

    def hints(self, generations: int) -> list[str]:
        """Return advice where the heats of a race take most of the budget."""
        config = self.config
        heats = config.starts * config.trial
        if config.starts == 1 or generations <= config.trial or generations >= 2 * heats:
            return []
        return [
            f"The heats of JEDi-X take {min(heats, generations)} of {generations} generations with this budget; with "
            "--starts 1 the first ES goes on instead."
        ]

    def metrics(self, state: JEDiXState) -> dict[str, Array]:
        """Return restarts, the generations of scouts and of variation, and how the ES of a race do."""
        return {"num_scouted": state.num_scouted, "num_varied": state.num_varied, **self.es.metrics(state.es)}

    def glossary(self) -> list[tuple[str, str]]:
        """Return JEDi-X's terms."""
        return [
            ("elite", "The best solution of a cell."),
            ("evolution strategy, ES", "Samples variations of a solution and moves towards the best, again and again."),
            ("variation", "Random changes of elites from all over the map, which find new cells."),
            *self.es.glossary(),
        ]
