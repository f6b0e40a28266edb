"""What a node of a Ray cluster does with an errand, and the mailbox by which it tells how far it is."""

from __future__ import annotations

import _thread
import contextlib
import dataclasses
import platform
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jedax._version import __version__
from jedax.errors import fail
from jedax.search.engines.base import Errand, Failure
from jedax.search.engines.local import do
from jedax.search.engines.transfer import pack, unpack
from jedax.store.lock import alone_in

_SECONDS_BETWEEN_WORDS = 1.0
_Numbers = tuple[int, float, float, float, float]


@dataclass(frozen=True)
class Order:
    """What a node is told.

    Attributes:
        errand: What to do.
        probe: A file of the driver's.
        number: Which errand it is.
        attempt: Which try.
        token: What the file says.
        num_workers: Workers that its search may have.
        version: Of the driver's jedax.
        command: The driver's command line.
    """

    errand: Errand
    probe: str
    number: int
    attempt: int
    token: str
    num_workers: int
    version: str
    command: str


@dataclass(frozen=True)
class Reply:
    """What comes back.

    Attributes:
        failure: How it failed, if it did.
        files: What its directory holds, packed; None: the driver sees the directory itself.
        was_stopped: Whether it ended because it was asked to.
    """

    failure: Failure | None = None
    files: bytes | None = None
    was_stopped: bool = False


class Mailbox:
    """An actor beside the driver that keeps the last word of each errand until the driver asks."""

    def __init__(self) -> None:
        self._words: dict[tuple[int, int], tuple[_Numbers | None, list[str]]] = {}
        self._is_stopping = False

    def tell(self, number: int, attempt: int, latest: _Numbers | None, notes: list[str]) -> bool:
        """Keep a word; return whether the errand is to stop."""
        earlier, before = self._words.get((number, attempt), (None, []))
        self._words[number, attempt] = latest or earlier, before + notes
        return self._is_stopping

    def take(self) -> list[tuple[int, int, _Numbers | None, list[str]]]:
        """Return all words since the last time."""
        words, self._words = self._words, {}
        return [(*key, *word) for key, word in words.items()]

    def stop(self) -> None:
        """Ask all errands to stop."""
        self._is_stopping = True


class Reporter:
    """Follows an errand in its own process and tells the mailbox, in a thread of its own, now and then."""

    def __init__(self, order: Order, mailbox: Any, ray: Any):
        self._order, self._mailbox, self._ray = order, mailbox, ray
        self._lock = threading.Lock()
        self._latest: _Numbers | None = None
        self._notes: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)

    def update(self, evaluations: int, per_second: float, best: float, coverage: float, left: float) -> None:
        """Take note of where the run stands."""
        with self._lock:
            self._latest = (evaluations, per_second, best, coverage, left)

    def note(self, message: str) -> None:
        """Keep a message."""
        with self._lock:
            self._notes.append(message)

    def close(self) -> None:
        """Do nothing; the errand may go on."""

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Tell as long as this lasts; whoever is asked to stop gets a KeyboardInterrupt, as from Ctrl-C."""
        if self._tell():
            raise KeyboardInterrupt
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
            self._tell()

    def _talk(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN_WORDS):
            if self._tell():
                _thread.interrupt_main()
                return

    def _tell(self) -> bool:
        """Pass on what there is; return whether to stop, which it is time for, too, where the driver is gone."""
        with self._lock:
            latest, notes = self._latest, self._notes
            self._latest, self._notes = None, []
        try:
            return self._ray.get(self._mailbox.tell.remote(self._order.number, self._order.attempt, latest, notes))
        except self._ray.exceptions.RayError:
            return True


def obey(order: Order, held: list[Any], mailbox: Any) -> Reply:
    """Do an errand on this node.

    Args:
        order: What to do.
        held: A reference to what the directory held before, packed; empty: nothing.
        mailbox: Where to tell how far it is.

    Raises:
        JedaxError: This node has another version of jedax.
    """
    import ray

    if order.version != __version__:
        raise fail(
            f"node {platform.node()}",
            expected=f"jedax {order.version}, as on the node of the command",
            received=__version__,
            remedy="install the same version on all nodes",
        )
    reporter = Reporter(order, mailbox, ray)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(reporter.telling())
            if _is_shared(order):
                stack.enter_context(alone_in(order.errand.path))
                return _reply(order.errand, reporter, order)
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jedax-")))
            errand = dataclasses.replace(order.errand, path=scratch / order.errand.path.name)
            if held:
                unpack(ray.get(held[0]), errand.path)
            reply = _reply(errand, reporter, order)
            return dataclasses.replace(reply, files=pack(errand.path) if errand.path.is_dir() else None)
    except KeyboardInterrupt:
        return Reply(was_stopped=True)


def _is_shared(order: Order) -> bool:
    """Whether this node sees the driver's files."""
    try:
        return Path(order.probe).read_text() == order.token
    except OSError:
        return False


def _reply(errand: Errand, reporter: Reporter, order: Order) -> Reply:
    """Do an errand in this process; its files are where it was told to put them."""
    from jedax.search.engines.ray import RayEngine

    try:
        return Reply(do(errand, reporter, RayEngine(num_workers=order.num_workers, command=order.command)))
    except KeyboardInterrupt:
        return Reply(was_stopped=True)
