"""What comes from a disk is not believed: directories that lead elsewhere, facts that no run has saved."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jedax.errors import fail
from jedax.store.files import CorruptError


def check_plain(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Check that nothing in a run's directory leads elsewhere: one from somebody else may hold links, or pipes.

    Args:
        folder: The directory.
        is_ours: Whether a run could read or write the file or folder of that name in it.

    Raises:
        JedaxError: Such a file or folder, or something in such a folder, is neither a file nor a folder.
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
                waiting.append(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False) and os.path.lexists(entry.path):
                raise fail(
                    "run directory",
                    expected="plain files and folders, as runs leave them",
                    received=f"{entry.path}, a link or a device",
                    remedy="put what it leads to in its place, or remove it",
                )


def check_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Check what a checkpoint says of itself.

    Raises:
        CorruptError: Something is missing, or is not what it should be.
    """
    evaluations = facts.get("evaluations")
    fits = {
        "evaluations": type(evaluations) is int and folder.name == f"{evaluations:012d}",
        "seconds": _is_duration(facts.get("seconds")),
        "phases": _are_durations(facts.get("phases")),
        "status": isinstance(facts.get("status"), str),
        "config": isinstance(facts.get("config"), str),
        "failures": "failures" not in facts or _is_table(facts["failures"]),
    }
    wrong = next((name for name, fine in fits.items() if not fine), None)
    if wrong is not None:
        raise CorruptError(
            f"{folder}: expected the {wrong} of a run in its manifest, got {str(facts.get(wrong))[:80]}; "
            "the checkpoint is damaged."
        )


def check_summary(path: Path, summary: Any) -> None:
    """Check the outcome of a run, as far as anything is made of it.

    Raises:
        JedaxError: It is no outcome of a run.
    """
    fits = isinstance(summary, dict) and (
        isinstance(summary.get("status", ""), str)
        and type(summary.get("evaluations", 0)) is int
        and _is_duration(summary.get("wall_seconds", 0))
        and _are_durations(summary.get("phase_seconds", {}))
    )
    if not fits:
        raise fail(str(path), expected="the outcome of a run", received=summary, remedy="restore the file")


def _are_durations(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_duration(seconds) for seconds in value.values())


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _is_table(value: Any) -> bool:
    """Whether a value is names, each with a count per replica."""
    return isinstance(value, dict) and all(
        isinstance(counts, list) and all(type(count) is int and 0 <= count < 2**31 for count in counts)
        for counts in value.values()
    )
