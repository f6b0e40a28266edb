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
"""What an adapted step size is clipped to, so that float32 neither loses it nor overflows."""

precise_dot = partial(jnp.dot, precision=jax.lax.Precision.HIGHEST)
"""`jax.numpy.dot` in full float32; accelerators otherwise round the factors to about 10 bits."""


@dataclass(frozen=True)
class Strategy(abc.ABC):
    """An evolution strategy that maximises a score.

    A strategy is an immutable, hashable description (equal settings are equal objects, so a second one does
    not compile anew); what changes while it runs is the state it hands out, a pytree of arrays. All methods
    are pure and can be jitted, scanned and vmapped.

    A class attribute `name` registers a strategy of the package; the ones of users need none.

    Attributes:
        population: Solutions per generation, at least 2.
        step_size: Initial step size (standard deviation of the samples), above 0.
        elite_ratio: Share of the population that takes part in recombination, in (0, 1].

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
                remedy="an evolution strategy learns by comparing solutions, so give it two or more",
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
        """Return a fresh state whose search distribution is centred on `mean`."""

    @abc.abstractmethod
    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "population params"], Any]:
        """Sample one generation; return it and the state that `tell` wants back."""

    @abc.abstractmethod
    def tell(
        self,
        key: PRNGKeyArray,
        state: Any,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> Any:
        """Return the state after learning the scores of what the last `ask` gave.

        Args:
            key: For strategies whose update draws random numbers; others ignore it.
            state: The state that `ask` returned.
            genotypes: What `ask` returned.
            scores: Maximised; a score that is not finite ranks last.
        """

    @abc.abstractmethod
    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""


def rank_best_first(scores: Float[Array, " population"]) -> Int[Array, " population"]:
    """Return indices that sort `scores` from best to worst; ties keep their order, non-finite come last."""
    return jnp.argsort(jnp.where(jnp.isfinite(scores), -scores, jnp.inf), stable=True)


def recombination_weights(num_elites: int) -> tuple[Float[np.ndarray, " elites"], float]:
    """Return the weights of the elites, best first, and how many equal weights they are worth.

    Hansen, The CMA Evolution Strategy: A Tutorial (arXiv:1604.00772): the positive weights of Table 1, with
    `num_elites` in the place of half the population, and Eq. (8).

    Args:
        num_elites: Number of recombined solutions, at least 1.

    Returns:
        Positive weights that fall with the rank and sum to 1, and `mu_eff`, in [1, num_elites].
    """
    weights = np.log(num_elites + 0.5) - np.log(np.arange(1, num_elites + 1))
    weights /= weights.sum()
    return weights, float(1 / np.sum(weights**2))
