"""Checks of what is read from a run's directory: plain files, the content that was written, and values that fit.

`manifest.json` holds size and checksum of each file of a run that has ended. It is written last, and a run that goes on
removes it first, so that files that differ from it are damaged. Runs of earlier versions have none.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from jedax.errors import fail, jedax_command
from jedax.store.files import CorruptError, digest, other_format, read_json, write_json

MANIFEST = "manifest.json"
KEPT = ("config.yaml", "start_genotypes.npy", "metrics.csv", "history.jsonl")
"""Files that the checkpoint of a run cannot replace."""
REBUILT = ("environment.json", "repertoire.safetensors", "summary.json")
"""Files that `jedax run --resume` writes anew, also for a run that has ended."""

_FORMAT = 1
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, lt=2**31)]


class _Facts(BaseModel, strict=True):
    """The facts that a checkpoint must hold."""

    evaluations: _Count
    seconds: _Seconds
    phases: dict[str, _Seconds]
    status: str
    config: str
    failures: dict[str, list[_Count]] = {}
    arrivals: list[Annotated[int, Field(ge=-1, lt=2**31)]] = []


class _Summary(BaseModel, strict=True):
    """The entries of summary.json that jedax reads."""

    status: str = ""
    evaluations: _Count = 0
    wall_seconds: _Seconds = 0
    phase_seconds: dict[str, _Seconds] = {}


class _Entry(BaseModel, strict=True, extra="forbid"):
    """A file in the manifest."""

    size: int
    sha256: str


class _Manifest(BaseModel, strict=True, extra="forbid"):
    """The content of manifest.json; "sha256" is the checksum of "files"."""

    format: int
    files: dict[str, _Entry]
    sha256: str


def seal(folder: Path) -> None:
    """Flush the files of a run to disk and write its manifest."""
    entries = {}
    for name in (*KEPT, *REBUILT):
        if (folder / name).is_file():
            with open(folder / name, "rb") as file:
                if os.name != "nt":  # Windows flushes only files that are open for writing
                    os.fsync(file.fileno())
                entries[name] = {"size": os.fstat(file.fileno()).st_size, "sha256": _checksum(file)}
    write_json(folder / MANIFEST, {"format": _FORMAT, "files": entries, "sha256": digest(entries)})


def _checksum(file: Any) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(folder: Path) -> dict[str, _Entry] | None:
    """Return size and checksum of each file of a run by name; None if the run has not ended or has no manifest."""
    path = folder / MANIFEST
    if not os.path.lexists(path):
        return None
    found = read_json(path)
    number = found.get("format") if isinstance(found, dict) else None
    if isinstance(number, int) and number > _FORMAT:
        raise other_format(path, _FORMAT, str(number)[:20])
    try:
        manifest = _Manifest.model_validate(found)
    except ValidationError:
        manifest = None
    if manifest is None or digest(found["files"]) != manifest.sha256:
        raise CorruptError(
            f"{path}: expected checksums of the run's files, got damaged ones; "
            f"restore it, or remove it and give: {jedax_command('run', '--resume', folder)}."
        )
    return manifest.files


def check_file(folder: Path, name: str) -> None:
    """Check that a file of a run is as the run wrote it, if the run has a manifest, and that it can be read."""
    path = folder / name
    if os.path.lexists(path) and not path.is_file():
        raise CorruptError(f"{path}: expected a file, got a folder or a device; remove it.")
    manifest = read_manifest(folder)
    while manifest is not None and (wrong := difference(path, manifest.get(name))):
        before, manifest = manifest, read_manifest(folder)
        if manifest == before:  # else the run has gone on meanwhile
            remedy = f"restore it, or see: {jedax_command('doctor', folder)}"
            if name in REBUILT:
                remedy = f"rebuild it with: {jedax_command('run', '--resume', folder)}"
            raise CorruptError(f"{path}: expected the file that the run wrote, got {wrong}; {remedy}.")


def difference(path: Path, entry: _Entry | None) -> str:
    """Return how a file differs from its entry in the manifest, in words; empty: it does not."""
    if not path.is_file():
        return "" if entry is None else "none"
    if entry is None:
        return "one that the run did not write"
    try:
        with open(path, "rb") as file:
            if (size := os.fstat(file.fileno()).st_size) != entry.size:
                return f"{size:,} bytes instead of {entry.size:,}"
            return "" if _checksum(file) == entry.sha256 else "one with another checksum"
    except OSError as error:  # bad sectors, or no right to read it
        return f"one that cannot be read ({error.strerror})"


def check_plain(folder: Path, names: Collection[str], folders: Collection[str], unread: str = "") -> None:
    """Check that the files of a run are plain files in plain folders; links, pipes and devices are refused.

    Args:
        folder: The directory of the run.
        names: The files in it that a run reads or writes.
        folders: The folders in it that a run reads or writes, with everything below them.
        unread: One of the folders, whose content jedax never reads or writes; it may hold links.
    """
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        try:
            entries = list(os.scandir(inside))
        except FileNotFoundError:  # a checkpoint that a newer one has just replaced
            continue
        for entry in entries:
            is_top = inside == folder
            temporary = entry.name.startswith(".") and entry.name.endswith(".tmp")
            if is_top and not temporary and entry.name not in names and entry.name not in folders:
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except FileNotFoundError:
                continue
            received = "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "a link or a device"
            if not received and is_top and not temporary and stat.S_ISDIR(mode) != (entry.name in folders):
                received = "a folder" if stat.S_ISDIR(mode) else "a file"
            if received:
                raise fail(
                    "run directory",
                    expected="plain files and folders, as runs leave them",
                    received=f"{entry.path}, {received}",
                    remedy="replace it with the file or folder that belongs there, or remove it",
                )
            if stat.S_ISDIR(mode) and not (is_top and entry.name == unread):
                waiting.append(Path(entry.path))


def check_no_links(given: Path, *names: str) -> Path:
    """Return the path `given/name/...`; links in the place of the names are refused, as `given` alone is the user's."""
    path = given
    for name in names:
        path = path / name
        if path.is_symlink():
            raise fail(
                "out", expected="folders", received=f"{path}, a link", remedy="remove it, or choose another --out"
            )
    return path


def check_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Check the names, types and ranges of the facts of a checkpoint."""
    try:
        wrong = "" if folder.name == f"{_Facts.model_validate(facts).evaluations:012d}" else "evaluations"
    except (ValidationError, OverflowError) as error:
        wrong = str(error.errors()[0]["loc"][0]) if isinstance(error, ValidationError) else "numbers"
    if wrong:
        raise CorruptError(
            f"{folder}: expected the {wrong} of a run in its manifest, got {str(facts.get(wrong))[:80]}; "
            "the checkpoint is damaged."
        )


def check_summary(path: Path, summary: Any) -> None:
    """Check that the content of summary.json is the outcome of a run."""
    try:
        _Summary.model_validate(summary)
    except (ValidationError, OverflowError):
        raise fail(str(path), expected="the outcome of a run", received=summary, remedy="restore the file") from None
