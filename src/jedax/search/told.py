"""Solutions that `Optimizer` gave out, and results that it was told: which results belong to which solutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jedax.errors import fail
from jedax.types import Float, Int

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # increment of SplitMix64
Print = tuple[int, int]
"""Fingerprints of a solution and of its result."""


class Result(NamedTuple):
    """The result of one solution, with an axis for samples; or of several ones, with a leading axis for them."""

    genotype: np.ndarray
    values: np.ndarray
    fitness: np.ndarray
    descriptor: np.ndarray
    constraints: np.ndarray
    failed: Any  # bool, or one for each

    def each(self) -> list[Result]:
        """Return the results of several solutions one by one."""
        return [Result(*row) for row in zip(*self, strict=True)]


@dataclass
class Opened:
    """Solutions that were asked for and not told yet, from the oldest.

    Attributes:
        numbers: Number of each solution, ascending.
        generations: Number of the generation that each is for.
        places: Its place in that generation.
        genotypes: The solutions as the method asked for them.
        values: The same in the user's units.
    """

    numbers: Int[np.ndarray, " n"]
    generations: Int[np.ndarray, " n"]
    places: Int[np.ndarray, " n"]
    genotypes: Float[np.ndarray, "n genotype"]
    values: Float[np.ndarray, "n parameters"]

    @classmethod
    def none(cls, genotype_size: int, num_values: int) -> Opened:
        """Return no solutions."""
        whole = np.zeros(0, np.int64)
        return cls(whole, whole, whole, np.zeros((0, genotype_size)), np.zeros((0, num_values)))

    def __len__(self) -> int:
        """Return the number of solutions."""
        return len(self.numbers)

    def append(self, more: Opened) -> None:
        """Add solutions with higher numbers."""
        for name, rows in vars(more).items():
            setattr(self, name, np.concatenate([getattr(self, name), rows]))

    def rows(self, numbers: Any) -> Any:
        """Return the rows of open solutions by their numbers, each of which must be open."""
        return np.searchsorted(self.numbers, numbers)

    def remove(self, numbers: list[int]) -> None:
        """Remove solutions by their numbers."""
        if numbers:
            stays = ~np.isin(self.numbers, numbers)
            for name, rows in vars(self).items():
                setattr(self, name, rows[stays])


def flags(failed: Any, number: int) -> np.ndarray:
    """Return which evaluations failed, as the user says; an error unless there is one truth value for each."""
    found = np.asarray(failed)
    if found.shape != (number,) or found.dtype.kind != "b":
        received, remedy = f"{found.dtype} of shape {found.shape}", "give one truth value per genotype"
        raise fail("failed", expected=f"truth values of shape ({number},)", received=received, remedy=remedy)
    return found.copy()


def few_sizes(number: int) -> int:
    """Return the least power of two that is not smaller: programs are compiled for few numbers of results."""
    return 1 << (number - 1).bit_length()


def padded(rows: np.ndarray, size: int) -> np.ndarray:
    """Return rows followed by NaN, which count as failed, up to a size."""
    return np.concatenate([rows, np.full((size - len(rows), *rows.shape[1:]), np.nan)])


def prints_of(results: Result) -> list[Print]:
    """Return what tells the solutions apart, and what tells their results apart."""
    outcomes = fingerprints(results.fitness, results.descriptor, results.constraints)
    return list(zip(fingerprints(results.values).tolist(), outcomes.tolist(), strict=True))


def fingerprints(*columns: np.ndarray) -> Int[np.ndarray, " n"]:
    """Return 64 bits that tell the rows of columns `(n, ...)` apart: the sum of all mixed numbers (SplitMix64)."""
    flat = [column.reshape(len(column), math.prod(column.shape[1:])) for column in columns]
    rows = np.concatenate(flat, axis=1, dtype=np.float64)
    mixed = np.ascontiguousarray(rows).view(np.uint64) + _GOLDEN * np.arange(1, rows.shape[1] + 1, dtype=np.uint64)
    for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))).sum(axis=1).view(np.int64)
