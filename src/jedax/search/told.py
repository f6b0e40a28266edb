"""Results of solutions as `Optimizer` is told them: checked, and with fingerprints that tell them apart."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jedax.arrays import as_floats, refuse_truth_values
from jedax.errors import fail
from jedax.types import Int

_ONE_EACH = "give one entry per genotype, in the same order"
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # increment of SplitMix64
Print = tuple[int, int]
"""Fingerprints of a solution and of its result."""


class Result(NamedTuple):
    """The result of one solution, with an axis for samples; or of several ones, with a leading axis for them.

    The genotype is the solution as the method asked for it, which need not be within bounds.
    """

    genotype: np.ndarray
    values: np.ndarray
    fitness: np.ndarray
    descriptor: np.ndarray
    constraints: np.ndarray
    failed: Any  # bool, or one for each

    def each(self) -> list[Result]:
        """Return the results of several solutions one by one."""
        return [Result(*row) for row in zip(*self, strict=True)]


def checked_results(
    values: np.ndarray,
    given: tuple[Any, Any, Any, Any],
    *,
    samples: int,
    num_descriptors: int,
    num_constraints: int,
    has_descriptors: bool,
    may_widen: bool,
) -> Result:
    """Return the results of solutions, checked.

    Args:
        values: `(n, parameters)`, the solutions.
        given: Fitness, descriptors, violations and which evaluations failed, as `Optimizer.tell` takes them.
        samples: Number of evaluations of each solution.
        num_descriptors: Number of descriptors.
        num_constraints: Number of constraints; 0: not known yet.
        has_descriptors: Whether there are descriptors.
        may_widen: Whether there may be another number of them, because no result has told it yet.
    """
    fitness, descriptors, violations, failed = given
    number = len(values)
    shape = (number,) if samples == 1 else (number, samples)
    fitness = as_floats("fitness", fitness, shape, _ONE_EACH).reshape(number, samples)
    is_bad = ~np.isfinite(fitness).all(axis=1)
    if failed is not None:
        is_bad |= flags(failed, number)
    points = np.zeros((number, samples, num_descriptors))
    if has_descriptors and not (descriptors is None and is_bad.all()):
        if descriptors is None:
            received, remedy = "None", "give one row per solution, or leave out descriptor_bounds"
            raise fail("descriptors", expected="the descriptors of the solutions", received=received, remedy=remedy)
        width = None if may_widen else num_descriptors
        remedy = "give one row per genotype, with a number for each descriptor"
        found = as_floats("descriptors", descriptors, (*shape, width), remedy)
        points = found.reshape(number, samples, found.shape[-1])
        is_bad |= ~np.isfinite(points).all(axis=(1, 2))
    elif descriptors is not None:
        expected, remedy = "None, as Optimizer has no descriptor_bounds", "give it bounds, or leave them out"
        raise fail("descriptors", expected=expected, received="descriptors", remedy=remedy)
    constraints = _checked_constraints(violations, is_bad, num_constraints)
    return Result(values[:, :0], values, fitness, points, constraints, is_bad)


def _checked_constraints(violations: Any, is_bad: Any, known: int) -> np.ndarray:
    """Return values of constraints, `(n, constraints)`, of which a number is known; 0: none is."""
    number = len(is_bad)
    if violations is None:
        if known and not is_bad.all():
            expected, remedy = f"{known} constraints, as told before", "give them each time"
            raise fail("violations", expected=expected, received="None", remedy=remedy)
        return np.zeros((number, known))
    wanted = (number,) if np.asarray(violations, object).ndim == 1 else (number, None)
    refuse_truth_values("violations", violations)
    constraints = as_floats("violations", violations, wanted, _ONE_EACH).reshape(number, -1)
    if np.isnan(constraints[~is_bad]).any():
        remedy = "give numbers, or mark the evaluation as failed"
        raise fail("violations", expected="numbers, above 0 where violated", received="NaN", remedy=remedy)
    if known not in (0, constraints.shape[1]):
        expected, received = f"{known} constraints, as told before", constraints.shape[1]
        raise fail("violations", expected=expected, received=received, remedy="give the same ones each time")
    return constraints


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
    rows = np.concatenate(flat, axis=1, dtype=np.float64) + 0.0  # -0.0 becomes 0.0, to which it is equal
    mixed = np.ascontiguousarray(rows).view(np.uint64) + _GOLDEN * np.arange(1, rows.shape[1] + 1, dtype=np.uint64)
    for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))).sum(axis=1).view(np.int64)
