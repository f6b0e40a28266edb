"""PGA-ME: MAP-Elites with half of the offspring made by the policy gradient of a learnt critic.

References:
    [1] O. Nilsson, A. Cully. Policy Gradient Assisted MAP-Elites. GECCO 2021.
    [2] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477 (TD3).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import jax
import jax.numpy as jnp
from pydantic import Field, model_validator

from jedax.errors import fail
from jedax.methods.base import GLOBAL_TABLE, Method, Preset, cpu_preset
from jedax.methods.map_elites import LARGE_POLICIES, MapElitesConfig
from jedax.repertoire import Repertoire
from jedax.rl import TD3, ReplayBuffer, TD3State, TwinCritic
from jedax.settings import Count, NotNegative, Positive, Share
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line

PGA_TABLE = "paper, table 'Hyperparameters for PGA-ME'"


class PGAMEConfig(MapElitesConfig):
    """Settings of PGA-ME, with TD3 as the learner of the critic."""

    gradient_share: Share = Field(
        default=0.5, description="Share of the offspring made by policy gradients, the greedy actor among "
        "them; the others by iso+line. 0: MAP-Elites.",
    )  # fmt: skip
    gradient_steps: Count = Field(default=10, description="Adam's steps that make an offspring by gradients.")
    gradient_rate: Positive = Field(default=1e-3, description="Learning rate of these steps.")
    critic_hidden: tuple[Count, ...] = Field(
        default=(16,), description="Neurons in each hidden layer of each of the two critic networks."
    )
    critic_steps: Count = Field(default=300, description="Updates of the critic per generation.")
    critic_batch: Count = Field(default=64, description="Steps in a minibatch, of critic and gradients.")
    critic_rate: Positive = Field(default=3e-4, description="Learning rate of the critic.")
    actor_rate: Positive = Field(default=3e-4, description="Learning rate of the greedy actor.")
    discount: Share = Field(default=0.99, description="Discount factor: worth of a reward one step later.")
    soft_update: float = Field(
        default=0.005, gt=0, le=1, description="Share by which the target networks follow per update (tau)."
    )
    target_noise: NotNegative = Field(
        default=0.2, description="Standard deviation of the noise on the target actor's actions."
    )
    target_noise_clip: NotNegative = Field(default=0.5, description="Largest absolute value of that noise.")
    policy_delay: int = Field(
        default=2, ge=1, le=100, description="Updates of the critic for one of the greedy actor and the targets."
    )
    buffer: Count = Field(default=1_000_000, description="Latest steps that are kept to learn from.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.critic_steps % self.policy_delay:
            raise fail(
                "critic_steps",
                expected=f"a multiple of policy_delay, {self.policy_delay}",
                received=self.critic_steps,
                remedy="change one of them",
            )
        return self

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


class PGAME(Method):
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
    needs_transitions = True

    def __post_init__(self) -> None:
        super().__post_init__()
        problem = self.problem
        if getattr(problem, "observation_size", None) is None or getattr(problem, "action_size", None) is None:
            raise fail(
                f"task {getattr(problem, 'name', 'outside')}",
                expected="for pga-me, a jedax.tasks.Task whose genotypes are policies, with observation_size and "
                "action_size",
                received="one without them",
                remedy="take another method, or another task such as a maze",
            )

    @functools.cached_property
    def td3(self) -> TD3:
        """The learner of the critic."""
        config, task = self.config, cast(Any, self.problem)
        critic = TwinCritic(task.observation_size, task.action_size, config.critic_hidden)
        same = ("discount", "soft_update", "critic_rate", "actor_rate", "target_noise", "target_noise_clip",
                "policy_delay")  # fmt: skip
        return TD3(task, critic, batch=config.critic_batch, **{name: getattr(config, name) for name in same})

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> PGAMEState:
        """Return the state after the evaluated initial batch, whose first member is the greedy actor to start from."""
        critic_key, train_key = jax.random.split(key)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        critic, capacity = self.td3.critic, self.config.buffer if self.config.num_gradient else 1
        learner, buffer = self._learn(
            train_key,
            self.td3.init(critic_key, genotypes[0]),
            ReplayBuffer.empty(capacity, critic.observation_size, critic.action_size),
            evaluation,
        )
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
        learner, buffer = self._learn(key, state.learner, state.buffer, evaluation)
        return PGAMEState(repertoire, learner, buffer, state.generation + 1), insertion

    def metrics(self, state: PGAMEState) -> dict[str, Array]:
        """Return the loss of the critic and the number of steps in the buffer."""
        return {"critic_loss": state.learner.loss, "buffered_steps": state.buffer.count}

    def _learn(
        self, key: PRNGKeyArray, learner: TD3State, buffer: ReplayBuffer, evaluation: Evaluation
    ) -> tuple[TD3State, ReplayBuffer]:
        """Return critic and buffer after the steps of a batch."""
        if self.config.num_gradient == 0:
            return learner, buffer
        if evaluation.transitions is None:
            raise fail(
                "evaluation",
                expected="transitions, as of Task.evaluate_with_transitions",
                received="none",
                remedy="PGA-ME learns from every step: evaluate with that method",
            )
        steps = evaluation.transitions  # those of solutions that failed do not count
        buffer = buffer.add(replace(steps, valid=steps.valid & evaluation.valid[:, None]))
        return self.td3.train(key, learner, buffer, self.config.critic_steps), buffer
