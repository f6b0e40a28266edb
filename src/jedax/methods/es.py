"""One evolution strategy on its own, by fitness (paper, section 4.2), with or without restarts.

The repertoire is passive: it stores what the ES finds, so that coverage can be compared.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from pydantic import Field

from jedax.es import Strategy
from jedax.es.base import checked_ask, checked_tell
from jedax.es.placed import within
from jedax.methods.base import GLOBAL_TABLE, LARGE_ES, Method, Preset, Variant, WithES, cpu_preset
from jedax.repertoire import Repertoire
from jedax.settings import MOST, NotNegative
from jedax.types import Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray

_PRESETS = {"paper": Preset(GLOBAL_TABLE), "cpu": cpu_preset(population=64)}


class ESConfig(WithES):
    """Settings of one evolution strategy."""

    population: int = Field(default=64, ge=2, le=MOST, description="Solutions per generation (lambda).")
    restart_tolerance: NotNegative | None = Field(
        default=None, description="Restart when the fitness range of a generation is below this; without it: never."
    )

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        return self.population


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ESState:
    """State of a search between two generations; `strategy` is the state of the ES."""

    repertoire: Repertoire
    strategy: Any
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]


class ES(Method):
    """A baseline: one evolution strategy that maximises fitness.

    It restarts from a new random genotype when the fitness range of a generation is below `restart_tolerance`.
    """

    config: ESConfig
    Config = ESConfig
    name = "es"
    summary = "One evolution strategy (--es) from a random genotype, by fitness alone."
    presets = _PRESETS
    variants = {
        "es-restart": Variant(
            "The same, restarted from a random genotype whenever it has converged.",
            {"restart_tolerance": 1e-3},
            _PRESETS,
        )
    }
    large_policies = LARGE_ES

    @functools.cached_property
    def strategy(self) -> Strategy:
        """The evolution strategy."""
        return within(self.config.make_strategy(), self.problem.space)

    @property
    def num_initial(self) -> int:
        """One: the ES starts from one genotype."""
        return 1

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "1 params"], evaluation: Evaluation) -> ESState:
        """Return the state after the evaluation of the genotype to start from."""
        repertoire = self.begin_repertoire(genotypes, evaluation)
        return ESState(repertoire, self.strategy.init(key, genotypes[0]), jnp.int32(0), jnp.int32(0))

    def ask(self, key: PRNGKeyArray, state: ESState) -> tuple[Float[Array, "batch params"], ESState]:
        """Sample one generation."""
        genotypes, strategy = checked_ask(self.strategy, key, state.strategy)
        return genotypes, replace(state, strategy=strategy)

    def could_ask(self, asked: ESState, genotypes: Float[Array, "batch params"]) -> Bool[Array, " batch"]:
        """Return which solutions the ES could have sampled."""
        return self.strategy.could_sample(asked.strategy, genotypes)

    def tell(
        self, key: PRNGKeyArray, state: ESState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[ESState, Insertion]:
        """Update the ES and the repertoire; restart the ES where it has converged."""
        tell_key, genotype_key, init_key = jax.random.split(key, 3)
        sampled, scores = evaluation.sampled(genotypes), evaluation.fitness_or_worst
        strategy = checked_tell(self.strategy, tell_key, state.strategy, sampled, scores)
        repertoire, insertion = self.store(state, genotypes, evaluation)
        num_restarts = state.num_restarts
        if self.config.restart_tolerance is not None:
            converged = has_converged(evaluation, self.config.restart_tolerance)
            fresh = self.strategy.init(init_key, self.problem.init(genotype_key))
            strategy = jax.tree.map(lambda new, old: jnp.where(converged, new, old), fresh, strategy)
            num_restarts += converged
        return ESState(repertoire, strategy, state.generation + 1, num_restarts), insertion

    def metrics(self, state: ESState) -> dict[str, Array]:
        """Return the number of restarts."""
        return {"num_restarts": state.num_restarts}


def has_converged(evaluation: Evaluation, tolerance: float) -> Bool[Array, ""]:
    """Return whether the fitness range of a population is below `tolerance`, or all of it failed."""
    fitness, valid = evaluation.fitness, evaluation.valid
    spread = jnp.where(valid, fitness, -jnp.inf).max() - jnp.where(valid, fitness, jnp.inf).min()
    return ~(spread >= tolerance)
