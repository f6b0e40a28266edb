"""What runs in a worker. `python -m jedax.search.workers.evaluator FD` serves the connection at file descriptor FD."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError
from jedax.imports import load_object

ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Environment of a worker: one thread, since there is one worker per core."""

_PACKAGE = os.path.join(str(Path(__file__).parents[2]), "")
Reply = tuple[str, Any]
"""("ok", result), ("mistake", the message of a `JedaxError`) or ("raised", any other exception as text)."""


class Evaluator:
    """Evaluates chunks of genotypes with the function that a factory returned."""

    def __init__(self) -> None:
        self._evaluate: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None

    def start(self, factory: str, settings: Mapping[str, Any]) -> list[Reply]:
        """Create the evaluation function, see `Work`; return one reply."""

        def create() -> None:
            self._evaluate = load_object(factory, "worker")(**settings)

        return [_reply(create)]

    def evaluate(self, inputs: Sequence[tuple[np.ndarray, ...]]) -> list[Reply]:
        """Evaluate chunks one by one; return a reply for each, whose result is fitness and descriptors."""
        assert self._evaluate is not None
        return [_reply(self._evaluate, *arguments) for arguments in inputs]


def _reply(function: Callable[..., Any], *arguments: np.ndarray) -> Reply:
    """Return the result of a function of the user's; a child that it forks and that returns from it, too, ends here."""
    worker = os.getpid()
    try:
        reply = "ok", function(*arguments)
    except JedaxError as error:
        reply = "mistake", str(error)
    except BaseException as error:  # also sys.exit and KeyboardInterrupt: the evaluation ended, the worker goes on
        reply = "raised", f"{type(error).__name__}: {error}".removesuffix(": ") + _place(error)
    if os.getpid() != worker:
        os._exit(0)
    return reply


def _place(error: BaseException) -> str:
    """Return the last line of the user's code that was running, in brackets; empty: it is not known."""
    lines = traceback.extract_tb(error.__traceback__)
    own = [line for line in lines if not line.filename.startswith(_PACKAGE) and "site-packages" not in line.filename]
    return f" ({os.path.basename(own[-1].filename)}, line {own[-1].lineno})" if own else ""


class _Output(io.FileIO):
    """A stream that drops what it cannot write, so that no `print` fails an evaluation after its reader has left."""

    def write(self, data: Any, /) -> int:
        """Write some bytes, or drop them."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def main() -> None:
    """Start an evaluator and evaluate chunks until the connection closes; a reply has the number of its request."""
    lifeline, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # programs that an evaluation starts have an empty stdin
    threading.Thread(target=_exit_with_parent, args=(lifeline,), daemon=True).start()
    warnings.simplefilter("ignore")
    for number, name in ((1, "stdout"), (2, "stderr")):
        if (stream := getattr(sys, name)) is not None:
            raw = io.BufferedWriter(_Output(number, "w", closefd=False))
            how = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, stream.errors, **how))
    connection, evaluator = Connection(int(sys.argv[1])), Evaluator()
    try:
        number, arguments = connection.recv()
        connection.send((number, evaluator.start(*arguments)))
        while True:
            number, inputs = connection.recv()
            connection.send((number, evaluator.evaluate(inputs)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _exit_with_parent(lifeline: int) -> None:
    """Exit when the parent, which holds the other end of a pipe, exits, even during an evaluation.

    Programs that the evaluation has started end, too.
    """
    while os.read(lifeline, 1024):
        pass
    if os.getpgid(0) == os.getpid():  # a group of its own
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
