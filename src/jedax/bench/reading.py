"""Results for a comparison, read from run directories and CSV files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas

from jedax.bench.foreign import COLUMNS, read_csv
from jedax.bench.records import Record, Records, check_together, curve_of
from jedax.errors import fail
from jedax.imports import is_custom
from jedax.store.directory import FOLDERS, RunDirectory, has_ended
from jedax.tasks.registry import task_of, title_of

_SETTINGS_OF_RUN = ("stop_fitness", "start_from")  # of the run, but they change what a method finds


def read(paths: Iterable[str | Path]) -> Records:
    """Return the results of all runs and of other programs below some directories.

    A run is a directory with a `config.yaml`. A CSV file outside runs counts if its header has the columns method,
    task and seed.

    Args:
        paths: Directories, searched with everything below them, and CSV files.

    Returns:
        The records, ordered by task, label and seed.

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
    check_together(records)
    return Records(tuple(sorted(records, key=lambda r: (r.task, r.label, r.seed))), left_out)


def _find(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the run directories and the CSV files, each once even if it is given several times."""
    runs: dict[Path, Path] = {}
    tables: dict[Path, Path] = {}
    for path in paths:
        if path.is_file():
            tables.setdefault(path.resolve(), path)
        elif not path.is_dir():
            expected = "directories or CSV files"
            raise fail("directories", expected=expected, received=f"no {path}", remedy="check the path")
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if not name.startswith("."))
            here = Path(folder)
            if "config.yaml" in files:
                names[:] = [name for name in names if name not in FOLDERS]
                runs.setdefault(here.resolve(), here)
                continue
            for file in (here / name for name in sorted(files) if name.endswith(".csv")):
                if set(COLUMNS[:3]) <= set(_header(file)):
                    tables.setdefault(file.resolve(), file)
    return list(runs.values()), list(tables.values())


def _header(path: Path) -> list[str]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _read_run(folder: Path) -> list[Record] | str:
    """Return a record for each replica of a run, or why the run is left out."""
    if not (folder / "summary.json").exists():
        return "no summary.json: it has not ended"
    directory = RunDirectory.open(folder)
    status = directory.read_summary().get("status")
    if not has_ended(status):
        return f"its status is {status!r}"
    config = directory.read_config()
    task_settings = config.task_config
    goal = None if is_custom(config.task) else task_of(config.task, config.task_config).goal_fitness
    return [
        Record(
            label=config.label or config.method,
            method=config.method,
            task=title_of(config.task, config.task_config),
            seed=config.run.seed + replica,
            curve=curve_of(f"{folder / 'metrics.csv'}, replica {replica}", reports),
            budget=config.run.evaluations,
            goal=goal,
            task_settings={"task": config.task} if task_settings is None else task_settings.model_dump(mode="json"),
            settings={
                "method": config.method,
                **config.method_config.model_dump(mode="json"),
                **{name: getattr(config.run, name) for name in _SETTINGS_OF_RUN},
            },
            source=folder,
            replica=replica,
            stopped=status != "finished",
        )
        for replica, reports in enumerate(_reports(directory, config.run.replicas))
    ]


def _reports(directory: RunDirectory, replicas: int) -> list[pandas.DataFrame]:
    """Return the reports of each replica.

    Raises:
        JedaxError: A replica has none, or a column is missing.
    """
    rows = pandas.DataFrame(directory.read_metrics())
    where = str(directory.path / "metrics.csv")
    missing = [name for name in ("evaluations", "replica", "max_fitness") if len(rows) and name not in rows]
    if missing:
        raise fail(where, expected="the metrics of a run", received=f"no {missing[0]}", remedy="restore the file")
    found = dict(iter(rows.groupby("replica"))) if len(rows) else {}
    lacking = [replica for replica in range(replicas) if replica not in found]
    if lacking:
        expected, received = f"reports of {replicas} replicas", f"none of replica {lacking[0]}"
        raise fail(where, expected=expected, received=received, remedy="restore the file")
    return [found[replica] for replica in range(replicas)]
