"""A replay buffer of the latest steps of all episodes.

flashbax 0.1 is no replacement: it cannot leave out single steps of a batch, and it needs flax and tensorstore.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

from jedax.types import Array, Float, Int, PRNGKeyArray, Transitions


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReplayBuffer:
    """A ring buffer: when it is full, each new step replaces the oldest.

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
        columns = (
            transitions.observations,
            transitions.next_observations,
            transitions.actions,
            transitions.rewards[..., None],
            transitions.terminal[..., None].astype(jnp.float32),
        )
        rows = jnp.concatenate(columns, axis=-1).reshape(-1, self.rows.shape[1])
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
