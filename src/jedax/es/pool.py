"""A pool of evolution strategies of one kind that run side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es.base import Strategy
from jedax.types import Array, Bool, Float, PRNGKeyArray


@dataclass(frozen=True)
class ESPool:
    """Several ES side by side; a batch holds their populations one after the other.

    The states are one tree with a leading axis `size`. All methods are pure.

    Attributes:
        strategy: The strategy of each ES.
        size: Number of ES.
    """

    strategy: Strategy
    size: int

    def start(self, key: PRNGKeyArray, means: Float[Array, "size params"]) -> Any:
        """Return fresh states, each ES centred on its mean."""
        return jax.vmap(self.strategy.init)(jax.random.split(key, self.size), means)

    def ask(self, key: PRNGKeyArray, states: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Sample one generation of every ES."""
        genotypes, states = jax.vmap(self.strategy.ask)(jax.random.split(key, self.size), states)
        return genotypes.reshape(self.size * self.strategy.population, -1), states

    def tell(
        self,
        key: PRNGKeyArray,
        states: Any,
        genotypes: Float[Array, "batch params"],
        scores: Float[Array, "size population"],
    ) -> Any:
        """Return the states after each ES was told the scores of its own population."""
        keys = jax.random.split(key, self.size)
        return jax.vmap(self.strategy.tell)(keys, states, self.split(genotypes), scores)

    def split(self, batch: Any) -> Any:
        """Return a tree with leaves `(batch, ...)` split by ES: leaves `(size, population, ...)`."""
        return jax.tree.map(lambda leaf: leaf.reshape(self.size, self.strategy.population, *leaf.shape[1:]), batch)

    def restart(
        self, key: PRNGKeyArray, states: Any, which: Bool[Array, " size"], means: Float[Array, "size params"]
    ) -> Any:
        """Return the states with the ES in `which` restarted from their means."""
        fresh = self.start(key, means)

        def choose(new: Array, old: Array) -> Array:
            return jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, fresh, states)
