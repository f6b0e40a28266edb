"""Evaluation actors: the workers of a pool, on whatever nodes of a Ray cluster have a core free."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jedax.search.workers.crew import Crew, Work, Worker
from jedax.search.workers.processes import ENVIRONMENT
from jedax.search.workers.serving import Evaluate, answer, prepare

# After this long without any worker, the user is told that all is waiting for cores.
_SECONDS_OF_SILENCE = 30.0


class Evaluator:
    """What an actor is: it evaluates what it is sent. It imports NumPy and the simulator, never JAX."""

    def __init__(self) -> None:
        self._evaluate: Evaluate | None = None

    def prepare(self, factory: str, settings: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Make what evaluates, see `jedax.search.workers.serving.prepare`."""
        self._evaluate, reply = prepare(factory, settings)
        return reply

    def answer(self, chunks: Sequence[tuple[np.ndarray, ...]]) -> list[tuple[Any, ...]]:
        """Evaluate chunks, see `jedax.search.workers.serving.answer`."""
        assert self._evaluate is not None
        return answer(self._evaluate, chunks)


class Actor(Worker):
    """A worker in an actor."""

    def __init__(self, ray: Any, work: Work, seconds: float):
        # How long a cluster takes to find room for it is nobody's fault: only what it then does is timed.
        super().__init__(deadline=math.inf)
        self._ray, self._error = ray, ""
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD",
                   "runtime_env": {"env_vars": ENVIRONMENT}}  # fmt: skip
        self.handle = ray.remote(Evaluator).options(**options).remote()
        self.pending = self.handle.prepare.remote(work.factory, dict(work.settings))

    def send(self, chunks: list[tuple[np.ndarray, ...]]) -> None:
        """Call the actor."""
        self.pending = self.handle.answer.remote(chunks)

    def hear(self) -> list[tuple[Any, ...]] | None:
        """Return what the call gave; None: nothing yet, or the actor is gone."""
        if not self._ray.wait([self.pending], timeout=0)[0]:
            return None
        try:
            return self._ray.get(self.pending)
        except self._ray.exceptions.RayError as error:
            self._error = type(error).__name__
            return None

    def last_words(self) -> str:
        """Return that it was lost; empty: it goes on."""
        return f"a worker or its node was lost ({self._error})" if self._error else ""

    def close(self) -> None:
        """End the actor, whatever it is doing."""
        with contextlib.suppress(Exception):  # it may be gone, and Ray with it
            self._ray.kill(self.handle)


class Actors(Crew):
    """Actors of a Ray cluster."""

    failed_starts = 20  # nodes that are lost take several with them

    def __init__(self, ray: Any, note: Callable[[str], None]):
        self._ray, self._note = ray, note
        self._silent_since: float | None = None

    def start(self, work: Work, seconds: float) -> Actor:
        """Ask for an actor."""
        return Actor(self._ray, work, seconds)

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Wait for their calls."""
        actors = {worker.pending: worker for worker in workers if isinstance(worker, Actor)}
        if not actors:
            return []
        self._mind_silence(any(worker.is_ready for worker in workers))
        ready, _ = self._ray.wait(list(actors), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = self._ray.wait(list(actors), num_returns=len(actors), timeout=0)
        return [actors[reference] for reference in ready]

    def _mind_silence(self, is_anyone_there: bool) -> None:
        if is_anyone_there:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = time.monotonic()
        elif time.monotonic() - self._silent_since > _SECONDS_OF_SILENCE:
            self._silent_since = math.inf
            self._note("Waiting for workers: is a core of the cluster free?")
