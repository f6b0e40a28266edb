"""A pool of evolution strategies (ES) that run in parallel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jedax.es.base import Strategy, check_asked
from jedax.es.reflected import as_sampled, has_distances, likelier
from jedax.types import Array, Bool, Float, PRNGKeyArray


class _Placed(NamedTuple):
    """States of ES whose parameters are distances from `origin` in units of `unit`.

    `asked` are the last samples before they were reflected at bounds; None where no strategy needs them.
    """

    inner: Any
    origin: Float[Array, "size params"]
    unit: Float[Array, " size"]
    asked: Float[Array, "size population params"] | None


@dataclass(frozen=True)
class ESPool:
    """Several ES with the same settings; a batch is the concatenation of their populations.

    The states are one pytree with a leading axis `size`. All methods are pure functions.

    Attributes:
        strategy: The strategy of each ES.
        size: Number of ES.
        fold: Reflects samples at the bounds of parameters, `(..., params)`, before they are evaluated, for ES with
            places, which learn like `jedax.es.reflected.Reflected`; None: no bounds.
    """

    strategy: Strategy
    size: int
    fold: Callable[[Array], Array] | None = None

    def start(
        self, key: PRNGKeyArray, means: Float[Array, "size params"], places: tuple[Array, Array] | None = None
    ) -> Any:
        """Return the initial states, one ES per mean.

        Args:
            key: Random key.
            means: Where each ES starts.
            places: Units and growths, `(size,)` each. The parameters of each ES are then the distances from its mean in
                its unit, so that the step size of the strategy is in this unit, too; its population is `growth` times
                larger where the strategy can grow.
        """
        keys = jax.random.split(key, self.size)
        if places is None:
            return jax.vmap(self.strategy.init)(keys, means)
        units, growths = places
        keeps = self.fold is not None and has_distances(self.strategy)
        asked = jnp.repeat(means[:, None], self.strategy.population, axis=1) if keeps else None
        return _Placed(jax.vmap(self.strategy.start)(keys, jnp.zeros_like(means), growths), means, units, asked)

    def ask(self, key: PRNGKeyArray, states: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Sample one generation of every ES; return the batch and the states for `tell`."""
        keys, population = jax.random.split(key, self.size), self.strategy.population
        asked, after = jax.vmap(self.strategy.ask)(keys, states.inner if isinstance(states, _Placed) else states)
        check_asked(self.strategy, asked.shape[1:])
        if isinstance(states, _Placed):
            asked = states.origin[:, None] + states.unit[:, None, None] * asked
            after = states._replace(inner=after, asked=None if states.asked is None else asked)
        return asked.reshape(self.size * population, -1), after

    def tell(
        self,
        key: PRNGKeyArray,
        states: Any,
        genotypes: Float[Array, "batch params"],
        scores: Float[Array, "size population"],
    ) -> Any:
        """Return the states updated with the scores of each population."""
        keys, each = jax.random.split(key, self.size), self.split(genotypes)
        if not isinstance(states, _Placed):
            return jax.vmap(self.strategy.tell)(keys, states, each, scores)
        origin, unit = states.origin[:, None], states.unit[:, None, None]
        steps = (each - origin) / unit
        if self.fold is not None and states.asked is not None:
            sampled = (as_sampled(states.asked, self.fold(states.asked), each) - origin) / unit
            steps = jax.vmap(functools.partial(likelier, self.strategy))(states.inner, steps, sampled)
        return states._replace(inner=jax.vmap(self.strategy.tell)(keys, states.inner, steps, scores))

    def refine(self, key: PRNGKeyArray, states: _Placed) -> _Placed:
        """Return the states with each ES started anew at its mean, with half the unit."""
        return self.start(key, self.means(states), (states.unit / 2, jnp.ones(self.size, jnp.int32)))

    def shorten(self, states: _Placed, longest: Float[Array, ""]) -> _Placed:
        """Return the states with each mean that is longer than `longest` scaled to this length."""
        means = self.means(states)
        excess = jnp.maximum(0.0, 1 - longest / jnp.linalg.norm(means, axis=1, keepdims=True))
        return states._replace(origin=states.origin - excess * means)

    def move(self, states: _Placed, steps: Float[Array, "size params"]) -> _Placed:
        """Return the states with steps added to the means, and all else as it was."""
        return states._replace(origin=states.origin + steps)

    def means(self, states: _Placed) -> Float[Array, "size params"]:
        """Return the mean of each ES."""
        return states.origin + states.unit[:, None] * jax.vmap(self.strategy.mean)(states.inner)

    def split(self, batch: Any) -> Any:
        """Return a tree with its leaves `(batch, ...)` reshaped to `(size, population, ...)`."""
        return jax.tree.map(lambda leaf: leaf.reshape(self.size, self.strategy.population, *leaf.shape[1:]), batch)

    def restart(
        self,
        key: PRNGKeyArray,
        states: Any,
        which: Bool[Array, " size"],
        means: Float[Array, "size params"],
        places: tuple[Array, Array] | None = None,
    ) -> Any:
        """Return the states with the ES in `which` restarted at their means; `places` as for `start`."""
        fresh = self.start(key, means, places)

        def choose(new: Array, old: Array) -> Array:
            return jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, fresh, states)
