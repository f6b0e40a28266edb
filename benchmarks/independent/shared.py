"""What the scripts of this folder share: options, results as CSV, and records of evaluations."""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import json
import multiprocessing
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import median_low
from typing import Any

import jedax_side
import numpy as np
from ribs.archives import GridArchive
from ribs.schedulers import Scheduler

ROOT = Path(__file__).resolve().parents[2]
PEERS = (
    "cma",
    "ribs",
    "coco-experiment",
    "gymnasium",
    "box2d",
    "optuna",
    "qdax",
    "engibench",
    "nevergrad",
    "scikit-learn",
    "cmaes",
)


def parser(description: str | None, name: str, algorithms: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with the options that every script has."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    out = ROOT / "results" / "independent" / f"{name}.csv"
    found.add_argument(
        "--out", type=Path, default=out, help="CSV file; its rows are not repeated (default: %(default)s)"
    )
    found.add_argument("--algorithms", nargs="+", choices=algorithms, default=list(algorithms), help="default: all")
    found.add_argument(
        "--redo", action="store_true", help="repeat the chosen algorithms' rows instead of skipping them"
    )
    found.add_argument("--workers", type=int, default=1, help="processes that search (default: %(default)s)")
    found.add_argument("--report", action="store_true", help="print the table of the CSV file and run nothing")
    return found


def add_seeds(found: argparse.ArgumentParser) -> None:
    """Add the option of scripts that repeat each search with several seeds."""
    found.add_argument("--seeds", type=int, default=10, help="seeds 0 to one less than this (default: %(default)s)")


def asked_in_turn(evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> Callable:
    """Return a function that keeps its last result: pycma asks function and constraints one after the other."""
    found: dict[bytes, tuple[float, np.ndarray]] = {}

    def at(x: np.ndarray) -> tuple[float, np.ndarray]:
        key = np.asarray(x).tobytes()
        if key not in found:
            found.clear()
            found[key] = evaluate(np.asarray(x))
        return found[key]

    return at


class Table:
    """Rows of results in a CSV file, appended one by one; a row that was half written is dropped.

    Args:
        path: The file; the versions and the machine of each command that made rows are added beside it, as `.json`.
        key: Names of the columns that identify a row.
    """

    def __init__(self, path: Path, key: Sequence[str]):
        self._path, self._key, self._revision = path, tuple(key), None
        self._found: dict[tuple[str, ...], dict[str, str]] = {}
        if path.exists():
            complete, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
            for row in csv.DictReader(complete.splitlines()):
                self._found[self._name(row)] = row

    @property
    def rows(self) -> list[dict[str, str]]:
        """All rows, as text."""
        return list(self._found.values())

    def start(self, wanted: Sequence[dict[str, Any]], *, redo: bool) -> list[int]:
        """Record versions and machine, and return which of the wanted rows, by their keys, are still to be made.

        With `redo` all of them are, and the rows of earlier runs are removed.
        """
        if redo:
            for row in wanted:
                self._found.pop(self._name(row), None)
        facts = jedax_side.describe()
        self._revision = facts["git_revision"] = _without_results(facts["git_revision"])
        facts["packages"] |= {name: _version(name) for name in PEERS}
        todo = [number for number, row in enumerate(wanted) if self._name(row) not in self._found]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if todo:  # the facts of each command that made rows are kept
            path = self._path.with_suffix(".json")
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
            known = [*(known if isinstance(known, list) else [known]), facts]
            path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        self._write(self.rows, "w")
        return todo

    def add(self, row: dict[str, Any]) -> None:
        """Append a row, with the git revision."""
        found = {name: str(value) for name, value in (row | {"revision": self._revision}).items()}
        self._write([found], "a" if self._found else "w")
        self._found[self._name(found)] = found

    def revisions(self) -> str:
        """Return the git revisions of each algorithm's rows, in words."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            found.setdefault(row["algorithm"], set()).add(row["revision"])
        return "; ".join(f"{name}: {', '.join(sorted(revisions))}" for name, revisions in sorted(found.items()))

    def _name(self, row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self._key)

    def _write(self, rows: list[dict[str, str]], mode: str) -> None:
        with self._path.open(mode, newline="", encoding="utf-8") as file:
            if rows:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                if mode == "w":
                    writer.writeheader()
                writer.writerows(rows)


def fill(table: Table, jobs: Sequence[Any], run: Callable[[Any], dict[str, Any]], options: argparse.Namespace) -> None:
    """Make the rows of jobs, named tuples whose fields are the key of the table, that it does not have yet."""
    todo = [jobs[number] for number in table.start([job._asdict() for job in jobs], redo=options.redo)]
    for row in _rows(todo, run, options.workers):
        table.add(row)
        print(*(f"{name} {value}" for name, value in row.items() if name != "reached"), sep=", ", flush=True)


def _rows(jobs: list[Any], run: Callable[[Any], dict[str, Any]], workers: int) -> Iterator[dict[str, Any]]:
    if workers == 1:
        yield from map(run, jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, job) for job in jobs]):
            yield future.result()


class Recorder:
    """An evaluation function that counts, times and keeps the results of its calls, up to a budget.

    Args:
        evaluate: Takes genotypes; returns fitness (maximised) and descriptors.
        budget: Number of evaluations that are kept.
    """

    def __init__(self, evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], budget: int):
        self._evaluate, self.budget = evaluate, budget
        self._fitness: list[np.ndarray] = []
        self._descriptors: list[np.ndarray] = []
        self.evaluations, self.seconds, self._began = 0, 0.0, time.perf_counter()

    def __call__(self, genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        began = time.perf_counter()
        fitness, descriptors = self._evaluate(genotypes)
        self.seconds += time.perf_counter() - began
        room = self.budget - self.evaluations
        self._fitness.append(fitness[:room])
        self._descriptors.append(descriptors[:room])
        self.evaluations += len(self._fitness[-1])
        return fitness, descriptors

    def room_for(self, batch: int) -> bool:
        """Return whether the budget has room for a batch."""
        return self.evaluations + batch <= self.budget

    def results(self) -> dict[str, Any]:
        """Return best fitness, evaluations, and seconds: all, and those of the evaluations alone."""
        return {
            "best": float(np.concatenate(self._fitness).max()),
            "evaluations": self.evaluations,
            "seconds": round(time.perf_counter() - self._began, 3),
            "evaluation_seconds": round(self.seconds, 3),
        }

    def on_grid(self, dims: Sequence[int], ranges: Sequence[tuple[float, float]], offset: float) -> dict[str, float]:
        """Return QD score and coverage of all solutions in one pyribs grid archive, the same for every algorithm."""
        archive = GridArchive(solution_dim=1, dims=dims, ranges=ranges, qd_score_offset=offset)
        for fitness, descriptors in zip(self._fitness, self._descriptors, strict=True):
            archive.add(np.zeros((len(fitness), 1)), fitness, descriptors)
        return {"qd_score": float(archive.stats.qd_score), "coverage": float(archive.stats.coverage)}


def search_with_ribs(archive: Any, emitters: list[Any], recorder: Recorder) -> None:
    """Run pyribs' scheduler while the budget has room for a batch of all emitters."""
    scheduler = Scheduler(archive, emitters)
    while recorder.room_for(sum(emitter.batch_size for emitter in emitters)):
        scheduler.tell(*recorder(scheduler.ask()))


def report(rows: list[dict[str, str]], problem: Sequence[str], digits: int) -> Iterator[str]:
    """Yield the lines of a table: medians over seeds by problem and algorithm, least and greatest in brackets."""
    columns = [name for name in ("best", "qd_score", "coverage") if rows and name in rows[0]]
    yield f"| {', '.join(problem)} | algorithm | seeds | {' | '.join(columns)} | evaluations | own us per evaluation |"
    yield "|---|---|---:|" + "---:|" * (len(columns) + 2)
    # Numbers are sorted by value: shorter ones come first.
    for group in sorted({tuple(row[name] for name in problem) for row in rows}, key=lambda g: [(len(x), x) for x in g]):
        for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
            of = [row for row in rows if (tuple(row[name] for name in problem), row["algorithm"]) == (group, algorithm)]
            if of:
                places = {"best": digits, "qd_score": 0, "coverage": 3}
                cells = [_spread([float(row[name]) for row in of], places[name]) for name in columns]
                used = _spread([float(row["evaluations"]) for row in of], 0)
                start = f"| {', '.join(group)} | {algorithm} | {len(of)} | {' | '.join(cells)}"
                yield f"{start} | {used.partition(' ')[0]} | {overhead(of)} |"


def overhead(rows: Sequence[dict[str, str]]) -> str:
    """Return the microseconds per evaluation that an algorithm took itself in the median search, of two the faster."""
    own = [(float(row["seconds"]) - float(row["evaluation_seconds"])) / int(row["evaluations"]) for row in rows]
    return f"{1e6 * median_low(own):,.0f}"


def _spread(values: Sequence[float], digits: int) -> str:
    """Return the median, and the least and greatest in brackets."""
    low, middle, high = min(values), float(np.median(values)), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def _without_results(revision: str | None) -> str | None:
    """Return a revision, marked as changed only where other files than results have changed; None: there is none."""
    if revision is None or not revision.endswith("-dirty"):
        return revision
    command = ["git", "-C", str(ROOT), "diff", "--quiet", "HEAD", "--", ".", ":!results"]
    return revision if subprocess.run(command, check=False).returncode else revision.removesuffix("-dirty")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
