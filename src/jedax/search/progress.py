"""The progress of a run: one line that is redrawn on a terminal, elsewhere a new line now and then."""

from __future__ import annotations

import io
import logging
import shutil
import sys
import time
from typing import Protocol, TextIO, runtime_checkable

from jedax.errors import printable

_SECONDS_BETWEEN_LINES = 10.0
_BAR_WIDTH = 20
_CLEAR = "\r\x1b[K"  # clears the line of a terminal


@runtime_checkable
class Progress(Protocol):
    """Follows a run."""

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float | None) -> None:
        """Receive where the run stands.

        Args:
            evaluations: Of each replica.
            per_second: Evaluations of all replicas per second of work, without compilation.
            best: The best fitness of all replicas.
            coverage: The share of filled cells.
            left: Seconds of work left; None: not known yet.
        """

    def note(self, message: str) -> None:
        """Show a message."""

    def close(self) -> None:
        """End the display."""


class Silent(Progress):
    """Shows nothing."""


class Logged(Silent):
    """Shows nothing but messages, as warnings of the logger "jedax", which Python prints unless it is configured."""

    def note(self, message: str) -> None:
        """Log a message."""
        logging.getLogger("jedax").warning(printable(message, keep="\n"))


class StatusLine:
    """A line with a bar that is redrawn on a terminal; on other streams a new line at most every ten seconds."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self._is_terminal = stream.isatty()
        self._is_lost = False
        self._last = -_SECONDS_BETWEEN_LINES
        self._text = ""

    def show(self, share: float, text: str) -> None:
        """Show the share that is done, 0 to 1, and a text."""
        text = printable(text)
        now = time.monotonic()
        if not self._is_terminal:
            if now - self._last >= _SECONDS_BETWEEN_LINES:
                self._last = now
                self._write(f"{text}\n")
            return
        filled = round(_BAR_WIDTH * min(max(share, 0.0), 1.0))
        line = f"{share:4.0%} {'#' * filled}{'.' * (_BAR_WIDTH - filled)}  {text}"
        self._text = line[: shutil.get_terminal_size().columns - 1]
        self._write(_CLEAR + self._text)

    def note(self, message: str) -> None:
        """Print a message above the line."""
        message = printable(message, keep="\n")
        if self._is_terminal:
            message = f"{_CLEAR}{message}\n{_CLEAR}{self._text}"
        self._write(message if self._is_terminal else f"{message}\n")

    def close(self) -> None:
        """Leave the line as it is and continue below it."""
        if self._is_terminal and self._text:
            self._write("\n")
            self._text = ""

    def _write(self, text: str) -> None:
        """Write and flush; a stream that cannot be written any more, such as a closed pipe, does not end the run."""
        if not self._is_lost:
            try:
                self.stream.write(text)
                self.stream.flush()
            except (OSError, ValueError):
                self._is_lost = True


class RunProgress(StatusLine):
    """The progress of one run on stderr."""

    def __init__(self, budget: int):
        super().__init__(sys.stderr or io.StringIO())  # stderr is None in programs without a console
        self._budget = budget

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float | None) -> None:
        """Show where the run stands."""
        text = (f"{evaluations:,} of {self._budget:,} evaluations, {per_second:,.0f}/s, best {best:.6g}, "
                f"coverage {coverage:.1%}{left_text(left)}")  # fmt: skip
        self.show(evaluations / self._budget, text)


def left_text(seconds: float | None) -> str:
    """Return how the line of a progress ends: the time left, or nothing where it is not known."""
    return "" if seconds is None else f", {clock(seconds)} left"


def clock(seconds: float) -> str:
    """Return a duration as m:ss or h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
