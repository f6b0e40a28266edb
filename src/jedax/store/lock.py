"""One process at a time in a directory.

The lock is the kernel's and held by an open file, so it goes with the process, however that ends: no lock is ever
stale. Network file systems that know locks hold it across machines; where there are none, such as on Windows, runs go
without. The file says who holds it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jedax.errors import JedaxError

FILE = ".lock"
_SECONDS_BETWEEN_TRIES = 0.5
_PATIENCE = 180.0  # a machine that has lost its driver takes about half a minute to notice

try:
    _fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows
    _fcntl = None


class LockedError(JedaxError):
    """Another process works on the run."""


class Lock:
    """The right to write into a directory, from now on until `release`.

    Args:
        folder: The directory.

    Raises:
        LockedError: Another process, or another run of this one, has it.
        OSError: The directory cannot be written, or is gone.
    """

    def __init__(self, folder: Path):
        self._path = folder / FILE
        self._identity = os.stat(folder)
        # Held open, for the number of a directory that is gone can be given to the next one.
        self._folder = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)) if _fcntl else None
        try:
            self._file = _take(self._path)
        except BlockingIOError as held:
            self._close_folder()
            message = f"{folder}: expected a run that no other process works on, got {held}"
            raise LockedError(f"{message}; wait until it ends, or end it.") from None
        except BaseException:
            self._close_folder()
            raise

    def is_in_place(self) -> bool:
        """Whether the directory is still the one that was locked: not removed, moved, or made anew."""
        try:
            return os.path.samestat(os.stat(self._path.parent), self._identity)
        except OSError:
            return False

    def release(self) -> None:
        """Let others have it."""
        if self.is_in_place() and _is_at(self._path, self._file):
            with contextlib.suppress(OSError):  # a file left behind locks nobody out
                self._path.unlink()
        os.close(self._file)
        self._close_folder()

    def _close_folder(self) -> None:
        if self._folder is not None:
            os.close(self._folder)


@contextlib.contextmanager
def alone_in(folder: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Have a directory to oneself as long as this lasts, also against what a lost driver left running elsewhere.

    Args:
        folder: The directory, which need not exist; the lock is a hidden file beside it.
        patience: Seconds to wait for whoever else has it.

    Raises:
        LockedError: Somebody else goes on writing there.
    """
    path = folder.with_name(f".{folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    limit = time.monotonic() + patience
    while True:
        try:
            file = _take(path)
            break
        except BlockingIOError as held:
            if time.monotonic() >= limit:
                message = f"{folder}: expected a directory that nobody else writes to, got {held}"
                raise LockedError(f"{message}; wait for the other bench to end, or choose another --out.") from None
        time.sleep(_SECONDS_BETWEEN_TRIES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(file)


def _take(path: Path) -> int:
    """Return a file, open, that this process has locked.

    Raises:
        BlockingIOError: Somebody else has; its message says who.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            _flock(file)
            if not _is_at(path, file):  # the one before has just removed it
                os.close(file)
                continue
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            with contextlib.suppress(OSError):  # a full disk; the lock holds without a name
                os.ftruncate(file, 0)
                os.write(file, json.dumps(holder).encode())
            return file
        except BlockingIOError:
            message = _holder(file)
            os.close(file)
            raise BlockingIOError(message) from None
        except BaseException:
            os.close(file)
            raise


def _is_at(path: Path, file: int) -> bool:
    """Whether an open file is what stands at a path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _flock(file: int) -> None:
    """Lock a file at once; raises BlockingIOError where somebody else has."""
    if _fcntl is None:
        return
    try:
        _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a file system that has no locks
        pass


def _holder(file: int) -> str:
    """Return who holds a lock, as its file says."""
    try:
        found = json.loads(os.pread(file, 1000, 0))
        return f"process {int(found['pid'])} on {str(found['host'])[:80]}, at work since {str(found['since'])[:40]}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process at work"
