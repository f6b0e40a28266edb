"""Array types and the records that all parts of jedax share.

Shapes in annotations are those of one search; a run of R replicas adds a leading axis R with `jax.vmap`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped
else:  # jaxtyping is a dependency for development only

    class Float:
        """Stand-in for an array type with a shape, such as `Float[Array, "batch params"]`."""

        def __class_getitem__(cls, item: Any) -> Any:
            """Return the array type without its shape."""
            return item[0]

    Bool = Int = Shaped = Float
    Array = PRNGKeyArray = jax.Array

__all__ = [
    "IMPROVED", "NEW", "NOT_ADDED", "Array", "Bool", "Bounds", "Evaluation", "Float", "Insertion", "Int",
    "PRNGKeyArray", "Shaped", "Transitions",
]  # fmt: skip

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""`(lows, highs)` of a box of descriptors."""

NOT_ADDED, IMPROVED, NEW = range(3)
"""Outcomes of adding a solution: not accepted, above the threshold of a filled cell, or first in an empty cell."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Transitions:
    """The steps of episodes, for methods that learn from them.

    Attributes:
        observations: `(*batch, steps, o)`, before each step.
        actions: `(*batch, steps, a)`, each in [-1, 1].
        rewards: `(*batch, steps)`, maximised; those of the valid steps sum to the fitness.
        next_observations: `(*batch, steps, o)`, after each step.
        terminal: `(*batch, steps)`, whether the step reached a terminal state, after which no reward is possible; the
            time limit is not terminal.
        valid: `(*batch, steps)`, whether the step belongs to the episode; the values of other steps are meaningless.
    """

    observations: Float[Array, "*batch steps observation"]
    actions: Float[Array, "*batch steps action"]
    rewards: Float[Array, "*batch steps"]
    next_observations: Float[Array, "*batch steps observation"]
    terminal: Bool[Array, "*batch steps"]
    valid: Bool[Array, "*batch steps"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evaluation:
    """The evaluation of one genotype or of a batch.

    An evaluation has failed if its fitness or a number of its descriptor is not finite. Failed evaluations are counted,
    ranked last and never stored.

    Attributes:
        fitness: `(*batch)`, maximised.
        descriptor: `(*batch, d)`, the behaviour, in the units of the task's `descriptor_bounds`.
        transitions: The steps of the episodes, from `Task.evaluate_with_transitions`; None from other functions.
        score: `(*batch)`, what evolution strategies maximise where it is not the fitness; None: it is.
        asked: `(*batch, params)`, the solutions before they were reflected at bounds; None: there are no bounds.
    """

    fitness: Float[Array, "*batch"]
    descriptor: Float[Array, "*batch descriptor"]
    transitions: Transitions | None = None
    score: Float[Array, "*batch"] | None = None
    asked: Float[Array, "*batch params"] | None = None

    def in_floats(self) -> Evaluation:
        """Return the evaluation in float32 or float64; whole numbers and float16 are converted."""
        fitness, descriptor = (
            part if part.dtype in (np.float32, np.float64) else part.astype(float)
            for part in (self.fitness, self.descriptor)
        )
        return replace(self, fitness=fitness, descriptor=descriptor)

    @property
    def valid(self) -> Bool[Array, "*batch"]:
        """`(*batch)`, whether fitness and descriptor are finite."""
        return jax.numpy.isfinite(self.fitness) & jax.numpy.isfinite(self.descriptor).all(axis=-1)

    @property
    def achieved(self) -> Float[Array, "*batch"]:
        """`(*batch)`, the fitness; -inf where the evaluation failed."""
        return jax.numpy.where(self.valid, self.fitness, -jax.numpy.inf)

    def sampled(self, genotypes: Float[Array, "*batch params"]) -> Float[Array, "*batch params"]:
        """`(*batch, params)`, the solutions before they were reflected at bounds; `genotypes` where there are none."""
        return genotypes if self.asked is None else self.asked

    @property
    def fitness_or_worst(self) -> Float[Array, "*batch"]:
        """`(*batch)`, what evolution strategies maximise; -inf where the evaluation failed."""
        score = self.fitness if self.score is None else self.score
        return jax.numpy.where(self.valid, score, -jax.numpy.inf)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Insertion:
    """The outcome of adding a batch to a repertoire, compared with the repertoire before the batch.

    Attributes:
        stored: `(batch,)`, whether the cell now holds this solution.
        status: `(batch,)`, `NOT_ADDED`, `IMPROVED` or `NEW`. If several members are above the threshold of one cell,
            all of them are `IMPROVED` or `NEW`, although only the best is stored.
        improvement: `(batch,)`, fitness minus the cell's threshold; the fitness itself for an empty cell of a hard
            repertoire; -inf for failed members.
    """

    stored: Bool[Array, " batch"]
    status: Int[Array, " batch"]
    improvement: Float[Array, " batch"]
