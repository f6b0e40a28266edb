"""Types that all parts of jedax share.

Shapes in annotations are those of ONE search; a run of R replicas puts a leading axis R on everything by
`jax.vmap`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped
else:  # annotations are for readers and type checkers: nothing is installed for them

    class Float:
        """An array type with a shape, such as `Float[Array, "batch params"]`."""

        def __class_getitem__(cls, item: Any) -> Any:
            """Return the array type."""
            return item[0]

    Bool = Int = Shaped = Float
    Array = PRNGKeyArray = jax.Array

__all__ = [
    "IMPROVED",
    "NEW",
    "NOT_ADDED",
    "Array",
    "Bool",
    "Evaluation",
    "Float",
    "Insertion",
    "Int",
    "PRNGKeyArray",
    "Shaped",
    "Transitions",
]

NOT_ADDED, IMPROVED, NEW = range(3)
"""What adding a solution did: nothing, beat the threshold of a filled cell, or filled an empty one."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Transitions:
    """What policies saw, did and earned, step by step; for methods that learn from steps.

    Attributes:
        observations: `(*batch, steps, o)`, before each step.
        actions: `(*batch, steps, a)`, each in [-1, 1].
        rewards: `(*batch, steps)`, maximised; those of the valid steps sum to the fitness.
        next_observations: `(*batch, steps, o)`, after each step.
        terminal: `(*batch, steps)`, whether the episode ended there for good, so that nothing can be earned after
            it. Running out of time is no such end.
        valid: `(*batch, steps)`, whether the step counts; what others hold has no meaning.
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
    """What evaluating one genotype, or a batch of them, gave.

    A solution whose fitness or descriptor is not finite has failed: it is counted, ranked last and never
    stored.

    Attributes:
        fitness: `(*batch)`, maximised.
        descriptor: `(*batch, d)`, how the solution behaved, in the units of the task's `descriptor_bounds`.
        transitions: Every step of it, from `Task.evaluate_with_transitions`; None: they were not asked for.
    """

    fitness: Float[Array, "*batch"]
    descriptor: Float[Array, "*batch descriptor"]
    transitions: Transitions | None = None

    @property
    def valid(self) -> Bool[Array, "*batch"]:
        """`(*batch)`, whether fitness and every descriptor are finite."""
        return jax.numpy.isfinite(self.fitness) & jax.numpy.isfinite(self.descriptor).all(axis=-1)

    @property
    def fitness_or_worst(self) -> Float[Array, "*batch"]:
        """`(*batch)`, the fitness, -inf where the evaluation failed."""
        return jax.numpy.where(self.valid, self.fitness, -jax.numpy.inf)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Insertion:
    """What became of a batch that was added; all of it compares with the repertoire before the batch.

    Attributes:
        stored: `(batch,)`, whether the cell holds this solution now.
        status: `(batch,)`, `NOT_ADDED`, `IMPROVED` or `NEW`; of several members that beat the threshold of one cell
            each is an improvement, though only the best is stored.
        improvement: `(batch,)`, fitness above the cell's threshold; in an empty cell of a hard repertoire the
            fitness itself; -inf for members that failed.
    """

    stored: Bool[Array, " batch"]
    status: Int[Array, " batch"]
    improvement: Float[Array, " batch"]
