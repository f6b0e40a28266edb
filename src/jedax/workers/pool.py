"""Worker processes: chunks of genotypes out, results back; a worker that dies or hangs is replaced.

Workers are started as fresh interpreters, never forked, so that JAX's threads are none of their business, and
neither is the `__main__` of the program that searches.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from jedax._checks import JedaxError, fail

# How often a solution is tried before it counts as failed; from the second time on, alone.
_ATTEMPTS = 3
# A worker has at least this long to import what it needs.
_START_SECONDS = 120.0
# Workers that may fail to start, one after the other.
_FAILED_STARTS = 3
# Longest wait before a wish to stop is looked at.
_PATIENCE = 0.5
# One thread per worker: there is one worker per core.
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

FAILURES = ("raised", "misshapen", "timed_out", "died")
"""How an evaluation can end without a result."""


class Stopped(Exception):
    """An evaluation was given up because the search is to stop."""


@dataclass(frozen=True)
class Work:
    """What a worker does.

    Attributes:
        factory: `module:name` of what makes, from the settings, a function from genotypes `(n, params)` to fitness
            `(n,)` and descriptors `(n, d)`.
        settings: Arguments of the factory by name.
        chunk: Genotypes that a worker gets at a time. What a chunk holds does not depend on the number of workers.
    """

    factory: str
    settings: Mapping[str, Any]
    chunk: int


@dataclass
class _Chunk:
    rows: np.ndarray
    attempt: int = 1


class _Worker:
    """One process, and the chunk it works on."""

    def __init__(self, work: Work, seconds: float):
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs:
            # A session of its own: Ctrl-C in the terminal reaches the search alone.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "jedax.workers", str(theirs.fileno())],
                stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**_ENVIRONMENT, **os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        self.connection = Connection(ours.detach())
        self.chunk: _Chunk | None = None
        self.is_ready = False
        self.deadline = time.monotonic() + max(seconds, _START_SECONDS)
        with contextlib.suppress(OSError):  # whoever died at once is noticed when it is listened to
            self.connection.send((work.factory, dict(work.settings)))

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def hear(self) -> tuple[Any, ...] | None:
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


@dataclass
class Pool:
    """Some workers for one kind of work; they start with the first evaluation and end with `close`.

    Attributes:
        work: What they do.
        size: The largest number of workers.
        seconds: How long a worker may take over a chunk before it is replaced.
        note: Told what went wrong, in a sentence.
        should_stop: Asked now and then whether to give up.
        failed: Rows of the last batch that have no result, each with one of `FAILURES`.
    """

    work: Work
    size: int
    seconds: float
    note: Callable[[str], None] = lambda message: None
    should_stop: Callable[[], bool] = lambda: False
    failed: dict[int, str] = field(default_factory=dict, init=False)
    _workers: list[_Worker] = field(default_factory=list, init=False)
    _has_succeeded: bool = field(default=False, init=False)
    _mistakes: list[str] = field(default_factory=list, init=False)
    _failed_starts: int = field(default=0, init=False)

    def evaluate(self, genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate a batch.

        Args:
            genotypes: `(n, params)`.

        Returns:
            Fitness `(n,)` and descriptors `(n, d)`, NaN for solutions that failed again and again.

        Raises:
            JedaxError: The worker's function is not what it should be: what it gave first, again and again, was of
                the wrong shape. Or workers do not start.
            Stopped: `should_stop` said so; the workers are gone then.
        """
        rows, size = np.arange(len(genotypes)), self.work.chunk
        waiting = deque(_Chunk(rows[start : start + size]) for start in range(0, len(rows), size))
        results: dict[int, tuple[Any, Any]] = {}
        failed: Counter[str] = Counter()
        self.failed = {}
        try:
            while waiting or any(worker.chunk for worker in self._workers):
                if self.should_stop():
                    raise Stopped
                self._staff(len(waiting))
                for worker in self._workers:
                    if worker.is_ready and worker.chunk is None and waiting:
                        self._send(worker, waiting.popleft(), genotypes)
                for worker in self._finished():
                    self._listen(worker, waiting, results, failed)
        except BaseException:
            self.close()  # what workers are still busy with belongs to nobody
            raise
        for reason, number in failed.items():
            self.note(f"{number} evaluation{'s' * (number > 1)} failed {_ATTEMPTS} times: {reason}.")
        return _gather(len(genotypes), results)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def _staff(self, wanted: int) -> None:
        """Start workers as long as there is more to do than hands to do it."""
        idle = sum(worker.chunk is None for worker in self._workers)
        for _ in range(min(self.size - len(self._workers), wanted - idle)):
            self._workers.append(_Worker(self.work, self.seconds))

    def _send(self, worker: _Worker, chunk: _Chunk, genotypes: np.ndarray) -> None:
        worker.chunk = chunk
        worker.deadline = time.monotonic() + self.seconds
        with contextlib.suppress(OSError):  # noticed when it is listened to
            worker.connection.send(np.ascontiguousarray(genotypes[chunk.rows]))

    def _finished(self) -> list[_Worker]:
        """Wait; return the workers that have something to say, or have been silent for too long."""
        expected = [worker for worker in self._workers if worker.chunk is not None or not worker.is_ready]
        now = time.monotonic()
        patience = min([_PATIENCE, *(worker.deadline - now for worker in expected)])
        ready = wait([worker.connection for worker in expected], max(0.0, patience))
        now = time.monotonic()
        # A dead worker's connection stays open where a process that it started has inherited it.
        return [
            worker
            for worker in expected
            if worker.connection in ready or now >= worker.deadline or worker.process.poll() is not None
        ]

    def _listen(self, worker: _Worker, waiting: deque[_Chunk], results: dict, failed: Counter[str]) -> None:
        """Take what a worker says; see to it that its chunk is done again if that is bad news."""
        message = worker.hear()
        words = worker.last_words()
        kind, reason = ("died", words) if words else ("timed_out", f"a worker took more than {self.seconds:g} s")
        if message is not None and message[0] == "mistake":
            kind, reason = "misshapen", str(message[1]).rstrip(".")
            self._count_mistake(message[1], in_evaluation=worker.is_ready)
        if message is not None and message[0] == "ready":
            worker.is_ready = True
            self._failed_starts = 0
            return
        chunk, worker.chunk = worker.chunk, None
        if message is not None and message[0] == "done" and chunk is not None:
            self._has_succeeded = True
            fitness, descriptors = message[1]
            for place, row in enumerate(chunk.rows):
                results[int(row)] = (fitness[place], descriptors[place])
            return
        if message is None or chunk is None:
            self._workers.remove(worker)
            worker.close()
        if message is not None and message[0] == "error":
            kind, reason = "raised", f"the evaluation raised {message[1]}"
        if chunk is None:
            self._count_failed_start(reason)
        else:
            self._try_again(chunk, kind, reason, waiting, failed)

    def _count_mistake(self, message: str, in_evaluation: bool) -> None:
        """Give up where a mistake is in the function itself, not in what it made of one genotype."""
        if in_evaluation and self._has_succeeded:
            return
        self._mistakes.append(message)
        if not in_evaluation or len(self._mistakes) >= _ATTEMPTS:
            raise JedaxError(self._mistakes[0])

    def _count_failed_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= _FAILED_STARTS:
            raise fail(
                "workers",
                expected="worker processes that start",
                received=f"{self._failed_starts} that did not ({reason})",
                remedy="see what they printed above",
            )

    def _try_again(self, chunk: _Chunk, kind: str, reason: str, waiting: deque[_Chunk], failed: Counter[str]) -> None:
        if chunk.attempt >= _ATTEMPTS:
            failed[reason] += len(chunk.rows)
            self.failed |= dict.fromkeys(map(int, chunk.rows), kind)
            return
        if chunk.attempt == 1:
            number = len(chunk.rows)
            self.note(f"{reason[0].upper()}{reason[1:]}; {number} evaluation{'s' * (number > 1)} will be run again.")
        # Alone, one bad solution cannot spoil the others.
        waiting.extend(_Chunk(chunk.rows[place : place + 1], chunk.attempt + 1) for place in range(len(chunk.rows)))


def _gather(number: int, results: Mapping[int, tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return results in the order of the batch, NaN where there are none."""
    num_descriptors = len(next(iter(results.values()))[1]) if results else 1
    fitness = np.full(number, np.nan, np.float32)
    descriptors = np.full((number, num_descriptors), np.nan, np.float32)
    for row, (its_fitness, its_descriptor) in results.items():
        fitness[row], descriptors[row] = its_fitness, its_descriptor
    return fitness, descriptors
