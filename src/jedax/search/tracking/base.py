"""What a tracker is: something outside jedax that keeps the numbers of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class About:
    """What a tracker is told of a run before its first numbers.

    Attributes:
        title: What to call it.
        config: All settings, as in config.yaml.
        folder: The run's directory; None: it has none.
    """

    title: str
    config: Mapping[str, Any]
    folder: Path | None


@runtime_checkable
class Tracker(Protocol):
    """Keeps the numbers of one run. Called by one thread: `begin`, then `log` at each report, then `finish`.

    What it raises switches it off; the run goes on.
    """

    def begin(self, about: About) -> None:
        """Get ready."""
        ...

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a report, all finite; `step` is the evaluations done by each replica."""
        ...

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Take the outcome, as in summary.json, and close; of a run that failed only "status" is known."""
        ...


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one level, with names such as `run.seed`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found
