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
    """State of a strategy whose parameters are distances from `origin` in units of `unit`."""

    inner: Any
    origin: Float[Array, " params"]
    unit: Float[Array, ""]


@dataclass(frozen=True)
class Placed(Strategy):
    """A strategy in a place of its own; it is told its samples as they were before they were reflected.

    Attributes:
        strategy: The strategy that samples and learns.
        fold: Reflects samples at the bounds, `(..., params)`; None: there are no bounds.
    """

    strategy: Strategy = field(kw_only=True)
    fold: Callable[[Array], Array] | None = field(kw_only=True)

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> PlacedState:
        """Return the initial state where parameters are those of the strategy."""
        return PlacedState(self.strategy.init(key, mean), jnp.zeros_like(mean), jnp.ones((), mean.dtype))

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
        return PlacedState(self.strategy.start(key, jnp.zeros_like(mean), growth), mean, unit)

    def ask(self, key: PRNGKeyArray, state: PlacedState) -> tuple[Float[Array, "population params"], PlacedState]:
        """Sample one generation."""
        steps, inner = self.strategy.ask(key, state.inner)
        check_asked(self.strategy, steps.shape)
        return state.origin + state.unit * steps, state._replace(inner=inner)

    def tell(
        self,
        key: PRNGKeyArray,
        state: PlacedState,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> PlacedState:
        """Return the state updated with the likelier of each sample and its reflection."""
        learnt = self._steps(state, genotypes if self.fold is None else self.fold(genotypes))
        if self.fold is not None and self.has_distances:
            sampled = self._steps(state, genotypes)
            is_far = self.strategy.distances(state.inner, learnt) > self.strategy.distances(state.inner, sampled)
            learnt = jnp.where(is_far[:, None], sampled, learnt)
        return state._replace(inner=self.strategy.tell(key, state.inner, learnt, scores))

    @property
    def has_distances(self) -> bool:
        """Whether the strategy tells how far solutions are from its mean."""
        return self.strategy.has_distances

    def distances(
        self, state: PlacedState, genotypes: Float[Array, "population params"]
    ) -> Float[Array, " population"]:
        """Return how far solutions are from the mean, in steps of the search distribution."""
        return self.strategy.distances(state.inner, self._steps(state, genotypes))

    def mean(self, state: PlacedState) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return state.origin + state.unit * self.strategy.mean(state.inner)

    def _steps(self, state: PlacedState, genotypes: Array) -> Array:
        return (genotypes - state.origin) / state.unit


def placed(strategy: Strategy, fold: Callable[[Array], Array] | None) -> Placed:
    """Return a strategy in a place of its own, whose samples are reflected at bounds by `fold`; None: no bounds."""
    return Placed(strategy.population, strategy.step_size, strategy.elite_ratio, strategy=strategy, fold=fold)


def between_bounds(strategy: Strategy, fold: Callable[[Array], Array] | None) -> Strategy:
    """Return a strategy whose samples are reflected at bounds by `fold`; None: there are no bounds."""
    return strategy if fold is None else placed(strategy, fold)
