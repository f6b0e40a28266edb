"""A critic that a method learns from the steps of all episodes (TD3), its greedy actor and its settings.

References:
    [1] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477 (TD3).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic import Field, model_validator

from jedax.errors import fail
from jedax.methods.base import Method, MethodConfig
from jedax.rl import TD3, ReplayBuffer, TD3State, TwinCritic
from jedax.settings import Count, NotNegative, Positive, Share
from jedax.types import Array, Evaluation, Float, PRNGKeyArray, Transitions


class WithCritic(MethodConfig):
    """Settings of a method that learns a critic."""

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
        default=2, ge=1, le=100, description="Updates of the critic per update of the greedy actor and target networks."
    )
    buffer: Count = Field(default=1_000_000, description="Latest steps that are kept to learn from.")

    @model_validator(mode="after")
    def _check_critic(self) -> Self:
        if self.critic_steps % self.policy_delay:
            raise fail(
                "critic_steps",
                expected=f"a multiple of policy_delay, {self.policy_delay}",
                received=self.critic_steps,
                remedy="change one of them",
            )
        return self

    def make_td3(self, task: Any, method: str) -> TD3:
        """Return the learner of critic and greedy actor; an error where the task's genotypes are no policies."""
        if not has_steps(task):
            raise fail(
                "method",
                expected=f"one for {getattr(task, 'name', 'a problem evaluated elsewhere')}, whose genotypes are no "
                "policies (observation_size and action_size of a jedax.tasks.Task)",
                received=method,
                remedy="take another method, or another task such as a maze",
            )
        critic = TwinCritic(task.observation_size, task.action_size, self.critic_hidden, *observation_scale(task))
        same = ("discount", "soft_update", "critic_rate", "actor_rate", "target_noise", "target_noise_clip",
                "policy_delay")  # fmt: skip
        return TD3(task, critic, batch=self.critic_batch, **{name: getattr(self, name) for name in same})


def has_steps(task: Any) -> bool:
    """Return whether genotypes are policies whose steps the task can return (`Task.evaluate_with_transitions`)."""
    return None not in (getattr(task, "observation_size", None), getattr(task, "action_size", None))


def observation_scale(task: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation by which policies scale observations; both empty where they do not."""
    mean, std = getattr(task, "observation_statistics", None) or ((), ())
    return tuple(map(float, mean)), tuple(map(float, std))


def steps_of(evaluation: Evaluation, method: str) -> Transitions:
    """Return the steps of a batch, not valid where a solution failed; an error where the evaluation has none."""
    steps = evaluation.transitions
    if steps is None:
        raise fail(
            "evaluation",
            expected="transitions, as of Task.evaluate_with_transitions",
            received="none",
            remedy=f"call task.evaluate_with_transitions, because {method} learns from every step",
        )
    return replace(steps, valid=steps.valid & evaluation.valid[:, None])


@dataclass(frozen=True)
class CriticMethod(Method):
    """A method that learns a critic and a greedy actor from the steps of all episodes.

    Its state has the fields `learner`, a `TD3State`, and `buffer`. Evaluations must bring transitions.
    """

    config: WithCritic
    needs_transitions = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.td3  # a task without policies is refused here

    @functools.cached_property
    def td3(self) -> TD3:
        """The learner of critic and greedy actor."""
        return self.config.make_td3(self.problem, self.name)

    @property
    def capacity(self) -> int:
        """Steps that are kept to learn from."""
        return self.config.buffer

    def begin_learning(
        self,
        critic_key: PRNGKeyArray,
        train_key: PRNGKeyArray,
        actor: Float[Array, " params"],
        evaluation: Evaluation,
    ) -> tuple[TD3State, ReplayBuffer]:
        """Return learner and buffer after the steps of the initial batch; the critic is random, the actor given."""
        critic = self.td3.critic
        buffer = ReplayBuffer.empty(self.capacity, critic.observation_size, critic.action_size)
        return self.learn(train_key, self.td3.init(critic_key, actor), buffer, evaluation)

    def learn(
        self, key: PRNGKeyArray, learner: TD3State, buffer: ReplayBuffer, evaluation: Evaluation
    ) -> tuple[TD3State, ReplayBuffer]:
        """Return learner and buffer after the steps of a batch, but for those of solutions that failed."""
        buffer = buffer.add(steps_of(evaluation, self.name))
        return self.td3.train(key, learner, buffer, self.config.critic_steps), buffer

    def metrics(self, state: Any) -> dict[str, Array]:
        """Return the loss of the critic and the number of steps in the buffer."""
        return {"critic_loss": state.learner.loss, "buffered_steps": state.buffer.count}
