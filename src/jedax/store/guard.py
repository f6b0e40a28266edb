"""Checks of what is read from a run's directory, which may come from somebody else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from jedax.errors import fail
from jedax.store.files import CorruptError

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, lt=2**31)]


class _Facts(BaseModel, strict=True):
    """The facts that a checkpoint must hold."""

    evaluations: int
    seconds: _Seconds
    phases: dict[str, _Seconds]
    status: str
    config: str
    failures: dict[str, list[_Count]] = {}


class _Summary(BaseModel, strict=True):
    """The entries of summary.json that jedax reads."""

    status: str = ""
    evaluations: int = 0
    wall_seconds: _Seconds = 0
    phase_seconds: dict[str, _Seconds] = {}


def check_plain(folder: Path, is_ours: Callable[[str], bool], unread: str) -> None:
    """Check that the files of a run are plain files in plain folders; links, pipes and devices are refused.

    Args:
        folder: The directory of the run.
        is_ours: Whether a run reads or writes the file or folder of that name in it.
        unread: A folder of it whose content jedax never reads or writes; it may hold links.
    """
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        try:
            entries = list(os.scandir(inside))
        except FileNotFoundError:  # a checkpoint that a newer one has just replaced
            continue
        for entry in entries:
            if inside == folder and not is_ours(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                if inside != folder or entry.name != unread:
                    waiting.append(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False) and os.path.lexists(entry.path):
                raise fail(
                    "run directory",
                    expected="plain files and folders, as runs leave them",
                    received=f"{entry.path}, a link or a device",
                    remedy="replace it with the file or folder that it leads to, or remove it",
                )


def check_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Check the names, types and ranges of the facts of a checkpoint."""
    try:
        wrong = "" if folder.name == f"{_Facts.model_validate(facts).evaluations:012d}" else "evaluations"
    except ValidationError as error:
        wrong = str(error.errors()[0]["loc"][0])
    if wrong:
        raise CorruptError(
            f"{folder}: expected the {wrong} of a run in its manifest, got {str(facts.get(wrong))[:80]}; "
            "the checkpoint is damaged."
        )


def check_summary(path: Path, summary: Any) -> None:
    """Check that the content of summary.json is the outcome of a run."""
    try:
        _Summary.model_validate(summary)
    except ValidationError:
        raise fail(str(path), expected="the outcome of a run", received=summary, remedy="restore the file") from None
