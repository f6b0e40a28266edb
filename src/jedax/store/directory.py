"""The directory of a run: what is in it, and how it grows without ever losing what is there.

| file | content |
|---|---|
| `config.yaml` | all that ran, resolved; written first |
| `metrics.csv` | one row per report and replica |
| `history.jsonl` | what each loop did, see `jedax.store.history` |
| `checkpoint/` | the two newest states, checksummed |
| `repertoire.safetensors` | the final repertoire, GP and targets |
| `summary.json` | the outcome in numbers |
| `environment.json` | versions, machine, command line |
| `log.txt` | what happened when |
| `figures/` | pictures |
| `reevaluated.*` | what `jedax reevaluate` found |
| `replay/` | what `jedax replay` made |
| `tensorboard/`, `wandb/` | what these trackers keep |
| `.lock` | who works on it, for as long as they do |
"""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.store import files, metrics
from jedax.store.config import FullConfig
from jedax.store.guard import check_facts, check_plain, check_summary
from jedax.store.lock import FILE as LOCK
from jedax.store.lock import Lock

_KEPT_CHECKPOINTS = 2
# How far below a directory runs are looked for, deep enough for those of a bench, and how many are named.
_DEPTH, _MOST_NAMED = 3, 3
_OUTCOME = ("repertoire.safetensors", "summary.json")
REEVALUATED = ("reevaluated.json", "reevaluated.csv", "reevaluated.png")
_REPORT = ("report.html", "plotly.min.js")
_FILES = (
    "config.yaml", "metrics.csv", "history.jsonl", "environment.json", "log.txt", "start_genotypes.npy",
    *_OUTCOME, *REEVALUATED, *_REPORT,
)  # fmt: skip
_FOLDERS = ("checkpoint", "figures", "replay", "tensorboard", "wandb")


def has_ended(status: object) -> bool:
    """Return whether a run with this status ended by itself: at its budget, at its goal, or by a callback."""
    return status in ("finished", "goal", "callback")


def _is_written(name: str) -> bool:
    """Whether a run would write to the file or folder of that name."""
    return name in (*_FILES, *_FOLDERS, LOCK) or (name.startswith(".") and name.endswith(".tmp"))


