"""Results for a comparison, read from run directories and from CSV files of other programs."""

from __future__ import annotations

import csv
import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from pandas.errors import ParserWarning

from jedax.errors import JedaxError, fail, printable
from jedax.imports import is_custom
from jedax.store.directory import FOLDERS, RunDirectory, has_ended, is_run
from jedax.store.run import task_kept
from jedax.tasks import make
from jedax.tasks.registry import entries, task_of, title_of

_SETTINGS_OF_RUN = ("stop_fitness", "start_from")  # of the run, but they change what a method finds

# Columns of a CSV file: what is expected of the values, and which values fit.
_NAME = "a name", lambda texts: texts != ""
_COUNT = "a whole number from 0", lambda numbers: np.isfinite(numbers) & (numbers >= 0) & (numbers % 1 == 0)
_COLUMNS = {
    "method": _NAME,
    "task": _NAME,
    "seed": _COUNT,
    "evaluations": _COUNT,
    "max_fitness": ("a finite number", np.isfinite),
    "coverage": ("a share from 0 to 1", lambda shares: (shares >= 0) & (shares <= 1)),
}
_NAMED = ["method", "task", "seed"]
_LONGEST_HEADER = 65_536  # characters


@dataclass(frozen=True, eq=False)
class Record:
    """The result of one seed of one method on one task; None: unknown.

    `curve` has a row per report, indexed by evaluations, which rise: `max_fitness`, the best so far, which never falls
    (-inf before the first success), `coverage`, the share of filled cells (NaN: unknown), and other metrics.
    """

    label: str
    method: str  # name in jedax; of a CSV file, the label
    task: str
    seed: int
    curve: pandas.DataFrame
    source: Path  # the run directory or the CSV file
    budget: int | None = None  # evaluations that the run was given
    goal: float | None = None  # fitness at which the task is solved; None: no goal, or unknown
    task_settings: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None  # of the method, and those of the run that change what it finds
    replica: int | None = None  # None: not from a run directory
    goal_evaluations: float | None = None  # evaluations until the goal was first reached; inf: never; None: unknown
    is_goal_unknown: bool = False  # the directory does not say, and the task's code is not imported
    stopped: bool = False  # the run ended before its budget, at its `stop_fitness` or by a callback


@dataclass(frozen=True, eq=False)
class Records:
    """All results that were found, one for each label, task and seed, and why some runs are left out."""

    records: tuple[Record, ...]
    left_out: Mapping[Path, str]

    def of(self, task: str, label: str) -> tuple[Record, ...]:
        """Return the records of one method on one task, by seed."""
        return tuple(r for r in self.records if r.task == task and r.label == label)


def read(paths: Iterable[str | Path]) -> Records:
    """Return the results below some directories and in some CSV files, ordered by task, label and seed.

    A run is a directory with a `config.yaml`. Where runs of one method on a task have different settings, their labels
    show these, as in "map-elites offspring=16". A CSV file in a directory, but outside runs, counts if its header has
    the columns method, task and seed.

    Raises:
        JedaxError: A missing path, no run that has ended, a damaged file, a seed twice, or results that do not belong
            together under one name.
    """
    given = [Path(path) for path in paths]
    runs, tables = _find(given)
    records: list[Record] = []
    left_out: dict[Path, str] = {}
    for folder in runs:
        found = _read_run(folder)
        if isinstance(found, str):
            left_out[folder] = found
        else:
            records += found
    for table in tables:
        records += read_csv(table)
    if not records:
        received, remedy = f"none in {', '.join(map(str, given))}", "check the paths"
        for folder, reason in left_out.items():
            received, remedy = f"others, such as {folder} ({reason})", "finish them with jedax run --resume DIR"
        raise fail("directories", expected="runs that have ended", received=received, remedy=remedy)
    records = _told_apart(records)
    _check_together(records)
    return Records(tuple(sorted(records, key=lambda r: (r.task, r.label, r.seed))), left_out)


