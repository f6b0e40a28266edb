"""TD3 as a baseline: one policy that follows the gradient of a learnt critic, explored by noise on its parameters.

References:
    [1] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477 (TD3).
    [2] M. Plappert et al. Parameter Space Noise for Exploration. ICLR 2018, arXiv:1706.01905.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from pydantic import Field

from jedax.methods.base import Preset, cpu_preset, spread_of
from jedax.methods.critic import CriticMethod, WithCritic
from jedax.repertoire import Repertoire
from jedax.rl import ReplayBuffer, TD3State
from jedax.settings import Count, Range
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import log_uniform


class TD3Config(WithCritic):
    """Settings of TD3."""

    population: Count = Field(
        default=64, description="Policies per generation: the greedy actor, and copies of it with noise."
    )
    actor_noise: Range = Field(
        default=(0.01, 0.3),
        description="Range of the standard deviation of that noise, drawn log-uniformly, in units of the spread of "
        "random genotypes.",
    )
    critic_steps: Count = Field(default=100, description="Updates of the critic per generation.")

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        return self.population


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TD3SearchState:
    """State of a search between two generations; `spread` is the standard deviation of random genotypes."""

    repertoire: Repertoire
    learner: TD3State
    buffer: ReplayBuffer
    spread: Float[Array, ""]
    generation: Int[Array, ""]


class TD3Search(CriticMethod):
    """A baseline: the greedy actor of TD3 alone, without a population that is varied or selected.

    A generation evaluates the actor and copies of it with noise on their parameters [2], puts their steps into the
    buffer, and trains critic and actor. Published TD3 explores by noise on actions and makes one update per step.
    """

    config: TD3Config
    Config = TD3Config
    name = "td3"
    summary = "TD3 alone: one policy that follows the gradient of a learnt critic."
    presets = {
        "default": Preset("TD3's own rates; for large policies PGA-ME's networks and about its updates per solution"),
        "cpu": cpu_preset(population=64),
    }
    large_policies = {"population": 128, "critic_steps": 40, "critic_hidden": (256, 256), "critic_batch": 100}

    def init(
        self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> TD3SearchState:
        """Return the state after the evaluated initial batch, whose best member is the actor to start from."""
        critic_key, train_key, spread_key = jax.random.split(key, 3)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        learner, buffer = self.begin_learning(critic_key, train_key, repertoire.best_genotype, evaluation)
        return TD3SearchState(repertoire, learner, buffer, spread_of(spread_key, self.problem), jnp.int32(0))

    def ask(self, key: PRNGKeyArray, state: TD3SearchState) -> tuple[Float[Array, "batch params"], TD3SearchState]:
        """Return the greedy actor and copies with noise."""
        scale_key, noise_key = jax.random.split(key)
        number, actor = self.config.population, state.learner.actor
        scale = log_uniform(scale_key, jnp.zeros((number, 1)), self.config.actor_noise).at[0].set(0)
        return actor + scale * state.spread * jax.random.normal(noise_key, (number, actor.size)), state

    def tell(
        self, key: PRNGKeyArray, state: TD3SearchState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[TD3SearchState, Insertion]:
        """Add the policies to the repertoire and their steps to the buffer, and train critic and actor."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        learner, buffer = self.learn(key, state.learner, state.buffer, evaluation)
        return TD3SearchState(repertoire, learner, buffer, state.spread, state.generation + 1), insertion
