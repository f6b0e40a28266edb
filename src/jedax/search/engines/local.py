"""This machine: jobs run in this process one after the other, evaluations in worker processes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from jedax.search.engines.base import Engine, Failure, Job, run_job
from jedax.search.progress import Progress
from jedax.search.workers.processes import WorkerProcess
from jedax.store.environment import num_cores
from jedax.tasks.work import Work


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
