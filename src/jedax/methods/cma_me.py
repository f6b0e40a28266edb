"""CMA-ME and CMA-MAE: evolution strategies that are ranked by what the repertoire gains.

References:
    [1] M. Fontaine, J. Togelius, S. Nikolaidis, A. Hoover. Covariance Matrix Adaptation for the Rapid Illumination of
        Behavior Space. GECCO 2020, arXiv:1912.02400.
    [2] M. Fontaine, S. Nikolaidis. Covariance Matrix Adaptation MAP-Annealing. GECCO 2023, arXiv:2205.10752.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import AfterValidator, Field, model_validator

from jedax.errors import fail
from jedax.methods.base import GLOBAL_TABLE, PoolMethod, Preset, Variant, WithPool, cpu_preset
from jedax.methods.es import has_converged
from jedax.rankers import Outcome, check_ranker, ranker_named
from jedax.repertoire import Acceptance, Repertoire
from jedax.settings import Count, NotNegative, Reference, Share
from jedax.types import NOT_ADDED, Array, Evaluation, Float, Insertion, Int, PRNGKeyArray


class CMAMEConfig(WithPool):
    """Settings of CMA-ME, and of CMA-MAE with the ranker "imp" and a soft repertoire."""

    pool: Count = Field(default=4, description="Number of emitters, each with its own ES.")
    ranker: Annotated[Reference, AfterValidator(check_ranker)] = Field(
        default="2imp",
        description="How an emitter ranks its solutions, by pyribs' names: 2imp (new cells first, then improvement), "
        "imp (improvement alone; where threshold_min is -inf, that of an empty cell is the fitness), obj (fitness), rd "
        "(a random direction in behaviour space), or module:function.",
    )
    learning_rate: Share = Field(
        default=1.0, description="Share by which the threshold of a cell moves towards accepted fitness."
    )
    threshold_min: Literal["-inf", "task"] | float = Field(
        default="-inf",
        description="Threshold of empty cells; -inf: a hard repertoire; task: the task's qd_offset.",
    )
    restart_tolerance: NotNegative | None = Field(
        default=1e-3, description="Restart an emitter when the fitness range of its population is below this."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.threshold_min == "-inf" and self.learning_rate != 1:
            raise fail(
                "learning_rate",
                expected="1 where the threshold of empty cells is -inf",
                received=self.learning_rate,
                remedy="set threshold_min to a lower bound of the fitness, or to 'task'",
            )
        return self


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CMAMEState:
    """State of a search; `directions` of the emitters, for the ranker "rd", are per width of the descriptor box."""

    repertoire: Repertoire
    pool: Any
    directions: Float[Array, "pool descriptor"]
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]


class CMAME(PoolMethod):
    """A pool of emitters, each of which samples a population in every generation.

    An emitter restarts from a random elite with a fresh ES when none of its population entered the repertoire, or the
    fitness range of the population is below `restart_tolerance`. The best of a population are parents (the share
    `elite_ratio`), whether they entered the repertoire or not (`selection_rule="mu"` of pyribs, whose default is
    "filter"). CMA-MAE is CMA-ME with the ranker "imp" and a soft repertoire.
    """

    config: CMAMEConfig
    Config = CMAMEConfig
    name = "cma-me"
    summary = "CMA-ME: evolution strategies ranked by what the repertoire gains."
    presets = {
        "imp": Preset(f"improvement emitters: new cells first, then improvement; {GLOBAL_TABLE}"),
        "opt": Preset(f"optimising emitters: fitness alone; {GLOBAL_TABLE}", {"ranker": "obj"}),
        "rnd": Preset(f"random direction emitters; {GLOBAL_TABLE}", {"ranker": "rd"}),
        "cpu": cpu_preset(population=16),
    }
    variants = {
        "cma-mae": Variant(
            "CMA-MAE: CMA-ME with thresholds that follow the fitness slowly (--learning-rate).",
            {"ranker": "imp", "learning_rate": 0.1, "threshold_min": "task"},
            {
                "paper": Preset(f"learning rate 0.1 (paper, appendix A); {GLOBAL_TABLE}"),
                "cpu": cpu_preset(population=16),
            },
        )
    }

    @property
    def default_acceptance(self) -> Acceptance:
        """The rule given by `learning_rate` and `threshold_min`."""
        start = self.config.threshold_min
        return Acceptance(self.config.learning_rate, self.problem.qd_offset if start == "task" else float(start))

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> CMAMEState:
        """Return the state after the evaluated initial batch; every emitter starts from a random elite."""
        mean_key, pool_key, direction_key = jax.random.split(key, 3)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        means = repertoire.sample(mean_key, self.config.pool)
        return CMAMEState(
            repertoire=repertoire,
            pool=self.pool.start(pool_key, means),
            directions=self._directions(direction_key),
            generation=jnp.int32(0),
            num_restarts=jnp.int32(0),
        )

    def tell(
        self, key: PRNGKeyArray, state: CMAMEState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[CMAMEState, Insertion]:
        """Add the batch, rank each population, update its ES, and restart the emitters that are due."""
        tell_key, mean_key, pool_key, direction_key = jax.random.split(key, 4)
        repertoire, insertion = self.store(state, genotypes, evaluation)
        evaluations, insertions = self.pool.split((evaluation, insertion))
        outcomes = Outcome(evaluations, insertions, direction=state.directions)
        scores = jax.vmap(ranker_named(self.config.ranker))(outcomes)
        if getattr(scores, "shape", None) != evaluations.fitness.shape:
            expected = "one score per solution, (population,)"
            received = scores.shape[1:] if hasattr(scores, "shape") else type(scores).__name__
            raise fail("ranker", expected=expected, received=received, remedy="return the scores of all solutions")
        scores = scores.astype(evaluations.fitness.dtype)
        pool = self.pool.tell(tell_key, state.pool, evaluation.sampled(genotypes), scores)
        done = (insertions.status == NOT_ADDED).all(axis=1)
        if self.config.restart_tolerance is not None:
            converged = functools.partial(has_converged, tolerance=self.config.restart_tolerance)
            done |= jax.vmap(converged)(evaluations)
        means = repertoire.sample(mean_key, self.config.pool)
        state = CMAMEState(
            repertoire=repertoire,
            pool=self.pool.replace(pool, done, self.pool.start(pool_key, means)),
            directions=jnp.where(done[:, None], self._directions(direction_key), state.directions),
            generation=state.generation + 1,
            num_restarts=state.num_restarts + done.sum(),
        )
        return state, insertion

    def metrics(self, state: CMAMEState) -> dict[str, Array]:
        """Return the number of restarts."""
        return {"num_restarts": state.num_restarts}

    def _directions(self, key: PRNGKeyArray) -> Float[Array, "pool descriptor"]:
        """Draw one direction per emitter, isotropic in the unit box."""
        widths = self.cells.widths.astype(np.float32)
        return jax.random.normal(key, (self.config.pool, len(widths))) / widths
