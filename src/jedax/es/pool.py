"""A pool of evolution strategies (ES) that run in parallel."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jedax.es.base import Strategy, checked_ask, checked_tell
from jedax.es.placed import Placed, PlacedState
from jedax.types import Array, Bool, Float, Int, PRNGKeyArray


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
        ask = functools.partial(checked_ask, self.strategy)
        genotypes, states = jax.vmap(ask)(jax.random.split(key, self.size), states)
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
        tell = functools.partial(checked_tell, self.strategy)
        return jax.vmap(tell)(keys, states, self.split(genotypes), scores)

    def could_sample(self, states: Any, genotypes: Float[Array, "batch params"]) -> Bool[Array, " batch"]:
        """Return which solutions of a batch their ES could have sampled, see `Strategy.could_sample`."""
        each = jax.vmap(self.strategy.could_sample)(states, self.split(genotypes))
        return each.reshape(len(genotypes))

    def split(self, batch: Any) -> Any:
        """Return a tree with its leaves `(batch, ...)` reshaped to `(size, population, ...)`."""
        return jax.tree.map(lambda leaf: leaf.reshape(self.size, self.strategy.population, *leaf.shape[1:]), batch)

    def replace(self, states: Any, which: Bool[Array, " size"], fresh: Any) -> Any:
        """Return the states with those of the ES in `which` replaced by fresh ones."""

        def choose(new: Array, old: Array) -> Array:
            return jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, fresh, states)


@dataclass(frozen=True)
class PlacedPool(ESPool):
    """A pool whose ES have places of their own.

    Attributes:
        strategy: The strategy of each ES.
    """

    strategy: Placed

    def place(
        self,
        key: PRNGKeyArray,
        means: Float[Array, "size params"],
        units: Float[Array, " size"],
        growths: Int[Array, " size"] | None = None,
    ) -> PlacedState:
        """Return the initial states, see `Placed.place`; populations do not grow unless `growths` are given."""
        growths = jnp.ones(self.size, jnp.int32) if growths is None else growths
        return jax.vmap(self.strategy.place)(jax.random.split(key, self.size), means, units, growths)

    def means(self, states: PlacedState) -> Float[Array, "size params"]:
        """Return the mean of each ES."""
        return jax.vmap(self.strategy.mean)(states)

    def refine(self, key: PRNGKeyArray, states: PlacedState) -> PlacedState:
        """Return the states with each ES started anew at its mean, with half the unit."""
        return self.place(key, self.means(states), states.unit / 2)

    def shorten(self, states: PlacedState, longest: Float[Array, ""]) -> PlacedState:
        """Return the states with each mean that is longer than `longest` scaled to this length."""
        means = self.means(states)
        excess = jnp.maximum(0.0, 1 - longest / jnp.linalg.norm(means, axis=1, keepdims=True))
        return self.move(states, -excess * means)

    def move(self, states: PlacedState, steps: Float[Array, "size params"]) -> PlacedState:
        """Return the states with steps added to the means, and all else as it was."""
        return states._replace(origin=states.origin + steps)
