"""The rule by which a cell of a repertoire accepts solutions.

References:
    [1] M. Fontaine, S. Nikolaidis. Covariance Matrix Adaptation MAP-Annealing. GECCO 2023, arXiv:2205.10752.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp

from jedax.errors import fail
from jedax.types import Array, Float


@dataclass(frozen=True)
class Acceptance:
    """A cell accepts solutions whose fitness is above its threshold; this class defines how thresholds move.

    A hard repertoire keeps the best solution of each cell: the threshold is its fitness. In a soft repertoire ([1]) the
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
        """Return the thresholds after a batch ([1], section 5).

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
