"""What a run shows while it goes on: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import io
import sys
import time
from typing import Protocol, TextIO

_SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    """Something that follows a run."""

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Take note of where the run stands: evaluations per replica, the rest over all replicas; seconds left."""
        ...

    def note(self, message: str) -> None:
        """Show a message."""
        ...

    def close(self) -> None:
        """Show nothing more."""
        ...


class Silent:
    """Shows nothing."""

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Take note of where the run stands."""

    def note(self, message: str) -> None:
        """Take note of a message."""

    def close(self) -> None:
        """Do nothing."""


class Lines:
    """A plain line now and then, for logs and pipes."""

    def __init__(self, budget: int, stream: TextIO):
        self._budget, self._stream, self._last = budget, stream, -_SECONDS_BETWEEN_LINES

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Print a line if the last one is long ago."""
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            self.note(f"{evaluations:,} of {self._budget:,} evaluations, {per_second:,.0f}/s, best {best:.2f}, "
                      f"coverage {coverage:.1%}, {clock(left)} left")  # fmt: skip

    def note(self, message: str) -> None:
        """Print a message."""
        print(message, file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing."""


class Bar:
    """A bar that stays on one line of a terminal."""

    def __init__(self, budget: int, stream: TextIO):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            console=Console(file=stream),
            auto_refresh=False,
        )
        self._budget = budget
        self._task = self._bar.add_task("", total=budget, status="compiling")
        self._bar.start()
        self._bar.refresh()

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Redraw the bar."""
        status = (f"{evaluations:,} evaluations  {per_second:,.0f}/s  best {best:.2f}  "
                  f"coverage {coverage:.1%}  {clock(left)} left")  # fmt: skip
        self._bar.update(self._task, completed=evaluations, status=status)
        self._bar.refresh()

    def note(self, message: str) -> None:
        """Print a message above the bar."""
        self._bar.console.print(message, markup=False, highlight=False)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.stop()


def clock(seconds: float) -> str:
    """Return a duration as m:ss or h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def make(budget: int, stream: TextIO | None = None) -> Progress:
    """Return a bar where the stream (stderr by default) is a terminal, else lines."""
    if stream is None:
        stream = sys.stderr
    if stream is None:  # a program without a console
        stream = io.StringIO()
    return Bar(budget, stream) if stream.isatty() else Lines(budget, stream)
