"""PGA-ME: MAP-Elites half of whose offspring are led up the gradient of a critic.

References:
    [1] O. Nilsson, A. Cully. Policy Gradient Assisted MAP-Elites. GECCO 2021.
    [2] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477 (TD3).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from jedax.errors import fail
from jedax.methods.base import Algorithm, Problem, cells_for
from jedax.methods.pga_me_settings import PGAMEConfig
from jedax.methods.settings import MethodConfig
from jedax.repertoire import Repertoire
from jedax.rl import TD3, ReplayBuffer, TD3State, TwinCritic
from jedax.tasks.base import Task
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray, Transitions
from jedax.variation import iso_line


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PGAMEState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        learner: Critic and greedy actor, trained on all steps so far.
        buffer: The latest steps of all that was evaluated; one empty row where no offspring is made by
            gradients.
        generation: Generations done; the initial batch is none.
    """

    repertoire: Repertoire
    learner: TD3State
    buffer: ReplayBuffer
    generation: Int[Array, ""]


@dataclass(frozen=True)
class PGAME(Algorithm):
    """The search as pure functions of a `PGAMEState`; equal settings are equal objects ([1], Algorithm 1).

    A generation trains the critic, varies, evaluates, and stores solutions and steps. The training stands at the end
    of `init` and `tell`, where the steps that it learns from have just come in, so that `ask` finds it done.
    Evaluations must bring transitions.

    Attributes:
        task: What makes policies of genotypes.
    """

    config: PGAMEConfig
    task: Task

    needs_transitions: ClassVar[bool] = True

    @classmethod
    def build(cls, config: MethodConfig, problem: Problem) -> Self:
        """Return the method with these parameters for a task.

        Raises:
            JedaxError: Cells that do not fit the task's descriptors, or a task whose genotypes are no policies.
        """
        assert isinstance(config, PGAMEConfig)
        task = problem
        if not isinstance(task, Task):
            raise fail(
                "method",
                expected="one that needs fitness and descriptors alone",
                received="pga-me",
                remedy="take another, or write a jedax.tasks.Task",
            )
        if task.observation_size is None or task.action_size is None:
            raise fail(
                f"task {task.name}",
                expected="a task whose genotypes are policies, with observation_size and action_size",
                received="one without",
                remedy="take another method or another task, such as a maze",
            )
        return cls(config, cells_for(config, task.descriptor_bounds), task)

    @functools.cached_property
    def td3(self) -> TD3:
        """What trains the critic."""
        config, task = self.config, self.task
        assert task.observation_size is not None
        assert task.action_size is not None
        return TD3(
            policy=task,
            critic=TwinCritic(task.observation_size, task.action_size, config.critic_hidden),
            discount=config.discount,
            soft_update=config.soft_update,
            critic_rate=config.critic_rate,
            actor_rate=config.actor_rate,
            target_noise=config.target_noise,
            target_noise_clip=config.target_noise_clip,
            policy_delay=config.policy_delay,
            batch=config.critic_batch,
        )

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
        self,
        key: PRNGKeyArray,
        state: PGAMEState,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
    ) -> tuple[PGAMEState, Insertion]:
        """Add the offspring to the repertoire and their steps to the buffer, and train the critic."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        learner, buffer = self._learn(key, state.learner, state.buffer, evaluation)
        return PGAMEState(repertoire, learner, buffer, state.generation + 1), insertion

    def numbers(self, state: PGAMEState) -> dict[str, Array]:
        """Return what the metrics record of this method, scalars by the names of their columns."""
        return {"critic_loss": state.learner.loss, "buffered_steps": state.buffer.count}

    def _learn(
        self, key: PRNGKeyArray, learner: TD3State, buffer: ReplayBuffer, evaluation: Evaluation
    ) -> tuple[TD3State, ReplayBuffer]:
        """Return critic and buffer after the steps of a batch."""
        if self.config.num_gradient == 0:
            return learner, buffer
        buffer = buffer.add(self._steps(evaluation))
        return self.td3.train(key, learner, buffer, self.config.critic_steps), buffer

    def _steps(self, evaluation: Evaluation) -> Transitions:
        """Return the steps to learn from: those of solutions that failed do not count."""
        if evaluation.transitions is None:
            raise fail(
                "evaluation",
                expected="transitions, as of Task.evaluate_with_transitions",
                received="none",
                remedy="PGA-ME learns from every step: evaluate with that method",
            )
        steps = evaluation.transitions
        return replace(steps, valid=steps.valid & evaluation.valid[:, None])
