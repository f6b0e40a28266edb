"""Results of other programs, read from CSV files.

    method,task,seed,evaluations,max_fitness,coverage
    PGA-ME,maze-a,0,64,-320.5,0.01
    PGA-ME,maze-a,0,20032,-291.2,0.22

A row for each report: `evaluations` done so far, the best fitness so far (maximised), and the share of filled cells,
0 to 1 or nothing. Rows stand in any order; other columns are not read. A method named `jedi` or `jedi-paper`
counts as JEDi.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jedax.bench.records import Record, curves
from jedax.errors import fail
from jedax.tasks import make
from jedax.tasks.registry import entries

COLUMNS = ("method", "task", "seed", "evaluations", "max_fitness", "coverage")


def read_csv(path: Path) -> list[Record]:
    """Read results of another program; the module's docstring says what the file holds.

    Raises:
        JedaxError: It cannot be read, a column is missing, or a row does not fit; the line is named.
    """
    reports: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    lines: dict[tuple[str, str, int, float], int] = {}
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        method, task = (_name(where, column, row[column]) for column in ("method", "task"))
        seed = int(_number(where, "seed", row["seed"], whole=True))
        report = {
            "evaluations": _number(where, "evaluations", row["evaluations"], whole=True),
            "max_fitness": _number(where, "max_fitness", row["max_fitness"]),
            "coverage": _number(where, "coverage", row["coverage"], share=True) if row["coverage"] else np.nan,
        }
        before = lines.setdefault((method, task, seed, report["evaluations"]), line)
        if before != line:
            raise fail(
                where,
                expected="one row for each method, task, seed and number of evaluations",
                received=f"that of line {before} again",
                remedy="remove one",
            )
        reports.setdefault((method, task, seed), []).append(report)
    if not reports:
        raise fail(str(path), expected="rows under the header", received="none", remedy="check the file")
    return [
        Record(
            label=method,
            method=method,
            task=task,
            seed=seed,
            **curves(f"{path}, {method} on {task}, seed {seed}", sorted(rows, key=lambda row: row["evaluations"])),
            budget=None,
            goal=make(task).goal_fitness if task in entries() else None,
            task_settings=None,
            settings=None,
            source=path,
        )
        for (method, task, seed), rows in reports.items()
    ]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file and the line of each."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True, restval="")
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise fail(
                    str(path),
                    expected=f"the columns {', '.join(COLUMNS)}",
                    received=f"no {', '.join(missing)}",
                    remedy="add what is missing",
                )
            for row in reader:
                yield reader.line_num, {name: row[name].strip() for name in COLUMNS}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise fail(str(path), expected="a CSV file", received=error, remedy="check the file") from None


def _name(where: str, column: str, text: str) -> str:
    if not text:
        raise fail(f"{where}: {column}", expected="a name", received="nothing", remedy="fill it in")
    return text


def _number(where: str, column: str, text: str, *, whole: bool = False, share: bool = False) -> float:
    expected = "a whole number from 0" if whole else "a share from 0 to 1" if share else "a finite number"
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    fits = np.isfinite(value) and (not whole or (value >= 0 and value == int(value))) and (not share or 0 <= value <= 1)
    if not fits:
        raise fail(f"{where}: {column}", expected=expected, received=repr(text), remedy="mend the row")
    return value
