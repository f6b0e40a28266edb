"""The repertoire: the best solution and the number of evaluations of each cell (paper, section 3.1; MAP-Elites [1]).

References:
    [1] J.-B. Mouret, J. Clune. Illuminating search spaces by mapping elites. arXiv:1504.04909, 2015.
    [2] M. Fontaine, S. Nikolaidis. Covariance Matrix Adaptation MAP-Annealing. GECCO 2023, arXiv:2205.10752.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import fail
from jedax.native import choose
from jedax.native import repertoire as native
from jedax.repertoire.cells import Cells
from jedax.types import IMPROVED, NEW, NOT_ADDED, Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray

_WHOLE = ("counts", "improved_at", "num_failed", "num_outside")  # fields with whole numbers

INFEASIBLE = -1e30
"""Solutions that violate constraints have a stored fitness of at most this, lower the more they violate."""


@dataclass(frozen=True)
class Acceptance:
    """A cell accepts solutions whose fitness is above its threshold; this class defines how thresholds move.

    A hard repertoire keeps the best solution of each cell: the threshold is its fitness. In a soft repertoire ([2]) the
    threshold moves from `start` towards the fitness of accepted solutions, so a worse solution can replace a better
    one. Another rule is a frozen dataclass derived from this one that overrides `move`.

    Attributes:
        learning_rate: Share by which a threshold moves, 0 (never) to 1.
        start: Threshold of empty cells; -inf makes the repertoire hard.

    Raises:
        JedaxError: The learning rate is out of its range, or below 1 without a finite start.
    """

    learning_rate: float = 1.0
    start: float = -math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.learning_rate <= 1:
            raise fail(
                "learning_rate", expected="a number from 0 to 1", received=self.learning_rate, remedy="change it"
            )
        if not (math.isfinite(self.start) or (self.start == -math.inf and self.learning_rate == 1)):
            raise fail(
                "start",
                expected="a finite threshold of empty cells, or -inf with a learning rate of 1",
                received=self.start,
                remedy="give a lower bound of the fitness",
            )

    @property
    def is_hard(self) -> bool:
        """Whether the threshold of a cell is the fitness of its solution."""
        return self.start == -math.inf and type(self).move is Acceptance.move

    def move(
        self,
        thresholds: Float[Array, " cells"],
        number: Float[Array, " cells"],
        total: Float[Array, " cells"],
        best: Float[Array, " cells"],
    ) -> Float[Array, " cells"]:
        """Return the thresholds after a batch ([2], section 5).

        `k` accepted solutions move a threshold `t` to `(1 - lr)^k t + (1 - (1 - lr)^k) mean`, with the mean of their
        fitness. Results for cells with `number` 0 are not used.

        Args:
            thresholds: Thresholds before the batch.
            number: Number of accepted solutions of each cell.
            total: Sum of their fitness.
            best: Their highest fitness; -inf if there are none.
        """
        kept = (1 - self.learning_rate) ** number
        return kept * thresholds + (1 - kept) * total / jnp.maximum(number, 1)


HARD = Acceptance()
"""The rule of a hard repertoire: a cell keeps its best solution."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class Repertoire:
    """The solutions of all cells, and the best solution of the search.

    Empty cells have fitness -inf and count 0; their genotype and descriptor are meaningless zeros.

    Attributes:
        genotypes: `(cells, params)`, the stored solutions, rounded if stored in bfloat16.
        fitness: `(cells,)`, their fitness.
        thresholds: `(cells,)`, a cell accepts a fitness above its threshold; equal to `fitness` in a hard repertoire.
        descriptors: `(cells, d)`, the descriptors of the stored solutions, not the centroids.
        counts: `(cells,)`, evaluations in the cell, rejected solutions included: the paper's budget n_i. All samples of
            a solution count in the cell of their mean or median descriptor (see `jedax.sampling`).
        improved_at: `(cells,)`, evaluations of the run when the cell last stored a solution; -1: never.
        best_genotype: `(params,)`, the best solution ever evaluated.
        best_fitness: Its fitness; -inf before the first valid evaluation.
        best_descriptor: `(d,)`, its descriptor.
        num_failed: Evaluations whose fitness or descriptor was not finite; these solutions are never stored.
        num_outside: Evaluations with a descriptor outside the bounds, which is assigned to the nearest cell.
    """

    genotypes: Float[Array, "cells params"]
    fitness: Float[Array, " cells"]
    thresholds: Float[Array, " cells"]
    descriptors: Float[Array, "cells descriptor"]
    counts: Int[Array, " cells"]
    improved_at: Int[Array, " cells"]
    best_genotype: Float[Array, " params"]
    best_fitness: Float[Array, ""]
    best_descriptor: Float[Array, " descriptor"]
    num_failed: Int[Array, ""]
    num_outside: Int[Array, ""]

    @classmethod
    def empty(
        cls,
        cells: Cells,
        genotype: Float[Array, " params"],
        acceptance: Acceptance = HARD,
        dtype: str | None = None,
    ) -> Repertoire:
        """Return a repertoire without solutions.

        Args:
            cells: The cells.
            genotype: Placeholder for the best solution.
            acceptance: The rule by which a cell accepts solutions.
            dtype: Type of the stored genotypes, such as "bfloat16"; None: that of `genotype`.
        """
        num_cells, num_descriptors = cells.centroids.shape
        return cls(
            genotypes=jnp.zeros((num_cells, genotype.shape[0]), dtype or genotype.dtype),
            fitness=jnp.full(num_cells, -jnp.inf),
            thresholds=jnp.full(num_cells, acceptance.start),
            descriptors=jnp.zeros((num_cells, num_descriptors)),
            counts=jnp.zeros(num_cells, jnp.int32),
            improved_at=jnp.full(num_cells, -1, jnp.int32),
            best_genotype=genotype,
            best_fitness=jnp.array(-jnp.inf, float),
            best_descriptor=jnp.zeros(num_descriptors),
            num_failed=jnp.int32(0),
            num_outside=jnp.int32(0),
        )

    def __repr__(self) -> str:
        """Return the sizes and, of NumPy arrays, the number of filled cells."""
        filled = f"{self.filled.sum():,} of " if isinstance(self.fitness, np.ndarray) else ""
        *replicas, params = self.genotypes.shape[:-2] + self.genotypes.shape[-1:]
        of = "".join(f", {number} replicas" for number in replicas)
        cells = f"{self.fitness.size:,} cells{' filled' * bool(filled)}"
        return f"<Repertoire: {filled}{cells}, {params:,} numbers a genotype{of}>"

    @property
    def filled(self) -> Bool[Array, " cells"]:
        """`(cells,)`, whether a cell holds a solution."""
        return self.fitness > -jnp.inf

    @property
    def feasible(self) -> Bool[Array, " cells"]:
        """`(cells,)`, whether a cell holds a solution that violates no constraint."""
        return self.fitness > INFEASIBLE

    def add(
        self,
        cells: Cells,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
        when: Int[Array, ""],
        acceptance: Acceptance = HARD,
        samples: int = 1,
    ) -> tuple[Repertoire, Insertion]:
        """Add a batch: a cell stores the best of its new solutions with a fitness above its threshold.

        Ties are won by the stored solution, then by the lowest index in the batch.

        Args:
            cells: The cells.
            genotypes: The batch.
            evaluation: Fitness and descriptors of the batch; failed members are counted and not stored.
            when: Evaluations of the run so far, this batch included.
            acceptance: The rule by which a cell accepts solutions, the same as for `empty`.
            samples: Evaluations per member, all of which are counted.

        Returns:
            The new repertoire, and the outcome for each member of the batch.

        Raises:
            JedaxError: Shapes do not fit each other, or the cells do not fit the repertoire.
        """
        self._check_shapes(cells, genotypes, evaluation)

        def in_jax(self: Repertoire, *batch: Any) -> tuple[Repertoire, Insertion]:
            return self.add_in_jax(cells, *batch, acceptance=acceptance)

        def natively(
            self: Repertoire, genotypes: Array, evaluation: Evaluation, when: Array
        ) -> tuple[Repertoire, Insertion]:
            fitness, descriptor = evaluation.fitness, evaluation.descriptor
            cell = cells.assign(descriptor)
            stored, insertion = native.add(cell, fitness, descriptor, genotypes, when, vars(self), cells.bounds)
            return Repertoire(**stored), Insertion(**insertion)

        given = [genotypes.dtype, evaluation.fitness.dtype, evaluation.descriptor.dtype]
        has_types = given == [jnp.float32] * 3 and all(
            values.dtype == (jnp.int32 if name in _WHOLE else jnp.float32) for name, values in vars(self).items()
        )
        has_kernel = acceptance.is_hard and has_types and native.KERNEL.available
        batch = genotypes, Evaluation(evaluation.fitness, evaluation.descriptor), jnp.asarray(when, jnp.int32)
        if has_kernel:
            added, insertion = choose(self, *batch, on_cpu=natively, elsewhere=in_jax)
        else:
            added, insertion = in_jax(self, *batch)
        if samples == 1:
            return added, insertion
        counters = ("counts", "num_failed", "num_outside")
        more = {name: getattr(self, name) + samples * (getattr(added, name) - getattr(self, name)) for name in counters}
        return replace(added, **more), insertion

    def _check_shapes(self, cells: Cells, genotypes: Array, evaluation: Evaluation) -> None:
        """Raise a `JedaxError` where the shapes of a batch and of the cells do not fit the repertoire."""
        (num_cells, num_descriptors), params = self.descriptors.shape, self.genotypes.shape[1:]
        batch = genotypes.shape[:1]
        for name, shape, expected in (
            ("centroids of the cells", cells.centroids.shape, (num_cells, num_descriptors)),
            ("genotypes", genotypes.shape, batch + params),
            ("fitness", evaluation.fitness.shape, batch),
            ("descriptor", evaluation.descriptor.shape, (*batch, num_descriptors)),
            ("stored genotypes", self.genotypes.shape, (num_cells, *params)),
            *((n, getattr(self, n).shape, (num_cells,)) for n in ("fitness", "thresholds", "counts", "improved_at")),
            ("best_genotype", self.best_genotype.shape, params),
            ("best_descriptor", self.best_descriptor.shape, (num_descriptors,)),
            *((name, getattr(self, name).shape, ()) for name in ("best_fitness", "num_failed", "num_outside")),
        ):
            if shape != expected:
                remedy = "give one row per solution, and the cells that the repertoire was made with"
                raise fail(name, expected=f"shape {expected}", received=shape, remedy=remedy)

    def add_in_jax(
        self,
        cells: Cells,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
        when: Int[Array, ""],
        acceptance: Acceptance = HARD,
    ) -> tuple[Repertoire, Insertion]:
        """Add a batch as `add` does with one sample, with the same bits, on any platform and without native code."""
        num_cells = cells.num_cells
        valid, fitness = evaluation.valid, evaluation.achieved
        # Failed members go to a cell past the end, which all updates below drop.
        cell = jnp.where(valid, cells.assign(evaluation.descriptor), num_cells)
        accepted = valid & (fitness > self.thresholds[cell])
        insertion = self._insertion(cell, fitness, accepted, acceptance)
        place = jnp.where(insertion.stored, cell, num_cells)
        # Index of the first best member; XLA's argmax on a CPU is several times slower than a maximum and a minimum.
        best = jnp.where(fitness == fitness.max(), jnp.arange(fitness.shape[0]), fitness.shape[0]).min()
        is_best = fitness[best] > self.best_fitness
        new = replace(
            self,
            genotypes=_put(self.genotypes, place, genotypes.astype(self.genotypes.dtype)),
            fitness=self.fitness.at[place].set(fitness, mode="drop"),
            thresholds=self._new_thresholds(cell, fitness, accepted, place, acceptance),
            descriptors=self.descriptors.at[place].set(evaluation.descriptor, mode="drop"),
            counts=self.counts.at[cell].add(1, mode="drop"),
            improved_at=self.improved_at.at[place].set(when, mode="drop"),
            best_genotype=jnp.where(is_best, genotypes[best], self.best_genotype),
            best_fitness=jnp.where(is_best, fitness[best], self.best_fitness),
            best_descriptor=jnp.where(is_best, evaluation.descriptor[best], self.best_descriptor),
            num_failed=self.num_failed + (~valid).sum(dtype=jnp.int32),
            num_outside=self.num_outside + (valid & cells.is_outside(evaluation.descriptor)).sum(dtype=jnp.int32),
        )
        return new, insertion

    def _insertion(
        self,
        cell: Int[Array, " batch"],
        fitness: Float[Array, " batch"],
        accepted: Bool[Array, " batch"],
        acceptance: Acceptance,
    ) -> Insertion:
        batch, num_cells = cell.shape[0], self.fitness.shape[0]
        best_of_cell = jax.ops.segment_max(fitness, cell, num_cells)
        order = jnp.arange(batch)
        is_first_best = accepted & (fitness == best_of_cell[cell])
        winner = jax.ops.segment_min(jnp.where(is_first_best, order, batch), cell, num_cells)
        filled = self.filled[cell]
        base = jnp.where(filled, self.thresholds[cell], acceptance.start if math.isfinite(acceptance.start) else 0.0)
        return Insertion(
            stored=is_first_best & (winner[cell] == order),
            status=jnp.where(accepted, jnp.where(filled, IMPROVED, NEW), NOT_ADDED),
            improvement=fitness - base,
        )

    def _new_thresholds(
        self,
        cell: Int[Array, " batch"],
        fitness: Float[Array, " batch"],
        accepted: Bool[Array, " batch"],
        place: Int[Array, " batch"],
        acceptance: Acceptance,
    ) -> Float[Array, " cells"]:
        """Return the thresholds after the batch."""
        if acceptance.is_hard:
            return self.thresholds.at[place].set(fitness, mode="drop")
        num_cells = self.fitness.shape[0]
        number = jax.ops.segment_sum(accepted.astype(fitness.dtype), cell, num_cells)
        total = jax.ops.segment_sum(jnp.where(accepted, fitness, 0), cell, num_cells)
        best = jax.ops.segment_max(jnp.where(accepted, fitness, -jnp.inf), cell, num_cells)
        return jnp.where(number > 0, acceptance.move(self.thresholds, number, total, best), self.thresholds)

    def sample(self, key: PRNGKeyArray, number: int) -> Float[Array, "number params"]:
        """Draw stored genotypes uniformly with replacement; an empty repertoire gives its placeholder."""
        num_filled = self.filled.sum()
        which = jax.random.randint(key, (number,), 0, jnp.maximum(num_filled, 1))
        index = jnp.searchsorted(jnp.cumsum(self.filled), which + 1)
        return jnp.where(num_filled > 0, self.genotypes[index].astype(self.best_genotype.dtype), self.best_genotype)

    def nearest(
        self, descriptor: Float[Array, " descriptor"], widths: Float[Array | np.ndarray, " descriptor"] | float = 1.0
    ) -> Float[Array, " params"]:
        """Return the genotype with the nearest stored descriptor; an empty repertoire gives its placeholder.

        Distances are measured in units of `widths`, such as those of the descriptor box.
        """
        squared = (((self.descriptors - descriptor) / widths) ** 2).sum(axis=-1)
        squared = jnp.minimum(squared, jnp.finfo(squared.dtype).max)  # squares can overflow
        index = jnp.argmin(jnp.where(self.filled, squared, jnp.inf))
        return jnp.where(self.filled.any(), self.genotypes[index].astype(self.best_genotype.dtype), self.best_genotype)

    def coverage(self) -> Float[Array, ""]:
        """Return the share of cells that are filled with a feasible solution, 0 to 1."""
        return self.feasible.mean()

    def qd_score(self, offset: float) -> Float[Array, ""]:
        """Return the sum of fitness minus `offset` over the cells that are filled with a feasible solution."""
        return jnp.where(self.feasible, self.fitness - offset, 0).sum()


def _put(rows: Float[Array, "cells params"], place: Int[Array, " batch"], new: Array) -> Float[Array, "cells params"]:
    """Return `rows` with new rows at their places; a place past the end is dropped."""
    if rows.dtype != jnp.bfloat16:
        return rows.at[place].set(new, mode="drop")
    # As integers, because XLA on a CPU would convert all bfloat16 rows to float32 and back.
    rows, new = (jax.lax.bitcast_convert_type(part, jnp.uint16) for part in (rows, new))
    return jax.lax.bitcast_convert_type(rows.at[place].set(new, mode="drop"), jnp.bfloat16)
