"""Worker processes on this machine.

They are started as fresh interpreters, never forked, so that JAX's threads are none of their business, and neither is
the `__main__` of the program that searches.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from jedax.search.workers.crew import Crew, Work, Worker

# A worker has at least this long to import what it needs.
_START_SECONDS = 120.0
# One that has closed its connection is about to end.
_PATIENCE = 0.5
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""One thread per worker: there is one worker per core."""


class Process(Worker):
    """A worker in a process of its own."""

    def __init__(self, work: Work, seconds: float):
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs:
            # A session of its own: Ctrl-C in the terminal reaches the search alone.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "jedax.search.workers", str(theirs.fileno())],
                stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**ENVIRONMENT, **os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        self.connection = Connection(ours.detach())
        super().__init__(time.monotonic() + max(seconds, _START_SECONDS))
        with contextlib.suppress(OSError):  # whoever died at once is noticed when it is listened to
            self.connection.send((work.factory, dict(work.settings)))

    def send(self, chunks: list[tuple[np.ndarray, ...]]) -> None:
        """Send arguments through the connection."""
        with contextlib.suppress(OSError):
            self.connection.send(chunks)

    def hear(self) -> list[tuple[Any, ...]] | None:
        """Return what the worker has sent; None: nothing, or it is gone."""
        try:
            return self.connection.recv() if self.connection.poll() else None
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_PATIENCE)
            return None

    def last_words(self) -> str:
        """Return how the process ended; empty: it goes on."""
        code = self.process.poll()
        if code is None:
            return ""
        if code < 0:
            return f"a worker was killed by {signal.Signals(-code).name}"
        return f"a worker ended with exit code {code}"

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


class Processes(Crew):
    """Processes on this machine."""

    failed_starts = 3

    def start(self, work: Work, seconds: float) -> Process:
        """Start a process."""
        return Process(work, seconds)

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Wait for their connections."""
        processes = [worker for worker in workers if isinstance(worker, Process)]
        ready = wait([worker.connection for worker in processes], seconds)
        # A dead worker's connection stays open where a process that it started has inherited it.
        return [w for w in processes if w.connection in ready or w.process.poll() is not None]
