"""What a node of a Ray cluster does with a job."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jedax._version import __version__
from jedax.errors import fail
from jedax.search.engines.base import Engine, Failure, Job, run_job
from jedax.search.engines.transfer import read_files, write_files
from jedax.store.lock import alone_in


@dataclass(frozen=True)
class JobRequest:
    """What the driver sends to a node.

    Attributes:
        job: The job, with an absolute path.
        token: Identifies this attempt. If the driver shares its files, it has written the token to `probe_of(job)`.
        files: A reference to the content of the job's directory; None: there is none.
        engine: The engine that the job uses.
        version: The driver's version of jedax.
        command: The driver's `sys.argv`.
    """

    job: Job
    token: str
    files: Any
    engine: Engine
    version: str
    command: list[str]


@dataclass(frozen=True)
class JobResult:
    """What a node returns: a failure, the files if the driver does not see them, and whether the job was stopped."""

    failure: Failure | None = None
    files: dict[str, bytes] | None = None
    was_stopped: bool = False


class Reporter:
    """A `Progress` that sends (token, numbers, note) to the queue of the driver."""

    def __init__(self, token: str, queue: Any):
        self._token, self._queue = token, queue

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Send where the run stands."""
        self._queue.put((self._token, (evaluations, per_second, best, coverage, left), None))

    def note(self, message: str) -> None:
        """Send a message."""
        self._queue.put((self._token, None, message))

    def close(self) -> None:
        """Do nothing: the driver knows when the job has ended."""


def probe_of(job: Job) -> Path:
    """Return a hidden file beside a job's directory by which a node knows whether it sees the driver's files."""
    return job.path.with_name(f".{job.path.name}.probe")


def run_on_node(request: JobRequest, queue: Any) -> JobResult:
    """Run a job in the driver's directory if this node sees it, else in a temporary one.

    Raises:
        JedaxError: This node has another version of jedax.
    """
    import ray

    if request.version != __version__:
        raise fail(
            f"node {platform.node()}",
            expected=f"jedax {request.version}, as on the node of the command",
            received=__version__,
            remedy="install the same version on all nodes",
        )
    sys.argv = request.command  # `environment.json` records it
    job = request.job
    try:
        queue.put((request.token, None, None))
        if _is_shared(request):
            with alone_in(job.path):
                return _run(job, request, queue)
        with tempfile.TemporaryDirectory(prefix="jedax-") as scratch:
            job = dataclasses.replace(job, path=Path(scratch, job.path.name))
            if request.files is not None:
                write_files(ray.get(request.files), job.path)
            return dataclasses.replace(_run(job, request, queue), files=read_files(job.path) or None)
    except KeyboardInterrupt:
        return JobResult(was_stopped=True)


def _is_shared(request: JobRequest) -> bool:
    with contextlib.suppress(OSError):
        return probe_of(request.job).read_text() == request.token
    return False


def _run(job: Job, request: JobRequest, queue: Any) -> JobResult:
    try:
        return JobResult(run_job(job, Reporter(request.token, queue), request.engine))
    except KeyboardInterrupt:
        return JobResult(was_stopped=True)
