"""The interface of an engine, and the jobs that it runs."""

from __future__ import annotations

import abc
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from jedax.errors import JedaxError
from jedax.imports import load_object
from jedax.search.progress import Progress
from jedax.search.workers.pool import Worker, WorkerPool
from jedax.store.lock import LockedError
from jedax.tasks.work import Work


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
