"""What a worker process runs: `python -m jedax.search.workers FD`, with `FD` its end of a connection."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from multiprocessing.connection import Connection

from jedax.search.workers.serving import answer, prepare


def main() -> None:
    """Make what evaluates, then evaluate what comes, chunk by chunk, until the connection ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")
    connection = Connection(int(sys.argv[1]))
    try:
        evaluate, reply = prepare(*connection.recv())
        connection.send(reply)
        while evaluate is not None:
            connection.send(answer(evaluate, connection.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _end_with_parent() -> None:
    """End when the parent has, even in the middle of an evaluation: it holds the other end of stdin."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
