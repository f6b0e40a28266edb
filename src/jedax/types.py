"""Types that all parts of jedax share.

Shapes in annotations are those of ONE search; a run of R replicas puts a leading axis R on everything by
`jax.vmap`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

__all__ = ["Array", "Bool", "Evaluation", "Float", "Int", "PRNGKeyArray"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evaluation:
    """What evaluating one genotype, or a batch of them, gave.

    A solution whose fitness or descriptor is not finite has failed: it is counted, ranked last and never
    stored.

    Attributes:
        fitness: `(*batch)`, maximised.
        descriptor: `(*batch, d)`, how the solution behaved, in the units of the task's `descriptor_bounds`.
    """

    fitness: Float[Array, "*batch"]
    descriptor: Float[Array, "*batch descriptor"]

    @property
    def valid(self) -> Bool[Array, "*batch"]:
        """`(*batch)`, whether fitness and every descriptor are finite."""
        return jax.numpy.isfinite(self.fitness) & jax.numpy.isfinite(self.descriptor).all(axis=-1)
