"""Reading run directories, and whatever else is compared with them, from whole trees of folders."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jedax.bench.foreign import COLUMNS, read_csv
from jedax.bench.records import LeftOut, Record, Records, check_together, curves
from jedax.errors import fail
from jedax.store.config import FullConfig
from jedax.store.directory import FOLDERS, RunDirectory
from jedax.tasks.registry import is_custom, task_of, title_of

_ENDED = ("finished", "goal")
_SETTINGS_OF_RUN = ("stop_fitness", "start_from")  # what else changes what a method finds


def read(paths: Iterable[str | Path]) -> Records:
    """Read all runs and foreign results below some directories.

    A run is a folder with a `config.yaml`. Other CSV files than those of runs count where their first line names
    at least method, task and seed.

    Args:
        paths: Directories, searched with all that is below them, and CSV files.

    Returns:
        The records, ordered by task, label and seed.

    Raises:
        JedaxError: Nothing there, nothing that has ended, a damaged file, the same seed twice, or results under
            one name that do not belong together.
    """
    given = [Path(path) for path in paths]
    runs, tables = _find(given)
    records: list[Record] = []
    left_out: list[LeftOut] = []
    for folder in runs:
        found = _read_run(folder)
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            records += found
    for table in tables:
        records += read_csv(table)
    if not records:
        such = [f"{run.path} ({run.reason})" for run in left_out[:1]]
        raise fail(
            "directories",
            expected="runs that have ended",
            received=f"{len(left_out)} others, such as {such[0]}" if such else "none in " + ", ".join(map(str, given)),
            remedy="finish them with jedax run --resume DIR" if such else "check the paths",
        )
    check_together(records)
    return Records(tuple(sorted(records, key=lambda r: (r.task, r.label, r.seed))), tuple(left_out))


def _find(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the run directories and the CSV files, each once however often it is given."""
    runs: dict[Path, Path] = {}
    tables: dict[Path, Path] = {}
    for path in paths:
        if path.is_file():
            tables.setdefault(path.resolve(), path)
            continue
        if not path.is_dir():
            raise fail(
                "directories", expected="directories or CSV files", received=f"no {path}", remedy="check the path"
            )
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if not name.startswith("."))
            here = Path(folder)
            if "config.yaml" in files:
                names[:] = [name for name in names if name not in FOLDERS]
                runs.setdefault(here.resolve(), here)
                continue
            for name in sorted(files):
                if name.endswith(".csv") and set(COLUMNS[:3]) <= set(_header(here / name)):
                    tables.setdefault((here / name).resolve(), here / name)
    return list(runs.values()), list(tables.values())


def _header(path: Path) -> list[str]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _read_run(folder: Path) -> list[Record] | LeftOut:
    summary_file = folder / "summary.json"
    if not summary_file.exists():
        return LeftOut(folder, "no summary.json: it has not ended")
    directory = RunDirectory.open(folder)
    status = directory.read_summary().get("status")
    if status not in _ENDED:
        return LeftOut(folder, f"its status is {status!r}")
    config = directory.read_config()
    reports = _reports(folder / "metrics.csv", directory.read_metrics(), config.run.replicas)
    goal = None if is_custom(config.task) else task_of(config.task, config.task_config).goal_fitness
    method = config.method_config
    settings = {"method": config.method, **method.model_dump(mode="json")}
    settings |= {name: getattr(config.run, name) for name in _SETTINGS_OF_RUN}
    restarts = config.method == "es-restart"
    return [
        Record(
            label=config.label or config.method,
            method=config.method,
            task=title_of(config.task, config.task_config),
            seed=config.run.seed + replica,
            **curves(f"{folder / 'metrics.csv'}, replica {replica}", rows),
            budget=config.run.evaluations,
            goal=goal,
            task_settings=json.dumps(_task_settings(config)),
            settings=json.dumps(settings),
            source=folder,
            replica=replica,
            stopped=status == "goal",
            num_restarts=rows[-1].get("num_restarts") if restarts else None,
        )
        for replica, rows in enumerate(reports)
    ]


def _reports(path: Path, rows: list[dict[str, float]], replicas: int) -> list[list[dict[str, float]]]:
    """Return the reports of each replica.

    Raises:
        JedaxError: There are none of one of them, or a column is missing.
    """
    missing = [name for name in ("evaluations", "replica", "max_fitness") if rows and name not in rows[0]]
    if missing:
        raise fail(str(path), expected="the metrics of a run", received=f"no {missing[0]}", remedy="restore the file")
    reports = [[row for row in rows if row["replica"] == replica] for replica in range(replicas)]
    if not all(reports):
        received = f"none of replica {reports.index([])}"
        raise fail(str(path), expected=f"reports of {replicas} replicas", received=received, remedy="restore the file")
    return reports


def _task_settings(config: FullConfig) -> dict[str, Any]:
    """Return what makes the task; of one that only its owner can make, that is its name."""
    return {"task": config.task} if config.task_config is None else config.task_config.model_dump(mode="json")
