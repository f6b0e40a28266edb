"""Every algorithm of evosax as a jedax strategy.

References:
    [1] R. T. Lange. evosax: JAX-based Evolution Strategies. GECCO Companion, 2023.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import check_choice, fail
from jedax.es.base import Strategy
from jedax.imports import require
from jedax.types import Array, Float, PRNGKeyArray

WORST = 1e30
"""What evosax, which minimises, gets for a solution never evaluated, and for a failed one where an algorithm
compares between generations. It is finite, and small enough for float32 to add up a population of them."""

# What evosax asserts about the population, or silently needs: a multiple of, and at least.
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

_NUM_POPULATIONS = 2  # of the Stein-variational algorithms, which share the population between them


def evosax_names() -> tuple[str, ...]:
    """Return the names of evosax's algorithms, those of its registry and of its classes; imports evosax."""
    return tuple(sorted(_classes()))


@dataclass(frozen=True)
class EvosaxStrategy(Strategy):
    """An algorithm of evosax, by its name there, such as "SNES" or "LM_MA_ES"; maximises like every strategy.

    Scores are turned round here and nowhere else. One that is not finite becomes just worse than the worst
    finite one of its generation (`WORST` for algorithms that keep a population); a generation without any
    finite score changes nothing.

    `step_size` is the standard deviation of the first samples wherever evosax lets it be set, by `std_init`
    or by a constant `std_schedule`. Where it means something else:

    - ASEBO, GuidedES: the size of the whole perturbation (GuidedES gets no gradients to be guided by).
    - GradientlessDescent: the largest of its radii; the smallest is 1/200 of it, as in evosax.
    - ESMC samples the mean itself twice; the iAMaLGaMs keep part of `step_size` for good.
    - Population-based ones (DifferentialEvolution, PSO, the GAs ...) start from parents spread by `step_size`
      about the mean, which are never evaluated; their own mutation comes on top, with the same `step_size`
      (LGA's network makes its own of it) except in PSO and DifferentialEvolution, which have none.
      DiffusionEvolution draws towards zero by design and stands still after its 128 generations.

    `elite_ratio` holds where evosax has one; algorithms that use the whole population, and the learned ones,
    do without. Other settings, learning rates among them, are evosax's defaults.

    Attributes:
        name: A name among `evosax_names()`.

    Raises:
        JedaxError: The name is unknown, or evosax's algorithm cannot have such a population.
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
                remedy=f"take {max(least, -(-self.population // multiple) * multiple)}",
            )

    def init(self, key: PRNGKeyArray, mean: Float[Array, " params"]) -> Any:
        """Return a fresh state of evosax's about `mean`."""
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
        """Return the state after one generation, unchanged if no score is finite."""
        algorithm, params = _build(self, state.best_solution.shape[-1])
        finite = jnp.isfinite(scores)
        fitness = jnp.minimum(-scores, WORST)  # the one place where the sign turns: evosax minimises
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
            told = told.replace(mean=state.mean)  # evosax would call the best solution so far the mean
        learnt = finite.any()
        return jax.tree.map(lambda new, old: jnp.where(learnt, new, old), _like(told, state), state)

    def mean(self, state: Any) -> Float[Array, " params"]:
        """Return the centre of the search distribution, or of the population where there is only that."""
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


class _Built(NamedTuple):
    """evosax's object and its parameters, as NumPy arrays."""

    algorithm: Any
    params: Any


def _classes() -> dict[str, type]:
    algorithms = require("evosax.algorithms", "evosax", "es").algorithms
    return {cls.__name__: cls for cls in algorithms.values()} | algorithms


def _keeps_population(algorithm: Any) -> bool:
    from evosax.algorithms.population_based.base import PopulationBasedAlgorithm

    return isinstance(algorithm, PopulationBasedAlgorithm)


@lru_cache(maxsize=256)
def _build(strategy: EvosaxStrategy, num_params: int) -> _Built:
    """Make evosax's object; equal strategies share it, since evosax hashes its objects by identity.

    It may be called while JAX traces: nothing that is kept may then be a tracer.
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
            remedy="take 0.5",
        )
    return _Built(algorithm, params)


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
    # Those that use everybody keep evosax's 1; LGA's is part of what was learned.
    if algorithm.elite_ratio < 1:
        algorithm.elite_ratio = strategy.elite_ratio
    return algorithm


def _own_step_size(strategy: EvosaxStrategy) -> float:
    """Return the value of evosax's own parameter at which the first samples spread by `step_size`."""
    step = strategy.step_size
    if strategy.name == "xNES":  # multiplies std_init with itself: once as std, once in B
        return step**0.5
    if strategy.name == "iAMaLGaM_Full":  # adds the variances of the schedule and of C, which starts as large
        return step * 0.5**0.5
    if strategy.name == "iAMaLGaM_Univariate":  # adds their standard deviations
        return step * 0.5
    return step


def _like(new: Any, old: Any) -> Any:
    """Give a state's leaves the (strong) types of `old`, so that it is traced once and can be scanned."""
    return jax.tree.map(lambda leaf, before: jnp.asarray(leaf, before.dtype), new, old)
