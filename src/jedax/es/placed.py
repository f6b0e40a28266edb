"""Evolution strategies (ES) in places of their own: an origin, a unit of length, and bounds that reflect samples.

Between bounds, samples are reflected before they are evaluated. A strategy learns from the reflection of a sample,
unless the reflection is less likely than the sample under the search distribution. Reflections keep a wide distribution
in the box. But a reflection may lie far off a narrow valley that ends at a bound; a strategy that learned from it would
increase its step size without limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp

from jedax.es.base import Strategy, check_asked
from jedax.types import Array, Float, Int, PRNGKeyArray


class PlacedState(NamedTuple):
    """State of a strategy whose parameters are distances from `origin` in units of `unit`.

    `asked` are the last samples before they were reflected; None where the strategy does not compare them.
    """

    inner: Any
    origin: Float[Array, " params"]
    unit: Float[Array, ""]
    asked: Float[Array, "population params"] | None


@dataclass(frozen=True)
class Placed(Strategy):
    """A strategy in a place of its own.

    Attributes:
        strategy: The strategy that samples and learns.
        fold: Reflects samples at the bounds, `(..., params)`; the strategy then has `distances`. None: it learns from
            the solutions that it is told.
    """

    strategy: Strategy = field(kw_only=True)
    fold: Callable[[Array], Array] | None = field(kw_only=True)

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> PlacedState:
        """Return the initial state where parameters are those of the strategy."""
        inner = self.strategy.init(key, mean)
        return PlacedState(inner, jnp.zeros_like(mean), jnp.ones((), mean.dtype), self._first_asked(mean))

    def place(
        self, key: PRNGKeyArray, mean: Float[Array, " params"], unit: Float[Array, ""], growth: Int[Array, ""]
    ) -> PlacedState:
        """Return the initial state where parameters are distances from the mean.

        Args:
            key: Random key.
            mean: Where the strategy starts.
            unit: Unit of the parameters, so that the step size of the strategy is in this unit, too.
            growth: How many times larger the population is, where the strategy can grow.
        """
        inner = self.strategy.start(key, jnp.zeros_like(mean), growth)
        return PlacedState(inner, mean, unit, self._first_asked(mean))

    def ask(self, key: PRNGKeyArray, state: PlacedState) -> tuple[Float[Array, "population params"], PlacedState]:
        """Sample one generation."""
        asked, inner = self.strategy.ask(key, state.inner)
        check_asked(self.strategy, asked.shape)
        asked = state.origin + state.unit * asked
        return asked, state._replace(inner=inner, asked=None if self.fold is None else asked)

    def tell(
        self,
        key: PRNGKeyArray,
        state: PlacedState,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> PlacedState:
        """Return the updated state; with `fold`, the likelier of each sample and its reflection is learnt from."""
        learnt = (genotypes - state.origin) / state.unit
        if self.fold is not None and state.asked is not None:
            asked = as_sampled(state.asked, self.fold(state.asked), genotypes)
            sampled = (asked - state.origin) / state.unit
            is_far = self.strategy.distances(state.inner, learnt) > self.strategy.distances(state.inner, sampled)
            learnt = jnp.where(is_far[:, None], sampled, learnt)
        return state._replace(inner=self.strategy.tell(key, state.inner, learnt, scores))

    def mean(self, state: PlacedState) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return state.origin + state.unit * self.strategy.mean(state.inner)

    def _first_asked(self, mean: Float[Array, " params"]) -> Float[Array, "population params"] | None:
        return None if self.fold is None else jnp.tile(mean, (self.population, 1))


def placed(strategy: Strategy, fold: Callable[[Array], Array] | None) -> Placed:
    """Return a strategy in a place of its own, whose samples are reflected at bounds by `fold`; None: no bounds."""
    compares = type(strategy).distances is not Strategy.distances
    sizes = strategy.population, strategy.step_size, strategy.elite_ratio
    return Placed(*sizes, strategy=strategy, fold=fold if compares else None)


def between_bounds(strategy: Strategy, fold: Callable[[Array], Array] | None) -> Strategy:
    """Return a strategy that compares its samples with their reflections where it can and there are bounds."""
    found = placed(strategy, fold)
    return strategy if found.fold is None else found


def as_sampled(asked: Array, folded: Array, told: Array) -> Array:
    """Return told solutions as they were sampled before they were folded; others, for failed ones, as they are."""
    rounding = 16 * jnp.finfo(told.dtype).eps * (jnp.abs(asked) + jnp.abs(told))
    is_own = (jnp.abs(folded - told) <= rounding).all(axis=-1, keepdims=True)
    return jnp.where(is_own, asked, told)
