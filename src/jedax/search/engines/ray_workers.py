"""Workers in actors of a Ray cluster."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jedax.search.workers.evaluator import Evaluator, Reply
from jedax.search.workers.pool import Worker
from jedax.search.workers.processes import ENVIRONMENT
from jedax.tasks.work import Work


class ActorWorker(Worker):
    """A worker in an actor, on any node with a free core."""

    max_failed_starts = 20  # a node that is lost takes several workers with it

    def __init__(self, ray: Any, work: Work):
        super().__init__(deadline=math.inf)  # the cluster may take any time to find a free core
        self._ray, self._error = ray, ""
        self._actor = ray.remote(Evaluator).options(
            num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", runtime_env={"env_vars": ENVIRONMENT}
        ).remote()  # fmt: skip
        self._reply = self._actor.start.remote(work.factory, dict(work.settings))

    def send(self, inputs: list[tuple[np.ndarray, ...]]) -> None:
        """Call the actor."""
        self._reply = self._actor.evaluate.remote(inputs)

    @staticmethod
    def wait(workers: Sequence[ActorWorker], seconds: float) -> list[ActorWorker]:
        """Return the workers that have replied or died, after at most `seconds`."""
        by_reply, ray = {worker._reply: worker for worker in workers}, workers[0]._ray
        ready, _ = ray.wait(list(by_reply), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = ray.wait(list(by_reply), num_returns=len(by_reply), timeout=0)
        return [by_reply[reference] for reference in ready]

    def receive(self) -> list[Reply] | None:
        """Return its replies; None: there are none, or the actor has died."""
        if not self._ray.wait([self._reply], timeout=0)[0]:
            return None
        try:
            return self._ray.get(self._reply)
        except self._ray.exceptions.RayError as error:
            self._error = type(error).__name__
            return None

    def exit_reason(self) -> str:
        """Return Ray's error; empty: the actor is running."""
        return f"a worker or its node was lost ({self._error})" if self._error else ""

    def close(self) -> None:
        """Kill the actor."""
        with contextlib.suppress(Exception):  # the actor or the cluster may be gone
            self._ray.kill(self._actor)
