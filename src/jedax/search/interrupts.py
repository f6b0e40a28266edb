"""Ctrl-C and SIGTERM: the work in progress finishes and is saved."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a signal, of number `signal`; the message says what is saved and how to continue."""

    def __init__(self, message: str, signal: int = signal.SIGINT):  # the default is for pickle
        super().__init__(message)
        self.signal = signal


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Yield a list that receives the first SIGINT and the first SIGTERM; a second of one kind has its usual effect."""
    caught: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if number not in caught:
            caught.append(number)
        else:
            _handle_as_before(before[number], number, frame)

    with handled_by(handle) as before:
        yield caught


@contextmanager
def noted() -> Iterator[list[int]]:
    """Yield a list that receives each signal for which Python raises a KeyboardInterrupt.

    Python drops that exception in callbacks of its garbage collection, such as one of JAX.
    """
    caught: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if before[number] is signal.default_int_handler:
            caught.append(number)
        _handle_as_before(before[number], number, frame)

    with handled_by(handle) as before:
        yield caught


def _handle_as_before(before: Any, number: int, frame: FrameType | None) -> None:
    if callable(before):
        before(number, frame)
    else:  # a handler is not replaced while it runs: Python would drop a signal that is waiting for it
        signal.signal(number, before)
        os.kill(os.getpid(), number)


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[dict[int, Any]]:
    """Let a function handle SIGINT and SIGTERM; yield what handled each before.

    A signal that is ignored stays so, such as SIGINT in a command that a shell script starts with `&`.
    """
    before: dict[int, Any] = {}
    with suppress(ValueError):  # only the main thread receives signals
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, one in before.items():
            signal.signal(number, one)
