"""Solutions as the user gives and gets them, and as genotypes of the method."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jedax.arrays import as_floats
from jedax.errors import fail
from jedax.search.compiled import checked_genotypes
from jedax.space import Choice, Space


@dataclass(frozen=True)
class Units:
    """How the user writes solutions: as rows of values, or as dicts where a space names the parameters.

    Attributes:
        space: The parameters; None: any numbers, which are the genotypes themselves.
        num_params: Length of a genotype.
    """

    space: Space | None
    num_params: int

    @property
    def num_values(self) -> int:
        """Length of a row of values."""
        return self.num_params if self.space is None else self.space.num_values

    def values(self, genotypes: Any) -> np.ndarray:
        """Return genotypes `(..., genotype)` as values `(..., parameters)`."""
        return np.asarray(genotypes) if self.space is None else np.asarray(self.space.values(np.asarray(genotypes)))

    def named(self, genotype: Any) -> dict[str, Any] | None:
        """Return a genotype as a dict; None where parameters have no names."""
        return self.space.dict_of(genotype) if self.space is not None and self.space.is_named else None

    def shown(self, genotypes: np.ndarray, values: np.ndarray) -> Any:
        """Return solutions as the user gets them: a list of dicts, or a copy of the rows."""
        return self.space.dicts(genotypes) if self.space is not None and self.space.is_named else values.copy()

    def rows(self, argument: str, given: Any) -> np.ndarray:
        """Return solutions as the user gives them as rows of values."""
        dicts: Any = self.dicts(given)
        if self.space is not None and isinstance(dicts, list | tuple) and any(isinstance(d, Mapping) for d in dicts):
            return self.space.rows(dicts)  # not by genotypes, whose rounding could hide which solution it is
        rows = as_floats(argument, given, (None, self.num_values), "give one solution per row, as ask() does")
        return rows if self.space is None or getattr(given, "dtype", None) != np.float32 else self.space.unrounded(rows)

    def dicts(self, given: Any) -> Any:
        """Return a dict, or a row or a table of pandas, whose columns may have another order, as a list of dicts.

        Other solutions are returned as they are.
        """
        if hasattr(given, "to_dict") and self.space is not None and self.space.is_named:
            if given.ndim > 1 and not given.columns.is_unique:
                received = f"{given.columns[given.columns.duplicated()][0]!r} twice"
                raise fail("columns", expected="each name once", received=received, remedy="leave one out")
            rows = [given.to_dict()] if given.ndim == 1 else given.to_dict("records")
            pairs = zip(self.space.names, self.space.parameters, strict=True)
            nullable = {name for name, one in pairs if isinstance(one, Choice) and None in one.options}
            # Missing values of a table stand for the option None.
            return [
                {name: None if name in nullable and _is_nan(value) else value for name, value in row.items()}
                for row in rows
            ]
        return [given] if isinstance(given, Mapping) else given

    def genotypes(self, values: Any) -> np.ndarray:
        """Return the genotypes of rows of values; an error where one is out of its bounds."""
        if self.space is not None:
            return self.space.genotypes(values)
        rows = np.asarray(values, np.float64)
        if not np.isfinite(rows).all():
            received, remedy = rows[~np.isfinite(rows)][0], "give solutions as ask() returns them"
            raise fail("genotypes", expected="finite numbers", received=received, remedy=remedy)
        return rows

    def starts(self, argument: str, given: Any, most: int) -> np.ndarray:
        """Return the genotypes of one or several solutions to begin with, an error where there are more than `most`."""
        given = self.dicts(given) if np.iterable(given) else [given]
        if not len(given):
            return np.zeros((0, self.num_params))
        if self.space is None:
            return checked_genotypes(argument, given, most, self.num_params)
        with contextlib.suppress(ValueError):  # rows of different lengths, which `rows` refuses
            if np.ndim(given) == 1 and not isinstance(given[0], Mapping):  # the numbers of one solution
                given = [given]
        return checked_genotypes(argument, self.genotypes(self.rows(argument, given)), most, self.num_params)

    def tolerances(self, genotypes: np.ndarray, share: float) -> np.ndarray:
        """Return the change of each value if coordinates change by a share of their size, but at least of 1."""
        if self.space is None:
            return share * np.maximum(1, np.abs(genotypes))
        return self.space.tolerances(genotypes, share)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
