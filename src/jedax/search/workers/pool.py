"""A pool of workers that evaluates batches: it replaces workers that die or hang, and evaluates their chunks again."""

from __future__ import annotations

import abc
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.search.workers.evaluator import Reply
from jedax.tasks.work import Work

__all__ = ["FAILURES", "Stopped", "Worker", "WorkerPool"]

_ATTEMPTS = 3  # before a solution counts as failed
_POLL_SECONDS = 0.5  # longest time between two calls of `should_stop`
# Quick chunks are sent together, as many as take a worker about this long, so that communication costs little.
_LOAD_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0  # a pool of which no worker has started after this time says so

FAILURES = ("raised", "misshapen", "timed_out", "died")  # how an evaluation can end without a result


class Stopped(Exception):
    """An evaluation was abandoned because the search is to stop."""


@dataclass(frozen=True)
class Chunk:
    """Rows of a batch that are evaluated together; a chunk of attempt 0, the first, may be sent with other chunks."""

    rows: np.ndarray
    attempt: int = 0


@dataclass(eq=False)
class Worker(abc.ABC):
    """A process that evaluates chunks; see `jedax.search.workers.evaluator`."""

    deadline: float  # `time.monotonic()` by which its next reply must have arrived
    is_ready: bool = False  # whether it has started
    chunks: list[Chunk] = field(default_factory=list)  # that it is evaluating
    sent_at: float = 0.0  # `time.monotonic()` at which they were sent
    max_failed_starts: ClassVar[int]  # number of consecutive failed starts after which an evaluation gives up

    @abc.abstractmethod
    def send(self, inputs: list[tuple[np.ndarray, ...]]) -> None:
        """Send the arguments of the evaluation function for each chunk."""

    @staticmethod
    @abc.abstractmethod
    def wait(workers: Sequence[Any], seconds: float) -> list[Any]:
        """Return the workers that have replied or died, after at most `seconds`."""

    @abc.abstractmethod
    def receive(self) -> list[Reply] | None:
        """Return a reply for each chunk, or one reply to the start; None: there is none, or the worker has died."""

    @abc.abstractmethod
    def exit_reason(self) -> str:
        """Return how the worker ended; empty: it is running."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the worker at once."""


