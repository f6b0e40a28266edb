"""This machine: jobs run in this process one after the other, evaluations in worker processes.

Workers are fresh interpreters that do not import the `__main__` of the search. Not `pebble`: it imports `__main__`, its
workers outlive a killed parent, and it hides why a worker did not start.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from jedax.search.engines.base import Engine, Failure, Job, run_job
from jedax.search.progress import Progress
from jedax.search.workers.evaluator import ENVIRONMENT, Reply
from jedax.search.workers.pool import Worker
from jedax.store.environment import num_cores
from jedax.tasks.work import Work

_START_SECONDS = 120.0  # shortest timeout of a start, which imports the simulator
_EXIT_SECONDS = 0.5  # how long to wait for the exit code of a process that has closed its connection


class LocalEngine(Engine):
    """Runs everything on this machine."""

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
        return found.get("MemAvailable")

    def describe(self) -> dict[str, Any]:
        """Return the name of this machine."""
        return {"engine": "local", "node": platform.node()}


class WorkerProcess(Worker):
    """A worker in a process of this machine."""

    max_failed_starts = 3

    def __init__(self, work: Work, seconds: float):
        super().__init__(time.monotonic() + max(seconds, _START_SECONDS))
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs:
            # In a session of its own it does not receive Ctrl-C from the terminal.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "jedax.search.workers.evaluator", str(theirs.fileno())],
                stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**ENVIRONMENT, **os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        self.connection = Connection(ours.detach())
        with contextlib.suppress(OSError):
            self.connection.send((work.factory, dict(work.settings)))

    def send(self, inputs: list[tuple[np.ndarray, ...]]) -> None:
        """Send the evaluator's arguments for each chunk."""
        with contextlib.suppress(OSError):
            self.connection.send(inputs)

    @staticmethod
    def wait(workers: Sequence[WorkerProcess], seconds: float) -> list[WorkerProcess]:
        """Return the workers that have replied or died, after at most `seconds`."""
        ready = wait([worker.connection for worker in workers], seconds)
        # The connection of a dead worker stays open if a process that it started has inherited it.
        return [w for w in workers if w.connection in ready or w.process.poll() is not None]

    def receive(self) -> list[Reply] | None:
        """Return its replies; None: there are none, or the process has died."""
        try:
            return self.connection.recv() if self.connection.poll() else None
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_EXIT_SECONDS)
            return None

    def exit_reason(self) -> str:
        """Return the signal or exit code of the process; empty: it is running."""
        code = self.process.poll()
        if code is None:
            return ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"a worker {how}"

    def close(self) -> None:
        """Kill the process."""
        self.connection.close()
        self.process.kill()
        self.process.communicate()
