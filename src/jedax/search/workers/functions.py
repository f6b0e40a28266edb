"""The evaluation of solutions by plain functions, for `jedax.minimize`; worker processes import this module."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jedax.arrays import as_floats, refuse_truth_values
from jedax.errors import JedaxError, fail

_TOLERANCE = 1e-4  # of equality constraints, as in the CEC competitions on constrained optimisation


class Evaluated(NamedTuple):
    """Results of `n` solutions: `(n,)`, `(n, d)` and `(n, constraints)`; None where there are none."""

    fitness: np.ndarray
    descriptors: np.ndarray | None
    violations: np.ndarray | None

    @property
    def widths(self) -> tuple[int | None, ...]:
        """Numbers of descriptors and of constraints; None where there are none."""
        return tuple(None if part is None else part.shape[1] for part in self[1:])


class Failure(NamedTuple):
    """An exception of the user's functions, or (`is_mistake`) results that are no numbers or of another shape."""

    reason: str
    trace: str = ""
    is_mistake: bool = False


def _copy(x: Any) -> Any:
    return [copy.copy(one) for one in x] if isinstance(x, list) else copy.copy(x)


@dataclass(frozen=True)
class Functions:
    """The functions of a problem.

    Attributes:
        fun: Returns a number; or, with `has_pairs`, a number and descriptors.
        constraints: Each returns numbers, above 0 where violated.
        descriptors: Returns the descriptors; None: there are none, or `fun` returns them.
        has_pairs: Whether `fun` returns descriptors.
        vectorised: Whether the functions take all solutions at once; their results then have a leading axis for them.
    """

    fun: Callable[[Any], Any]
    constraints: tuple[Callable[[Any], Any], ...] = ()
    descriptors: Callable[[Any], Any] | None = None
    has_pairs: bool = False
    vectorised: bool = False

    def __call__(self, x: Any) -> Evaluated | Failure:
        """Evaluate one solution; if `vectorised`, several."""
        try:
            return self._evaluated(x)
        except JedaxError as error:
            return Failure(str(error), is_mistake=True)

    def _evaluated(self, x: Any) -> Evaluated | Failure:
        name = "fun"
        try:
            # Each function has a copy of its own, which it may change.
            value = self.fun(_copy(x))
            name = "descriptors"
            descriptors = None if self.descriptors is None else self.descriptors(_copy(x))
            name = "constraints"
            violations = [constraint(_copy(x)) for constraint in self.constraints]
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            return Failure(reason if name == "fun" else f"{reason}, raised by {name}", traceback.format_exc())
        of_descriptors = [] if self.descriptors is None else [descriptors]
        for name, results in (("fun", [value]), ("descriptors", of_descriptors), ("constraints", violations)):
            if any(result is None for result in results):
                return Failure(f"None, returned by {name}, instead of numbers")
        for values in violations:
            refuse_truth_values("constraints", values)
        if self.has_pairs:
            if not (isinstance(value, Sequence) and len(value) == 2):
                remedy = "return both, give a function as descriptors, or leave descriptor_bounds out"
                raise fail("fun", expected="a number and descriptors", received=repr(value), remedy=remedy)
            value, descriptors = value
        elif isinstance(value, tuple):
            remedy = 'give descriptor_bounds, such as "measure", if fun returns descriptors'
            raise fail("fun", expected="numbers", received=repr(value), remedy=remedy)
        number = len(x) if self.vectorised else 1
        remedy = f"return {'one number for each solution' if self.vectorised else 'a number'}"
        with contextlib.suppress(ValueError, RuntimeError):  # what is no number, which `as_floats` refuses
            value = value if self.vectorised else np.reshape(value, 1)
        fitness = as_floats("fun", value, (number,), remedy)
        return Evaluated(
            fitness,
            None if descriptors is None else self._rows("descriptors", descriptors, number),
            np.concatenate([self._rows("constraints", one, number) for one in violations], 1) if violations else None,
        )

    def _rows(self, name: str, values: Any, number: int) -> np.ndarray:
        """Return what a function returned with one row per solution."""
        with contextlib.suppress(ValueError, RuntimeError):  # lists of different lengths, which `as_floats` refuses
            rows = np.asarray(values) if self.vectorised else np.asarray(values)[None]
            values = rows[:, None] if rows.ndim == 1 else rows
        return as_floats(name, values, (number, None), "return as many numbers for every solution")


@dataclass(frozen=True)
class Limits:
    """The constraints `low <= values(x) <= high`, above 0 where violated; equalities hold within 1e-4."""

    values: Callable[[Any], Any]
    low: Any
    high: Any

    def __call__(self, x: Any) -> np.ndarray:
        """Return by how much each value violates its limits, below 0 where it does not, in the shape of the values."""
        values, low, high = (np.asarray(part, np.float64) for part in (self.values(x), self.low, self.high))
        excess = np.maximum(low - values, values - high)
        return np.where(low == high, excess - _TOLERANCE, excess)


@dataclass(frozen=True)
class Product:
    """A linear function of the solutions."""

    matrix: np.ndarray

    def __call__(self, x: Any) -> np.ndarray:
        """Return the products of the rows of the matrix with one solution, or with the rows of `x`."""
        return np.asarray(x) @ self.matrix.T


_functions: Functions | None = None  # of this worker process


def begin(functions: Functions) -> None:
    """Prepare a worker process: Ctrl-C is for its parent alone; it and the programs it starts end with its parent."""
    global _functions
    _functions = functions
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # programs that it starts have an empty stdin
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.killpg(0, signal.SIGKILL)  # the parent was killed; otherwise it ends its workers first


def is_ready() -> bool:
    """Return whether this worker process has its functions."""
    return _functions is not None


def evaluate(x: Any) -> Evaluated | Failure:
    """Evaluate one solution with the functions that `begin` was given."""
    assert _functions is not None
    return _functions(x)
