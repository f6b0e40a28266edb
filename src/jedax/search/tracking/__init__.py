"""Experiment trackers that follow a run: off unless asked for, and never in its way."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from jedax.errors import check_choice, fail
from jedax.imports import load_object
from jedax.search.tracking.base import About, Tracker
from jedax.search.tracking.guard import Tracking

__all__ = ["TRACKERS", "About", "Tracker", "Tracking", "make", "names"]

# Name (also that of the extra), the package it needs, and the class.
TRACKERS = {
    "mlflow": ("mlflow", "jedax.search.tracking.mlflow:MLflow"),
    "tensorboard": ("tensorboardX", "jedax.search.tracking.tensorboard:TensorBoard"),
    "wandb": ("wandb", "jedax.search.tracking.wandb:WandB"),
}


def names() -> list[str]:
    """Return the names that `make` knows."""
    return sorted(TRACKERS)


def make(wanted: Sequence[str | Tracker], folder: str | Path | None) -> Tracking:
    """Return what follows a run for some trackers; nothing of theirs is imported yet.

    Args:
        wanted: Names, or trackers of one's own.
        folder: The run's directory; None: it has none.

    Raises:
        JedaxError: An unknown name, one whose package is not installed, or one that needs a directory.
    """
    trackers: dict[str, Tracker] = {}
    for entry in wanted:
        if isinstance(entry, Tracker):
            trackers[f"{type(entry).__name__} {len(trackers) + 1}"] = entry
            continue
        package, factory = TRACKERS[check_choice("track", entry, TRACKERS)]
        if importlib.util.find_spec(package) is None:
            raise fail(
                f"track {entry}",
                expected=f"the package {package}",
                received="none",
                remedy=f"install it with: pip install 'jedax[{entry}]'",
            )
        if entry == "tensorboard" and folder is None:
            raise fail("track tensorboard", expected="a run with a directory", received="none", remedy="give out")
        trackers[entry] = load_object(factory, "track")()
    return Tracking(trackers)
