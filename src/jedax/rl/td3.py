"""TD3, twin delayed deep deterministic policy gradients: a critic, a greedy actor, and the variation by gradients.

References:
    [1] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477.
    [2] O. Nilsson, A. Cully. Policy Gradient Assisted MAP-Elites. GECCO 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from jedax.imports import require
from jedax.rl.networks import TwinCritic
from jedax.rl.replay import ReplayBuffer
from jedax.types import Array, Float, PRNGKeyArray, Transitions


class Policy(Protocol):
    """The policy network of a genotype, such as a task has; hashable."""

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return the actions of ONE policy for many observations, each number in [-1, 1]; differentiable."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TD3State:
    """State of the learner between two updates.

    Attributes:
        critic: `(2, critic params)`, see `TwinCritic`.
        actor: `(params,)`, the greedy actor, a genotype.
        target_critic: The target network of the critic.
        target_actor: The target network of the actor.
        critic_optimizer: Adam's moments for the critic.
        actor_optimizer: Adam's moments for the actor.
        loss: Last loss of the critic.
    """

    critic: Float[Array, "2 critic"]
    actor: Float[Array, " params"]
    target_critic: Float[Array, "2 critic"]
    target_actor: Float[Array, " params"]
    critic_optimizer: Any
    actor_optimizer: Any
    loss: Float[Array, ""]


@dataclass(frozen=True)
class TD3:
    """TD3 as pure functions of a `TD3State`; the defaults are those of [1], with the batch of [2].

    Attributes:
        policy: The policy network.
        critic: The critic networks.
        discount: Discount factor gamma, 0 to 1.
        soft_update: Rate tau of the soft updates of the target networks, 0 to 1.
        critic_rate: Learning rate of the critic.
        actor_rate: Learning rate of the greedy actor.
        target_noise: Standard deviation of the noise added to the actions of the target actor.
        target_noise_clip: Largest absolute value of this noise.
        policy_delay: Number of critic updates per update of the actor and the target networks.
        batch: Number of steps in a minibatch.
    """

    policy: Policy
    critic: TwinCritic
    discount: float = 0.99
    soft_update: float = 0.005
    critic_rate: float = 3e-4
    actor_rate: float = 3e-4
    target_noise: float = 0.2
    target_noise_clip: float = 0.5
    policy_delay: int = 2
    batch: int = 256

    def init(self, key: PRNGKeyArray, actor: Float[Array, " params"]) -> TD3State:
        """Return the initial state, with a random critic and the given greedy actor."""
        critic = self.critic.init(key)
        return TD3State(
            critic=critic,
            actor=actor,
            target_critic=critic,
            target_actor=actor,
            critic_optimizer=_adam(self.critic_rate).init(critic),
            actor_optimizer=_adam(self.actor_rate).init(actor),
            loss=jnp.float32(0),
        )

    def train(self, key: PRNGKeyArray, state: TD3State, buffer: ReplayBuffer, steps: int) -> TD3State:
        """Return the state after `steps` updates of the critic, a multiple of `policy_delay`.

        The minibatches and the noise of all updates are drawn at once. With an empty buffer the state is unchanged.
        """
        batch_key, noise_key = jax.random.split(key)
        shape = (steps // self.policy_delay, self.policy_delay, self.batch)
        batches = buffer.sample(batch_key, shape)
        noise = self.target_noise * jax.random.normal(noise_key, batches.actions.shape)
        noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        learnt, _ = jax.lax.scan(lambda state, drawn: (self.update(state, *drawn), None), state, (batches, noise))
        return jax.tree.map(lambda new, old: jnp.where(buffer.count > 0, new, old), learnt, state)

    def update(self, state: TD3State, batches: Transitions, noise: Float[Array, "delay batch action"]) -> TD3State:
        """Update the critic once per minibatch, then the actor and the target networks ([1], Algorithm 1).

        Args:
            state: The state before.
            batches: `policy_delay` minibatches, shapes `(delay, batch, ...)`; the actor is updated with the last one.
            noise: Noise added to the actions of the target actor.
        """
        # The target networks change only at the end of this update.
        target_values = self.target_values(state, batches, noise)
        critic, critic_optimizer, loss = state.critic, state.critic_optimizer, state.loss
        for number in range(self.policy_delay):
            batch = jax.tree.map(lambda leaf, number=number: leaf[number], batches)
            loss, slope = jax.value_and_grad(self.critic_loss)(critic, batch, target_values[number])
            critic, critic_optimizer = _descend(self.critic_rate, slope, critic, critic_optimizer)
        slope = jax.grad(self.actor_loss)(state.actor, critic, batches.observations[-1])
        actor, actor_optimizer = _descend(self.actor_rate, slope, state.actor, state.actor_optimizer)
        return TD3State(
            critic=critic,
            actor=actor,
            target_critic=state.target_critic + self.soft_update * (critic - state.target_critic),
            target_actor=state.target_actor + self.soft_update * (actor - state.target_actor),
            critic_optimizer=critic_optimizer,
            actor_optimizer=actor_optimizer,
            loss=loss,
        )

    def target_values(
        self, state: TD3State, batches: Transitions, noise: Float[Array, "*batch action"]
    ) -> Float[Array, "*batch"]:
        """Return the targets of Q: reward plus discounted lower value of the two target critics ([1], Eq. 14)."""
        following = batches.next_observations.reshape(-1, self.critic.observation_size)
        actions = self.policy.actions(state.target_actor, following) + noise.reshape(-1, self.critic.action_size)
        values = self.critic.values(state.target_critic, following, jnp.clip(actions, -1, 1)).min(axis=0)
        return batches.rewards + self.discount * jnp.where(batches.terminal, 0, values.reshape(batches.rewards.shape))

    def critic_loss(
        self, critic: Float[Array, "2 critic"], batch: Transitions, target_values: Float[Array, " batch"]
    ) -> Float[Array, ""]:
        """Return the sum of the mean squared errors of the two networks."""
        values = self.critic.values(critic, batch.observations, batch.actions)
        return jnp.square(values - target_values).mean(axis=1).sum()

    def actor_loss(
        self,
        actor: Float[Array, " params"],
        critic: Float[Array, "2 critic"],
        observations: Float[Array, "batch observation"],
    ) -> Float[Array, ""]:
        """Return minus the mean value of a policy's actions, according to the first network."""
        return -self.critic.values(critic[:1], observations, self.policy.actions(actor, observations)).mean()

    def improve(
        self,
        key: PRNGKeyArray,
        state: TD3State,
        buffer: ReplayBuffer,
        parents: Float[Array, "batch params"],
        steps: int,
        learning_rate: float,
    ) -> Float[Array, "batch params"]:
        """Return the parents after gradient ascent on the critic's first network: PG variation ([2], Algorithm 3).

        As in the authors' program, each step has a new minibatch, shared by all parents, and Adam starts anew.

        Args:
            key: Random key of the minibatches.
            state: State of the learner, of which only the critic is used.
            buffer: Source of the observations.
            parents: Genotypes.
            steps: Number of steps of Adam.
            learning_rate: Learning rate of Adam.
        """
        observations = buffer.sample(key, (steps, self.batch)).observations
        slopes = jax.vmap(jax.grad(self.actor_loss), in_axes=(0, None, None))

        def climb(carry: tuple[Array, Any], seen: Array) -> tuple[tuple[Array, Any], None]:
            genotypes, moments = carry
            return _descend(learning_rate, slopes(genotypes, state.critic, seen), genotypes, moments), None

        return jax.lax.scan(climb, (parents, _adam(learning_rate).init(parents)), observations)[0][0]


def _descend(
    learning_rate: float, slope: Float[Array, "*shape"], point: Float[Array, "*shape"], moments: Any
) -> tuple[Float[Array, "*shape"], Any]:
    """Return the point after one descent step of Adam, and the new moments."""
    step, moments = _adam(learning_rate).update(slope, moments)
    return point + jnp.asarray(step), moments


def _adam(learning_rate: float) -> Any:
    """Return the optimiser Adam.

    Raises:
        JedaxError: optax is not installed.
    """
    return require("optax", "pga-me", "method pga-me").adam(learning_rate)
