"""PPO on the steps of a population of policies: the noise of an evolution strategy (ES) on the parameters explores.

PPO [1] needs policies that draw their actions. Here every policy of a population is deterministic, and differs from the
mean of the population by noise on its parameters, as in [2]. Its actions then differ from those of the mean, too. These
differences count as the noise of a normal distribution, whose standard deviation is measured. So the steps of all
episodes say where the mean should go, thousands of numbers a generation, while an ES learns from one number an episode.

References:
    [1] J. Schulman, F. Wolski, P. Dhariwal, A. Radford, O. Klimov. Proximal Policy Optimization Algorithms.
        arXiv:1707.06347, 2017.
    [2] M. Plappert et al. Parameter Space Noise for Exploration. ICLR 2018, arXiv:1706.01905.
    [3] J. Schulman, P. Moritz, S. Levine, M. Jordan, P. Abbeel. High-Dimensional Continuous Control Using Generalized
        Advantage Estimation. ICLR 2016, arXiv:1506.02438.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jedax import networks
from jedax.errors import fail
from jedax.rl.gradients import Policy, adam, descend, scaled
from jedax.types import Array, Bool, Float, PRNGKeyArray, Transitions

_HIDDEN = (64, 64)  # neurons of the value network
_LEAST_STD = 0.1  # added to the standard deviation of actions, each in [-1, 1]
_SCALE_RATE = 0.05  # share by which the scale of rewards follows a generation
_LARGEST_LOG_RATIO = 10.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PPOState:
    """State of the learner between two generations.

    Attributes:
        critic: Parameters of the value network.
        critic_optimizer: Adam's moments of these.
        actor_optimizer: Adam's moments of the parameters of the policy.
        scale: Root mean square of the rewards, smoothed over generations; 0: none was seen.
    """

    critic: Float[Array, " critic"]
    critic_optimizer: Any
    actor_optimizer: Any
    scale: Float[Array, ""]


@dataclass(frozen=True)
class PPO:
    """PPO as pure functions of a `PPOState`.

    Attributes:
        policy: The policy network.
        observation_size: Numbers in an observation.
        mean: Mean of each number of an observation, which the value network subtracts; empty: 0.
        std: Its standard deviation, by which the value network divides then; empty: 1.
        discount: Discount factor gamma, from 0 to below 1.
        trace: The factor lambda of generalised advantages [3], 0 to 1.
        actor_rate: Learning rate of the policy.
        critic_rate: Learning rate of the value network.
        clip: Largest difference from 1 of the ratio of probabilities (epsilon in [1]).
        stop: Mean difference from 1 of that ratio above which a generation changes the policy no further.
        steps: Updates of policy and value network per generation.
        batch: Steps of a minibatch.

    Raises:
        JedaxError: The discount factor is out of its range.
    """

    policy: Policy
    observation_size: int
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    discount: float = 0.99
    trace: float = 0.95
    actor_rate: float = 2e-4
    critic_rate: float = 1e-3
    clip: float = 0.2
    stop: float = 0.5
    steps: int = 32
    batch: int = 512

    def __post_init__(self) -> None:
        if not 0 <= self.discount < 1:
            raise fail("discount", expected="0 to below 1", received=self.discount, remedy="such as 0.99")

    def init(self, key: PRNGKeyArray, actor: Float[Array, " params"]) -> PPOState:
        """Return the initial state for policies with as many parameters as `actor`, with a random value network."""
        critic = networks.init(key, self._sizes)
        moments = adam(self.critic_rate).init(critic), adam(self.actor_rate).init(actor)
        return PPOState(critic, *moments, scale=jnp.float32(0))

    def values(
        self, critic: Float[Array, " critic"], observations: Float[Array, "*batch observation"]
    ) -> Float[Array, "*batch"]:
        """Return the values of observations according to the value network: tanh, linear output."""
        layers = networks.layers(critic, self._sizes)
        inputs = scaled(observations, self.mean, self.std)
        return networks.propagate(layers, inputs, jnp.matmul, jnp.tanh, lambda value: value)[..., 0]

    def train(
        self,
        key: PRNGKeyArray,
        state: PPOState,
        actor: Float[Array, " params"],
        steps: Transitions,
        pace: float | Float[Array, ""] = 1.0,
    ) -> tuple[Float[Array, " params"], PPOState]:
        """Return the mean of a population moved by the steps of its members, and the state after that.

        Args:
            key: Random key.
            state: The state before.
            actor: The mean of the population that made the steps.
            steps: All steps `(population, steps, ...)`; those that are not valid or not finite are left out.
            pace: Factor of the learning rate of the policy, 0 to 1.
        """
        valid = steps.valid & _are_finite(steps)
        scale = jnp.sqrt(jnp.mean(jnp.square(steps.rewards), where=valid))
        scale = jnp.where(state.scale > 0, state.scale + _SCALE_RATE * (scale - state.scale), scale)
        rewards = (1 - self.discount) * steps.rewards / jnp.where(scale > 0, scale, 1)
        advantages, returns = self.advantages(state.critic, replace(steps, rewards=rewards, valid=valid))
        spread = jnp.std(advantages, where=valid)
        advantages = (advantages - jnp.mean(advantages, where=valid)) / jnp.maximum(spread, 1e-8)
        ranks = jax.random.randint(key, (self.steps, self.batch), 0, jnp.maximum(valid.sum(), 1))
        drawn = jnp.searchsorted(jnp.cumsum(valid.ravel()), ranks, side="right")

        def of(values: Array) -> Array:
            return values.reshape(-1, *values.shape[2:])[drawn]

        observations, actions = of(steps.observations), of(steps.actions)
        before = self.policy.actions(actor, observations.reshape(-1, self.observation_size)).reshape(actions.shape)
        std = jnp.sqrt(jnp.square(actions - before).mean(axis=(0, 1))) + _LEAST_STD
        minibatches = observations, actions, before, of(advantages), of(returns)
        found = self._climb(replace(state, scale=scale), actor, minibatches, std, self.actor_rate * pace)
        return jax.tree.map(lambda new, old: jnp.where(valid.any(), new, old), found, (actor, state))

    def advantages(
        self, critic: Float[Array, " critic"], steps: Transitions
    ) -> tuple[Float[Array, "population steps"], Float[Array, "population steps"]]:
        """Return the generalised advantage of every step ([3], Eq. 16), and the return that its value should have.

        An episode goes on as long as the next observation is that of the next step. After the last step of an episode
        that the time limit ends, the value of the next observation counts.
        """
        values = self.values(critic, steps.observations)
        following = jnp.where(steps.terminal, 0, self.values(critic, steps.next_observations))
        errors = steps.rewards + self.discount * following - values
        # With several samples of a solution the steps of one episode follow those of another.
        same = jnp.isclose(steps.next_observations[:, :-1], steps.observations[:, 1:], rtol=1e-3, atol=1e-4)
        has_next = jnp.pad(steps.valid[:, 1:] & same.all(axis=-1), ((0, 0), (0, 1))) & ~steps.terminal

        def back(later: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
            error, goes_on = step
            advantage = error + self.discount * self.trace * jnp.where(goes_on, later, 0)
            return advantage, advantage

        _, found = jax.lax.scan(back, jnp.zeros_like(errors[:, 0]), (errors.T, has_next.T), reverse=True)
        return found.T, found.T + values

    def surrogate(
        self,
        actor: Float[Array, " params"],
        observations: Float[Array, "batch observation"],
        actions: Float[Array, "batch action"],
        before: Float[Array, "batch action"],
        advantages: Float[Array, " batch"],
        std: Float[Array, " action"],
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return the loss of the policy ([1], Eq. 7), and the mean difference of the ratio of probabilities from 1.

        Args:
            actor: The policy.
            observations: What the members of the population observed.
            actions: What they did.
            before: What the mean of the population would have done.
            advantages: Advantages of their actions.
            std: Standard deviation of each number of the actions.
        """
        after = self.policy.actions(actor, observations)
        log_ratio = (jnp.square((actions - before) / std) - jnp.square((actions - after) / std)).sum(axis=-1) / 2
        ratio = jnp.exp(jnp.clip(log_ratio, -_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO))
        clipped = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        return -jnp.minimum(ratio * advantages, clipped * advantages).mean(), jnp.abs(ratio - 1).mean()

    def _climb(
        self,
        state: PPOState,
        actor: Float[Array, " params"],
        minibatches: tuple[Array, ...],
        std: Array,
        actor_rate: float | Float[Array, ""],
    ) -> tuple[Float[Array, " params"], PPOState]:
        """Return policy and state after all updates."""

        def critic_loss(critic: Array, observations: Array, returns: Array) -> Array:
            return jnp.square(self.values(critic, observations) - returns).mean()

        def update(carry: Any, minibatch: tuple[Array, ...]) -> tuple[Any, None]:
            actor, state, goes_on = carry
            observations, actions, before, advantages, returns = minibatch
            slopes = jax.grad(self.surrogate, has_aux=True)
            slope, change = slopes(actor, observations, actions, before, advantages, std)
            goes_on &= change < self.stop
            old = actor, state.actor_optimizer
            new = descend(actor_rate, slope, *old)
            actor, actor_optimizer = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), new, old)
            slope = jax.grad(critic_loss)(state.critic, observations, returns)
            critic = descend(self.critic_rate, slope, state.critic, state.critic_optimizer)
            return (actor, PPOState(*critic, actor_optimizer, state.scale), goes_on), None

        (actor, state, _), _ = jax.lax.scan(update, (actor, state, jnp.bool_(True)), minibatches)
        return actor, state

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (self.observation_size, *_HIDDEN, 1)


def _are_finite(steps: Transitions) -> Bool[Array, "population steps"]:
    numbers = (steps.observations, steps.actions, steps.rewards[..., None], steps.next_observations)
    return jnp.isfinite(jnp.concatenate(numbers, axis=-1)).all(axis=-1)
