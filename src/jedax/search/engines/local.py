"""This machine: errands one after the other in this process, evaluations in worker processes."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jedax.errors import JedaxError
from jedax.imports import load_object
from jedax.search.engines.base import Engine, Errand, Failure
from jedax.search.workers.crew import Work
from jedax.search.workers.pool import Pool
from jedax.store.lock import LockedError

if TYPE_CHECKING:
    from jedax.search.progress import Progress


class LocalEngine(Engine):
    """This machine, which needs nothing."""

    def open_pool(
        self,
        work: Work,
        size: int | None,
        seconds: float,
        note: Callable[[str], None] = lambda message: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Pool:
        """Return processes, one per core unless `size` says otherwise; see `Engine.open_pool`."""
        return Pool(work, size or num_cores(), seconds, note, should_stop)

    def carry_out(
        self, errands: Iterable[Errand], follow: Callable[[Errand], Progress]
    ) -> Iterator[tuple[Errand, Failure | None]]:
        """Do one errand after the other; see `Engine.carry_out`."""
        for errand in errands:
            yield errand, do(errand, follow(errand), self)

    def memory(self) -> int | None:
        """Return what is free; None where the system does not say."""
        try:
            lines = Path("/proc/meminfo").read_text().splitlines()
        except OSError:
            return None
        found = {key: int(value.split()[0]) * 1024 for key, _, value in (line.partition(":") for line in lines)}
        return found.get("MemAvailable")

    def describe(self) -> dict[str, Any]:
        """Return the name of this machine."""
        return {"engine": "local", "node": platform.node()}


def do(errand: Errand, progress: Progress, engine: Engine) -> Failure | None:
    """Do an errand in this process; return how it failed, if it did."""
    try:
        load_object(errand.function, "errand")(errand.path, progress, engine, **errand.arguments)
        return None
    except Exception as error:
        message = str(error) if isinstance(error, JedaxError) else f"{type(error).__name__}: {error}"
        return Failure(message, traceback.format_exc(), isinstance(error, LockedError))


def num_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
