"""A directory to oneself, on whatever machine: what a lost driver left running may still write to it for a while."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from jedax._checks import fail

_SECONDS_BETWEEN_TRIES = 0.5
# A machine that has lost its driver takes about half a minute to notice.
_PATIENCE = 180.0


@contextlib.contextmanager
def alone_in(folder: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Have a directory to oneself as long as this lasts; file systems without locks are taken as they are.

    Args:
        folder: The directory, which need not exist; the lock is a hidden file beside it.
        patience: Seconds to wait for whoever else has it.

    Raises:
        JedaxError: Somebody else goes on writing there.
    """
    path = folder.with_name(f".{folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    limit = time.monotonic() + patience
    handle = _locked(path)
    while handle is None:
        if time.monotonic() >= limit:
            raise fail(
                str(folder),
                expected="a directory that nobody else writes to",
                received=f"one that another process has held for {patience:.0f} s",
                remedy="wait for the other bench to end, or choose another --out",
            )
        time.sleep(_SECONDS_BETWEEN_TRIES)
        handle = _locked(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _locked(path: Path) -> int | None:
    """Return a file that this process has locked; None: somebody else has."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        import fcntl

        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return handle
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            return handle
        os.close(handle)
        return None
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    os.close(handle)  # whoever had it has removed the file that is locked here
    return None
