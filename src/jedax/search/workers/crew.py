"""What a pool asks of those who work for it, wherever they are."""

from __future__ import annotations

import abc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Work:
    """What a worker does.

    Attributes:
        factory: `module:name` of what makes, from the settings, a function from genotypes `(n, params)`, and seeds
            `(n,)` where they are given, to fitness `(n,)` and descriptors `(n, d)`.
        settings: Arguments of the factory by name.
        chunk: Genotypes that are evaluated together. What a chunk holds does not depend on the number of workers.
    """

    factory: str
    settings: Mapping[str, Any]
    chunk: int


@dataclass(frozen=True)
class Chunk:
    """Some genotypes of a batch that are evaluated together.

    Attributes:
        rows: Their places in the batch.
        attempt: How often they have been tried, this time included.
        alone: Whether they are sent with nothing else, for their worker may be lost over them.
    """

    rows: np.ndarray
    attempt: int = 1
    alone: bool = False


@dataclass(eq=False)
class Worker(abc.ABC):
    """One that evaluates elsewhere.

    Attributes:
        deadline: `time.monotonic()` by which it must have said something.
        is_ready: Whether it has started.
        chunks: What it is busy with; empty: nothing.
        sent: When it got that.
    """

    deadline: float
    is_ready: bool = False
    chunks: list[Chunk] = field(default_factory=list)
    sent: float = 0.0

    def give(self, chunks: list[Chunk], batch: tuple[np.ndarray, ...], seconds: float) -> None:
        """Send chunks of a batch, genotypes and what goes with each; replies are expected within some seconds."""
        self.chunks, self.sent = chunks, time.monotonic()
        self.deadline = self.sent + seconds
        self.send([tuple(np.ascontiguousarray(array[chunk.rows]) for array in batch) for chunk in chunks])

    @abc.abstractmethod
    def send(self, chunks: list[tuple[np.ndarray, ...]]) -> None:
        """Send arguments of the function that evaluates; a worker that is gone is noticed when it is listened to."""

    @abc.abstractmethod
    def hear(self) -> list[tuple[Any, ...]] | None:
        """Return what it has sent, see `jedax.search.workers.serving`; None: nothing, or it is gone."""

    @abc.abstractmethod
    def last_words(self) -> str:
        """Return how it ended; empty: it goes on."""

    @abc.abstractmethod
    def close(self) -> None:
        """End it, whatever it is doing."""


class Crew(abc.ABC):
    """Where workers come from."""

    failed_starts: ClassVar[int]
    """Workers that may fail to start, one after the other."""

    @abc.abstractmethod
    def start(self, work: Work, seconds: float) -> Worker:
        """Start a worker; it is not waited for."""

    @abc.abstractmethod
    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Wait, at most some seconds, until one has something to say; return all that have, or are gone."""
