"""The interface of an evolution strategy (ES), as the search methods use it."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import fail
from jedax.types import Array, Float, Int, PRNGKeyArray

STEP_SIZE_LIMITS = (1e-12, 1e12)
"""Bounds of an adapted step size; they prevent underflow and overflow in float32."""

precise_dot = partial(jnp.dot, precision=jax.lax.Precision.HIGHEST)
"""`jax.numpy.dot` in full float32; by default accelerators round the factors to about 10 bits."""


@dataclass(frozen=True)
class Strategy(abc.ABC):
    """An evolution strategy that maximises a score.

    A strategy holds settings only: it is immutable and hashable, and equal strategies share compiled programs. Its
    state is a pytree of arrays. All methods are pure functions and can be jitted, scanned and vmapped.

    The class attribute `name` registers a strategy of this package; a strategy from elsewhere needs none.

    Attributes:
        population: Solutions per generation, at least 2.
        step_size: Standard deviation of the first samples, above 0.
        elite_ratio: Share of the population that is recombined, in (0, 1].

    Raises:
        JedaxError: A setting is out of its range.
    """

    population: int
    step_size: float = 0.05
    elite_ratio: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.population, Integral) or self.population < 2:
            raise fail(
                "population",
                expected="a whole number of at least 2",
                received=self.population,
                remedy="raise it: an evolution strategy compares solutions",
            )
        if not (math.isfinite(self.step_size) and self.step_size > 0):
            raise fail(
                "step_size",
                expected="a finite number above 0",
                received=self.step_size,
                remedy="give the standard deviation of the first samples, such as 0.05",
            )
        if not 0 < self.elite_ratio <= 1:
            raise fail(
                "elite_ratio",
                expected="a share in (0, 1]",
                received=self.elite_ratio,
                remedy="give the share of the population to recombine, such as 0.5",
            )

    @property
    def num_elites(self) -> int:
        """Number of solutions recombined into the next mean, at least 1."""
        return max(1, int(self.population * self.elite_ratio))

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> Any:
        """Return the initial state, with a search distribution centred on `mean`."""

    @abc.abstractmethod
    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "population params"], Any]:
        """Sample one generation; return it and the state for `tell`."""

    @abc.abstractmethod
    def tell(
        self,
        key: PRNGKeyArray,
        state: Any,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> Any:
        """Return the state updated with the scores of the last generation.

        Args:
            key: Random key, for strategies whose update is random.
            state: The state that `ask` returned.
            genotypes: The generation that `ask` returned.
            scores: Maximised; a score that is not finite ranks last.
        """

    @abc.abstractmethod
    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""


def rank_best_first(scores: Float[Array, " population"]) -> Int[Array, " population"]:
    """Return the indices that sort `scores` from best to worst; ties keep their order, scores not finite are last."""
    return jnp.argsort(jnp.where(jnp.isfinite(scores), -scores, jnp.inf), stable=True)


def recombination_weights(num_elites: int) -> tuple[Float[np.ndarray, " elites"], float]:
    """Return the recombination weights of the elites, best first, and their effective number `mu_eff`.

    The weights are positive, fall with the rank and sum to 1; `mu_eff` is in [1, num_elites]. Source: Hansen, The CMA
    Evolution Strategy: A Tutorial (arXiv:1604.00772), Table 1 (positive weights, with `num_elites` instead of half the
    population) and Eq. (8).
    """
    weights = np.log(num_elites + 0.5) - np.log(np.arange(1, num_elites + 1))
    weights /= weights.sum()
    return weights, float(1 / np.sum(weights**2))
