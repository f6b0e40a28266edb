"""Directories as bytes, from a machine that does not share its files, and back into a directory."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from jedax.errors import JedaxError, fail


def pack(folder: Path) -> bytes:
    """Return the files below a directory as a tar; links and other special files are left out."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                continue
            archive.add(path, arcname=path.relative_to(folder).as_posix(), recursive=False)
    return buffer.getvalue()


def unpack(data: bytes, folder: Path) -> None:
    """Make a directory of what `pack` returned; whoever looks at it sees the old one or the whole new one.

    Args:
        data: The tar.
        folder: The directory; what it held is replaced.

    Raises:
        JedaxError: It is no tar of files whose names stay below the directory; nothing has changed then.
    """
    arriving = folder.with_name(f".{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir(parents=True)
    try:
        _write_files(data, arriving)
    except (tarfile.TarError, OSError, JedaxError) as error:
        shutil.rmtree(arriving, ignore_errors=True)
        if isinstance(error, JedaxError):
            raise
        raise fail(
            str(folder), expected="files that can be written", received=error, remedy="give the same command again"
        ) from None
    replace(arriving, folder)


def replace(arriving: Path, folder: Path) -> None:
    """Put a directory in the place of another on the same disk, which need not exist."""
    leaving = folder.with_name(f".{folder.name}.leaving")
    shutil.rmtree(leaving, ignore_errors=True)
    if folder.exists():
        folder.rename(leaving)
    arriving.rename(folder)
    shutil.rmtree(leaving, ignore_errors=True)


def _write_files(data: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not name.parts or not (member.isreg() or member.isdir()):
                raise fail(
                    "archive",
                    expected="files and folders below its own directory",
                    received=repr(member.name),
                    remedy="look at the machine that it came from",
                )
            path = folder / name
            (path if member.isdir() else path.parent).mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                with open(path, "wb") as file:
                    shutil.copyfileobj(content, file)
                    file.flush()
                    os.fsync(file.fileno())
                os.utime(path, (member.mtime, member.mtime))