def _find(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the run directories and the CSV files, each once even if it is given several times."""
    runs: dict[Path, Path] = {}
    tables: dict[Path, Path] = {}
    for path in paths:
        if path.is_file():
            tables.setdefault(path.resolve(), path)
        elif not path.is_dir():
            is_there = os.path.lexists(path)
            received = f"{path}, {'a pipe, a device or a broken link' if is_there else 'which does not exist'}"
            expected = "directories or CSV files"
            raise fail("directories", expected=expected, received=received, remedy="check the path")
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if not name.startswith("."))
            here = Path(folder)
            if is_run(here):
                names[:] = [name for name in names if name not in FOLDERS]
                runs.setdefault(here.resolve(), here)
                continue
            for file in (here / name for name in sorted(files) if name.endswith(".csv")):
                if set(_NAMED) <= set(_header(file)):
                    tables.setdefault(file.resolve(), file)
    return list(runs.values()), list(tables.values())


def _header(path: Path) -> list[str]:
    """Return the columns of a CSV file; none for pipes and devices, which have no end."""
    if not path.is_file():
        return []
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return next(csv.reader([file.readline(_LONGEST_HEADER)]), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _read_run(folder: Path) -> list[Record] | str:
    """Return a record for each replica of a run, or why the run is left out."""
    directory = RunDirectory.open(folder)
    summary = directory.read_summary()
    if not summary:
        return "no summary.json: it has not ended" if not (folder / "summary.json").exists() else "it has not ended"
    status = summary.get("status")
    if not has_ended(status):
        return f"its status is {status!r}"
    config = directory.read_config()
    given = directory.start_genotypes
    starts = {"start_genotypes": hashlib.sha256(given.read_bytes()).hexdigest()[:12]} if given.exists() else {}
    task_settings = config.task_config
    environment = directory.read_environment()
    kept = environment.get("task")
    is_described = isinstance(kept, dict) and "goal_fitness" in kept  # not by earlier versions
    if is_described or is_custom(config.task) or "task" in config.withheld:
        task = task_kept(environment, config)
    else:
        task = task_of(config.task, task_settings)
    return [
        Record(
            label=printable(config.label or config.method),
            method=config.method,
            task=printable(title_of(config.task, task_settings)),
            seed=config.run.seed + replica,
            curve=_curve(f"{folder / 'metrics.csv'}, replica {replica}", reports),
            source=folder,
            budget=config.run.evaluations,
            goal=None if task is None else task.goal_fitness,
            is_goal_unknown=task is None and "task" in config.withheld,
            task_settings={"task": config.task} if task_settings is None else task_settings.model_dump(mode="json"),
            settings={
                "method": config.method,
                **config.method_config.model_dump(mode="json"),
                **{name: getattr(config.run, name) for name in _SETTINGS_OF_RUN},
                **starts,
            },
            replica=replica,
            goal_evaluations=_goal_evaluations(summary, config.run.replicas, replica),
            stopped=status != "finished",
        )
        for replica, reports in enumerate(_reports(directory, config.run.replicas))
    ]


def _goal_evaluations(summary: Mapping[str, Any], replicas: int, replica: int) -> float | None:
    """Return when a replica first reached the goal, as far as the summary of its run says."""
    reached, found = (summary.get(name) for name in ("reached_goal", "goal_evaluations"))
    if replicas > 1:
        each = [values if isinstance(values, list) and len(values) == replicas else None for values in (reached, found)]
        reached, found = (None if values is None else values[replica] for values in each)
    return float("inf") if reached is False else found if isinstance(found, int | float) else None


def _reports(directory: RunDirectory, replicas: int) -> list[pandas.DataFrame]:
    """Return the reports of each replica."""
    rows = pandas.DataFrame(directory.read_metrics())
    where = str(directory.path / "metrics.csv")
    missing = [name for name in ("evaluations", "replica", "max_fitness") if len(rows) and name not in rows]
    if missing:
        raise fail(where, expected="the metrics of a run", received=f"no {missing[0]}", remedy="restore the file")
    found: dict[Any, pandas.DataFrame] = dict(iter(rows.groupby("replica"))) if len(rows) else {}
    differing = sorted(set(range(replicas)) ^ set(found))
    if differing:
        some = "none" if differing[0] < replicas else "some"
        expected, received = f"reports of {replicas} replicas, as in config.yaml", f"{some} of replica {differing[0]}"
        raise fail(where, expected=expected, received=received, remedy="restore the file")
    return [found[replica] for replica in range(replicas)]


def read_csv(path: Path) -> list[Record]:
    r"""Return the results of another program from a CSV file with a row for each report.

        method,task,seed,evaluations,max_fitness,coverage
        PGA-ME,maze-a,0,64,-320.5,0.01
        PGA-ME,maze-a,0,20032,-291.2,0.22

    Control characters in the names of methods and tasks are written as escapes, such as `\x1b`.

    `evaluations` are those done so far, `max_fitness` is the best fitness so far (maximised), and `coverage` the share
    of filled cells, 0 to 1; values or the column may be missing. Rows may stand in any order; other columns are
    ignored. A method that has the name of one of jedax's is treated like it: results named `jedi-x` are those of a
    JEDi.

    Raises:
        JedaxError: The file cannot be read, a column is missing, or a row does not fit; its line is named.
    """
    texts = _read_texts(path)
    numbers = {name: texts[name].map(_number) for name in _COLUMNS if name not in ("method", "task")}
    table = texts.assign(**numbers)
    for column, (expected, fits) in _COLUMNS.items():
        wrong = ~fits(table[column]) & ~(texts[column].str.lower().isin(["", "nan"]) & (column == "coverage"))
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
            curve=_curve(f"{path}, {method} on {task}, seed {int(seed)}", rows.sort_values("evaluations")),
            source=path,
            goal=make(task).goal_fitness if task in entries() else None,
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
    needed = [column for column in _COLUMNS if column != "coverage"]
    missing = [column for column in needed if column not in texts]
    if missing:
        expected, received = f"the columns {', '.join(needed)}", f"no {', '.join(missing)}"
        raise fail(str(path), expected=expected, received=received, remedy="add what is missing")
    texts = texts.reindex(columns=list(_COLUMNS), fill_value="").fillna("").apply(lambda column: column.str.strip())
    texts[["method", "task"]] = texts[["method", "task"]].map(printable)
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


def _curve(where: str, reports: pandas.DataFrame) -> pandas.DataFrame:
    """Return the reports of one seed as `Record.curve`; `where` names their source in errors."""
    for name, expected, start, follows in (
        ("evaluations", "numbers that rise from report to report", -1.0, np.greater),
        ("max_fitness", "the best so far, which never falls", -np.inf, np.greater_equal),
    ):
        values = reports[name].to_numpy(float)
        before = np.concatenate([[start], values[:-1]])
        fits = follows(values, before)
        if not fits.all():
            received = f"{values[fits.argmin()]:g} after {before[fits.argmin()]:g}"
            raise fail(f"{where}: {name}", expected=expected, received=received, remedy="correct the file")
    curve = reports.set_index("evaluations")
    return curve if "coverage" in curve else curve.assign(coverage=np.nan)


def _told_apart(records: Iterable[Record]) -> list[Record]:
    """Return records whose labels have the settings that differ, where runs of one label on a task have several."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.task, record.label), []).append(record)
    return [record for group in groups.values() for record in _told_apart_by_settings(group)]


def _told_apart_by_settings(group: list[Record]) -> list[Record]:
    known = [record.settings for record in group if record.settings is not None]
    if len(known) < len(group) or all(settings == known[0] for settings in known):
        return group
    names = list(dict.fromkeys(name for settings in known for name in differing(known[0], settings)))
    return [replace(one, label=" ".join([one.label, *(_shown(one, name) for name in names)])) for one in group]


def _shown(record: Record, name: str) -> str:
    """Return a setting as a label shows it."""
    text = printable(str((record.settings or {}).get(name, "none")))
    return f"{name}={text if len(text) <= 30 else text[:27] + '...'}"


def _check_together(records: Iterable[Record]) -> None:
    """Raise an error for a seed twice, or for different methods, tasks or budgets under one name.

    Methods are different if one of two has unknown settings, or if the labels show no difference between long ones.
    """
    first: dict[tuple, Record] = {}
    remedy, twice = "compare them separately", "name the directories to compare, or remove one of the two"
    for record in records:
        trial = f"{record.label} on {record.task}"
        other = first.setdefault((record.label, record.task, record.seed), record)
        if other is not record:
            raise _conflict(f"seed {record.seed} of {trial}", "one result", "two", record, other, twice)
        other = first.setdefault((record.label, record.task), record)
        if other.settings != record.settings:
            received = _first_difference(other.settings, record.settings)
            raise _conflict(trial, "one method with the same settings", received, record, other, remedy)
        if record.task_settings is None:
            continue
        other = first.setdefault((record.task,), record)
        if other.task_settings != record.task_settings:
            received = _first_difference(other.task_settings, record.task_settings)
            raise _conflict(record.task, "one task with the same settings", received, record, other, remedy)
        if other.budget != record.budget:
            received = f"{other.budget:,} and {record.budget:,} evaluations"
            raise _conflict(record.task, "one budget", received, record, other, remedy)


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of settings whose values differ, or that only one side has."""
    return [name for name in {**one, **other} if (name in one, one.get(name)) != (name in other, other.get(name))]


def _first_difference(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str:
    if one is None or other is None:
        return "a run and a CSV file"
    name = differing(one, other)[0]
    shown = [str(values.get(name, "none")) for values in (one, other)]
    return f"{name} {' and '.join(text if len(text) <= 60 else text[:57] + '...' for text in shown)}"


def _conflict(what: str, expected: str, received: str, record: Record, other: Record, remedy: str) -> JedaxError:
    """Return an error that names both sources in full, which `fail` would shorten."""
    return JedaxError(f"{what}: expected {expected}, got {received} in {other.source} and {record.source}; {remedy}.")
