"""Being stopped from outside: Ctrl-C and SIGTERM let the work in hand finish."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A run was stopped from outside, after all it had done was saved.

    Attributes:
        signal: The number of the signal that stopped it.
    """

    def __init__(self, message: str, signal: int):
        super().__init__(message)
        self.signal = signal


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Catch SIGINT and SIGTERM once: note the signal and let the work finish. The second one strikes."""
    caught: list[int] = []
    before: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, handle)
    except ValueError:  # not in the main thread: signals are somebody else's
        pass
    try:
        yield caught
    finally:
        restore()
