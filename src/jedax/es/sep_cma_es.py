"""Sep-CMA-ES: CMA-ES with a diagonal covariance matrix, in linear time and memory.

References:
    [1] R. Ros, N. Hansen. A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity.
        PPSN X, 2008.
    [2] N. Hansen. The CMA Evolution Strategy: A Tutorial. arXiv:1604.00772, 2016.
    [3] N. Hansen. Injecting External Solutions Into CMA-ES. arXiv:1110.4181, 2011.

Equation numbers are those of [2].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from jedax.errors import fail
from jedax.es.base import (
    STEP_SIZE_LIMITS,
    Strategy,
    follow_paths,
    path_rates,
    precise_dot,
    rank_best_first,
    recombination_weights,
)
from jedax.types import Array, Float, Int, PRNGKeyArray

VARIANCE_LIMITS = (1e-12, 1e12)
"""Bounds of each variance. `tell` keeps the geometric mean of all near 1, so these bounds limit the ratio of two."""


@dataclass(frozen=True)
class SepCMARates:
    """The learning rates of Sep-CMA-ES.

    Attributes:
        c_sigma: Learning rate of the evolution path of the step size, in (0, 1].
        d_sigma: Damping of the step size, above 0.
        c_c: Learning rate of the evolution path of the covariance, in (0, 1].
        c_1: Weight of the rank-one update, at least 0.
        c_mu: Weight of the rank-mu update, at least 0; `c_1 + c_mu` is at most 1.

    Raises:
        JedaxError: A rate is out of its range.
    """

    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float

    def __post_init__(self) -> None:
        paths = 0 < self.c_sigma <= 1 and 0 < self.c_c <= 1 and self.d_sigma > 0
        if not (paths and self.c_1 >= 0 and self.c_mu >= 0 and self.c_1 + self.c_mu <= 1):
            raise fail(
                "rates",
                expected="c_sigma and c_c in (0, 1], d_sigma > 0, c_1 and c_mu >= 0 with a sum of at most 1",
                received=self,
                remedy="leave rates at None for the published ones",
            )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _SepCMAState:
    mean: Float[Array, " params"]
    sigma: Float[Array, ""]
    variances: Float[Array, " params"]  # the diagonal of C
    p_sigma: Float[Array, " params"]
    p_c: Float[Array, " params"]
    generation: Int[Array, ""]


@dataclass(frozen=True)
class SepCMAES(Strategy):
    """Sep-CMA-ES (Ros & Hansen, 2008), maximising.

    It adapts one variance per parameter, at (n + 2) / 3 times the rate of CMA-ES, with a state of O(params). If all
    scores of a generation are equal, or none is finite, the ranking is the order of sampling, a random selection.
    `sigma` stays within `STEP_SIZE_LIMITS`, each variance within `VARIANCE_LIMITS`, and their geometric mean near 1.

    Attributes:
        rates: Learning rates; None: the published ones, see `learning_rates`.
    """

    name: ClassVar[str] = "sep-cma-es"

    rates: SepCMARates | None = None

    def learning_rates(self, num_params: int) -> SepCMARates:
        """Return the published learning rates for `num_params` parameters.

        They are those of CMA-ES ([2], Table 1, edition of 2016; the edition of 2023 adds 1/4 to the numerator of c_mu),
        with c_1 and c_mu multiplied by (n + 2) / 3 ([1]) and capped so that `c_1 + c_mu <= 1`.
        """
        n = num_params
        _, mu_eff = recombination_weights(self.num_elites)
        c_sigma, d_sigma, c_c, c_1 = path_rates(n, mu_eff)
        c_mu = min(1 - c_1, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff))  # Eq. (58)
        faster = (n + 2) / 3  # [1]
        c_1 = min(1.0, faster * c_1)
        return SepCMARates(c_sigma, d_sigma, c_c, c_1, max(0.0, min(1 - c_1, faster * c_mu)))

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> _SepCMAState:
        """Return the initial state, an isotropic distribution centred on `mean`; `key` is not used."""
        mean = jnp.asarray(mean, float)
        return _SepCMAState(
            mean=mean,
            sigma=jnp.asarray(self.step_size, float),
            variances=jnp.ones_like(mean),
            p_sigma=jnp.zeros_like(mean),
            p_c=jnp.zeros_like(mean),
            generation=jnp.asarray(0, jnp.int32),
        )

    def ask(self, key: PRNGKeyArray, state: _SepCMAState) -> tuple[Float[Array, "population params"], _SepCMAState]:
        """Sample one generation; the state is unchanged."""
        shape = (self.population, state.mean.shape[0])
        z = jax.random.normal(key, shape, state.mean.dtype)  # Eq. (38)
        y = jnp.sqrt(state.variances) * z  # Eq. (39)
        return state.mean + state.sigma * y, state  # Eq. (40)

    def tell(
        self,
        key: PRNGKeyArray,
        state: _SepCMAState,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> _SepCMAState:
        """Return the state updated with one generation; `key` is not used."""
        n = state.mean.shape[0]
        rates = self.rates or self.learning_rates(n)
        c_sigma, c_c, c_1, c_mu = rates.c_sigma, rates.c_c, rates.c_1, rates.c_mu
        numbers, mu_eff = recombination_weights(self.num_elites)
        weights = jnp.asarray(numbers, state.mean.dtype)

        elites = genotypes[rank_best_first(scores)[: self.num_elites]]
        y = (elites - state.mean) / state.sigma
        y_w = precise_dot(weights, y)  # Eq. (41)
        mean = state.mean + state.sigma * y_w  # Eq. (42), c_m = 1

        whitened = math.sqrt(c_sigma * (2 - c_sigma) * mu_eff) * y_w / jnp.sqrt(state.variances)
        p_sigma, p_c, sigma, h_sigma = follow_paths(rates, mu_eff, state, whitened, y_w)
        kept = 1 - c_1 - c_mu + (1 - h_sigma) * c_1 * c_c * (2 - c_c)
        rank_mu = precise_dot(weights, y**2)
        variances = kept * state.variances + c_1 * p_c**2 + c_mu * rank_mu  # Eq. (47), diagonal

        # The distribution depends on sigma^2 C alone; the scales of sigma and C drift apart over a long run. When the
        # geometric mean of the variances leaves [1/256, 256], a power of two brings it back, without rounding.
        drift = jnp.mean(jnp.log2(jnp.clip(variances, *VARIANCE_LIMITS)))
        exponent = 4 * jnp.trunc(drift / 8).astype(jnp.int32)
        return _SepCMAState(
            mean=mean,
            sigma=jnp.clip(jnp.ldexp(sigma, exponent), *STEP_SIZE_LIMITS),
            variances=jnp.clip(jnp.ldexp(variances, -2 * exponent), *VARIANCE_LIMITS),
            p_sigma=p_sigma,
            p_c=jnp.ldexp(p_c, -exponent),
            generation=state.generation + 1,
        )

    def distances(
        self, state: _SepCMAState, genotypes: Float[Array, "population params"]
    ) -> Float[Array, " population"]:
        """Return the lengths of the standard normal vectors that would have given these samples."""
        return jnp.linalg.norm((genotypes - state.mean) / jnp.sqrt(state.variances), axis=1) / state.sigma

    def mean(self, state: _SepCMAState) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return state.mean
