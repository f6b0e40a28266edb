"""A replay buffer: the latest steps that were seen, whoever made them.

flashbax 0.1 adds batches whole, so it cannot leave out steps that do not count; and it needs flax and tensorstore.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

from jedax.types import Array, Float, Int, PRNGKeyArray, Transitions


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReplayBuffer:
    """A ring of steps: once it is full, each new step replaces the oldest.

    Attributes:
        rows: `(capacity, width)`, a step per row: observation, next observation, action, reward, terminal (0, 1).
        position: The row that the next step goes to.
        count: Rows that hold a step.
        action_size: Numbers in one action.
    """

    rows: Float[Array, "capacity width"]
    position: Int[Array, ""]
    count: Int[Array, ""]
    action_size: int = field(metadata={"static": True})

    @classmethod
    def empty(cls, capacity: int, observation_size: int, action_size: int) -> ReplayBuffer:
        """Return a buffer that holds nothing, with room for `capacity` steps."""
        width = 2 * observation_size + action_size + 2
        return cls(jnp.zeros((capacity, width)), jnp.int32(0), jnp.int32(0), action_size)

    @property
    def capacity(self) -> int:
        """Most steps it can hold."""
        return self.rows.shape[0]

    def add(self, transitions: Transitions) -> ReplayBuffer:
        """Add all valid steps, in the order of the batch; of more than it can hold, the last.

        A step with a number that is not finite counts as not valid.
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
        # What is left out goes to a row past the end, which the update drops.
        place = jnp.where(kept, (self.position + rank) % self.capacity, self.capacity)
        return replace(
            self,
            rows=self.rows.at[place].set(rows, mode="drop"),
            position=(self.position + number) % self.capacity,
            count=jnp.minimum(self.count + number, self.capacity),
        )

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Transitions:
        """Draw steps, each held one alike, with replacement; of an empty buffer zeros without meaning."""
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
