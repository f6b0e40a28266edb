"""TD3, twin delayed deep deterministic policy gradients: critic, greedy actor, replay buffer, variation by gradients.

References:
    [1] S. Fujimoto, H. van Hoof, D. Meger. Addressing Function Approximation Error in Actor-Critic Methods.
        ICML 2018, arXiv:1802.09477.

    [2] O. Nilsson, A. Cully. Policy Gradient Assisted MAP-Elites. GECCO 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax import networks
from jedax.rl.gradients import Policy, adam, descend, scaled
from jedax.types import Array, Float, Int, PRNGKeyArray, Transitions


@dataclass(frozen=True)
class TwinCritic:
    """Two multilayer perceptrons from an observation and an action to a value Q; relu, linear output.

    The parameters are one array `(2, params)`, each row in the layout of `jedax.networks`: Adam and soft updates are
    single operations on one array, and each matrix product evaluates both networks.

    Attributes:
        observation_size: Numbers in an observation.
        action_size: Numbers in an action.
        hidden: Neurons of each hidden layer.
        mean: Mean of each number of an observation, which is subtracted from it; empty: 0.
        std: Its standard deviation, by which it is divided then; empty: 1.
    """

    observation_size: int
    action_size: int
    hidden: tuple[int, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of one network, input and output included."""
        return (self.observation_size + self.action_size, *self.hidden, 1)

    def init(self, key: PRNGKeyArray) -> Float[Array, "2 params"]:
        """Draw both networks: kernels LeCun-uniform, biases zero."""
        return jax.vmap(lambda key: networks.init(key, self.sizes))(jax.random.split(key))

    def values(
        self,
        params: Float[Array, "networks params"],
        observations: Float[Array, "batch observation"],
        actions: Float[Array, "batch action"],
    ) -> Float[Array, "networks batch"]:
        """Return Q of a batch by each network in `params`: both, or a part such as `params[:1]`."""

        def multiply(values: Array, kernel: Array) -> Array:
            return jnp.einsum("bi,nij->nbj" if values.ndim == 2 else "nbi,nij->nbj", values, kernel)

        inputs = jnp.concatenate([scaled(observations, self.mean, self.std), actions], axis=-1)
        layers = [(kernel, bias[:, None]) for kernel, bias in networks.layers(params, self.sizes)]
        return networks.propagate(layers, inputs, multiply, jax.nn.relu, lambda q: q)[..., 0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReplayBuffer:
    """A ring buffer of the latest steps of all episodes: when it is full, each new step replaces the oldest.

    flashbax 0.1 is no replacement: it cannot leave out single steps of a batch, and it needs flax and tensorstore.

    Attributes:
        rows: `(capacity, width)`, one step per row: observation, next observation, action, reward, terminal (0 or 1).
        position: Row of the next step.
        count: Number of stored steps.
        action_size: Numbers in one action.
    """

    rows: Float[Array, "capacity width"]
    position: Int[Array, ""]
    count: Int[Array, ""]
    action_size: int = field(metadata={"static": True})

    @classmethod
    def empty(cls, capacity: int, observation_size: int, action_size: int) -> ReplayBuffer:
        """Return an empty buffer for `capacity` steps."""
        width = 2 * observation_size + action_size + 2
        return cls(jnp.zeros((capacity, width)), jnp.int32(0), jnp.int32(0), action_size)

    @property
    def capacity(self) -> int:
        """Largest number of stored steps."""
        return self.rows.shape[0]

    def add(self, transitions: Transitions) -> ReplayBuffer:
        """Return the buffer with all valid steps added in the order of the batch, or the last ones if they do not fit.

        A step with a number that is not finite is not added.
        """
        new = transitions
        scalars = jnp.stack([new.rewards, new.terminal], axis=-1, dtype=jnp.float32)
        rows = jnp.concatenate([new.observations, new.next_observations, new.actions, scalars], axis=-1)
        rows = rows.reshape(-1, self.rows.shape[1])
        valid = transitions.valid.reshape(-1) & jnp.isfinite(rows).all(axis=-1)
        rank = jnp.cumsum(valid) - 1
        number = rank[-1] + 1
        kept = valid & (rank >= number - self.capacity)
        # Steps that are not kept go to a row past the end, which the update drops.
        place = jnp.where(kept, (self.position + rank) % self.capacity, self.capacity)
        return replace(
            self,
            rows=self.rows.at[place].set(rows, mode="drop"),
            position=(self.position + number) % self.capacity,
            count=jnp.minimum(self.count + number, self.capacity),
        )

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Transitions:
        """Draw stored steps uniformly with replacement; an empty buffer gives meaningless zeros that are not valid."""
        index = jax.random.randint(key, shape, 0, jnp.maximum(self.count, 1))
        size = (self.rows.shape[1] - self.action_size - 2) // 2
        ends = (size, 2 * size, 2 * size + self.action_size, 2 * size + self.action_size + 1)
        observations, following, actions, rewards, terminal = jnp.split(self.rows[index], ends, axis=-1)
        return Transitions(
            observations=observations,
            actions=actions,
            rewards=rewards[..., 0],
            next_observations=following,
            terminal=terminal[..., 0] > 0,
            valid=jnp.broadcast_to(self.count > 0, shape),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TD3State:
    """State of the learner between two updates.

    The greedy actor is a genotype; the optimisers are Adam's moments; `loss` is the last one of the critic.
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
        moments = adam(self.critic_rate).init(critic), adam(self.actor_rate).init(actor)
        return TD3State(critic, actor, critic, actor, *moments, loss=jnp.float32(0))

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

        There are `policy_delay` minibatches; the actor is updated with the last one. The noise is added to the actions
        of the target actor.
        """
        # The target networks change only at the end of this update.
        target_values = self.target_values(state, batches, noise)
        critic, critic_optimizer, loss = state.critic, state.critic_optimizer, state.loss
        for number in range(self.policy_delay):
            batch = jax.tree.map(lambda leaf, number=number: leaf[number], batches)
            loss, slope = jax.value_and_grad(self.critic_loss)(critic, batch, target_values[number])
            critic, critic_optimizer = descend(self.critic_rate, slope, critic, critic_optimizer)
        slope = jax.grad(self.actor_loss)(state.actor, critic, batches.observations[-1])
        actor, actor_optimizer = descend(self.actor_rate, slope, state.actor, state.actor_optimizer)
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

        As in the authors' program, each of Adam's `steps` has a new minibatch, shared by all parents, and Adam starts
        anew. Of the learner's state only the critic is used.
        """
        observations = buffer.sample(key, (steps, self.batch)).observations
        slopes = jax.vmap(jax.grad(self.actor_loss), in_axes=(0, None, None))

        def climb(carry: tuple[Array, Any], seen: Array) -> tuple[tuple[Array, Any], None]:
            genotypes, moments = carry
            return descend(learning_rate, slopes(genotypes, state.critic, seen), genotypes, moments), None

        return jax.lax.scan(climb, (parents, adam(learning_rate).init(parents)), observations)[0][0]
