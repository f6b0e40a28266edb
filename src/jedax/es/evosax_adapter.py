"""The algorithms of evosax as strategies of jedax.

References:
    [1] R. T. Lange. evosax: JAX-based Evolution Strategies. GECCO Companion, 2023.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import check_choice, fail
from jedax.es.base import Strategy
from jedax.imports import require
from jedax.types import Array, Float, PRNGKeyArray

WORST = 1e30
"""Fitness for evosax, which minimises, of solutions that were never evaluated, and of failed solutions in algorithms
that keep a population. It is finite, and the sum over a population is finite in float32."""

# Requirements of evosax on the population, some of which it does not check: a multiple of, and at least.
_MULTIPLE_OF = {
    "ARS": 2,
    "ASEBO": 2,
    "CR_FM_NES": 2,
    "ESMC": 2,
    "GuidedES": 2,
    "NoiseReuseES": 2,
    "Open_ES": 2,
    "PGPE": 2,
    "PersistentES": 2,
    "SV_CMA_ES": 2,
    "SV_Open_ES": 4,
}
_AT_LEAST = {"DifferentialEvolution": 4, "ESMC": 4, "SV_CMA_ES": 4}

_NUM_POPULATIONS = 2  # into which the Stein-variational algorithms split the population


def evosax_names() -> tuple[str, ...]:
    """Return the names of evosax's algorithms, both of its registry and of its classes; imports evosax."""
    return tuple(sorted(_classes()))


