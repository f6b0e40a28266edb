"""Experiment trackers: callbacks that send the numbers of a run elsewhere, each in a thread of its own.

A tracker that fails or hangs does not stop the run. A `concurrent.futures` executor would not do: the interpreter waits
for its threads when it exits.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jedax.errors import check_choice, fail
from jedax.imports import load_object

if TYPE_CHECKING:
    from jedax.search.loop import Report

__all__ = ["TRACKERS", "About", "Tracker", "Tracking", "make", "names"]

TRACKERS = {
    "mlflow": ("mlflow", "jedax.search.tracking.services:MLflow"),
    "tensorboard": ("tensorboardX", "jedax.search.tracking.services:TensorBoard"),
    "wandb": ("wandb", "jedax.search.tracking.services:WandB"),
}
"""The package and the class of each tracker by name, which is also the name of its extra."""

_PATIENCE = 60.0  # seconds that a run waits for all its trackers at the end


@dataclass(frozen=True)
class About:
    """What a tracker is told of a run before the first report.

    Attributes:
        title: A name for the run.
        config: All settings, as in config.yaml.
        folder: The directory of the run; None: it has none.
    """

    title: str
    config: Mapping[str, Any]
    folder: Path | None


class Tracker(Protocol):
    """A callback of a run, in a thread of its own; an error switches it off.

    If it has a method `begin(about)`, that is called before the first report, with an `About`. If it has a method
    `finish(summary)`, that is the last call, with the content of summary.json; of a run that failed, only "status".
    """

    def __call__(self, report: Report) -> object:
        """Take a report; its `state` is None."""
        ...


class Tracking:
    """All trackers of one run, each with the name that messages use, as a callback."""

    def __init__(self, trackers: Sequence[tuple[str, Tracker]]):
        self._trackers = trackers
        self._threads: list[_Thread] = []

    def begin(self, about: About, note: Callable[[str], None]) -> None:
        """Start all trackers; `note` gets one message for each that is switched off."""
        self._note = note
        self._threads = [_Thread(name, tracker) for name, tracker in self._trackers]
        self._call("begin", about)

    def __call__(self, report: Report) -> None:
        """Pass a report on."""
        self._call("__call__", dataclasses.replace(report, state=None))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Pass the outcome on, and wait for all trackers, up to a minute."""
        self._call("finish", summary)
        for thread in self._threads:
            thread.join(_PATIENCE / len(self._trackers))
        self._switch_off(is_over=True)

    def _call(self, method: str, argument: Any) -> None:
        for thread in self._threads:
            thread.calls.put((method, argument))
        self._switch_off()

    def _switch_off(self, is_over: bool = False) -> None:
        """Leave the trackers that have failed, and, when it `is_over`, those that still work."""
        for thread in [*self._threads]:
            why = "did not finish in time" if is_over and thread.is_alive() else ""
            if thread.error is not None:
                why = f"failed ({type(thread.error).__name__}: {thread.error})"
            if why:
                self._threads.remove(thread)
                self._note(f"The tracker {thread.name} {why}; the run goes on without it.")


class _Thread(threading.Thread):
    """The thread of one tracker."""

    def __init__(self, name: str, tracker: Tracker):
        super().__init__(name=name, daemon=True)
        self.calls: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._tracker = tracker
        self.start()

    def run(self) -> None:
        """Call the tracker until it has finished or failed."""
        method = ""
        try:
            while method != "finish":
                method, argument = self.calls.get()
                if hasattr(self._tracker, method):
                    getattr(self._tracker, method)(argument)
        except BaseException as error:  # some libraries raise SystemExit
            self.error = error


def names() -> list[str]:
    """Return the names that `make` knows."""
    return sorted(TRACKERS)


def make(wanted: Sequence[str | Tracker], folder: str | Path | None) -> Tracking:
    """Return the trackers of a run.

    Args:
        wanted: Names, `module:name` of a class or function of your own, or callbacks.
        folder: The directory of the run; None: it has none.

    Raises:
        JedaxError: An unknown name, a package that is not installed, an object that cannot be called, or a tracker that
            needs a directory.
    """
    return Tracking([_make(entry, folder) for entry in wanted])


def _make(entry: str | Tracker, folder: str | Path | None) -> tuple[str, Tracker]:
    found: Any = entry
    name = entry if isinstance(entry, str) else getattr(entry, "__name__", type(entry).__name__)
    if isinstance(entry, str) and ":" not in entry:
        package, place = TRACKERS[check_choice("track", entry, TRACKERS)]
        if importlib.util.find_spec(package) is None:
            raise fail(
                f"track {entry}",
                expected=f"the package {package}",
                received="none",
                remedy=f"install it with: pip install 'jedax[{entry}]'",
            )
        if entry == "tensorboard" and folder is None:
            raise fail("track tensorboard", expected="a run with a directory", received="none", remedy="give out")
        found = load_object(place, "track")
    elif isinstance(entry, str):
        found = load_object(entry, "track")
    tracker = found() if isinstance(found, type) else found
    if not callable(tracker):
        raise fail(f"track {name}", expected="a callback", received=tracker, remedy="see docs/guides/tracking.md")
    return name, tracker
