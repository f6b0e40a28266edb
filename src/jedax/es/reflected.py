"""Evolution strategies between bounds: they learn from their samples, not from the reflections that are evaluated."""

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


def between_bounds(strategy: Strategy, fold: Callable[[Array], Array] | None) -> Strategy:
    """Return a strategy that learns from its samples where these are reflected at bounds by `fold`; None: no bounds."""
    if fold is None:
        return strategy
    sizes = strategy.population, strategy.step_size, strategy.elite_ratio
    return Reflected(*sizes, strategy=strategy, fold=fold)


@dataclass(frozen=True)
class Reflected(Strategy):
    """A strategy whose samples are reflected at bounds before they are evaluated.

    A reflected sample may lie far off a narrow valley of the distribution; a strategy that learned from it would
    increase its step size without limit.

    Attributes:
        strategy: The strategy that samples and learns.
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
        return asked, _Sampled(inner, asked)

    def tell(
        self,
        key: PRNGKeyArray,
        state: Any,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> Any:
        """Return the state updated with the samples whose reflections `genotypes` are."""
        sampled = as_sampled(state.asked, self.fold(state.asked), genotypes)
        return state._replace(inner=self.strategy.tell(key, state.inner, sampled, scores))

    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return self.strategy.mean(state.inner)


def as_sampled(asked: Array, folded: Array, told: Array) -> Array:
    """Return told solutions as they were sampled before they were folded; others, for failed ones, as they are."""
    rounding = 16 * jnp.finfo(told.dtype).eps * (jnp.abs(asked) + jnp.abs(told))
    is_own = (jnp.abs(folded - told) <= rounding).all(axis=-1, keepdims=True)
    return jnp.where(is_own, asked, told)
