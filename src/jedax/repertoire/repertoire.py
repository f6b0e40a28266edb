"""The best solution of every cell, and how often each was tried (paper, section 3.1; as in MAP-Elites).

Source: Mouret & Clune 2015, "Illuminating search spaces by mapping elites".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from jedax.repertoire.cells import Cells
from jedax.types import Array, Bool, Evaluation, Float, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Repertoire:
    """What each cell holds, and the best solution ever seen.

    Empty cells have fitness -inf and count 0; their genotype and descriptor are zeros without meaning.

    Attributes:
        genotypes: `(cells, params)`, the best solution of each cell.
        fitness: `(cells,)`, its fitness.
        descriptors: `(cells, d)`, its own descriptor, not the cell's centre.
        counts: `(cells,)`, evaluations that landed in the cell, rejected ones included: the paper's budget n_i.
        improved_at: `(cells,)`, the run's evaluations when the cell was last improved; -1: never.
        best_genotype: `(params,)`, the best solution ever evaluated.
        best_fitness: Its fitness; -inf before there is one.
        best_descriptor: `(d,)`, its descriptor.
        num_failed: Evaluations whose fitness or descriptor was not finite; they are never stored.
        num_outside: Evaluations whose descriptor lay outside the bounds; they go to the nearest cell.
    """

    genotypes: Float[Array, "cells params"]
    fitness: Float[Array, " cells"]
    descriptors: Float[Array, "cells descriptor"]
    counts: Int[Array, " cells"]
    improved_at: Int[Array, " cells"]
    best_genotype: Float[Array, " params"]
    best_fitness: Float[Array, ""]
    best_descriptor: Float[Array, " descriptor"]
    num_failed: Int[Array, ""]
    num_outside: Int[Array, ""]

    @classmethod
    def empty(cls, cells: Cells, genotype: Float[Array, " params"]) -> Repertoire:
        """Return a repertoire without solutions; `genotype` stands in for a best one until there is one."""
        num_cells, num_descriptors = cells.centroids.shape
        return cls(
            genotypes=jnp.zeros((num_cells, genotype.shape[0]), genotype.dtype),
            fitness=jnp.full(num_cells, -jnp.inf),
            descriptors=jnp.zeros((num_cells, num_descriptors)),
            counts=jnp.zeros(num_cells, jnp.int32),
            improved_at=jnp.full(num_cells, -1, jnp.int32),
            best_genotype=genotype,
            best_fitness=jnp.float32(-jnp.inf),
            best_descriptor=jnp.zeros(num_descriptors),
            num_failed=jnp.int32(0),
            num_outside=jnp.int32(0),
        )

    @property
    def filled(self) -> Bool[Array, " cells"]:
        """`(cells,)`, whether a cell holds a solution."""
        return self.fitness > -jnp.inf

    def add(
        self,
        cells: Cells,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
        when: Int[Array, ""],
    ) -> tuple[Repertoire, Bool[Array, " batch"]]:
        """Add a batch: a cell keeps the best of what it holds and what landed in it.

        The solution that is there wins ties, then the lowest index in the batch.

        Args:
            cells: How the descriptor space is cut.
            genotypes: The batch.
            evaluation: Its fitness and descriptors; failed members are counted and left out.
            when: Evaluations of the run so far, this batch included.

        Returns:
            The new repertoire, and which members of the batch were stored.
        """
        batch, num_cells = genotypes.shape[0], cells.num_cells
        valid = evaluation.valid
        fitness = jnp.where(valid, evaluation.fitness, -jnp.inf)
        # Members without a valid result go to a cell past the end, which every update below drops.
        cell = jnp.where(valid, cells.assign(evaluation.descriptor), num_cells)
        best_of_cell = jax.ops.segment_max(fitness, cell, num_cells)
        improves = valid & (fitness == best_of_cell[cell]) & (fitness > self.fitness[cell])
        order = jnp.arange(batch)
        winner = jax.ops.segment_min(jnp.where(improves, order, batch), cell, num_cells)
        stored = improves & (winner[cell] == order)
        place = jnp.where(stored, cell, num_cells)
        best = jnp.argmax(fitness)
        is_best = fitness[best] > self.best_fitness
        new = replace(
            self,
            genotypes=self.genotypes.at[place].set(genotypes, mode="drop"),
            fitness=self.fitness.at[place].set(fitness, mode="drop"),
            descriptors=self.descriptors.at[place].set(evaluation.descriptor, mode="drop"),
            counts=self.counts.at[cell].add(1, mode="drop"),
            improved_at=self.improved_at.at[place].set(when, mode="drop"),
            best_genotype=jnp.where(is_best, genotypes[best], self.best_genotype),
            best_fitness=jnp.where(is_best, fitness[best], self.best_fitness),
            best_descriptor=jnp.where(is_best, evaluation.descriptor[best], self.best_descriptor),
            num_failed=self.num_failed + (~valid).sum(),
            num_outside=self.num_outside + (valid & cells.is_outside(evaluation.descriptor)).sum(),
        )
        return new, stored

    def nearest(self, descriptor: Float[Array, " descriptor"]) -> Float[Array, " params"]:
        """Return the genotype whose stored descriptor is nearest; of an empty repertoire its stand-in."""
        squared = ((self.descriptors - descriptor) ** 2).sum(axis=-1)
        squared = jnp.minimum(squared, jnp.finfo(squared.dtype).max)  # the square of a far one overflows
        index = jnp.argmin(jnp.where(self.filled, squared, jnp.inf))
        return jnp.where(self.filled.any(), self.genotypes[index], self.best_genotype)

    def coverage(self) -> Float[Array, ""]:
        """Return the share of cells that hold a solution, 0 to 1."""
        return self.filled.mean()

    def qd_score(self, offset: float) -> Float[Array, ""]:
        """Return the sum over filled cells of fitness above `offset`."""
        return jnp.where(self.filled, self.fitness - offset, 0).sum()
