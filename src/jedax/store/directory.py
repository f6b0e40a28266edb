"""The directory of a run.

| file | content |
|---|---|
| `config.yaml` | all settings; a directory without it is not a run |
| `start_genotypes.npy` | the genotypes that the run starts from, if any were given |
| `metrics.csv` | one row per report and replica |
| `history.jsonl` | the targets and ends of each loop, see `jedax.store.history` |
| `environment.json` | versions, machine, command line, what is known of the task without its code, signatures |
| `checkpoint/` | the two newest states of the search, with checksums |
| `repertoire.safetensors` | the final repertoire, the Gaussian process at all cells, and the last targets |
| `summary.json` | the outcome in numbers |
| `manifest.json` | size and checksum of each file above of a run that has ended, except checkpoints |
| `log.txt` | messages with date and time |
| `figures/` | pictures |
| `reevaluated.*` | output of `jedax reevaluate` |
| `replay/` | output of `jedax replay` |
| `report.html`, `plotly.min.js` | output of `jedax report` |
| `tensorboard/`, `wandb/` | files of these trackers |
| `.lock` | the process that writes to the directory, while it does |
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jedax.errors import JedaxError, fail, jedax_command, printable
from jedax.repertoire.cells import Cells
from jedax.store import files, guard, history, metrics, trust
from jedax.store.config import FullConfig
from jedax.store.lock import FILE as LOCK
from jedax.store.lock import Lock, unwritable_in_words
from jedax.yaml_text import read_yaml

REEVALUATED = ("reevaluated.json", "reevaluated.csv", "reevaluated.png")
FOLDERS = ("checkpoint", "figures", "replay", "tensorboard", "wandb")
"""The folders in a run's directory; none of them holds another run."""

_KEPT_CHECKPOINTS = 2
# How deep runs are searched for below a directory that is none, as in a bench, and how many of them an error names.
_DEPTH, _MOST_NAMED = 3, 3
_OUTCOME = ("repertoire.safetensors", "summary.json")
_FILES = (*guard.KEPT, *guard.REBUILT, guard.MANIFEST, "log.txt", "report.html", "plotly.min.js", *REEVALUATED)
# What a process that was killed leaves of a file or a checkpoint; other files of users may end in .tmp, too.
_TEMPORARY = re.compile(rf"\.({'|'.join(map(re.escape, _FILES))})\.\d+\.tmp|\.\d{{12}}\.tmp")
# An entry of summary.json by which a run that lost its manifest differs from one of an earlier version.
_MARK = "checksums"
# W&B puts links into its folder; nothing else reads or writes there.
_OF_WANDB = "wandb"

_T = TypeVar("_T")


def has_ended(status: object) -> bool:
    """Return whether a run with this status ended by itself: at its budget, at its goal, or by a callback."""
    return status in ("finished", "goal", "callback")


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run's, also if it has lost its settings or has something else in their place."""
    has_lost_them = (folder / guard.MANIFEST).is_file() and (folder / "checkpoint").is_dir()
    return has_lost_them or os.path.lexists(folder / "config.yaml")


