"""What a search did, loop by loop, in a small file that a report plays back.

`history.jsonl` holds one JSON object per line. The first names the format; the others follow in time:

| "at" | content |
|---|---|
| "start" | a loop began: alpha, targets, start points, their fitness, and what the Gaussian process (GP) predicted |
| "end" | a loop ended: the best-scored member of the last generation of each evolution strategy (ES) |
| "cells" | the fitness of all cells |

Positions are integers: ten-thousandths of the descriptor box. Lists of "targets", "starts" and "ends" have the axes
replica, ES, descriptor. Long runs leave out loops, so that the file stays below a few megabytes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import fail
from jedax.methods.base import Method
from jedax.repertoire.cells import Cells
from jedax.store import files
from jedax.store.packing import pack, unpack
from jedax.types import Float

FORMAT = 1
FILE = "history.jsonl"

_UNIT = 10_000  # steps of a position across the descriptor box
_MOST_LOOPS = 2_000
_MOST_SNAPSHOTS = 50
_MOST_CELLS = 400_000  # in all snapshots of one replica


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop of a method with targets.

    Attributes:
        evaluations: Evaluations of each replica when the loop began.
        until: Evaluations of each replica when it ended; None: it has not ended.
        alpha: The weight of nearness to the target.
        targets: The targets.
        starts: The stored descriptor that each ES started from.
        start_fitness: The stored fitness that each ES started from.
        ends: The descriptor of the best-scored member of the last generation; NaN if all members failed, None if the
            loop has not ended.
        end_fitness: The fitness of that member.
        gp: Parameters of the GP by name, `(replicas,)` each; empty if no GP chose the targets.
        gp_mean: The mean that the GP predicted; None: not kept for this loop.
        gp_std: The standard deviation that the GP predicted.
    """

    evaluations: int
    until: int | None
    alpha: Float[np.ndarray, " replicas"]
    targets: Float[np.ndarray, "replicas pool descriptor"]
    starts: Float[np.ndarray, "replicas pool descriptor"]
    start_fitness: Float[np.ndarray, "replicas pool"]
    ends: Float[np.ndarray, "replicas pool descriptor"] | None
    end_fitness: Float[np.ndarray, "replicas pool"] | None
    gp: Mapping[str, Float[np.ndarray, " replicas"]]
    gp_mean: Float[np.ndarray, "replicas cells"] | None
    gp_std: Float[np.ndarray, "replicas cells"] | None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The fitness of all cells at one report, at `evaluations` of each replica; NaN: empty."""

    evaluations: int
    fitness: Float[np.ndarray, "replicas cells"]


@dataclass(frozen=True, eq=False)
class History:
    """What a search did.

    Attributes:
        loops: The loops that were kept; none for methods without targets.
        snapshots: The cells at some of the reports, in order.
        every: One of this number of loops was kept.
    """

    loops: tuple[Loop, ...]
    snapshots: tuple[Snapshot, ...]
    every: int


class Recorder:
    """Collects the history of a search and writes it at each `flush`.

    The settings alone decide which loops and snapshots are kept, so a resumed run keeps the same ones.
    """

    def __init__(self, path: Path, method: Method, generations: int, report_every: int):
        self.path = path
        self._method = method
        self._per_loop = method.generations_per_loop
        loops = 0 if self._per_loop is None else -(-generations // self._per_loop)
        snapshots = min(_MOST_SNAPSHOTS, _MOST_CELLS // method.cells.num_cells)
        self._every_loop = max(1, -(-loops // _MOST_LOOPS))
        self._every_gp = max(1, -(-loops // snapshots)) if snapshots else None
        reports = 1 + generations // report_every
        self._every_cells = report_every * max(1, -(-reports // snapshots)) if snapshots else None
        self._lines: list[str] = []

    def start(self, generation: int, evaluations: int, state: Any, at: Any) -> None:
        """Record a loop that begins, and the prediction `at` of the GP if it chose the targets."""
        record = {name: np.asarray(values) for name, values in self._method.loop_record(state).items()}
        if "targets" not in record or not self._keeps(generation):
            return
        repertoire = state.repertoire
        fitness, descriptors = np.asarray(repertoire.fitness), np.asarray(repertoire.descriptors)
        targets, replica = record.pop("targets"), np.arange(len(fitness))[:, None]
        squared = (((descriptors[:, None] - targets[:, :, None]) / self._method.cells.widths) ** 2).sum(axis=-1)
        nearest = np.where(fitness[:, None] > -np.inf, squared, np.inf).argmin(axis=-1)
        row = {
            "at": "start",
            "evaluations": evaluations,
            **{name: _short(values) for name, values in record.items()},
            "targets": self._places(targets),
            "starts": self._places(descriptors[replica, nearest]),
            "start_fitness": _short(fitness[replica, nearest]),
        }
        if at is not None:
            numbers = self._method.metrics(state)
            row["gp"] = {name.removeprefix("gp_"): _short(numbers[name]) for name in numbers if name not in record}
            if self._every_gp and generation // (self._per_loop or 1) % self._every_gp == 0:
                row["gp_mean"] = [pack(values) for values in np.asarray(at.mean)]
                row["gp_std"] = [pack(values) for values in np.sqrt(np.asarray(at.variance))]
        self._add(row)

    def end(self, generation: int, evaluations: int, ends: Mapping[str, Any]) -> None:
        """Record `Method.loop_results` of the loop that ended before `generation`."""
        if ends and self._keeps(generation - 1):
            places, fitness = self._places(np.asarray(ends["descriptor"])), _short(ends["fitness"])
            self._add({"at": "end", "evaluations": evaluations, "ends": places, "end_fitness": fitness})

    def cells(self, generation: int, evaluations: int, fitness: np.ndarray) -> None:
        """Record the fitness of all cells, `(replicas, cells)`, at a report."""
        if self._every_cells and generation % self._every_cells == 0:
            packed = [pack(values) for values in fitness]
            self._add({"at": "cells", "evaluations": evaluations, "fitness": packed})

    def flush(self) -> None:
        """Write what was recorded since the last call."""
        if not self._lines:
            return
        header = {"at": "header", "format": FORMAT, "unit": _UNIT, "every": self._every_loop}
        lines = self._lines if self.path.exists() else [json.dumps(header), *self._lines]
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self._lines = []

    def _keeps(self, generation: int) -> bool:
        return generation // (self._per_loop or 1) % self._every_loop == 0

    def _places(self, descriptors: np.ndarray) -> list:
        lows, highs = (np.asarray(bound) for bound in self._method.cells.bounds)
        share = np.clip((descriptors - lows) / (highs - lows), -10, 11) * _UNIT
        known = np.isfinite(share)
        places = np.rint(np.where(known, share, 0)).astype(int).astype(object)
        places[~known] = None
        return places.tolist()

    def _add(self, row: dict[str, Any]) -> None:
        self._lines.append(json.dumps(row, separators=(",", ":")))


def _short(values: Any) -> list:
    """Return an array as lists of numbers with five digits; numbers that are not finite become null."""
    array = np.asarray(values)
    short = [float(f"{value:.5g}") if np.isfinite(value) else None for value in array.ravel().tolist()]
    return np.array(short, object).reshape(array.shape).tolist()


def cut(path: Path, evaluations: int) -> None:
    """Remove the lines after a checkpoint at `evaluations` and damaged lines; -1 removes the file."""

    def is_kept(row: dict[str, Any]) -> bool:
        at = row.get("evaluations", 0)  # the resumed search begins a loop at the checkpoint again
        return row["at"] == "header" or at < evaluations or (at == evaluations and row["at"] != "start")

    if not path.exists():
        return
    kept = [line for line, row in _rows(path) if is_kept(row)]
    if len(kept) > 1:
        files.write_atomic(path, "".join(kept))
    else:
        path.unlink()


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a history and their content, without incomplete and damaged lines."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        try:
            row = json.loads(line) if line.endswith("\n") else None
        except (ValueError, RecursionError):
            continue
        evaluations = row.get("evaluations", 0) if isinstance(row, dict) and "at" in row else None
        if isinstance(evaluations, int) and 0 <= evaluations < 2**31:
            yield line, row  # type: ignore[misc]


def read(path: Path, cells: Cells, replicas: int) -> History | None:
    """Return the history of a run with these cells and this number of replicas; None if there is none."""
    if not path.exists():
        return None
    try:
        rows = [row for _, row in _rows(path)]
    except OSError as error:
        raise files.CorruptError(f"{path}: expected a readable file, got {error.strerror}; remove it.") from None
    if not rows:
        return None
    if rows[0].get("format") != FORMAT:
        received, remedy = repr(rows[0].get("format")), "read it with the version of jedax that wrote it"
        raise fail(f"{path}: format", expected=f"the number {FORMAT}", received=received, remedy=remedy)
    try:
        return _history(rows, cells, replicas)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise fail(str(path), expected="the history of a run", received=repr(error), remedy="remove the file") from None


def _history(rows: list[dict[str, Any]], cells: Cells, replicas: int) -> History:
    lows, highs = (np.asarray(bound, float) for bound in cells.bounds)

    def places(values: Any) -> np.ndarray:
        return lows + np.array(values, float) / _UNIT * (highs - lows)

    loops = []
    marks = [row for row in rows if row["at"] in ("start", "end")]
    for row, after in itertools.zip_longest(marks, marks[1:]):
        if row["at"] != "start":
            continue
        end = after if after is not None and after["at"] == "end" else None
        loops.append(Loop(
            evaluations=int(row["evaluations"]),
            until=None if end is None else int(end["evaluations"]),
            alpha=np.array(row.get("alpha", [np.nan] * len(row["targets"])), float),
            targets=places(row["targets"]),
            starts=places(row["starts"]),
            start_fitness=np.array(row["start_fitness"], float),
            ends=None if end is None else places(end["ends"]),
            end_fitness=None if end is None else np.array(end["end_fitness"], float),
            gp={name: np.array(values, float) for name, values in row.get("gp", {}).items()},
            gp_mean=_unpacked(row.get("gp_mean")),
            gp_std=_unpacked(row.get("gp_std")),
        ))  # fmt: skip
    packed = [(int(row["evaluations"]), row["fitness"]) for row in rows if row["at"] == "cells"]
    snapshots = [Snapshot(at, _unpacked(fitness)) for at, fitness in packed if fitness is not None]  # type: ignore[arg-type]
    wanted = [(snapshot.fitness, (replicas, cells.num_cells)) for snapshot in snapshots]
    for loop in loops:
        pool = len(loops[0].start_fitness[0])
        wanted += [(places, (replicas, pool, len(lows))) for places in (loop.targets, loop.starts, loop.ends)]
        wanted += [(fitness, (replicas, pool)) for fitness in (loop.start_fitness, loop.end_fitness)]
        wanted += [(values, (replicas,)) for values in (loop.alpha, *loop.gp.values())]
        wanted += [(values, (replicas, cells.num_cells)) for values in (loop.gp_mean, loop.gp_std)]
    if any(array is not None and array.shape != shape for array, shape in wanted):
        raise ValueError("the replicas, cells or descriptors of another run")
    if any((loop.gp_mean is None) != (loop.gp_std is None) for loop in loops):
        raise ValueError("a mean without a standard deviation")
    return History(tuple(loops), tuple(snapshots), int(rows[0].get("every", 1)))


def _unpacked(values: Any) -> np.ndarray | None:
    return None if values is None else np.stack([unpack(packed) for packed in values])
