"""Evolution strategies between bounds, at which samples are reflected before they are evaluated.

A strategy learns from the reflection of a sample, unless the reflection is less likely than the sample under the search
distribution. Reflections keep a wide distribution in the box. But a reflection may lie far off a narrow valley that
ends at a bound; a strategy that learned from it would increase its step size without limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp

from jedax.es.base import Strategy, check_asked
from jedax.types import Array, Float, PRNGKeyArray


class _Sampled(NamedTuple):
    """State of a strategy, and its last samples before they were reflected."""

    inner: Any
    asked: Float[Array, "population params"]


def has_distances(strategy: Strategy) -> bool:
    """Return whether a strategy compares its samples with their reflections."""
    return type(strategy).distances is not Strategy.distances


def between_bounds(strategy: Strategy, fold: Callable[[Array], Array] | None) -> Strategy:
    """Return a strategy for samples that are reflected at bounds by `fold`; None: there are no bounds."""
    if fold is None or not has_distances(strategy):
        return strategy
    sizes = strategy.population, strategy.step_size, strategy.elite_ratio
    return Reflected(*sizes, strategy=strategy, fold=fold)


@dataclass(frozen=True)
class Reflected(Strategy):
    """A strategy whose samples are reflected at bounds before they are evaluated.

    Attributes:
        strategy: The strategy that samples and learns; it has `distances`.
        fold: Reflects samples at the bounds, `(..., params)`.
    """

    strategy: Strategy = field(kw_only=True)
    fold: Callable[[Array], Array] = field(kw_only=True)

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> Any:
        """Return the initial state."""
        return _Sampled(self.strategy.init(key, mean), jnp.tile(mean, (self.population, 1)))

    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "population params"], Any]:
        """Sample one generation, and keep it in the state."""
        asked, inner = self.strategy.ask(key, state.inner)
        check_asked(self.strategy, asked.shape)
        return asked, _Sampled(inner, asked.astype(state.asked.dtype))

    def tell(
        self,
        key: PRNGKeyArray,
        state: Any,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> Any:
        """Return the state updated with the likelier of each sample and its reflection in `genotypes`."""
        sampled = as_sampled(state.asked, self.fold(state.asked), genotypes)
        learnt = likelier(self.strategy, state.inner, genotypes, sampled)
        return state._replace(inner=self.strategy.tell(key, state.inner, learnt, scores))

    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return self.strategy.mean(state.inner)


def likelier(
    strategy: Strategy, state: Any, told: Float[Array, "population params"], sampled: Float[Array, "population params"]
) -> Float[Array, "population params"]:
    """Return what a strategy learns from: the solutions told, or their samples where these are nearer to the mean."""
    is_far = strategy.distances(state, told) > strategy.distances(state, sampled)
    return jnp.where(is_far[:, None], sampled, told)


def as_sampled(asked: Array, folded: Array, told: Array) -> Array:
    """Return told solutions as they were sampled before they were folded; others, for failed ones, as they are."""
    rounding = 16 * jnp.finfo(told.dtype).eps * (jnp.abs(asked) + jnp.abs(told))
    is_own = (jnp.abs(folded - told) <= rounding).all(axis=-1, keepdims=True)
    return jnp.where(is_own, asked, told)
