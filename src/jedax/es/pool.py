"""A pool of evolution strategies (ES) that run in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es.base import Strategy
from jedax.types import Array, Bool, Float, PRNGKeyArray


@dataclass(frozen=True)
class ESPool:
    """Several ES with the same settings; a batch is the concatenation of their populations.

    The states are one pytree with a leading axis `size`. All methods are pure functions.

    Attributes:
        strategy: The strategy of each ES.
        size: Number of ES.
    """

    strategy: Strategy
    size: int

    def start(self, key: PRNGKeyArray, means: Float[Array, "size params"]) -> Any:
        """Return the initial states, one ES per mean."""
        return jax.vmap(self.strategy.init)(jax.random.split(key, self.size), means)

    def ask(self, key: PRNGKeyArray, states: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Sample one generation of every ES; return the batch and the states for `tell`."""
        genotypes, states = jax.vmap(self.strategy.ask)(jax.random.split(key, self.size), states)
        return genotypes.reshape(self.size * self.strategy.population, -1), states

    def tell(
        self,
        key: PRNGKeyArray,
        states: Any,
        genotypes: Float[Array, "batch params"],
        scores: Float[Array, "size population"],
    ) -> Any:
        """Return the states updated with the scores of each population."""
        keys = jax.random.split(key, self.size)
        return jax.vmap(self.strategy.tell)(keys, states, self.split(genotypes), scores)

    def split(self, batch: Any) -> Any:
        """Return a tree with its leaves `(batch, ...)` reshaped to `(size, population, ...)`."""
        return jax.tree.map(lambda leaf: leaf.reshape(self.size, self.strategy.population, *leaf.shape[1:]), batch)

    def restart(
        self, key: PRNGKeyArray, states: Any, which: Bool[Array, " size"], means: Float[Array, "size params"]
    ) -> Any:
        """Return the states with the ES in `which` restarted at their means."""
        fresh = self.start(key, means)

        def choose(new: Array, old: Array) -> Array:
            return jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, fresh, states)
