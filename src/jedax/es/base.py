"""The interface of an evolution strategy (ES), as the search methods use it."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import check_pair, fail
from jedax.types import Array, Bool, Float, Int, PRNGKeyArray

STEP_SIZE_LIMITS = (1e-12, 1e12)
"""Bounds of an adapted step size; they prevent underflow and overflow in float32."""

precise_dot = partial(jnp.dot, precision=jax.lax.Precision.HIGHEST)
"""`jax.numpy.dot` in full float32; by default accelerators round the factors to about 10 bits."""

_MOST_DEVIATIONS = 3.0
_ROUNDING = 1e-4  # added to a number of elites before it is rounded down: 0.29 * 100 is 28.999999999999996


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
        return int(self.elites_of(self.population))

    def elites_of(self, number: Any, xp: Any = np) -> Any:
        """Return how many of a number of solutions are recombined; `xp` is `jax.numpy` where the number is traced."""
        return xp.maximum(1, xp.floor(number * self.elite_ratio + _ROUNDING))

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> Any:
        """Return the initial state, with a search distribution centred on `mean`."""

    def growing(self, most: int) -> Strategy:
        """Return the strategy with room for populations that are up to `most` times larger, see `start`.

        A strategy that has none returns itself.
        """
        return self

    def start(self, key: PRNGKeyArray, mean: Float[Array, " params"], growth: Int[Array, ""]) -> Any:
        """Return the initial state with a population that is `growth` times larger, where there is room for it."""
        return self.init(key, mean)

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

    def distances(self, state: Any, genotypes: Float[Array, "population params"]) -> Float[Array, " population"]:
        """Return how far solutions are from the mean, in steps of the search distribution (Mahalanobis distance).

        Between bounds a strategy learns from a sample instead of its reflection where the reflection is further away,
        and it learns from late results of former generations whose distance is usual: see `jedax.es.placed`. A strategy
        that does not define this method always learns from reflections, and from no late result.
        """
        raise NotImplementedError

    @property
    def has_distances(self) -> bool:
        """Whether the strategy defines `distances`."""
        return type(self).distances is not Strategy.distances

    def could_sample(self, state: Any, genotypes: Float[Array, "population params"]) -> Bool[Array, " population"]:
        """Return which solutions could be samples: those that are not farther from the mean than most samples.

        The squared distance of a sample has the mean n and the standard deviation sqrt(2n), where n is the number of
        parameters; up to `_MOST_DEVIATIONS` of these count. False for a strategy that does not tell distances.
        """
        if not self.has_distances:
            return jnp.zeros(len(genotypes), bool)
        n = genotypes.shape[1]
        return self.distances(state, genotypes) ** 2 <= n + _MOST_DEVIATIONS * math.sqrt(2 * n)

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


class PathRates(NamedTuple):
    """The learning rates of CMA-ES that do not depend on how much of the covariance is learned.

    Source: Hansen, The CMA Evolution Strategy: A Tutorial (arXiv:1604.00772), Table 1.
    """

    c_sigma: float  # Eq. (55)
    d_sigma: float  # Eq. (55)
    c_c: float  # Eq. (56)
    c_1: float  # Eq. (57)


def path_rates(
    num_params: int, mu_eff: Any, xp: Any = np, *, damping: float = 1.0, most_c_sigma: float = 1.0
) -> PathRates:
    """Return the published rates for `num_params` parameters and an effective number of elites `mu_eff`.

    `xp` is `jax.numpy` where `mu_eff` is traced. `damping` above 1 damps the step size of large populations.
    """
    n = num_params
    c_sigma = xp.minimum(most_c_sigma, (mu_eff + 2) / (n + mu_eff + 5))
    d_sigma = 1 + 2 * xp.maximum(0.0, damping * xp.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma
    c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
    return PathRates(c_sigma, d_sigma, c_c, 2 / ((n + 1.3) ** 2 + mu_eff))


class Paths(NamedTuple):
    """The evolution paths of CMA-ES and the step size after a generation."""

    p_sigma: Float[Array, " params"]
    p_c: Float[Array, " params"]
    sigma: Float[Array, ""]
    h_sigma: Float[Array, ""]  # 0 while p_sigma is so long that p_c learns nothing, else 1


def follow_paths(
    rates: Any, mu_eff: float, state: Any, whitened: Float[Array, " params"], y_w: Float[Array, " params"]
) -> Paths:
    """Return the paths after a generation (Hansen's tutorial, Eq. (43) to (45); Eq. (44) capped as in arXiv:1110.4181).

    Args:
        rates: `c_sigma`, `d_sigma` and `c_c`.
        mu_eff: Effective number of elites.
        state: `sigma`, `p_sigma`, `p_c`, and `generation`, the number of generations before this one.
        whitened: What the generation adds to `p_sigma`: the mean step of the elites, of unit covariance and scale.
        y_w: The mean step of the elites, in units of sigma.
    """
    n, c_sigma, c_c = len(y_w), rates.c_sigma, rates.c_c
    p_sigma = (1 - c_sigma) * state.p_sigma + whitened  # Eq. (43)
    length = jnp.linalg.norm(p_sigma)
    chi_n = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    exponent = c_sigma / rates.d_sigma * (length / chi_n - 1)
    sigma = state.sigma * jnp.exp(jnp.minimum(1.0, exponent))  # Eq. (44)
    unbiased = length / jnp.sqrt(1 - (1 - c_sigma) ** (2.0 * (state.generation + 1)))
    h_sigma = (unbiased < (1.4 + 2 / (n + 1)) * chi_n).astype(y_w.dtype)  # below Eq. (58)
    p_c = (1 - c_c) * state.p_c + h_sigma * (c_c * (2 - c_c) * mu_eff) ** 0.5 * y_w  # Eq. (45)
    return Paths(p_sigma, p_c, sigma, h_sigma)


def checked_ask(strategy: Strategy, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "population params"], Any]:
    """Return what `strategy.ask` returns, an error unless it is its population and a state like the one before."""
    name = f"{type(strategy).__name__}.ask"
    samples, asked = check_pair(name, strategy.ask(key, state), "samples and a state", "return both")
    shape = jnp.shape(samples)
    if len(shape) != 2 or shape[0] != strategy.population:
        expected, remedy = f"{strategy.population} rows of parameters", f"correct {name}"
        raise fail(name, expected=expected, received=f"shape {shape}", remedy=remedy)
    _check_state(name, asked, state)
    mean = jax.eval_shape(strategy.mean, state)
    if jnp.shape(mean) != shape[1:]:
        name, received = f"{type(strategy).__name__}.mean", f"shape {jnp.shape(mean)}"
        raise fail(name, expected=f"shape {shape[1:]}", received=received, remedy="return the centre of the samples")
    return samples, asked


def checked_tell(strategy: Strategy, key: PRNGKeyArray, state: Any, genotypes: Array, scores: Array) -> Any:
    """Return what `strategy.tell` returns, an error unless it is a state like the one before."""
    found = strategy.tell(key, state, genotypes, scores)
    _check_state(f"{type(strategy).__name__}.tell", found, state)
    return found


def _check_state(name: str, new: Any, old: Any) -> None:
    if jax.tree.structure(new) != jax.tree.structure(old):
        received = type(new).__name__
        received = f"a {received} with other fields" if received == type(old).__name__ else received
        expected, remedy = f"the next state, a {type(old).__name__}", f"correct what {name} returns"
        raise fail(name, expected=expected, received=received, remedy=remedy)
    for (path, ours), theirs in zip(jax.tree.leaves_with_path(new), jax.tree.leaves(old), strict=True):
        if jnp.shape(ours) != jnp.shape(theirs):
            field, expected = f"{name}: state{jax.tree_util.keystr(path)}", f"shape {jnp.shape(theirs)}, as before"
            raise fail(field, expected=expected, received=f"shape {jnp.shape(ours)}", remedy="keep the shape")
