"""LM-MA-ES: an ES for many parameters, which adapts a few directions instead of a covariance matrix.

References:
    [1] I. Loshchilov, T. Glasmachers, H.-G. Beyer. Limited-Memory Matrix Adaptation for Large Scale Black-box
        Optimization. arXiv:1705.06693, 2017.

The symbols in the comments are those of Algorithm 1 in [1].
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jedax.es.base import STEP_SIZE_LIMITS, Strategy, precise_dot, rank_best_first, recombination_weights
from jedax.native import choose
from jedax.native import es as native
from jedax.types import Array, Float, Int, PRNGKeyArray


@dataclass(frozen=True)
class LMMARates:
    """The learning rates of LM-MA-ES; `c_d` and `c_c` have one value per direction.

    Attributes:
        c_sigma: Learning rate of the evolution path of the step size, in (0, 1].
        c_d: Weights with which directions transform a sample, in (0, 1].
        c_c: Learning rates of the directions, in (0, 1].
    """

    c_sigma: float
    c_d: tuple[float, ...]
    c_c: tuple[float, ...]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _LMMAState:
    mean: Float[Array, " params"]
    sigma: Float[Array, ""]
    p_sigma: Float[Array, " params"]
    directions: Float[Array, "directions params"]
    generation: Int[Array, ""]
    gram: Float[Array, "directions directions"]  # the products of the directions at the last `ask`


@dataclass(frozen=True)
class LMMAES(Strategy):
    """LM-MA-ES (Loshchilov, Glasmachers & Beyer, 2017), maximising.

    The state holds m = 4 + floor(3 ln n) directions of n = `params` numbers, and no samples: `tell` inverts the
    transformation of the normals, so it may be given other genotypes than those of `ask`, such as folded ones. If all
    scores of a generation are equal, or none is finite, the ranking is the order of sampling, a random selection. A
    single parameter has no directions. `sigma` stays within `STEP_SIZE_LIMITS`.

    It is for many parameters: with fewer than five, and populations that are large compared with n, it can diverge.
    """

    name: ClassVar[str] = "lm-ma-es"

    def learning_rates(self, num_params: int) -> LMMARates:
        """Return the learning rates of [1], Algorithm 1, for `num_params` parameters.

        The paper uses a population of 4 + floor(3 ln n). For a population that is large compared with n, the published
        `c_sigma` and `c_c` would exceed 1, so they are capped at 1.
        """
        n = num_params
        order = range(4 + math.floor(3 * math.log(n)))
        return LMMARates(
            c_sigma=min(1.0, 2 * self.population / n),
            c_d=tuple(1 / (1.5**i * n) for i in order),
            c_c=tuple(min(1.0, self.population / (4.0**i * n)) for i in order),
        )

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> _LMMAState:
        """Return the initial state, an isotropic distribution centred on `mean`; `key` is not used."""
        mean = jnp.asarray(mean, float)
        num_params = mean.shape[0]
        num_directions = len(self.learning_rates(num_params).c_d)
        return _LMMAState(
            mean=mean,
            sigma=jnp.asarray(self.step_size, float),
            p_sigma=jnp.zeros_like(mean),
            directions=jnp.zeros((num_directions, num_params)),
            generation=jnp.asarray(0, jnp.int32),
            gram=jnp.zeros((num_directions, num_directions)),
        )

    def ask(self, key: PRNGKeyArray, state: _LMMAState) -> tuple[Float[Array, "population params"], _LMMAState]:
        """Sample one generation."""
        state = dataclasses.replace(state, gram=precise_dot(state.directions, state.directions.T))
        arguments = (key, state.mean, state.sigma, state.directions, state.gram, self._used(state))
        if native.fits(key, state.mean):
            on_cpu = partial(native.sample, population=self.population)
            return choose(*arguments, on_cpu=on_cpu, elsewhere=self._sample), state
        return self._sample(*arguments), state

    def _sample(self, key: PRNGKeyArray, mean, sigma, m, gram, used) -> Float[Array, "population params"]:
        """Sample as `jedax.native.es.sample` does."""
        z = _normals(key, self.population, mean)  # z ~ N(0, I)
        # After each step d is a linear combination of z and the directions. The loop computes only its coefficients, so
        # that the long arrays are read once and not once per direction.

        def transform(coefficients, direction):
            of_z, of_m = coefficients
            c, itself, m_z, m_m = direction
            m_d = of_z * m_z + precise_dot(m_m, of_m)
            # d <- (1 - c_d) d + c_d m (m^T d)
            return ((1 - c) * of_z, (1 - c) * of_m + c * jnp.outer(itself, m_d)), None

        identity = jnp.ones(()), jnp.zeros((len(used), self.population))
        steps = used, jnp.eye(len(used)), precise_dot(m, z.T), gram
        (of_z, of_m), _ = jax.lax.scan(transform, identity, steps)
        d = of_z * z + precise_dot(of_m.T, m)
        return mean + sigma * d  # x = y + sigma d

    def _used(self, state: _LMMAState) -> Float[Array, " directions"]:
        """Return c_d; 0 for directions that are not used yet.

        for j <- 1, ..., min(t, m): direction j is used from generation j on.
        """
        if state.mean.shape[0] == 1:  # the first c_d is 1, and a sample would be nothing but the direction
            return jnp.zeros(len(state.directions))
        c_d = jnp.asarray(self.learning_rates(state.mean.shape[0]).c_d, float)
        return jnp.where(jnp.arange(len(c_d)) < state.generation, c_d, 0.0)

    def tell(
        self,
        key: PRNGKeyArray,
        state: _LMMAState,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> _LMMAState:
        """Return the state updated with an evaluated generation; `key` is not used."""
        n = state.mean.shape[0]
        rates = self.learning_rates(n)
        c_sigma, c_c = rates.c_sigma, np.asarray(rates.c_c)
        numbers, mu_eff = recombination_weights(self.num_elites)
        weights = jnp.asarray(numbers, float)

        elites = rank_best_first(scores)[: self.num_elites]

        def in_jax(genotypes: Array, mean: Array, elites: Array) -> Array:
            return precise_dot(weights, genotypes[elites] - mean)

        def natively(genotypes: Array, mean: Array, elites: Array) -> Array:
            return native.recombine(
                jnp.zeros(self.population, genotypes.dtype).at[elites].set(weights), genotypes, mean
            )

        # sigma sum_i w_i d_i
        arguments = (genotypes, state.mean, elites)
        has_kernel = native.KERNEL.available and genotypes.dtype == jnp.float32
        step = choose(*arguments, on_cpu=natively, elsewhere=in_jax) if has_kernel else in_jax(*arguments)
        z_w = self._untransformed(state, step / state.sigma)  # sum_i w_i z_i
        pull = math.sqrt(mu_eff * c_sigma * (2 - c_sigma))
        p_sigma = (1 - c_sigma) * state.p_sigma + pull * z_w
        keep = jnp.asarray(1 - c_c, float)
        pulls = jnp.asarray(np.sqrt(mu_eff * c_c * (2 - c_c)), float)
        directions = keep[:, None] * state.directions + pulls[:, None] * z_w
        sigma = state.sigma * jnp.exp(c_sigma / 2 * (jnp.sum(p_sigma**2) / n - 1))

        return dataclasses.replace(
            state,
            mean=state.mean + step,
            sigma=jnp.clip(sigma, *STEP_SIZE_LIMITS),
            p_sigma=p_sigma,
            directions=directions,
            generation=state.generation + 1,
        )

    def _untransformed(self, state: _LMMAState, d: Float[Array, " params"]) -> Float[Array, " params"]:
        """Return the z that `ask` transforms into d."""

        def invert(coefficients, direction):
            of_d, of_m = coefficients
            c, itself, m_d, m_m = direction
            # The inverse of (1 - c) I + c m m^T, by the formula of Sherman and Morrison, for coefficients of d and m
            along = of_d * m_d + precise_dot(m_m, of_m)
            share = c * along / (1 - c + c * precise_dot(m_m, itself))
            return (of_d / (1 - c), (of_m - share * itself) / (1 - c)), None

        used = self._used(state)
        steps = used, jnp.eye(len(used)), precise_dot(state.directions, d), state.gram
        (of_d, of_m), _ = jax.lax.scan(invert, (jnp.ones(()), jnp.zeros(len(used))), steps, reverse=True)
        return of_d * d + precise_dot(of_m, state.directions)

    def distances(self, state: Any, genotypes: Float[Array, "population params"]) -> Float[Array, " population"]:
        """Return the lengths of the standard normal vectors that would have given these samples."""
        steps = (genotypes - state.mean) / state.sigma
        return jnp.linalg.norm(jax.vmap(partial(self._untransformed, state))(steps), axis=1)

    def mean(self, state: _LMMAState) -> Float[Array, " params"]:
        """Return the centre of the search distribution."""
        return state.mean


def _normals(key: PRNGKeyArray, population: int, like: Float[Array, " params"]) -> Float[Array, "population params"]:
    """Draw standard normals for each member of a generation, each from its own key."""

    def draw(member):
        return jax.random.normal(jax.random.fold_in(key, member), like.shape, like.dtype)

    return jax.vmap(draw)(jnp.arange(population))
