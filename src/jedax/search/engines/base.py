"""The interface of an engine, the jobs that it runs, and the engine of this machine."""

from __future__ import annotations

import abc
import contextlib
import os
import pickle
import platform
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

from jedax.errors import JedaxError
from jedax.imports import load_object
from jedax.search.progress import Progress
from jedax.search.workers.evaluator import ENVIRONMENT, Reply
from jedax.search.workers.pool import Worker, WorkerPool
from jedax.store.environment import num_cores
from jedax.store.lock import LockedError
from jedax.tasks.work import Work

_START_SECONDS = 120.0  # shortest timeout of a start, which imports the simulator
_EXIT_SECONDS = 0.5  # how long to wait for the exit code of a process that has closed its connection


@dataclass(frozen=True)
class Job:
    """A function that fills a directory.

    Attributes:
        name: The name of the job in messages.
        path: The directory. The function continues from what an earlier attempt left there.
        function: `module:function`, called as `function(path, progress, engine, **arguments)`.
        arguments: By name; they can be sent to another machine.
        uses_workers: Whether most of the work is done by workers of the engine.
    """

    name: str
    path: Path
    function: str
    arguments: Mapping[str, Any]
    uses_workers: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a job failed: a sentence, the traceback, and whether another process works on the directory instead."""

    message: str
    details: str
    taken_by_another_process: bool = False


class Engine(abc.ABC):
    """Runs jobs and workers. Use it in a `with` statement, or call `close`."""

    @abc.abstractmethod
    def run_jobs(self, jobs: Iterable[Job], follow: Callable[[Job], Progress]) -> Iterator[tuple[Job, Failure | None]]:
        """Run jobs in any order; yield each job when it has ended, with its failure or None.

        Args:
            jobs: Taken one by one, when there is room for another job.
            follow: Called when a job begins; returns what receives its progress.

        Raises:
            Interrupted: Ctrl-C or SIGTERM. All that the jobs had done is saved.
        """

    @abc.abstractmethod
    def start_worker(self, work: Work, seconds: float) -> Worker:
        """Start a worker without waiting for it; an evaluation may take so many seconds."""

    @abc.abstractmethod
    def num_workers(self) -> int:
        """Return the number of workers of a search that does not say how many."""

    @abc.abstractmethod
    def memory(self) -> int | None:
        """Return the free memory for a job in bytes; None: unknown."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the machine of this process, for `environment.json`."""

    def open_pool(
        self, work: Work, size: int | None, seconds: float, note: Callable[[str], None] = lambda message: None
    ) -> WorkerPool:
        """Return a pool of workers for one search, by default `num_workers` of them; close it after use."""
        return WorkerPool(work, size or self.num_workers(), seconds, self.start_worker, note)

    def close(self) -> None:  # noqa: B027, an engine may have nothing to release
        """Release the engine's processes and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()


def run_job(job: Job, progress: Progress, engine: Engine) -> Failure | None:
    """Run a job in this process; return its failure or None."""
    try:
        load_object(job.function, "job")(job.path, progress, engine, **job.arguments)
        return None
    except Exception as error:
        message = str(error) if isinstance(error, JedaxError) else f"{type(error).__name__}: {error}"
        return Failure(message, traceback.format_exc(), isinstance(error, LockedError))


class LocalEngine(Engine):
    """Runs everything on this machine: jobs in this process one after the other, evaluations in worker processes."""

    def run_jobs(self, jobs: Iterable[Job], follow: Callable[[Job], Progress]) -> Iterator[tuple[Job, Failure | None]]:
        """Run jobs one after the other; see `Engine.run_jobs`."""
        for job in jobs:
            yield job, run_job(job, follow(job), self)

    def start_worker(self, work: Work, seconds: float) -> WorkerProcess:
        """Start a process."""
        return WorkerProcess(work, seconds)

    def num_workers(self) -> int:
        """Return the number of cores that this process may use."""
        return num_cores()

    def memory(self) -> int | None:
        """Return the free memory in bytes; None: the system does not tell."""
        try:
            lines = Path("/proc/meminfo").read_text().splitlines()
        except OSError:
            return None
        found = {key: int(value.split()[0]) * 1024 for key, _, value in (line.partition(":") for line in lines)}
        return min((size for size in (found.get("MemAvailable"), _free_of_group()) if size is not None), default=None)

    def describe(self) -> dict[str, Any]:
        """Return the name of this machine."""
        return {"engine": "local", "node": platform.node()}


class WorkerProcess(Worker):
    """A worker in a process of this machine: a fresh interpreter that does not import the `__main__` of the search.

    Not `pebble`: it imports `__main__`, its workers outlive a killed parent, and it hides why a worker did not start.
    """

    max_failed_starts = 3

    def __init__(self, work: Work, seconds: float):
        super().__init__(time.monotonic() + max(seconds, _START_SECONDS))
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            # In a session of its own it does not receive Ctrl-C from the terminal.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "jedax.search.workers.evaluator", str(theirs.fileno())],
                stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**ENVIRONMENT, **os.environ, "PYTHONPATH": path},
            )  # fmt: skip
            ours_fd = ours.detach()
        self.connection = Connection(ours_fd)
        self._requests, self._is_closed = 0, False
        self.send((work.factory, dict(work.settings)))

    def send(self, inputs: Any) -> None:
        """Send the evaluator's arguments for each chunk, with the number of the request."""
        self._requests += 1
        with contextlib.suppress(OSError):
            self.connection.send((self._requests, inputs))

    @staticmethod
    def wait(workers: Sequence[WorkerProcess], seconds: float) -> list[WorkerProcess]:
        """Return the workers that have replied or died, after at most `seconds`."""
        ready = wait([worker.connection for worker in workers], seconds)
        # The connection of a dead worker stays open if a process that it started has inherited it.
        return [w for w in workers if w.connection in ready or w.process.poll() is not None]

    def receive(self) -> list[Reply] | None:
        """Return its replies to the last request; None: there are none, or the process has died."""
        try:
            while self.connection.poll():
                number, replies = self.connection.recv()
                if number == self._requests:  # a process that it forked can send others
                    return replies
        except (EOFError, OSError, TypeError, ValueError, pickle.UnpicklingError):
            self._is_closed = True
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_EXIT_SECONDS)
        return None

    def exit_reason(self) -> str:
        """Return the signal or exit code of the process, or that it cannot be reached; empty: it is running."""
        code = self.process.poll()
        if code is None:
            return "a worker closed its connection" if self._is_closed else ""
        if code >= 0:
            return f"a worker ended with exit code {code}"
        names = {number.value: number.name for number in signal.Signals}  # those of real-time signals are missing
        return f"a worker was killed by {names.get(-code, f'signal {-code}')}"

    def close(self) -> None:
        """Kill the process and those that it has started."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()


def _free_of_group(own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes that the control group of this process may still take, such as a container or a job of Slurm.

    `own` names the group, and `root` is where groups lie (version 2); None: no limit is known.
    """
    free = []
    try:
        group = root / next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::")).lstrip("/")
        for folder in (folder for folder in (group, *group.parents) if folder.is_relative_to(root)):
            limit = folder / "memory.max"
            if limit.exists() and (most := limit.read_text().strip()) != "max":
                parts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                used = int((folder / "memory.current").read_text()) - int(parts.get("inactive_file", 0))  # a cache
                free.append(max(0, int(most) - used))
    except (OSError, StopIteration, ValueError):
        return None
    return min(free, default=None)