def runs_below(folder: Path, depth: int = sys.maxsize) -> list[Path]:
    """Return the run directories at and up to `depth` levels below a folder, sorted; not hidden ones and links."""
    runs = []
    for name, folders, _ in os.walk(folder):
        here = Path(name)
        if found := is_run(here):
            runs.append(here)
        is_deepest = len(here.parts) - len(folder.parts) >= depth
        skipped = FOLDERS if found else ()
        folders[:] = [] if is_deepest else [f for f in folders if not f.startswith(".") and f not in skipped]
    return sorted(runs)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error says that the disk, or the user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class RunDirectory:
    """The directory of a run.

    Methods that read raise a `JedaxError` if a file is damaged. Methods that write raise one if the disk is full, or if
    the directory cannot be written any more or is gone.
    """

    def __init__(self, path: str | Path):
        if not isinstance(path, str | os.PathLike):
            raise fail("directory", expected="a path", received=repr(path), remedy="give a text or a pathlib.Path")
        self.path = Path(path)
        self._lock: Lock | None = None

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> RunDirectory:
        """Return an empty, locked directory for a new run; `overwrite` removes an earlier run, but no other files."""
        directory = cls(path)
        with unwritable_in_words(directory.path):
            directory.path.mkdir(parents=True, exist_ok=True)
        directory.lock()
        try:
            directory._empty(overwrite)
        except BaseException:
            directory.release()
            raise
        return directory

    def _empty(self, overwrite: bool) -> None:
        """Remove the files of an earlier run."""
        present = sorted(entry.name for entry in self.path.iterdir() if entry.name != LOCK)
        if present and not overwrite:
            received, remedy = f"{self.path} with {', '.join(present[:3])}", "choose another --out"
            if self._is_run_of_jedax():
                remedy = (
                    f"go on with {self.resume_command}, replace it with --overwrite (overwrite=True in Python), or "
                    "choose another --out"
                )
            raise fail("out", expected="an empty or new directory", received=received, remedy=remedy)
        visible = [name for name in present if not name.startswith(".")]
        strange = [name for name in visible if name not in _FILES + FOLDERS]
        if strange or (visible and not self._is_run_of_jedax()):
            received, remedy = f"{self.path} with {', '.join((strange or visible)[:3])}", "choose another with --out"
            raise fail("overwrite", expected="a directory that only a run wrote to", received=received, remedy=remedy)
        with self.writing():
            for name in FOLDERS:
                if (self.path / name).exists():
                    shutil.rmtree(self.path / name)
            for name in reversed(_FILES):  # the settings last: without them the rest is no run
                (self.path / name).unlink(missing_ok=True)

    def _is_run_of_jedax(self) -> bool:
        """Return whether jedax wrote the settings, or what it records of versions; others have files of these names."""
        with contextlib.suppress(OSError, ValueError):
            settings = read_yaml((self.path / "config.yaml").read_text(encoding="utf-8"), "config.yaml")
            if isinstance(settings, dict) and {"task", "method", "run"} <= settings.keys():
                return True
        with contextlib.suppress(OSError, ValueError):
            return "jedax" in files.read_json(self.path / "environment.json")
        return False

    @property
    def resume_command(self) -> str:
        """The command that goes on with the run."""
        return jedax_command("run", "--resume", self.path)

    def lock(self) -> None:
        """Keep other processes from writing here until `release`, and remove incomplete files; reading needs none."""
        self._check_plain()
        with unwritable_in_words(self.path):
            if not os.access(self.path, os.W_OK):
                raise OSError(errno.EACCES, "read-only")
            self._lock = Lock(self.path)
        with self.writing():
            for left in (*self.path.glob(".*.tmp"), *self.path.glob("checkpoint/.*.tmp")):
                if _TEMPORARY.fullmatch(left.name):
                    shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)

    def release(self) -> None:
        """Let other processes write here."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """Return the directory of an existing run; links and devices in the place of its files are refused."""
        directory = cls(path)
        if not is_run(directory.path):
            raise directory._no_run()
        directory._check_plain()
        return directory

    def _check_plain(self) -> None:
        guard.check_plain(self.path, (*_FILES, LOCK), FOLDERS, _OF_WANDB)

    def _no_run(self) -> JedaxError:
        received, remedy = str(self.path), "check the path"
        if self.path.is_file():
            remedy = "give the directory of a run, or read a saved Optimizer with jedax.Optimizer.load"
        if runs := [str(run) for run in runs_below(self.path, _DEPTH)]:
            received = f"{self.path}, with {len(runs)} of them below it"
            report = jedax_command("report", self.path)
            remedy = f"name one of those, as in {', '.join(runs[:_MOST_NAMED])}; {report} shows all"
        return fail("run directory", expected="a directory with a config.yaml", received=received, remedy=remedy)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Turn errors of the disk into one sentence."""
        self._check_in_place()
        try:
            yield
        except OSError as error:
            self._check_in_place()
            is_full = is_disk_full(error)
            expected = "room to write results" if is_full else "a directory that can be written"
            received = f"{self.path} ({error.strerror or error})"
            remedy = f"{'free some' if is_full else 'mend that'}, then {self.resume_command}"
            raise fail("out", expected=expected, received=received, remedy=remedy) from None

    def _check_in_place(self) -> None:
        if self._lock is not None and not self._lock.is_in_place():
            expected, received = (
                f"the directory {self.path}, which this run writes to",
                "none, or another one in its place",
            )
            remedy = "put it back and go on with --resume, or start anew"
            raise fail("out", expected=expected, received=received, remedy=remedy)

    def write_config(self, config: FullConfig) -> None:
        """Write the settings; a run can be resumed from then on."""
        with self.writing():
            files.write_atomic(self.path / "config.yaml", config.dump())

    def read_config(self, code: trust.Code = "never", given: Collection[str] = ()) -> FullConfig:
        """Return the settings.

        Args:
            code: When the modules outside jedax that they name are imported. Where they are not, the settings have the
                type of unknown ones, and `FullConfig.withheld` says so.
            given: Of "task" and "method", those that the user gives as an object.
        """
        path = self.checked("config.yaml")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise fail(str(path), expected="a readable file", received=error, remedy="restore it") from None
        config = FullConfig.parse(text, str(path), strict=False, imports=())
        named = [name for part in config.withheld for name in config.code[part]
                 if part not in given or (part == "method" and name != config.method)]  # fmt: skip
        if not named or not self._may_import(config, code, named):
            return config
        parts = [part for part in config.withheld if part not in given]
        return FullConfig.parse(text, str(path), strict=False, imports=parts)

    def _may_import(self, config: FullConfig, code: trust.Code, named: Sequence[str]) -> bool:
        """Return whether the code that settings name may be imported; for "ask", an error if it may not."""
        if code in ("never", "any"):
            return code == "any"
        try:
            environment = self.read_environment()
        except JedaxError:
            environment = {}
        names = [name for names in config.code.values() for name in names]
        if trust.is_own((self.path, self.path / "config.yaml"), environment, config.digest(), names):
            return True
        trust.check(self.path / "config.yaml", named)
        return True

    @property
    def start_genotypes(self) -> Path:
        """The file of the genotypes that the run starts from; it need not exist."""
        return self.checked("start_genotypes.npy")

    def read_start_genotypes(self) -> np.ndarray | None:
        """Return the genotypes that the run starts from; None: none were given."""
        path = self.start_genotypes
        try:
            return files.read_array(path) if path.exists() else None
        except ValueError as error:
            raise files.CorruptError(f"{path}: expected genotypes, got {error}; restore the file.") from None

    def write_start_genotypes(self, genotypes: np.ndarray) -> None:
        """Write the genotypes that the run starts from."""
        buffer = io.BytesIO()
        np.save(buffer, genotypes)
        with self.writing():
            files.write_atomic(self.path / "start_genotypes.npy", buffer.getvalue())

    def log(self, message: str) -> None:
        """Add a line with date and time to the log."""
        with self.writing(), open(self.path / "log.txt", "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {printable(message)}\n")

    def checked(self, name: str) -> Path:
        """Return the path of a file, which need not exist, after a check of its checksum if the run has ended."""
        guard.check_file(self.path, name)
        return self.path / name

    def add_metrics(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to the metrics, all with the same columns."""
        with self.writing():
            metrics.add(self.path / "metrics.csv", rows)

    def cut(self, evaluations: int) -> None:
        """Remove what metrics and history hold after `evaluations`; -1: all. The run has not ended any more.

        Files whose content is not that of the run are refused, because its new end would make it look right.
        """
        for name in guard.KEPT:
            self.checked(name)
        with self.writing():
            (self.path / guard.MANIFEST).unlink(missing_ok=True)
            metrics.cut(self.path / "metrics.csv", evaluations)
            history.cut(self.path / history.FILE, evaluations)

    def read_metrics(self) -> list[dict[str, float]]:
        """Return the rows of the metrics; unknown values are NaN."""
        rows = metrics.read(self.checked("metrics.csv"))
        with contextlib.suppress(files.CorruptError):  # a damaged summary is named where it is read
            summary = files.read_json(self.path / "summary.json")
            if rows and isinstance(summary, dict) and has_ended(summary.get("status")):  # for runs without a manifest
                metrics.check_end(self.path / "metrics.csv", rows, summary)
        return rows

    def read_history(self, cells: Cells, replicas: int) -> history.History | None:
        """Return the history; None: not recorded."""
        return history.read(self.checked(history.FILE), cells, replicas)

    def write_outcome(self, summary: Mapping[str, Any]) -> None:
        """Write the outcome, and then the manifest, which makes the run one that has ended."""
        with self.writing():
            files.write_json(self.path / "summary.json", {**summary, _MARK: guard.MANIFEST})
        self.seal()

    def seal(self) -> None:
        """Write the manifest of the files as they are."""
        with self.writing():
            guard.seal(self.path)

    def read_summary(self) -> dict[str, Any]:
        """Return the outcome; empty for a run that has not ended."""
        path = self.checked("summary.json")
        try:
            found = files.read_json(path) if path.exists() else {}
        except files.CorruptError as error:
            raise fail(str(path), expected="the outcome of a run", received=error, remedy="restore the file") from None
        guard.check_summary(path, found)
        was_killed = _MARK in found and not (self.path / guard.MANIFEST).exists()
        return {} if was_killed else {name: value for name, value in found.items() if name != _MARK}

    def has_lost_manifest(self) -> bool:
        """Return whether an outcome was written but its manifest is missing: no checksum covers the files."""
        with contextlib.suppress(files.CorruptError):
            found = files.read_json(self.path / "summary.json")
            return isinstance(found, dict) and _MARK in found and not (self.path / guard.MANIFEST).exists()
        return False

    def read_environment(self) -> dict[str, Any]:
        """Return versions, machine and command line; empty if they were not written."""
        path = self.checked("environment.json")
        found = files.read_json(path) if path.exists() else {}
        if not isinstance(found, dict):
            raise files.CorruptError(f"{path}: expected names and values, got other JSON; restore the file.")
        return found

    def remove_outcome(self) -> None:
        """Remove the outcome of an interrupted run that goes on; its checkpoint holds all of it."""
        with self.writing():
            for name in (*_OUTCOME, *REEVALUATED):
                (self.path / name).unlink(missing_ok=True)

    def save_checkpoint(self, state: Any, facts: Mapping[str, Any]) -> None:
        """Save a state at `facts["evaluations"]` and remove all but the newest two."""
        folder = self.path / "checkpoint" / f"{facts['evaluations']:012d}"
        with self.writing():
            if not folder.exists():
                files.save_tree(folder, state, facts)
            for old in self.checkpoints()[_KEPT_CHECKPOINTS:]:
                shutil.rmtree(old)

    def checkpoints(self) -> list[Path]:
        """Return the folders of the checkpoints, newest first."""
        return sorted((f for f in (self.path / "checkpoint").glob("[0-9]*") if f.is_dir()), reverse=True)

    def load_checkpoint(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Return the newest whole state, with the structure of `like`, and its facts; see `read_checkpoint`."""
        return self.read_checkpoint(lambda folder: files.load_tree(folder, like))

    def read_checkpoint(self, read: Callable[[Path], _T]) -> tuple[_T, dict[str, Any]] | None:
        """Return `read(folder)` of the newest whole checkpoint, and its facts; None before the first checkpoint.

        A damaged checkpoint is skipped. The facts include "warnings", a sentence per skipped checkpoint, and "damaged",
        their folders. If there are checkpoints, but none is whole, an error is raised.
        """
        damaged: dict[Path, str] = {}
        for folder in self.checkpoints():
            try:
                facts = files.read_facts(folder)
                guard.check_facts(folder, facts)
                state = read(folder)
            except files.CorruptError as error:
                damaged[folder] = str(error)
                continue
            return state, {**facts, "warnings": list(damaged.values()), "damaged": list(damaged)}
        if damaged:
            newest = next(iter(damaged.values()))
            raise JedaxError(f"{newest} No older checkpoint is whole either; start anew with --overwrite.")
        return None

    def set_aside(self, checkpoint: Path) -> None:
        """Rename a damaged checkpoint, so that a whole one can take its place."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        shutil.rmtree(aside, ignore_errors=True)
        with self.writing():
            checkpoint.rename(aside)
