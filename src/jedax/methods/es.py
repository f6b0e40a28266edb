"""One evolution strategy, alone (paper, section 4.2): from one random genotype, by fitness, with or without restarts.

The repertoire is passive: it keeps what the ES comes by, so that coverage can be compared.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es import Strategy
from jedax.methods.base import DrawingAlgorithm, strategy_of
from jedax.methods.settings import ESConfig
from jedax.repertoire import Repertoire
from jedax.types import Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ESState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        strategy: State of the ES.
        generation: Generations done.
        num_restarts: How often the ES began anew.
    """

    repertoire: Repertoire
    strategy: Any
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]


@dataclass(frozen=True)
class ES(DrawingAlgorithm):
    """A baseline: any of jedax's evolution strategies, sent after fitness alone.

    It restarts at a fresh random genotype when the fitness of a generation spreads over less than
    `restart_tolerance`; never where that is None.
    """

    config: ESConfig

    @functools.cached_property
    def strategy(self) -> Strategy:
        """The evolution strategy."""
        return strategy_of(self.config)

    @property
    def num_initial(self) -> int:
        """The ES starts from one genotype."""
        return 1

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "1 params"], evaluation: Evaluation) -> ESState:
        """Return the state after the genotype to start from was evaluated."""
        repertoire = self.begin_repertoire(genotypes, evaluation)
        return ESState(repertoire, self.strategy.init(key, genotypes[0]), jnp.int32(0), jnp.int32(0))

    def ask(self, key: PRNGKeyArray, state: ESState) -> tuple[Float[Array, "batch params"], ESState]:
        """Sample one generation."""
        genotypes, strategy = self.strategy.ask(key, state.strategy)
        return genotypes, replace(state, strategy=strategy)

    def tell(
        self, key: PRNGKeyArray, state: ESState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[ESState, Insertion]:
        """Update the ES, keep what it found, and restart it where that is due."""
        tell_key, genotype_key, init_key = jax.random.split(key, 3)
        strategy = self.strategy.tell(tell_key, state.strategy, genotypes, evaluation.fitness_or_worst)
        repertoire, insertion = self.store(state, genotypes, evaluation)
        num_restarts = state.num_restarts
        if self.config.restart_tolerance is not None:
            stuck = has_converged(evaluation, self.config.restart_tolerance)
            fresh = self.strategy.init(init_key, self.problem.init(genotype_key))
            strategy = jax.tree.map(lambda new, old: jnp.where(stuck, new, old), fresh, strategy)
            num_restarts += stuck
        return ESState(repertoire, strategy, state.generation + 1, num_restarts), insertion

    def numbers(self, state: ESState) -> dict[str, Array]:
        """Return the number of restarts."""
        return {"num_restarts": state.num_restarts}


def has_converged(evaluation: Evaluation, tolerance: float) -> Bool[Array, ""]:
    """Whether the fitness of a population spreads over less than `tolerance`, or all of it failed."""
    fitness, valid = evaluation.fitness, evaluation.valid
    spread = jnp.where(valid, fitness, -jnp.inf).max() - jnp.where(valid, fitness, jnp.inf).min()
    return ~(spread >= tolerance)
