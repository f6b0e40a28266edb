"""Types that all parts of jedax share.

Shapes in annotations are those of ONE search; a run of R replicas puts a leading axis R on everything by
`jax.vmap`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

__all__ = ["Array", "Bool", "Evaluation", "Float", "Int", "PRNGKeyArray", "Transitions"]


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
