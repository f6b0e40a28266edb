"""Results of other programs, read from CSV files.

    method,task,seed,evaluations,max_fitness,coverage
    PGA-ME,maze-a,0,64,-320.5,0.01
    PGA-ME,maze-a,0,20032,-291.2,0.22

A row for each report: `evaluations` done so far, the best fitness so far (maximised), and the share of filled cells,
0 to 1 or empty. Rows may stand in any order; other columns are ignored. A method that has the name of one of jedax's is
treated like it: results named `jedi-x` are those of a JEDi.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from pandas.errors import ParserWarning

from jedax.bench.records import Record, curve_of
from jedax.errors import fail
from jedax.tasks import make
from jedax.tasks.registry import entries

COLUMNS = ("method", "task", "seed", "evaluations", "max_fitness", "coverage")

_NAMED = ["method", "task", "seed"]
_NAME = "a name", lambda texts: texts != ""
_COUNT = "a whole number from 0", lambda numbers: np.isfinite(numbers) & (numbers >= 0) & (numbers % 1 == 0)
_CHECKS = {
    "method": _NAME,
    "task": _NAME,
    "seed": _COUNT,
    "evaluations": _COUNT,
    "max_fitness": ("a finite number", np.isfinite),
    "coverage": ("a share from 0 to 1", lambda shares: (shares >= 0) & (shares <= 1)),
}
"""For each column, what is expected and which values fit."""


def read_csv(path: Path) -> list[Record]:
    """Return the results of another program; the docstring of this module describes the file.

    Raises:
        JedaxError: The file cannot be read, a column is missing, or a row does not fit; its line is named.
    """
    texts = _read_texts(path)
    table = texts.assign(**{column: texts[column].map(_number) for column in COLUMNS[2:]})
    for column, (expected, fits) in _CHECKS.items():
        wrong = ~fits(table[column]) & ~((texts[column] == "") & (column == "coverage"))
        if wrong.any():
            line = wrong.idxmax()
            received = repr(texts[column][line])
            raise fail(f"{path}, line {line}: {column}", expected=expected, received=received, remedy="correct it")
    again = table.duplicated([*_NAMED, "evaluations"])
    if again.any():
        expected = "one row for each method, task, seed and number of evaluations"
        raise fail(f"{path}, line {again.idxmax()}", expected=expected, received="a second", remedy="remove one")
    return [
        Record(
            label=method,
            method=method,
            task=task,
            seed=int(seed),
            curve=curve_of(f"{path}, {method} on {task}, seed {int(seed)}", rows.sort_values("evaluations")),
            budget=None,
            goal=make(task).goal_fitness if task in entries() else None,
            task_settings=None,
            settings=None,
            source=path,
        )
        for (method, task, seed), rows in table.groupby(_NAMED, sort=False)
    ]


def _read_texts(path: Path) -> Any:
    """Return the file's rows as a table of texts, indexed by line."""
    texts: Any
    try:
        with warnings.catch_warnings(action="error", category=ParserWarning):  # rows longer than the header
            texts = pandas.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False,
                                    skip_blank_lines=False)  # fmt: skip
    except (OSError, ValueError, ParserWarning) as error:  # errors of pandas are ValueErrors
        raise fail(str(path), expected="a CSV file", received=error, remedy="check the file") from None
    missing = [column for column in COLUMNS if column not in texts]
    if missing:
        expected, received = f"the columns {', '.join(COLUMNS)}", f"no {', '.join(missing)}"
        raise fail(str(path), expected=expected, received=received, remedy="add what is missing")
    texts = texts[list(COLUMNS)].fillna("").apply(lambda column: column.str.strip())
    texts.index += 2
    texts = texts[(texts != "").any(axis=1)]
    if texts.empty:
        raise fail(str(path), expected="rows under the header", received="none", remedy="check the file")
    return texts


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
