"""What an engine is asked: workers for one search, and errands, each of which fills a directory."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from jedax.search.workers.crew import Work
from jedax.search.workers.pool import Pool

if TYPE_CHECKING:
    from jedax.search.progress import Progress


@dataclass(frozen=True)
class Errand:
    """Something that fills a directory, wherever it is done.

    Attributes:
        name: What messages call it.
        path: The directory; it may hold what an earlier try had got to. Nothing else is written to.
        function: `module:function`, called as `function(path, progress, engine, **arguments)`. It raises what goes
            wrong, and goes on with what the directory holds.
        arguments: By name, what can be sent to another machine.
        uses_workers: Whether it has workers of the engine do most of it.
    """

    name: str
    path: Path
    function: str
    arguments: Mapping[str, Any]
    uses_workers: bool = False


@dataclass(frozen=True)
class Failure:
    """How an errand failed.

    Attributes:
        message: In a sentence.
        details: Where in the code.
        is_elsewhere: Whether it was left to another process, which works on it or has done it meanwhile.
    """

    message: str
    details: str
    is_elsewhere: bool = False


class Engine(abc.ABC):
    """Where the work of searches is done.

    Use it in a `with` statement, or `close` it.
    """

    @abc.abstractmethod
    def open_pool(
        self,
        work: Work,
        size: int | None,
        seconds: float,
        note: Callable[[str], None],
        should_stop: Callable[[], bool],
    ) -> Pool:
        """Return workers that evaluate for one search; close them after use.

        Args:
            work: What they do.
            size: How many; None: as many as there are cores for them.
            seconds: As in `jedax.search.workers.pool.Pool`.
            note: As there.
            should_stop: As there.
        """

    @abc.abstractmethod
    def carry_out(
        self, errands: Iterable[Errand], follow: Callable[[Errand], Progress]
    ) -> Iterator[tuple[Errand, Failure | None]]:
        """Do errands, in any order; yield each when it is done, and how it failed if it did.

        Args:
            errands: What to do; taken one by one, as there is room.
            follow: Called when one begins; what it returns is told how far it is.

        Raises:
            Interrupted: Ctrl-C or SIGTERM, after all that was done was saved.
        """

    @abc.abstractmethod
    def memory(self) -> int | None:
        """Return the bytes that an errand may count on; None: unknown."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return where this process runs, for the records of a run."""

    def close(self) -> None:  # noqa: B027, there may be nothing to let go
        """Let go of what the engine holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
