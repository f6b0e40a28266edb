"""One process at a time in a directory.

The operating system holds the lock and releases it when the process ends, however it ends, so a lock is never stale.
The locked file names its holder. On file systems without locks, runs go on without one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from jedax.errors import JedaxError, fail

FILE = ".lock"
# What flock answers on file systems that have no locks.
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def unwritable_in_words(folder: Path) -> Iterator[None]:
    """Turn errors of the system where a directory is made or locked into one sentence."""
    try:
        yield
    except OSError as error:
        remedy = "choose another, or change its permissions"
        expected, received = "a directory that can be written", error.strerror
        raise fail(str(folder), expected=expected, received=received, remedy=remedy) from None


class LockedError(JedaxError):
    """Another process, or another run of this process, writes to the directory."""


class Lock:
    """The exclusive right to write to a directory, until `release` or the end of a `with` block.

    `file` is the file to lock, by default `.lock` in the directory; `patience` is how many seconds to wait for it.
    """

    def __init__(self, folder: Path, file: Path | None = None, patience: float = 0.0):
        self._path = file or folder / FILE
        self._directory = os.stat(self._path.parent)
        self._file: os.stat_result | None = None
        # filelock leaves the file in place when it releases the lock, and does not write to it. Signing the file and
        # removing it are ours; a lock that falls back to the existence of a file would outlive a killed process.
        self._lock = FileLock(
            self._path, timeout=patience, thread_local=False, fallback_to_soft=False, on_acquired=self._sign
        )
        self._path.touch()  # an OSError where no file can be, for which the lock would wait
        try:
            self._lock.acquire()
        except Timeout:
            raise LockedError(str(fail(
                str(folder),
                expected="a directory that no other process writes to",
                received=self._holder(),
                remedy="wait until that process ends, end it, or choose another directory",
            ))) from None  # fmt: skip
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    def _sign(self, file: int) -> None:
        self._file = os.fstat(file)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        with contextlib.suppress(OSError):  # on a full disk the lock has no name
            os.ftruncate(file, 0)
            os.write(file, json.dumps(holder).encode())

    def _holder(self) -> str:
        try:
            with open(self._path, "rb") as file:
                found = json.loads(file.read(1000))
            return f"process {int(found['pid'])} on {str(found['host'])[:60]}, at work since {str(found['since'])[:20]}"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return "another process"

    def is_in_place(self) -> bool:
        """Return whether the directory is the one that was locked: not removed, moved or replaced."""
        return _is(self._path.parent, self._directory)

    def release(self) -> None:
        """Remove the file and release the lock."""
        if self._file is None or _is(self._path, self._file):  # not the file of another process
            with contextlib.suppress(OSError):  # a file that stays locks nobody out
                self._path.unlink()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def _is(path: Path, known: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), known)
    except OSError:
        return False


def alone_in(folder: Path, patience: float = 180.0) -> Lock:
    """Lock a directory, which need not exist, by a hidden file beside it; wait at most `patience` seconds."""
    # A worker that has lost its driver notices that after half a minute.
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    return Lock(folder, folder.with_name(f".{folder.name}.lock"), patience)