class WorkerPool:
    """Workers that evaluate one kind of work. They start with the first evaluation and end with `close`.

    Args:
        work: What they evaluate.
        size: The largest number of workers.
        seconds: How long a worker may take to reply before it is replaced.
        start_worker: Starts a worker for some work and a timeout, without waiting for it.
        note: Called with a sentence for each problem.
    """

    def __init__(
        self,
        work: Work,
        size: int,
        seconds: float,
        start_worker: Callable[[Work, float], Worker],
        note: Callable[[str], None] = lambda message: None,
    ):
        self.work, self.size, self.seconds, self.start_worker, self.note = work, size, seconds, start_worker, note
        self.should_stop: Callable[[], bool] = lambda: False  # called at least twice a second
        self.failed: dict[int, str] = {}  # rows of the last batch without a result, each with one of `FAILURES`
        self._workers: list[Any] = []
        self._waiting: deque[Chunk] = deque()
        self._results: list[tuple[np.ndarray, Any, Any]] = []
        self._reasons: Counter[str] = Counter()  # failed evaluations of a batch
        self._problems: Counter[str] = Counter()  # evaluations so far
        self._mistakes: list[str] = []
        self._has_succeeded, self._failed_starts, self._patient_until = False, 0, 0.0
        self._chunk_seconds: float | None = None

    def evaluate(self, genotypes: np.ndarray, seeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return fitness `(n,)` and descriptors `(n, d)` of a batch; NaN for solutions that failed at every attempt.

        Args:
            genotypes: `(n, params)`.
            seeds: `(n,)`, the random seed of each evaluation; None: the evaluation function takes no seeds.

        Raises:
            JedaxError: The first results all had the wrong shape, solutions have different numbers of descriptors, or
                workers do not start.
            Stopped: `should_stop` returned True. All workers have ended.
        """
        inputs = (genotypes,) if seeds is None else (genotypes, seeds)
        rows, size = np.arange(len(genotypes)), self.work.chunk
        self._waiting = deque(Chunk(rows[start : start + size]) for start in range(0, len(rows), size))
        self._results, self._reasons, self.failed = [], Counter(), {}
        self._patient_until = time.monotonic() + _PATIENCE_SECONDS
        try:
            while self._waiting or any(worker.chunks for worker in self._workers):
                if self.should_stop():
                    raise Stopped
                self._start_workers()
                for worker in self._workers:
                    if self._waiting and worker.is_ready and not worker.chunks:
                        self._send_load(worker, inputs)
                for worker in self._wait():
                    self._handle_reply(worker)
        except BaseException:
            self.close()  # workers may still be evaluating this batch
            raise
        for reason, number in self._reasons.items():
            self._note_some(f"failed {_ATTEMPTS} times: {reason}", number)
        fitness = np.full(len(rows), np.nan)
        widths = sorted({found.shape[1] for _, _, found in self._results}) or [1]
        if len(widths) > 1:
            received, remedy = " and ".join(map(str, widths)), "return the same number each time"
            raise fail("descriptors", expected="as many for every solution", received=received, remedy=remedy)
        descriptors = np.full((len(rows), widths[0]), np.nan)
        for some, its_fitness, its_descriptors in self._results:
            fitness[some], descriptors[some] = its_fitness, its_descriptors
        return fitness, descriptors

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def _start_workers(self) -> None:
        """Start a worker for each chunk that no idle worker can take."""
        idle = sum(not worker.chunks for worker in self._workers)
        for _ in range(min(self.size - len(self._workers), len(self._waiting) - idle)):
            try:
                self._workers.append(self.start_worker(self.work, self.seconds))
            except OSError as error:  # too many open files or processes
                self._do_with_fewer(error)
                break
        if time.monotonic() > self._patient_until and not any(worker.is_ready for worker in self._workers):
            self._patient_until = np.inf
            self.note(f"No worker has started for {_PATIENCE_SECONDS:g} s: is a core free for one?")

    def _do_with_fewer(self, error: OSError) -> None:
        """Keep to half of the workers, where no other can be started: the search needs files and memory, too."""
        number = len(self._workers) // 2
        if number == 0:
            raise fail(
                "workers",
                expected="a machine that can start one",
                received=error.strerror or error,
                remedy="raise the limits of this shell (see ulimit -a), or stop other programs",
            ) from None
        for worker in [worker for worker in self._workers if not worker.chunks][number - len(self._workers) :]:
            self._remove(worker)
        self.note(f"Only {number} of {self.size} workers are used: no other could be started ({error.strerror}).")
        self.size = number

    def _send_load(self, worker: Worker, inputs: tuple[np.ndarray, ...]) -> None:
        """Send a worker its next chunks: at most half of a fair share, so that no worker finishes long after others."""
        share = -(-len(self._waiting) // (2 * len(self._workers)))
        number = min(share, int(_LOAD_SECONDS / max(self._chunk_seconds or np.inf, 1e-9)))
        load = [self._waiting.popleft()]
        while len(load) < number and self._waiting and load[-1].attempt == self._waiting[0].attempt == 0:
            load.append(self._waiting.popleft())
        worker.chunks, worker.sent_at = load, time.monotonic()
        worker.deadline = worker.sent_at + self.seconds
        worker.send([tuple(np.ascontiguousarray(array[chunk.rows]) for array in inputs) for chunk in load])

    def _wait(self) -> list[Worker]:
        """Wait for a reply; return the workers that have replied, died or passed their deadline."""
        busy = [worker for worker in self._workers if worker.chunks or not worker.is_ready]
        left = min([_POLL_SECONDS, *(worker.deadline - time.monotonic() for worker in busy)])
        ready = busy[0].wait(busy, max(0.0, left)) if busy else []
        return [worker for worker in busy if worker in ready or time.monotonic() >= worker.deadline]

    def _handle_reply(self, worker: Worker) -> None:
        """Store the results of a worker, schedule again what failed, and remove a worker that died or hangs."""
        replies, reason = worker.receive(), ""
        if replies is None:
            reason = worker.exit_reason()
            if not reason and time.monotonic() < worker.deadline:
                return  # what arrived is no reply to the last request
        chunks, worker.chunks = worker.chunks, []
        if replies is None:
            kind, reason = ("died", reason) if reason else ("timed_out", self._too_long(worker))
            self._remove(worker)
            if chunks:
                self._retry(chunks, kind, reason)
            else:
                self._count_failed_start(worker, reason)
        elif worker.is_ready:
            seconds = (time.monotonic() - worker.sent_at) / len(chunks)
            self._chunk_seconds = (seconds + (self._chunk_seconds or seconds)) / 2
            for chunk, (status, value) in zip(chunks, replies, strict=True):
                self._handle_result(chunk, status, value)
        else:
            ((status, value),) = replies
            if status == "mistake":
                raise JedaxError(value)
            if status == "raised":
                self._remove(worker)
                self._count_failed_start(worker, f"the evaluation raised {value}")
            else:
                worker.is_ready, self._failed_starts = True, 0

    def _handle_result(self, chunk: Chunk, status: str, value: Any) -> None:
        if status == "ok":
            self._has_succeeded = True
            self._results.append((chunk.rows, *value))
        elif status == "raised":
            self._retry([chunk], "raised", f"the evaluation raised {value}")
        else:
            if not self._has_succeeded:  # the function may be wrong for every genotype
                self._mistakes.append(value)
                if len(self._mistakes) == _ATTEMPTS:
                    raise JedaxError(self._mistakes[0])
            self._retry([chunk], "misshapen", value.rstrip("."))

    def _too_long(self, worker: Worker) -> str:
        if worker.is_ready:
            return f"a worker took more than {self.seconds:g} s"
        return "a worker took too long to start: to import the task and to make what it needs"

    def _remove(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.close()

    def _count_failed_start(self, worker: Worker, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= worker.max_failed_starts:
            raise fail(
                "workers",
                expected="workers that start",
                received=f"{self._failed_starts} that did not ({reason})",
                remedy="see what they printed above",
            )

    def _retry(self, chunks: list[Chunk], kind: str, reason: str) -> None:
        """Schedule what a worker failed to evaluate: several chunks one by one, a single chunk row by row."""
        attempt, rows = chunks[0].attempt, np.concatenate([chunk.rows for chunk in chunks])
        if attempt == _ATTEMPTS:
            self._reasons[reason] += len(rows)
            self.failed |= dict.fromkeys(map(int, rows), kind)
            return
        if attempt <= 1:
            self._note_some(f"will be run again: {reason}", len(rows))
        if len(chunks) > 1:  # the chunk that is to blame shows when each is alone
            self._waiting.extend(Chunk(chunk.rows, 1) for chunk in chunks)
        else:
            self._waiting.extend(Chunk(row[None], max(1, attempt) + 1) for row in rows)

    def _note_some(self, problem: str, number: int) -> None:
        """Note that a number of evaluations have a problem: the first time, and when their sum has one digit more.

        Problems that differ in numbers alone count as one, since messages often name values.
        """
        key = re.sub(r"[-+.\de]", "", problem)
        before = self._problems[key]
        self._problems[key] = total = before + number
        if len(str(total)) > len(str(before)) or not before:
            so_far = f" ({total:,} evaluations so far)" if before else ""
            self.note(f"{number} evaluation{'s' * (number > 1)} {problem}{so_far}.")
