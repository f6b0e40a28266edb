"""What a node of a Ray cluster does with a job, and how files travel between machines that do not share them."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jedax._version import __version__
from jedax.errors import fail
from jedax.search.engines.base import Engine, Failure, Job, run_job
from jedax.search.progress import Silent
from jedax.store.files import replacing, write_atomic
from jedax.store.lock import alone_in


@dataclass(frozen=True)
class JobResult:
    """What a node returns: a failure, the files if the driver does not see them, and whether the job was stopped."""

    failure: Failure | None = None
    files: dict[str, bytes] | None = None
    was_stopped: bool = False


class Reporter(Silent):
    """A `Progress` that sends (token, numbers, note) to the queue of the driver."""

    def __init__(self, token: str, queue: Any):
        self._token, self._queue = token, queue

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float | None) -> None:
        """Send where the run stands."""
        self._queue.put((self._token, (evaluations, per_second, best, coverage, left), None))

    def note(self, message: str) -> None:
        """Send a message."""
        self._queue.put((self._token, None, message))


def probe_of(job: Job) -> Path:
    """Return a hidden file beside a job's directory by which a node knows whether it sees the driver's files."""
    return job.path.with_name(f".{job.path.name}.probe")


def run_on_node(
    job: Job, token: str, files: list[Any], engine: Engine, version: str, command: list[str], queue: Any
) -> JobResult:
    """Run a job in the driver's directory if this node sees it, else in a temporary one.

    Args:
        job: The job, with an absolute path.
        token: Identifies this attempt. If the driver shares its files, it has written the token to `probe_of(job)`.
        files: A reference to the content of the job's directory; None: there is none.
        engine: The engine that the job uses.
        version: The driver's version of jedax.
        command: The driver's `sys.argv`.
        queue: Receives the progress.
    """
    import ray

    if version != __version__:
        raise fail(
            f"node {platform.node()}",
            expected=f"jedax {version}, as on the node of the command",
            received=__version__,
            remedy="install the same version on all nodes",
        )
    sys.argv = command  # `environment.json` records it
    reporter = Reporter(token, queue)
    try:
        queue.put((token, None, None))
        probe = ""
        with contextlib.suppress(OSError):
            probe = probe_of(job).read_text()
        if probe == token:
            with alone_in(job.path):
                return JobResult(run_job(job, reporter, engine))
        with tempfile.TemporaryDirectory(prefix="jedax-") as scratch:
            job = dataclasses.replace(job, path=Path(scratch, job.path.name))
            if files[0] is not None:
                write_files(ray.get(files[0]), job.path)
            try:
                result = JobResult(run_job(job, reporter, engine))
            except KeyboardInterrupt:
                result = JobResult(was_stopped=True)
            return dataclasses.replace(result, files=read_files(job.path) or None)
    except KeyboardInterrupt:
        return JobResult(was_stopped=True)


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a directory by their relative paths, without links and special files."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Replace a directory by these files: as a whole, or after an error not at all."""
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise fail(
                "files",
                expected="paths below their own directory",
                received=repr(name),
                remedy="look at the machine that they came from",
            )
    try:
        with replacing(folder) as arriving:
            arriving.mkdir(parents=True)
            for name, content in files.items():
                (arriving / name).parent.mkdir(parents=True, exist_ok=True)
                write_atomic(arriving / name, content)
    except OSError as error:
        raise fail(
            str(folder), expected="files that can be written", received=error, remedy="give the same command again"
        ) from None
