"""Ctrl-C and SIGTERM: the work in progress finishes and is saved."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a signal, after all that it had done was saved; `signal` is its number."""

    def __init__(self, message: str, signal: int):
        super().__init__(message)
        self.signal = signal


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Yield a list that receives the first SIGINT and the first SIGTERM; a second of one kind has its usual effect."""
    caught: list[int] = []
    before: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        if number not in caught:
            caught.append(number)
        elif callable(before[number]):
            before[number](number, frame)
        else:  # a handler is not replaced while it runs: Python would drop a signal that is waiting for it
            signal.signal(number, before[number])
            os.kill(os.getpid(), number)

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, handle)
    except ValueError:  # only the main thread receives signals
        pass
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
