"""A pool of workers: chunks of genotypes out, results back in order; a worker that dies or hangs is replaced."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.search.workers.crew import Chunk, Crew, Work, Worker
from jedax.search.workers.processes import Processes

__all__ = ["Pool", "Stopped", "Work"]

# How often a solution is tried before it counts as failed; from the second time on, alone.
_ATTEMPTS = 3
# Longest wait before a wish to stop is looked at.
_PATIENCE = 0.5
# Chunks that are quickly done are sent together, as many as take a worker about this long: then what sending costs
# does not count, and the search, which talks to all workers, is not what they wait for.
_LOAD_SECONDS = 0.05

FAILURES = ("raised", "misshapen", "timed_out", "died")
"""How an evaluation can end without a result."""


class Stopped(Exception):
    """An evaluation was given up because the search is to stop."""


@dataclass
class Pool:
    """Some workers for one kind of work; they start with the first evaluation and end with `close`.

    Attributes:
        work: What they do.
        size: The largest number of workers.
        seconds: How long a worker may take over what it is sent before it is replaced.
        note: Told what went wrong, in a sentence.
        should_stop: Asked now and then whether to give up.
        crew: Where workers come from.
        failed: Rows of the last batch that have no result, each with one of `FAILURES`.
    """

    work: Work
    size: int
    seconds: float
    note: Callable[[str], None] = lambda message: None
    should_stop: Callable[[], bool] = lambda: False
    crew: Crew = field(default_factory=Processes)
    failed: dict[int, str] = field(default_factory=dict, init=False)
    _workers: list[Any] = field(default_factory=list, init=False)
    _has_succeeded: bool = field(default=False, init=False)
    _mistakes: list[str] = field(default_factory=list, init=False)
    _failed_starts: int = field(default=0, init=False)
    _chunk_seconds: float | None = field(default=None, init=False)

    def evaluate(self, genotypes: np.ndarray, seeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate a batch.

        Args:
            genotypes: `(n, params)`.
            seeds: `(n,)`, of each evaluation's random numbers, for work that takes them; None: none are given.

        Returns:
            Fitness `(n,)` and descriptors `(n, d)`, NaN for solutions that failed again and again.

        Raises:
            JedaxError: The worker's function is not what it should be: what it gave first, again and again, was of
                the wrong shape. Or workers do not start.
            Stopped: `should_stop` said so; the workers are gone then.
        """
        inputs = (genotypes,) if seeds is None else (genotypes, seeds)
        rows, size = np.arange(len(genotypes)), self.work.chunk
        waiting = deque(Chunk(rows[start : start + size]) for start in range(0, len(rows), size))
        results: dict[int, tuple[Any, Any]] = {}
        failed: Counter[str] = Counter()
        self.failed = {}
        try:
            while waiting or any(worker.chunks for worker in self._workers):
                if self.should_stop():
                    raise Stopped
                self._staff(len(waiting))
                for worker in self._workers:
                    if worker.is_ready and not worker.chunks and waiting:
                        worker.give(self._load(waiting), inputs, self.seconds)
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
        idle = sum(not worker.chunks for worker in self._workers)
        for _ in range(min(self.size - len(self._workers), wanted - idle)):
            self._workers.append(self.crew.start(self.work, self.seconds))

    def _load(self, waiting: deque[Chunk]) -> list[Chunk]:
        """Take what a worker gets at a time: not so much that others are idle while it finishes."""
        load = [waiting.popleft()]
        if self._chunk_seconds is None or load[0].alone:
            return load
        share = -(-(len(waiting) + 1) // (2 * len(self._workers)))
        number = min(share, int(_LOAD_SECONDS / max(self._chunk_seconds, 1e-9)))
        while len(load) < number and waiting and not waiting[0].alone:
            load.append(waiting.popleft())
        return load

    def _finished(self) -> list[Worker]:
        """Wait; return the workers that have something to say, or have been silent for too long."""
        expected = [worker for worker in self._workers if worker.chunks or not worker.is_ready]
        now = time.monotonic()
        patience = min([_PATIENCE, *(worker.deadline - now for worker in expected)])
        ready = self.crew.wait(expected, max(0.0, patience))
        now = time.monotonic()
        return [worker for worker in expected if worker in ready or now >= worker.deadline]

    def _listen(self, worker: Worker, waiting: deque[Chunk], results: dict, failed: Counter[str]) -> None:
        """Take what a worker says; see to it that its chunks are done again if that is bad news."""
        replies = worker.hear()
        chunks, worker.chunks = worker.chunks, []
        if replies is None:
            words = worker.last_words()
            kind, reason = ("died", words) if words else ("timed_out", f"a worker took more than {self.seconds:g} s")
            self._dismiss(worker)
            self._make_up_for(chunks, kind, reason, waiting, failed)
            return
        if chunks:
            seconds = (time.monotonic() - worker.sent) / len(chunks)
            self._chunk_seconds = (seconds + (self._chunk_seconds or seconds)) / 2
        for place, reply in enumerate(replies):
            if reply[0] == "mistake":
                self._count_mistake(reply[1], in_evaluation=worker.is_ready)
                self._try_again(chunks[place], "misshapen", str(reply[1]).rstrip("."), waiting, failed)
            elif reply[0] == "ready":
                worker.is_ready = True
                self._failed_starts = 0
            elif not chunks:
                self._dismiss(worker)
                self._count_failed_start(f"the evaluation raised {reply[1]}")
            elif reply[0] == "done":
                self._has_succeeded = True
                for row, fitness, descriptor in zip(chunks[place].rows, *reply[1], strict=True):
                    results[int(row)] = (fitness, descriptor)
            else:
                self._try_again(chunks[place], "raised", f"the evaluation raised {reply[1]}", waiting, failed)

    def _dismiss(self, worker: Worker) -> None:
        self._workers = [other for other in self._workers if other is not worker]
        worker.close()

    def _count_mistake(self, message: str, in_evaluation: bool) -> None:
        """Give up where a mistake is in the function itself, not in what it made of one genotype."""
        if in_evaluation and self._has_succeeded:
            return
        self._mistakes.append(message)
        if not in_evaluation or len(self._mistakes) >= _ATTEMPTS:
            raise JedaxError(self._mistakes[0])

    def _count_failed_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= self.crew.failed_starts:
            raise fail(
                "workers",
                expected="workers that start",
                received=f"{self._failed_starts} that did not ({reason})",
                remedy="see what they printed above",
            )

    def _make_up_for(
        self, chunks: list[Chunk], kind: str, reason: str, waiting: deque[Chunk], failed: Counter[str]
    ) -> None:
        """See to what a worker had that is gone."""
        if not chunks:
            self._count_failed_start(reason)
        elif len(chunks) == 1:
            self._try_again(chunks[0], kind, reason, waiting, failed)
        else:  # which of them it was shows when each comes alone
            self._announce(reason, sum(len(chunk.rows) for chunk in chunks))
            waiting.extend(dataclasses.replace(chunk, alone=True) for chunk in chunks)

    def _try_again(self, chunk: Chunk, kind: str, reason: str, waiting: deque[Chunk], failed: Counter[str]) -> None:
        if chunk.attempt >= _ATTEMPTS:
            failed[reason] += len(chunk.rows)
            self.failed |= dict.fromkeys(map(int, chunk.rows), kind)
            return
        if chunk.attempt == 1:
            self._announce(reason, len(chunk.rows))
        # Alone, one bad solution cannot spoil the others.
        waiting.extend(Chunk(row[None], chunk.attempt + 1, alone=True) for row in chunk.rows)

    def _announce(self, reason: str, number: int) -> None:
        self.note(f"{reason[0].upper()}{reason[1:]}; {number} evaluation{'s' * (number > 1)} will be run again.")


def _gather(number: int, results: Mapping[int, tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return results in the order of the batch, NaN where there are none."""
    num_descriptors = len(next(iter(results.values()))[1]) if results else 1
    fitness = np.full(number, np.nan, np.float32)
    descriptors = np.full((number, num_descriptors), np.nan, np.float32)
    for row, (its_fitness, its_descriptor) in results.items():
        fitness[row], descriptors[row] = its_fitness, its_descriptor
    return fitness, descriptors
