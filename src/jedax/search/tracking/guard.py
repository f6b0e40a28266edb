"""Trackers behind a guard: whatever they do, the run that they follow goes on.

Each tracker works in a thread of its own, which gets its calls through a queue. What it raises is reported once, and
it is called no more; one that hangs is waited for at the end only, and not for long.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jedax.search.tracking.base import About, Tracker

Note = Callable[[str], None]

# Calls that may wait for a tracker.
_MOST_WAITING = 1000
# How long a run waits at its end for trackers to finish.
_PATIENCE = 60.0


class Guarded:
    """One tracker in its thread; its methods return at once and raise nothing."""

    def __init__(self, name: str, tracker: Tracker, note: Note):
        self._name, self._tracker, self._note = name, tracker, note
        self._calls: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._error: BaseException | None = None
        self._is_off = False
        self._thread = threading.Thread(target=self._work, name=f"jedax tracker {name}", daemon=True)
        self._thread.start()

    def begin(self, about: About) -> None:
        """Call the tracker's `begin` in time."""
        self._put(lambda: self._tracker.begin(about))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Call the tracker's `log` in time."""
        self._put(lambda: self._tracker.log(step, numbers))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Call the tracker's `finish` in time; it is the last call."""
        self._put(lambda: self._tracker.finish(summary))
        if not self._is_off:
            with contextlib.suppress(queue.Full):
                self._calls.put_nowait(None)

    def wait(self, seconds: float) -> None:
        """Wait until all calls are done, or for that long."""
        if self._is_off:
            return
        self._thread.join(max(0.0, seconds))
        if self._error is not None:
            self._switch_off(f"failed ({type(self._error).__name__}: {self._error})")
        elif self._thread.is_alive():
            self._switch_off("did not finish in time")

    def _put(self, call: Callable[[], None]) -> None:
        if self._is_off:
            return
        if self._error is not None:
            self._switch_off(f"failed ({type(self._error).__name__}: {self._error})")
            return
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            self._switch_off(f"does not keep up, {_MOST_WAITING} calls wait")

    def _switch_off(self, why: str) -> None:
        self._is_off = True
        self._note(f"The tracker {self._name} {why}; the run goes on without it.")

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except BaseException as error:  # some libraries leave the program where they fail
                self._error = error
                return


class Tracking:
    """All trackers of one run.

    Args:
        trackers: By the names that messages call them.
    """

    def __init__(self, trackers: Mapping[str, Tracker]):
        self._trackers = dict(trackers)
        self._guarded: list[Guarded] = []
        self._seed = 0

    def begin(self, about: About, note: Note) -> None:
        """Let all trackers begin; `note` is told, once for each that fails, that it follows no more."""
        self._seed = int(about.config.get("run", {}).get("seed", 0))
        self._guarded = [Guarded(name, tracker, note) for name, tracker in self._trackers.items()]
        for tracker in self._guarded:
            tracker.begin(about)

    def log(self, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Let all trackers log a report: one row of metrics per replica."""
        if self._guarded:
            numbers = numbers_of(rows, self._seed)
            for tracker in self._guarded:
                tracker.log(step, numbers)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Let all trackers finish, and wait for them, but not for long."""
        for tracker in self._guarded:
            tracker.finish(summary)
        for tracker in self._guarded:
            tracker.wait(_PATIENCE / len(self._guarded))
        self._guarded = []


def numbers_of(rows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, float]:
    """Return the finite numbers of a report by name; of several replicas as in `max_fitness/seed3`.

    Args:
        rows: One row of metrics per replica.
        seed: That of the first replica.
    """
    numbers = {}
    for row in rows:
        end = "" if len(rows) == 1 else f"/seed{seed + row['replica']}"
        numbers |= {f"{name}{end}": float(value) for name, value in row.items()
                    if name not in ("evaluations", "replica") and math.isfinite(value)}  # fmt: skip
    return numbers
