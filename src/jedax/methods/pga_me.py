"""PGA-ME: MAP-Elites with half of the offspring made by the policy gradient of a learnt critic.

References:
    [1] O. Nilsson, A. Cully. Policy Gradient Assisted MAP-Elites. GECCO 2021.
    [2] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477 (TD3).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from pydantic import Field

from jedax.methods.base import GLOBAL_TABLE, Preset, cpu_preset
from jedax.methods.critic import CriticMethod, WithCritic
from jedax.methods.map_elites import LARGE_POLICIES, MapElitesConfig
from jedax.repertoire import Repertoire
from jedax.rl import ReplayBuffer, TD3State
from jedax.settings import Count, Positive, Share
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line

PGA_TABLE = "paper, table 'Hyperparameters for PGA-ME'"


class PGAMEConfig(MapElitesConfig, WithCritic):
    """Settings of PGA-ME, with TD3 as the learner of the critic."""

    gradient_share: Share = Field(
        default=0.5, description="Share of the offspring made by policy gradients, the greedy actor among "
        "them; the others by iso+line. 0: MAP-Elites.",
    )  # fmt: skip
    gradient_steps: Count = Field(default=10, description="Adam's steps that make an offspring by gradients.")
    gradient_rate: Positive = Field(default=1e-3, description="Learning rate of these steps.")

    @property
    def num_gradient(self) -> int:
        """Offspring of one generation made by gradients, the greedy actor included."""
        return round(self.offspring * self.gradient_share)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PGAMEState:
    """State of a search; the buffer has the latest steps, or one empty row where no offspring is made by gradients."""

    repertoire: Repertoire
    learner: TD3State
    buffer: ReplayBuffer
    generation: Int[Array, ""]


class PGAME(CriticMethod):
    """PGA-ME as pure functions of a `PGAMEState` ([1], Algorithm 1).

    A generation trains the critic, varies elites, evaluates the offspring, and stores them and their steps. The critic
    is trained at the end of `init` and `tell`, so that `ask` can be called at once. Evaluations must bring transitions.
    """

    config: PGAMEConfig
    Config = PGAMEConfig
    name = "pga-me"
    summary = "PGA-ME: MAP-Elites with half of the offspring made by the policy gradient of a learnt critic."
    presets = {"paper": Preset(f"{PGA_TABLE}, rest TD3's own; {GLOBAL_TABLE}"), "cpu": cpu_preset(offspring=64)}
    large_policies = {**LARGE_POLICIES, "critic_hidden": (256, 256), "critic_batch": 100}

    @property
    def capacity(self) -> int:
        """Steps that are kept to learn from; 1 where no offspring is made by gradients."""
        return self.config.buffer if self.config.num_gradient else 1

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> PGAMEState:
        """Return the state after the evaluated initial batch, whose first member is the greedy actor to start from."""
        critic_key, train_key = jax.random.split(key)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        learner, buffer = self.begin_learning(critic_key, train_key, genotypes[0], evaluation)
        return PGAMEState(repertoire, learner, buffer, jnp.int32(0))

    def ask(self, key: PRNGKeyArray, state: PGAMEState) -> tuple[Float[Array, "batch params"], PGAMEState]:
        """Vary elites: first the greedy actor, then offspring by gradients, then by iso+line."""
        config = self.config
        elite_key, parent_key, partner_key, gradient_key, line_key = jax.random.split(key, 5)
        num_gradient = config.num_gradient
        num_line = config.offspring - num_gradient
        parents = state.repertoire.sample(parent_key, num_line)
        partners = state.repertoire.sample(partner_key, num_line)
        offspring = iso_line(line_key, parents, partners, config.iso_sigma, config.line_sigma)
        if num_gradient > 0:
            elites = state.repertoire.sample(elite_key, num_gradient - 1)
            climbed = self.td3.improve(
                gradient_key, state.learner, state.buffer, elites, config.gradient_steps, config.gradient_rate
            )
            offspring = jnp.concatenate([state.learner.actor[None], climbed, offspring])
        return offspring, state

    def tell(
        self, key: PRNGKeyArray, state: PGAMEState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[PGAMEState, Insertion]:
        """Add the offspring to the repertoire and their steps to the buffer, and train the critic."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        learner, buffer = self.learn(key, state.learner, state.buffer, evaluation)
        return PGAMEState(repertoire, learner, buffer, state.generation + 1), insertion

    def learn(
        self, key: PRNGKeyArray, learner: TD3State, buffer: ReplayBuffer, evaluation: Evaluation
    ) -> tuple[TD3State, ReplayBuffer]:
        """Return learner and buffer after the steps of a batch; unchanged where no offspring is made by gradients."""
        if self.config.num_gradient == 0:
            return learner, buffer
        return super().learn(key, learner, buffer, evaluation)
