"""`jedax view`: the page of a run, served on this machine alone, which follows the run while it goes on."""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jedax.errors import JedaxError, fail
from jedax.report import pages
from jedax.report.episodes import episode
from jedax.report.run_data import head_of, run_data
from jedax.store.directory import RunDirectory
from jedax.store.guard import KEPT, MANIFEST, REBUILT
from jedax.store.run import load

HOST = "127.0.0.1"

_PAUSE = 2.0  # seconds between two questions of the page
_IDLE = 3  # the run is read anew only after so many times what the last reading took
_TRIES = 4
_WATCHED = (*KEPT, *REBUILT, MANIFEST)


class View:
    """What is shown of a run, read anew when its directory changes."""

    def __init__(self, directory: str | Path, trust: bool = False):
        self.directory = RunDirectory.open(directory).path
        self._lock, self._acting = threading.Lock(), threading.Lock()
        self._stamp: str | None = None
        self._next, self._trust = 0.0, trust
        self._update: dict[str, Any] = {}

    def stamp(self) -> str:
        """Return a text that changes whenever the run has written something."""
        watched = (*(self.directory / name for name in _WATCHED), *RunDirectory(self.directory).checkpoints()[:1])
        return "-".join(filter(None, map(_mark, watched)))

    def _run(self) -> str:
        """Return a text that changes when another run takes the place of this one; its settings are written once."""
        return _mark(self.directory / "config.yaml")

    def page(self) -> str:
        """Return the page as the run stands now."""
        with self._lock:
            return pages.run_page(
                self.directory,
                trust=self._trust,
                live={"stamp": self.stamp(), "run": self._run(), "pause": round(1000 * _PAUSE)},
            )

    def update(self, known: str) -> dict[str, Any] | None:
        """Return what is new for a page that knows the run as of a stamp; None: nothing is, or it was just read."""
        with self._lock:
            stamp = self.stamp()
            if stamp == known or (stamp != self._stamp and time.monotonic() < self._next):
                return None
            if stamp != self._stamp:
                began = time.monotonic()
                self._update, self._stamp = self._read(), stamp
                self._next = time.monotonic() + _IDLE * (time.monotonic() - began)
            return {"stamp": self._stamp, "run": self._run(), **self._update}

    def episode(self, replica: int, cell: int) -> dict[str, Any]:
        """Return the episode of a cell's solution, which acts now; one solution at a time acts."""
        with self._acting:
            return episode(load(self.directory, partial=True, trust=self._trust), replica, cell)

    def _read(self) -> dict[str, Any]:
        """Read the run; files can vanish meanwhile, when a checkpoint takes the place of another."""
        had_cells = self._update.get("data", {}).get("space") is not None
        for attempt in range(_TRIES):
            found = load(self.directory, partial=True, trust=self._trust)
            if found.cells is not None or not had_cells or attempt == _TRIES - 1:
                break
            time.sleep(0.2)
        head = pages.templates().get_template("head.html").render(head=head_of(found))
        return {"head": head, "data": run_data(found)}


def _mark(path: Path) -> str:
    """Return a text that changes when a file is written; empty: it is not there."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{path.name}-{found.st_mtime_ns:x}-{found.st_size:x}"


class _NotHereError(Exception):
    """There is nothing at an address."""


class _Handler(BaseHTTPRequestHandler):
    """Answers GET; the base class refuses every other method."""

    timeout = 60.0  # seconds that a connection may be silent

    def __init__(self, view: View, *connection: Any):
        self.view = view
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Answer with the page, with what is new, or with an episode."""
        # A page from elsewhere could name this machine as its own host.
        if (self.headers.get("Host") or "").partition(":")[0] not in (HOST, "localhost"):
            self._answer(403, "text/plain", "only for this machine\n")
            return
        try:
            self._answer(*self._found())
        except JedaxError as error:
            self._answer(503, "text/plain; charset=utf-8", f"{error}\n")
        except _NotHereError:
            self._answer(404, "text/plain", "not here\n")

    def _found(self) -> tuple[int, str, str]:
        """Return status, kind and text of the answer; a `_NotHereError` says that there is nothing at the address."""
        try:
            address = urlsplit(self.path)
        except ValueError as error:
            raise _NotHereError from error
        wanted = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path in ("/", f"/{pages.FILE}"):
            return 200, "text/html; charset=utf-8", self.view.page()
        if address.path == "/data.json":
            found = self.view.update(wanted.get("known", ""))
            return 204 if found is None else 200, "application/json", _json(found)
        if address.path == "/episode.json":
            try:
                replica, cell = (int(wanted.get(name, "-1")) for name in ("replica", "cell"))
            except ValueError as error:
                raise _NotHereError from error
            return 200, "application/json", _json(self.view.episode(replica, cell))
        raise _NotHereError

    def _answer(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if status != 204:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for a request."""


def _json(values: dict[str, Any] | None) -> str:
    return "" if values is None else json.dumps(pages.readable(values), allow_nan=False)


class _Server(ThreadingHTTPServer):
    """A server that says nothing of clients that leave before their answer is sent."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of an error that is not the client's."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def server(directory: str | Path, port: int = 0, trust: bool = False) -> ThreadingHTTPServer:
    """Return a server of a run's page that listens on this machine; it does not answer yet. Port 0: any free one."""
    pages.plotly_source()
    view = View(directory, trust)
    try:
        return _Server((HOST, port), functools.partial(_Handler, view))
    except OSError as error:
        received = f"{port} ({error.strerror})"
        raise fail("port", expected="one that is free", received=received, remedy="choose another") from None


def serve(
    directory: str | Path, *, port: int = 0, browser: bool = False, trust: bool = False, say: Callable[[str], None]
) -> None:
    """Serve the page of a run, which may still go on, until Ctrl-C; `browser` opens a browser, `trust` as in `load`."""
    found = server(directory, port, trust)
    address = f"http://{HOST}:{found.server_address[1]}/"
    say(f"{directory} is shown at {address} (Ctrl-C stops it)")
    if browser:
        import webbrowser

        webbrowser.open(address)
    try:
        found.serve_forever()
    except KeyboardInterrupt:
        say("stopped")
    finally:
        found.server_close()
