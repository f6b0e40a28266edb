"""CMA-ME and CMA-MAE: evolution strategies that are rewarded for what the repertoire gains.

References:
    [1] M. Fontaine, J. Togelius, S. Nikolaidis, A. Hoover. Covariance Matrix Adaptation for the Rapid Illumination of
        Behavior Space. GECCO 2020, arXiv:1912.02400.
    [2] M. Fontaine, S. Nikolaidis. Covariance Matrix Adaptation MAP-Annealing. GECCO 2023, arXiv:2205.10752.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jedax.es.pool import Pool
from jedax.methods.base import Algorithm, Problem, cells_for, strategy_of
from jedax.methods.es import has_converged
from jedax.methods.settings import CMAMEConfig, MethodConfig
from jedax.rankers import RANKERS, Outcome, Ranker
from jedax.repertoire import Acceptance, Repertoire
from jedax.types import NOT_ADDED, Array, Evaluation, Float, Insertion, Int, PRNGKeyArray


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CMAMEState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        pool: States of the emitters' ES, leading axis `pool`.
        directions: `(pool, d)`, for the ranker "rnd": where each emitter is sent, per width of the descriptor box.
        generation: Generations done.
        num_restarts: How often emitters began anew, all together.
    """

    repertoire: Repertoire
    pool: Any
    directions: Float[Array, "pool descriptor"]
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]


@dataclass(frozen=True)
class CMAME(Algorithm):
    """A pool of emitters, all of which sample a population in every generation.

    An emitter restarts from a random elite, its ES afresh, when nothing of its population beat the repertoire or the
    fitness of the population spreads over less than `restart_tolerance`. CMA-MAE is the same with the ranker
    "threshold" and a soft repertoire. In a hard repertoire an empty cell's threshold is -inf, so that those who fill
    one come first: "threshold" then is "imp".

    Attributes:
        acceptance: What a cell takes.
    """

    config: CMAMEConfig
    acceptance: Acceptance

    @classmethod
    def build(cls, config: MethodConfig, problem: Problem) -> Self:
        """Return the method with these parameters for a task; errors as for every method."""
        assert isinstance(config, CMAMEConfig)
        start = problem.qd_offset if config.threshold_min == "task" else float(config.threshold_min)
        acceptance = Acceptance(config.learning_rate, start)
        return cls(config, cells_for(config, problem.descriptor_bounds), acceptance)

    @property
    def ranker(self) -> Ranker:
        """By what an emitter tells good from bad."""
        is_imp = self.config.ranker == "threshold" and self.acceptance.is_hard
        return RANKERS["imp" if is_imp else self.config.ranker]

    @functools.cached_property
    def pool(self) -> Pool:
        """The emitters' evolution strategies."""
        return Pool(strategy_of(self.config), self.config.pool)

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> CMAMEState:
        """Return the state after the evaluated initial batch; every emitter starts from a random elite."""
        mean_key, pool_key, direction_key = jax.random.split(key, 3)
        repertoire = self.begin_repertoire(genotypes, evaluation, self.acceptance)
        means = repertoire.sample(mean_key, self.config.pool)
        return CMAMEState(
            repertoire=repertoire,
            pool=self.pool.start(pool_key, means),
            directions=self._directions(direction_key),
            generation=jnp.int32(0),
            num_restarts=jnp.int32(0),
        )

    def ask(self, key: PRNGKeyArray, state: CMAMEState) -> tuple[Float[Array, "batch params"], CMAMEState]:
        """Sample one generation of every emitter."""
        genotypes, pool = self.pool.ask(key, state.pool)
        return genotypes, replace(state, pool=pool)

    def tell(
        self, key: PRNGKeyArray, state: CMAMEState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[CMAMEState, Insertion]:
        """Add the batch, rank each population by what came of it, update the ES, restart emitters that are done."""
        tell_key, mean_key, pool_key, direction_key = jax.random.split(key, 4)
        repertoire, insertion = self.store(state, genotypes, evaluation, self.acceptance)
        by_emitter = Outcome(
            evaluation=self.pool.split(evaluation),
            insertion=self.pool.split(insertion),
            aim=state.directions,
            alpha=jnp.zeros(self.config.pool),
        )
        scores = jax.vmap(self.ranker)(by_emitter)
        pool = self.pool.tell(tell_key, state.pool, genotypes, scores)
        done = (by_emitter.insertion.status == NOT_ADDED).all(axis=1)
        if self.config.restart_tolerance is not None:
            converged = functools.partial(has_converged, tolerance=self.config.restart_tolerance)
            done |= jax.vmap(converged)(by_emitter.evaluation)
        means = repertoire.sample(mean_key, self.config.pool)
        state = CMAMEState(
            repertoire=repertoire,
            pool=self.pool.restart(pool_key, pool, done, means),
            directions=jnp.where(done[:, None], self._directions(direction_key), state.directions),
            generation=state.generation + 1,
            num_restarts=state.num_restarts + done.sum(),
        )
        return state, insertion

    def numbers(self, state: CMAMEState) -> dict[str, Array]:
        """Return the number of restarts."""
        return {"num_restarts": state.num_restarts}

    def _directions(self, key: PRNGKeyArray) -> Float[Array, "pool descriptor"]:
        """Draw a direction for every emitter, alike in all directions of the unit box."""
        lows, highs = self.cells.bounds
        widths = np.subtract(highs, lows).astype(np.float32)
        return jax.random.normal(key, (self.config.pool, len(widths))) / widths
