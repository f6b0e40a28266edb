"""What a worker process runs: `python -m jedax.workers FD`, with `FD` its end of a connection."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings
from multiprocessing.connection import Connection
from typing import Any

from jedax._checks import JedaxError
from jedax._imports import load_object


def main() -> None:
    """Make what evaluates, then evaluate one chunk of genotypes after the other until the connection ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")
    connection = Connection(int(sys.argv[1]))
    try:
        factory, settings = connection.recv()
        evaluate = None
        reply = _attempt(lambda: load_object(factory, "worker")(**settings))
        if reply[0] == "done":
            evaluate, reply = reply[1], ("ready",)
        connection.send(reply)
        while evaluate is not None:
            chunk = connection.recv()
            connection.send(_attempt(lambda chunk=chunk: evaluate(*chunk)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _attempt(work: Any) -> tuple[Any, ...]:
    """Return what some work gave, or in which way it failed: by a mistake of the user's, or by chance."""
    try:
        return "done", work()
    except JedaxError as error:
        return "mistake", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}", traceback.format_exc()


def _end_with_parent() -> None:
    """End when the parent has, even in the middle of an evaluation: it holds the other end of stdin."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