class RunDirectory:
    """A run's directory.

    Attributes:
        path: Where it is.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock: Lock | None = None

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> RunDirectory:
        """Make a directory ready for a new run, and lock it; see `lock`.

        Raises:
            JedaxError: It cannot be written, another process works there, or it holds something and `overwrite` is
                off; with `overwrite`, it holds something that no run wrote (nothing is removed then).
        """
        directory = cls(path)
        try:
            directory.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise directory._unwritable(error.strerror) from None
        directory.lock()
        try:
            directory._empty(overwrite)
        except BaseException:
            directory.release()
            raise
        return directory

    def _empty(self, overwrite: bool) -> None:
        """Remove what an earlier run left."""
        present = sorted(entry.name for entry in self.path.iterdir() if entry.name != LOCK)
        if present and not overwrite:
            raise fail(
                "out",
                expected="an empty or new directory",
                received=f"{self.path} with {', '.join(present[:3])}",
                remedy=f"go on with --resume {self.path}, replace it with --overwrite, or choose another --out",
            )
        strange = [name for name in present if name not in _FILES + _FOLDERS and not name.startswith(".")]
        if strange:
            raise fail(
                "overwrite",
                expected="a directory that only a run wrote to",
                received=f"{self.path} with {', '.join(strange[:3])}",
                remedy="choose another with --out",
            )
        with self.writing():
            for name in _FOLDERS:
                if (self.path / name).exists():
                    shutil.rmtree(self.path / name)
            for name in _FILES:
                (self.path / name).unlink(missing_ok=True)

    def _unwritable(self, reason: str | None) -> JedaxError:
        return fail(
            "out",
            expected="a directory that can be written",
            received=f"{self.path} ({reason})",
            remedy="choose another with --out",
        )

    def lock(self) -> None:
        """Keep other processes from writing here until `release`, and remove what was half written.

        Reading needs no lock.

        Raises:
            LockedError: Another process, or another run of this one, works here.
            JedaxError: The directory cannot be written, or holds what no run leaves, such as links.
        """
        check_plain(self.path, _is_written)
        if not os.access(self.path, os.W_OK):
            raise self._unwritable("read-only")
        try:
            self._lock = Lock(self.path)
        except OSError as error:
            raise self._unwritable(error.strerror) from None
        with self.writing():
            for folder in (self.path, self.path / "checkpoint"):
                for left in folder.glob(".*.tmp"):
                    shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)

    def release(self) -> None:
        """Let other processes write here."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """Open the directory of an earlier run.

        Raises:
            JedaxError: There is no run, or something that no run leaves, such as links.
        """
        directory = cls(path)
        if not (directory.path / "config.yaml").is_file():
            raise directory._no_run()
        check_plain(directory.path, _is_written)
        return directory

    def _no_run(self) -> JedaxError:
        """Word the error for a directory that is none of a run; runs below it, such as those of a bench, are named."""
        settings = [file for depth in range(_DEPTH) for file in self.path.glob("*/" * (1 + depth) + "config.yaml")]
        received, remedy = str(self.path), "check the path"
        if settings:
            runs = sorted(str(file.parent) for file in settings)
            received = f"{self.path}, with {len(runs)} of them below it"
            remedy = f"name one of those, as in {', '.join(runs[:_MOST_NAMED])}; jedax report {self.path} shows all"
        return fail("run directory", expected="a directory with a config.yaml", received=received, remedy=remedy)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Word what goes wrong while results are written.

        Raises:
            JedaxError: The disk is full, or the directory can no longer be written, or is gone.
        """
        self._check_there()
        try:
            yield
        except OSError as error:
            self._check_there()
            raise fail(
                "out",
                expected="room to write results",
                received=f"{self.path} ({error.strerror or error})",
                remedy=f"free some, then jedax run --resume {self.path}",
            ) from None

    def _check_there(self) -> None:
        if self._lock is not None and not self._lock.is_in_place():
            raise fail(
                "out",
                expected=f"the directory {self.path}, which this run writes to",
                received="none, or another one in its place",
                remedy="put it back and go on with --resume, or start anew",
            )

    def write_config(self, config: FullConfig) -> None:
        """Write the settings; this comes first, so that a run can always be resumed."""
        with self.writing():
            files.write_atomic(self.path / "config.yaml", config.dump())

    def write_start_genotypes(self, genotypes: np.ndarray) -> None:
        """Write the genotypes that a run starts from."""
        buffer = io.BytesIO()
        np.save(buffer, genotypes)
        with self.writing():
            files.write_atomic(self.start_genotypes, buffer.getvalue())

    @property
    def start_genotypes(self) -> Path:
        """The file of the genotypes that a run starts from; it need not exist."""
        return self.path / "start_genotypes.npy"

    def remove_outcome(self) -> None:
        """Remove what an interrupted run left as its outcome: it goes on, and `checkpoint/` has all of it."""
        with self.writing():
            for name in (*_OUTCOME, *REEVALUATED):
                (self.path / name).unlink(missing_ok=True)

    def set_aside(self, checkpoint: Path) -> None:
        """Rename a damaged checkpoint, so that a whole one can take its place."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        shutil.rmtree(aside, ignore_errors=True)
        with self.writing():
            checkpoint.rename(aside)

    def read_config(self) -> FullConfig:
        """Read the settings back.

        Raises:
            JedaxError: They are damaged.
        """
        path = self.path / "config.yaml"
        try:
            return FullConfig.parse(path.read_text(encoding="utf-8"), where=str(path), strict=False)
        except (OSError, UnicodeDecodeError) as error:
            raise fail(str(path), expected="a readable file", received=error, remedy="restore it") from None

    def log(self, message: str) -> None:
        """Add a line to the log, with date and time."""
        with self.writing(), open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n")

    def add_metrics(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to the metrics, all with the same columns."""
        with self.writing():
            metrics.add(self.path / "metrics.csv", rows)

    def cut_metrics(self, evaluations: int) -> None:
        """Drop rows of the metrics that come after `evaluations`, and a last line that was not written whole."""
        with self.writing():
            metrics.cut(self.path / "metrics.csv", evaluations)

    def read_metrics(self) -> list[dict[str, float]]:
        """Return the metrics, row by row; what was never measured is NaN.

        Raises:
            JedaxError: The file is damaged.
        """
        return metrics.read(self.path / "metrics.csv")

    def read_summary(self) -> dict[str, Any]:
        """Return the outcome; empty for a run that has not ended.

        Raises:
            JedaxError: The file is damaged.
        """
        path = self.path / "summary.json"
        try:
            found = files.read_json(path) if path.exists() else {}
        except files.CorruptError as error:
            raise fail(str(path), expected="the outcome of a run", received=error, remedy="restore the file") from None
        check_summary(path, found)
        return found

    def save_checkpoint(self, state: Any, facts: Mapping[str, Any]) -> None:
        """Save a state and drop all but the newest two; `facts["evaluations"]` orders them."""
        folder = self.path / "checkpoint" / f"{facts['evaluations']:012d}"
        with self.writing():
            if not folder.exists():
                files.save_tree(folder, state, facts)
            for old in self.checkpoints()[_KEPT_CHECKPOINTS:]:
                shutil.rmtree(old)

    def checkpoints(self) -> list[Path]:
        """Return the folders of the checkpoints, newest first."""
        folder = self.path / "checkpoint"
        return sorted((f for f in folder.glob("[0-9]*") if f.is_dir()), reverse=True) if folder.is_dir() else []

    def load_checkpoint(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Return the newest whole state and its facts; None before the first checkpoint.

        A damaged or foreign one is left alone; the older one serves. Beside what was saved, the facts hold
        "warnings" to show and the "damaged" folders.

        Raises:
            JedaxError: There are checkpoints, but none is whole.
        """
        errors: list[JedaxError] = []
        damaged: list[Path] = []
        for folder in self.checkpoints():
            try:
                facts = files.read_facts(folder)
                check_facts(folder, facts)
                state = files.load_tree(folder, like)
            except files.CorruptError as error:
                errors.append(error)
                damaged.append(folder)
                continue
            return state, {**facts, "warnings": [str(error) for error in errors], "damaged": damaged}
        if errors:
            raise JedaxError(f"{errors[0]} No older checkpoint is whole either; start anew with --overwrite.")
        return None
