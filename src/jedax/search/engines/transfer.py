"""Directories as mappings from relative path to content, for machines that do not share files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from jedax.errors import fail
from jedax.store.files import write_atomic


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a directory by their relative paths, without links and special files."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Replace a directory by these files; other processes see the old directory or the whole new one.

    Raises:
        JedaxError: A path leads out of the directory, or a file cannot be written. The old directory is unchanged.
    """
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise fail(
                "files",
                expected="paths below their own directory",
                received=repr(name),
                remedy="look at the machine that they came from",
            )
    arriving, leaving = (folder.with_name(f".{folder.name}.{state}") for state in ("arriving", "leaving"))
    shutil.rmtree(arriving, ignore_errors=True)  # of a process that was killed
    shutil.rmtree(leaving, ignore_errors=True)
    try:
        arriving.mkdir(parents=True)
        for name, content in files.items():
            (arriving / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(arriving / name, content)
    except OSError as error:
        shutil.rmtree(arriving, ignore_errors=True)
        raise fail(
            str(folder), expected="files that can be written", received=error, remedy="give the same command again"
        ) from None
    if folder.exists():
        folder.rename(leaving)
    arriving.rename(folder)
    shutil.rmtree(leaving, ignore_errors=True)
