"""CMA-ES with a full covariance matrix and active update, in O(params^2) time and memory.

References:
    [1] N. Hansen. The CMA Evolution Strategy: A Tutorial. arXiv:1604.00772v2, 2023.
    [2] G. Jastrebski, D. Arnold. Improving Evolution Strategies through Active Covariance Matrix Adaptation. CEC 2006.
    [3] N. Hansen. Injecting External Solutions Into CMA-ES. arXiv:1110.4181, 2011.
    [4] N. Hansen et al. pycma 4.5, 2026: the defaults of `CMAAdaptSigmaCSA`, which damp the step size of large
        populations.

Equation numbers are those of [1].
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.es.base import (
    STEP_SIZE_LIMITS,
    Strategy,
    follow_paths,
    path_rates,
    precise_dot,
    rank_best_first,
)
from jedax.types import Array, Float, Int, PRNGKeyArray


class CMARates(NamedTuple):
    """The learning rates and weights of CMA-ES, numbers or traced."""

    weights: Any  # (population,), from the best to the worst; those of the worse half are not positive
    mu_eff: Any
    c_sigma: Any
    d_sigma: Any
    c_c: Any
    c_1: Any
    c_mu: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _CMAState:
    mean: Float[Array, " params"]
    sigma: Float[Array, ""]
    covariance: Float[Array, "params params"]
    root: Float[Array, "params params"]  # the symmetric square root of the covariance, as last decomposed
    inverse_root: Float[Array, "params params"]
    p_sigma: Float[Array, " params"]
    p_c: Float[Array, " params"]
    generation: Int[Array, ""]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Growing:
    """State of an ES whose population is collected over `growth` generations, `told` of which are known."""

    inner: _CMAState
    growth: Int[Array, ""]
    told: Int[Array, ""]
    genotypes: Float[Array, "most params"]
    scores: Float[Array, " most"]


_MOST_C_SIGMA = 0.5  # [4]
_MOST_SCALE = 20  # binary logarithm of the largest standard deviation of a covariance


@dataclass(frozen=True)
class CMAES(Strategy):
    """CMA-ES (Hansen, 2023) with negative weights for the worse half of the population, maximising.

    The state has O(params^2) numbers. Every few generations, sooner the faster it learns, the covariance is decomposed
    in O(params^3). If all scores of a generation are equal, or none is finite, the ranking is the order of sampling, a
    random selection. `sigma` stays within `STEP_SIZE_LIMITS`, and the eigenvalues of the covariance within a ratio of
    1e14 (float64) or 1e7 (float32).

    Attributes:
        most: How many times larger than a generation a population can be.
    """

    most: int = 1

    name: ClassVar[str] = "cma-es"

    def learning_rates(self, num_params: int, growth: Any = 1, xp: Any = np) -> CMARates:
        """Return the published learning rates for `num_params` parameters ([1], Table 1; step size: [4]).

        The population is `growth` times that of a generation; `xp` is `jax.numpy` where `growth` is traced. Weights of
        ranks that the population does not have are 0.
        """
        n, number = num_params, growth * self.population
        elites = self.elites_of(number, xp)
        rank = xp.arange(1, self.most * self.population + 1)
        # Eq. (49); for odd populations (population + 1) / 2 is there instead of elites + 1/2
        raw = xp.log(elites + 0.5) - xp.log(rank)
        positive = xp.where(rank <= elites, raw, 0)
        positive = positive / positive.sum()
        mu_eff = 1 / (positive**2).sum()
        # With more than five parameters large populations change the step size more slowly than in [1]. [4]
        damping = max(1.0, 3 * (1 - 0.5 ** (n / 9)))
        c_sigma, d_sigma, c_c, c_1 = path_rates(n, mu_eff, xp, damping=damping, most_c_sigma=_MOST_C_SIGMA)
        c_mu = xp.minimum(1 - c_1, 2 * (0.25 + mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff))  # Eq. (58)
        negative = xp.where((rank > elites) & (rank <= number), xp.minimum(raw, 0), 0)
        total, squares = -negative.sum(), (negative**2).sum()
        mu_eff_negative = total**2 / xp.maximum(squares, 1e-30)
        bound = xp.minimum(
            1 + c_1 / xp.maximum(c_mu, 1e-30),  # Eq. (50)
            xp.minimum(
                1 + 2 * mu_eff_negative / (mu_eff + 2),  # Eq. (51)
                (1 - c_1 - c_mu) / xp.maximum(n * c_mu, 1e-30),  # Eq. (52)
            ),
        )
        weights = positive + negative * bound / xp.maximum(total, 1e-30)  # Eq. (53)
        return CMARates(weights, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu)

    def growing(self, most: int) -> CMAES:
        """Return the strategy with room for populations that are collected over up to `most` generations."""
        return dataclasses.replace(self, most=most)

    def start(self, key: PRNGKeyArray, mean: Float[Array, " params"], growth: Int[Array, ""]) -> Any:
        """Return the initial state; the population is collected over `growth` generations, 1 to `most`."""
        state = self._first(mean)
        if self.most == 1:
            return state
        size = self.most * self.population
        growth = jnp.clip(growth, 1, self.most).astype(jnp.int32)
        buffer = jnp.zeros((size, len(state.mean)), state.mean.dtype)
        return _Growing(state, growth, jnp.int32(0), buffer, jnp.full(size, -jnp.inf, state.mean.dtype))

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> Any:
        """Return the initial state, an isotropic distribution centred on `mean`; `key` is not used."""
        return self.start(key, mean, jnp.int32(1))

    def _first(self, mean: Float[Array, " params"]) -> _CMAState:
        mean = jnp.asarray(mean, float)
        n, kind = mean.shape[0], mean.dtype
        return _CMAState(
            mean=mean,
            sigma=jnp.asarray(self.step_size, kind),
            covariance=jnp.eye(n, dtype=kind),
            root=jnp.eye(n, dtype=kind),
            inverse_root=jnp.eye(n, dtype=kind),
            p_sigma=jnp.zeros(n, kind),
            p_c=jnp.zeros(n, kind),
            generation=jnp.asarray(0, jnp.int32),
        )

    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "population params"], Any]:
        """Sample one generation; the state is unchanged."""
        if isinstance(state, _Growing):
            return self.ask(key, state.inner)[0], state
        z = jax.random.normal(key, (self.population, state.mean.shape[0]), state.mean.dtype)  # Eq. (38)
        # Eq. (39) with the symmetric root: eigenvectors of equal eigenvalues are arbitrary, and samples would depend on
        # rounding.
        y = precise_dot(z, state.root)
        return state.mean + state.sigma * y, state  # Eq. (40)

    def tell(
        self,
        key: PRNGKeyArray,
        state: Any,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> Any:
        """Return the state updated with one generation; `key` is not used."""
        if not isinstance(state, _Growing):
            return self._update(state, genotypes, scores, self.learning_rates(state.mean.shape[0]))
        place = state.told * self.population
        told = state.told + 1
        genotypes = jax.lax.dynamic_update_slice(state.genotypes, genotypes, (place, jnp.int32(0)))
        scores = jax.lax.dynamic_update_slice(state.scores, scores.astype(state.scores.dtype), (place,))
        is_complete = told >= state.growth
        inner = self._update_if(is_complete, state.inner, genotypes, scores, state.growth)
        return _Growing(
            inner, state.growth, jnp.where(is_complete, 0, told), genotypes, jnp.where(is_complete, -jnp.inf, scores)
        )

    def _update_if(
        self, wanted: Array, state: _CMAState, genotypes: Array, scores: Array, growth: Int[Array, ""]
    ) -> _CMAState:
        @jax.custom_batching.sequential_vmap  # `vmap` would update in every generation
        def update(wanted: Array, state: _CMAState, genotypes: Array, scores: Array, growth: Array) -> _CMAState:
            n, size = state.mean.shape[0], self.population

            def of_one_generation() -> _CMAState:
                rates = self.growing(1).learning_rates(n)
                return self._update(state, genotypes[:size], scores[:size], rates)

            def of_several() -> _CMAState:
                return self._update(state, genotypes, scores, self.learning_rates(n, growth, jnp))

            kind = jnp.where(wanted, jnp.where(growth == 1, 1, 2), 0)
            return jax.lax.switch(kind, (lambda: state, of_one_generation, of_several))

        return update(wanted, state, genotypes, scores, growth)

    def _update(self, state: _CMAState, genotypes: Array, scores: Array, rates: CMARates) -> _CMAState:
        """Return the state updated with one population; what is beyond it has scores that are not finite."""
        n, kind = state.mean.shape[0], state.mean.dtype
        numbers, mu_eff, c_sigma, _, c_c, c_1, c_mu = rates
        weights = jnp.asarray(numbers, kind)

        y = (genotypes[rank_best_first(scores)] - state.mean) / state.sigma
        y_w = precise_dot(jnp.maximum(weights, 0), y)  # Eq. (41)
        mean = state.mean + state.sigma * y_w  # Eq. (42), c_m = 1

        whitened = (c_sigma * (2 - c_sigma) * mu_eff) ** 0.5 * precise_dot(y_w, state.inverse_root)
        p_sigma, p_c, sigma, h_sigma = follow_paths(rates, mu_eff, state, whitened, y_w)
        # Steps that were bad count as if they had the expected length. Eq. (46)
        lengths = jnp.sum(precise_dot(y, state.inverse_root) ** 2, axis=1)
        shares = jnp.where(weights >= 0, weights, weights * n / (lengths + 1e-30))
        kept = 1 + c_1 * (1 - h_sigma) * c_c * (2 - c_c) - c_1 - c_mu * numbers.sum()
        rank_mu = precise_dot((shares[:, None] * y).T, y)
        covariance = kept * state.covariance + c_1 * jnp.outer(p_c, p_c) + c_mu * rank_mu  # Eq. (47)
        covariance = (covariance + covariance.T) / 2  # rounding makes it asymmetric, more so in each generation
        # Once no sample differs from the mean, which has a limited precision, there is nothing to learn from.
        largest = jnp.max(jnp.diagonal(covariance))
        is_known = jnp.isfinite(covariance).all() & (largest > jnp.finfo(kind).tiny)
        covariance = jnp.where(is_known, covariance, state.covariance)

        generation = state.generation + 1
        interval = jnp.maximum(1, jnp.floor(1 / (10 * n * (c_1 + c_mu))).astype(jnp.int32))  # appendix B.2
        due = (generation % interval == 0) & is_known
        root, inverse_root = _decompose(due, covariance, state.root, state.inverse_root)
        # sigma takes over the scale of a covariance that becomes very large or small, by a power of 2: exactly.
        exponent = jnp.round(jnp.log2(largest) / 2).astype(jnp.int32)
        exponent = jnp.where(is_known & (jnp.abs(exponent) > _MOST_SCALE), exponent, 0)
        scale = jnp.ldexp(jnp.ones((), kind), exponent)
        return _CMAState(
            mean=mean,
            sigma=jnp.clip(sigma * scale, *STEP_SIZE_LIMITS),
            covariance=covariance / scale**2,
            root=root / scale,
            inverse_root=inverse_root * scale,
            p_sigma=p_sigma,
            p_c=p_c / scale,
            generation=generation,
        )

    def distances(self, state: Any, genotypes: Float[Array, "population params"]) -> Float[Array, " population"]:
        """Return the length of the standard normal vectors that would have given these samples."""
        if isinstance(state, _Growing):
            state = state.inner
        return jnp.linalg.norm(precise_dot(genotypes - state.mean, state.inverse_root), axis=1) / state.sigma

    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return state.inner.mean if isinstance(state, _Growing) else state.mean


# `vmap` would decompose in every generation of every strategy.
@jax.custom_batching.sequential_vmap
def _decompose(due: Array, covariance: Array, root: Array, inverse_root: Array) -> tuple[Array, Array]:
    """Return the symmetric root of a covariance and its inverse, or the given ones where they are not due."""

    def decompose() -> tuple[Array, Array]:
        values, vectors = jnp.linalg.eigh(covariance)
        least = values[-1] * (1e-14 if covariance.dtype == jnp.float64 else 1e-7)
        lengths = jnp.sqrt(jnp.maximum(values, least))
        return precise_dot(vectors * lengths, vectors.T), precise_dot(vectors / lengths, vectors.T)

    return jax.lax.cond(due, decompose, lambda: (root, inverse_root))