@dataclass(frozen=True)
class EvosaxStrategy(Strategy):
    """An algorithm of evosax as a strategy; it maximises, like every strategy.

    Scores below -1e30 count as -1e30. A score that is not finite becomes slightly worse than the worst finite score of
    its generation (-1e30 in algorithms that keep a population). A generation without finite scores does not change the
    state.

    `step_size` is the standard deviation of the first samples, if evosax has `std_init` or `std_schedule`. Exceptions:

    - ASEBO, GuidedES: the size of the whole perturbation; GuidedES gets no gradients.
    - GradientlessDescent: the largest radius; the smallest is 1/200 of it, as in evosax.
    - ESMC samples the mean twice; the iAMaLGaMs never adapt a part of `step_size`.
    - Population-based algorithms (DifferentialEvolution, PSO, GAs ...) start from parents that are spread by
      `step_size` about the mean and never evaluated. Their mutation also has this step size, which the network of LGA
      modifies; PSO and DifferentialEvolution have no mutation. DiffusionEvolution contracts towards zero by design, and
      stops moving after its 128 generations.

    `elite_ratio` has no effect on algorithms that use the whole population and on learned algorithms. All other
    settings are the defaults of evosax.

    Attributes:
        name: A name in `evosax_names()`, such as "SNES" or "LM_MA_ES".

    Raises:
        JedaxError: The name is unknown, or the algorithm does not support the population.
    """

    name: str = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("name", self.name, evosax_names())
        multiple, least = _MULTIPLE_OF.get(self.name, 1), _AT_LEAST.get(self.name, 2)
        if self.population % multiple or self.population < least:
            raise fail(
                "population",
                expected=f"a multiple of {multiple}, at least {least}, for evosax's {self.name}",
                received=self.population,
                remedy=f"use {max(least, -(-self.population // multiple) * multiple)}",
            )

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> Any:
        """Return the initial state of evosax's algorithm, centred on `mean`."""
        mean = jnp.asarray(mean, jnp.float32)
        algorithm, params = _build(self, mean.shape[0])
        if _keeps_population(algorithm):
            key, population_key = jax.random.split(key)
            noise = jax.random.normal(population_key, (self.population, mean.shape[0]))
            never_evaluated = jnp.full(self.population, WORST)
            state = algorithm.init(key, mean + self.step_size * noise, never_evaluated, params)
        elif self._is_stein:
            state = algorithm.init(key, jnp.tile(mean, (_NUM_POPULATIONS, 1)), params)
        else:
            state = algorithm.init(key, mean, params)
        if self.name.startswith("iAMaLGaM"):
            state = state.replace(C=_own_step_size(self) ** 2 * state.C)
        return _like(state, state)

    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "population params"], Any]:
        """Sample one generation."""
        algorithm, params = _build(self, state.best_solution.shape[-1])
        genotypes, asked = algorithm.ask(key, state, params)
        if self._is_random_search:
            genotypes = state.mean + genotypes
        return genotypes, _like(asked, state)

    def tell(
        self,
        key: PRNGKeyArray,
        state: Any,
        genotypes: Float[Array, "population params"],
        scores: Float[Array, " population"],
    ) -> Any:
        """Return the state updated with one generation, unchanged if no score is finite."""
        algorithm, params = _build(self, state.best_solution.shape[-1])
        finite = jnp.isfinite(scores)
        fitness = jnp.minimum(-scores, WORST)  # evosax minimises
        if _keeps_population(algorithm):
            failed = jnp.asarray(WORST)
        else:
            worst = jnp.max(fitness, where=finite, initial=-WORST)
            failed = worst + jnp.maximum(2.0**-22 * jnp.abs(worst), 1e-30)
        fitness = jnp.where(finite, fitness, failed)
        population = genotypes
        if self._is_stein:
            population = genotypes.reshape(_NUM_POPULATIONS, -1, genotypes.shape[-1])
        told, _ = algorithm.tell(key, population, fitness, state, params)
        if self._is_random_search:
            told = told.replace(mean=state.mean)  # evosax sets the mean to the best solution
        learnt = finite.any()
        return jax.tree.map(lambda new, old: jnp.where(learnt, new, old), _like(told, state), state)

    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution, or of the population in algorithms that keep one."""
        algorithm, _ = _build(self, state.best_solution.shape[-1])
        if _keeps_population(algorithm):
            return state.population.mean(axis=0)
        return state.mean.mean(axis=0) if self._is_stein else state.mean

    @property
    def _is_stein(self) -> bool:
        return self.name.startswith("SV_")

    @property
    def _is_random_search(self) -> bool:
        return self.name == "RandomSearch"


def _classes() -> dict[str, type]:
    algorithms = require("evosax.algorithms", "evosax", "es").algorithms
    return {cls.__name__: cls for cls in algorithms.values()} | algorithms


def _keeps_population(algorithm: Any) -> bool:
    from evosax.algorithms.population_based.base import PopulationBasedAlgorithm

    return isinstance(algorithm, PopulationBasedAlgorithm)


@lru_cache(maxsize=256)
def _build(strategy: EvosaxStrategy, num_params: int) -> tuple[Any, Any]:
    """Return evosax's algorithm and parameters, one object for equal strategies: evosax hashes objects by identity.

    The parameters are computed at compile time, so that no tracer is cached.
    """
    with jax.ensure_compile_time_eval():
        algorithm = _construct(strategy, num_params)
        params = algorithm.default_params
        own = _own_step_size(strategy)
        if hasattr(params, "std_init"):
            params = params.replace(std_init=own)
        if hasattr(params, "radius_max"):
            params = params.replace(radius_max=own, radius_min=own * params.radius_min / params.radius_max)
        if hasattr(params, "scale_factor"):
            params = params.replace(scale_factor=own)
        params = jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), params)
    if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(params)):
        raise fail(
            "elite_ratio",
            expected=f"a share at which the weights of evosax's {strategy.name} are defined",
            received=strategy.elite_ratio,
            remedy="use 0.5",
        )
    return algorithm, params


def _construct(strategy: EvosaxStrategy, num_params: int) -> Any:
    cls = _classes()[strategy.name]
    own = _own_step_size(strategy)
    accepted = inspect.signature(cls).parameters
    given: dict[str, Any] = {"population_size": strategy.population, "solution": jnp.zeros(num_params)}
    if "num_populations" in accepted:
        given |= {
            "num_populations": _NUM_POPULATIONS,
            "population_size": strategy.population // _NUM_POPULATIONS,
        }
    if "std_schedule" in accepted:
        given["std_schedule"] = lambda generation: own
    if "sampling_fn" in accepted:
        given["sampling_fn"] = lambda key: own * jax.random.normal(key, (num_params,))
    algorithm = cls(**given)
    # A ratio of 1 in evosax means that the algorithm has no such setting.
    if algorithm.elite_ratio < 1:
        algorithm.elite_ratio = strategy.elite_ratio
    return algorithm


def _own_step_size(strategy: EvosaxStrategy) -> float:
    """Return the value of evosax's step size for which the first samples have the standard deviation `step_size`."""
    step = strategy.step_size
    if strategy.name == "xNES":  # multiplies std_init by itself: as std and in B
        return step**0.5
    if strategy.name == "iAMaLGaM_Full":  # adds the variances of the schedule and of C, which are equal at first
        return step * 0.5**0.5
    if strategy.name == "iAMaLGaM_Univariate":  # adds their standard deviations
        return step * 0.5
    return step


def _like(new: Any, old: Any) -> Any:
    """Return `new` with the types of the leaves of `old`, not weak, so that it is traced once and can be scanned."""
    return jax.tree.map(lambda leaf, before: jnp.asarray(leaf, before.dtype), new, old)
