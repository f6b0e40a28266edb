"""Evolution strategies (ES) in places of their own: an origin, a unit of length, and a space with bounds.

Between bounds, samples are reflected before they are evaluated. A strategy sees a space in which this reflection is
smooth (`Space.to_smooth`), as with the boundary transformation of pycma: where the best solution lies on a bound,
fitness has a maximum there, and no edge. A strategy learns from its samples of real numbers. If it learned from their
reflections, its mean would stay away from the bound, and its steps would become small too soon.

For whole numbers and options it learns from the reflection of a sample, unless the reflection is less likely than the
sample under the search distribution.

Whole numbers and options have a margin [1]. Small steps alone would give all samples the same whole number, and no
sample would tell that another one is better. Therefore, the mean stays so near to an end of its share that samples have
another value with a least probability. The fitness is the same at both ends of a share: whenever the mean is too far
from both, it moves to the nearer one, sometimes to the other. In [1] the distribution becomes wider instead.

References:
    [1] R. Hamano, S. Saito, M. Nomura, S. Shirakawa. CMA-ES with Margin: Lower-Bounding Marginal Probability for
        Mixed-Integer Black-Box Optimization. GECCO 2022. arXiv:2205.13482.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from jedax.es.base import Strategy, checked_ask, checked_tell
from jedax.space import Space
from jedax.types import Array, Float, Int, PRNGKeyArray

_RARE = 0.3  # samples of a generation that have another whole number somewhere, at least, on average; 1 in [1]


class PlacedState(NamedTuple):
    """State of a strategy whose parameters are distances from `origin`, a smooth point, in units of `unit`."""

    inner: Any
    origin: Float[Array, " params"]
    unit: Float[Array, ""]


@dataclass(frozen=True)
class Placed(Strategy):
    """A strategy in a place of its own; it is told its samples as they were before they were reflected.

    Its own parameters are smooth points, see `Space.to_smooth`.

    Attributes:
        strategy: The strategy that samples and learns.
        space: The parameters, whose bounds reflect samples; None: all are real numbers without bounds.
    """

    strategy: Strategy = field(kw_only=True)
    space: Space | None = field(kw_only=True)

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> PlacedState:
        """Return the initial state where smooth points are the parameters of the strategy."""
        inner = self.strategy.init(key, self._to_smooth(mean))
        return PlacedState(inner, jnp.zeros_like(mean), jnp.ones((), mean.dtype))

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
        origin = self._to_smooth(mean)
        return PlacedState(self.strategy.start(key, jnp.zeros_like(mean), growth), origin, unit)

    def ask(self, key: PRNGKeyArray, state: PlacedState) -> tuple[Float[Array, "population params"], PlacedState]:
        """Sample one generation."""
        steps, inner = checked_ask(self.strategy, key, state.inner)
        return self._from_smooth(state.origin + state.unit * steps), state._replace(inner=inner)

    def tell(
        self,
        key: PRNGKeyArray,
        state: PlacedState,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> PlacedState:
        """Return the state updated with the samples; its mean keeps the margin."""
        learnt = self._steps(state, genotypes)
        if self.space is not None and not self.has_distances:
            learnt = self._steps(state, self.space.fold(genotypes))
        elif self.space is not None and not self.space.is_real:
            reflected = jnp.where(self.space.is_real_coordinate, genotypes, self.space.fold(genotypes))
            reflected = self._steps(state, reflected)
            is_far = self.strategy.distances(state.inner, reflected) > self.strategy.distances(state.inner, learnt)
            learnt = jnp.where(is_far[:, None], learnt, reflected)
        told = state._replace(inner=checked_tell(self.strategy, key, state.inner, learnt, scores))
        # The state of a strategy that tells distances is a distribution; others may keep solutions, which must stay.
        if self.space is None or self.space.is_real or not self.has_distances:
            return told
        before, mean = self.mean(state), self.mean(told)
        deviations = jnp.sqrt(((genotypes - before) ** 2).mean(axis=0))
        reach = -deviations * ndtri(_RARE / genotypes.size)
        step = self.space.step_within_reach(jax.random.fold_in(key, 1), mean, reach)
        # While a strategy collects several generations before it learns, its mean must stay.
        step = jnp.where((mean != before).any(), step, 0)
        return told._replace(origin=told.origin + step.astype(told.origin.dtype))

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
        return self._from_smooth(state.origin + state.unit * self.strategy.mean(state.inner))

    def _steps(self, state: PlacedState, genotypes: Array) -> Array:
        return (self._to_smooth(genotypes) - state.origin) / state.unit

    def _to_smooth(self, genotypes: Array) -> Array:
        return genotypes if self.space is None else self.space.to_smooth(genotypes)

    def _from_smooth(self, points: Array) -> Array:
        return points if self.space is None else self.space.from_smooth(points)


def placed(strategy: Strategy, space: Space | None) -> Placed:
    """Return a strategy in a place of its own, in a space; None: real numbers without bounds."""
    return Placed(strategy.population, strategy.step_size, strategy.elite_ratio, strategy=strategy, space=space)


def within(strategy: Strategy, space: Space | None) -> Strategy:
    """Return a strategy in a space; None: real numbers without bounds, and the strategy itself."""
    return strategy if space is None else placed(strategy, space)
