"""Experiment trackers: callbacks that send the numbers of a run elsewhere and never stop it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jedax.errors import check_choice, fail
from jedax.imports import load_object
from jedax.search.tracking.guard import About, Tracker, Tracking

__all__ = ["TRACKERS", "About", "Tracker", "Tracking", "make", "names"]

TRACKERS = {
    "mlflow": ("mlflow", "jedax.search.tracking.services:MLflow"),
    "tensorboard": ("tensorboardX", "jedax.search.tracking.services:TensorBoard"),
    "wandb": ("wandb", "jedax.search.tracking.services:WandB"),
}
"""The package and the class of each tracker by name, which is also the name of its extra."""


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
