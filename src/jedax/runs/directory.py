"""The directory of a run: what is in it, and how it grows without ever losing what is there.

| file | content |
|---|---|
| `config.yaml` | all that ran, resolved; written first |
| `metrics.csv` | one row per report and replica |
| `history.jsonl` | what each loop did, see `jedax.runs.history` |
| `checkpoint/` | the two newest states, checksummed |
| `repertoire.safetensors` | the final repertoire, GP and targets |
| `summary.json` | the outcome in numbers |
| `environment.json` | versions, machine, command line |
| `log.txt` | what happened when |
| `figures/` | pictures |
| `reevaluated.*` | what `jedax reevaluate` found |
| `replay/` | what `jedax replay` made |
| `tensorboard/`, `wandb/` | what these trackers keep |
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jedax._checks import JedaxError, fail
from jedax.config.run import FullConfig
from jedax.runs import files

_KEPT_CHECKPOINTS = 2
_OUTCOME = ("repertoire.safetensors", "summary.json")
REEVALUATED = ("reevaluated.json", "reevaluated.csv", "reevaluated.png")
_REPORT = ("report.html", "plotly.min.js")
_FILES = (
    "config.yaml", "metrics.csv", "history.jsonl", "environment.json", "log.txt", "start_genotypes.npy",
    *_OUTCOME, *REEVALUATED, *_REPORT,
)  # fmt: skip
_FOLDERS = ("checkpoint", "figures", "replay", "tensorboard", "wandb")


def _number(text: str) -> float:
    """Read back a number of the metrics; whole ones stay whole."""
    return int(text) if text.lstrip("-").isdigit() else float(text or "nan")


class RunDirectory:
    """A run's directory.

    Attributes:
        path: Where it is.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> RunDirectory:
        """Make a directory ready for a new run.

        Raises:
            JedaxError: It cannot be written, or holds something and `overwrite` is off; with `overwrite`, it
                holds something that no run wrote (nothing is removed then).
        """
        directory = cls(path)
        path = directory.path
        try:
            path.mkdir(parents=True, exist_ok=True)
            present = sorted(entry.name for entry in path.iterdir())
        except OSError as error:
            raise fail(
                "out",
                expected="a directory that can be written",
                received=f"{path} ({error.strerror})",
                remedy="choose another with --out",
            ) from None
        if not os.access(path, os.W_OK):
            raise fail(
                "out",
                expected="a directory that can be written",
                received=f"{path} (read-only)",
                remedy="choose another with --out",
            )
        if present and not overwrite:
            raise fail(
                "out",
                expected="an empty or new directory",
                received=f"{path} with {', '.join(present[:3])}",
                remedy=f"go on with --resume {path}, replace it with --overwrite, or choose another --out",
            )
        strange = [name for name in present if name not in _FILES + _FOLDERS and not name.startswith(".")]
        if strange:
            raise fail(
                "overwrite",
                expected="a directory that only a run wrote to",
                received=f"{path} with {', '.join(strange[:3])}",
                remedy="choose another with --out",
            )
        for name in _FOLDERS:
            shutil.rmtree(path / name, ignore_errors=True)
        for name in _FILES:
            (path / name).unlink(missing_ok=True)
        return directory

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """Open the directory of an earlier run.

        Raises:
            JedaxError: There is no run.
        """
        directory = cls(path)
        if not (directory.path / "config.yaml").is_file():
            raise fail(
                "run directory",
                expected="a directory with a config.yaml",
                received=path,
                remedy="check the path",
            )
        return directory

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Word what goes wrong while results are written.

        Raises:
            JedaxError: The disk is full, or the directory can no longer be written.
        """
        try:
            yield
        except OSError as error:
            raise fail(
                "out",
                expected="room to write results",
                received=f"{self.path} ({error.strerror or error})",
                remedy=f"free some, then jedax run --resume {self.path}",
            ) from None

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
            return FullConfig.parse(path.read_text(encoding="utf-8"), where=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise fail(str(path), expected="a readable file", received=error, remedy="restore it") from None

    def log(self, message: str) -> None:
        """Add a line to the log, with date and time."""
        with self.writing(), open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n")

    def add_metrics(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to the metrics, all with the same columns; the first brings the header."""
        path = self.path / "metrics.csv"
        new = not path.exists()
        with self.writing(), open(path, "a", newline="", encoding="utf-8") as file:
            writer: csv.DictWriter[str] = csv.DictWriter(file, list(rows[0]))
            if new:
                writer.writeheader()
            writer.writerows(rows)

    def cut_metrics(self, evaluations: int) -> None:
        """Drop rows that come after `evaluations`, and a last line that was not written whole."""
        path = self.path / "metrics.csv"
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines[1:] if line.endswith("\n")]
        try:
            kept = [line for line in whole if int(line.split(",", 1)[0]) <= evaluations]
        except ValueError as error:
            raise self._foreign_metrics(error) from None
        if kept:
            with self.writing():
                files.write_atomic(path, "".join([lines[0], *kept]))
        else:
            path.unlink()

    def read_metrics(self) -> list[dict[str, float]]:
        """Return the metrics, row by row; what was never measured is NaN.

        Raises:
            JedaxError: The file is damaged.
        """
        path = self.path / "metrics.csv"
        if not path.exists():
            return []
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a run that goes on may be writing its last line
        try:
            return [{name: _number(value) for name, value in row.items()}
                    for row in csv.DictReader(io.StringIO(whole), strict=True)]  # fmt: skip
        except (ValueError, TypeError, csv.Error) as error:
            raise self._foreign_metrics(error) from None

    def _foreign_metrics(self, error: Exception) -> JedaxError:
        return fail(
            str(self.path / "metrics.csv"),
            expected="numbers under names of columns",
            received=error,
            remedy="restore the file",
        )

    def save_checkpoint(self, state: Any, facts: Mapping[str, Any]) -> None:
        """Save a state and drop all but the newest two; `facts["evaluations"]` orders them."""
        folder = self.path / "checkpoint" / f"{facts['evaluations']:012d}"
        if not folder.exists():
            with self.writing():
                files.save_tree(folder, state, facts)
        for old in self.checkpoints()[_KEPT_CHECKPOINTS:]:
            shutil.rmtree(old)

    def checkpoints(self) -> list[Path]:
        """Return the folders of the checkpoints, newest first."""
        folder = self.path / "checkpoint"
        return sorted((f for f in folder.glob("[0-9]*") if f.is_dir()), reverse=True) if folder.is_dir() else []

    def load_checkpoint(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Return the newest whole state and its facts; None before the first checkpoint.

        A damaged or foreign one is left alone; the older one serves, and the log says so. Beside what was saved,
        the facts hold "warnings" to show and the "damaged" folders.

        Raises:
            JedaxError: There are checkpoints, but none is whole.
        """
        errors: list[JedaxError] = []
        damaged: list[Path] = []
        for folder in self.checkpoints():
            try:
                state, facts = files.load_tree(folder, like), files.read_facts(folder)
            except files.CorruptError as error:
                errors.append(error)
                damaged.append(folder)
                continue
            for error in errors:
                self.log(f"{error} Went back to the checkpoint at {facts['evaluations']} evaluations.")
            return state, {**facts, "warnings": [str(error) for error in errors], "damaged": damaged}
        if errors:
            raise JedaxError(f"{errors[0]} No older checkpoint is whole either; start anew with --overwrite.")
        return None
