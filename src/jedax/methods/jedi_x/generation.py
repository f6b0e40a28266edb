"""What the ES of JEDi-X learn of a generation."""

from __future__ import annotations

from typing import NamedTuple

from jedax.repertoire import Repertoire
from jedax.types import Array, Evaluation, Float, Insertion, PRNGKeyArray


class EvaluatedGeneration(NamedTuple):
    """An evaluated generation.

    Attributes:
        keys: Five random keys for what follows from it.
        genotypes: The solutions.
        evaluation: Their evaluation.
        insertion: What became of each in the repertoire.
        best_before: Best fitness of the repertoire before it.
        repertoire: The repertoire after it.
        spread: Standard deviation of random genotypes over all parameters.
    """

    keys: PRNGKeyArray
    genotypes: Float[Array, "batch params"]
    evaluation: Evaluation
    insertion: Insertion
    best_before: Float[Array, ""]
    repertoire: Repertoire
    spread: Float[Array, ""]

    @property
    def sampled(self) -> Float[Array, "batch params"]:
        """The solutions as the ES sampled them, before they were reflected at bounds."""
        return self.evaluation.sampled(self.genotypes)
