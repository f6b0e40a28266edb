"""The programs that fit a task."""

from __future__ import annotations

import functools

from jedax.algorithms import Algorithm
from jedax.runs.compiled import Programs
from jedax.runs.host import HostPrograms
from jedax.tasks.base import Task
from jedax.tasks.host import HostTask


@functools.lru_cache(maxsize=8)
def programs_for(algorithm: Algorithm, task: Task, replicas: int) -> Programs:
    """Return the programs of an algorithm on a task; equal arguments share what is compiled."""
    if isinstance(task, HostTask):
        return HostPrograms(algorithm, task, replicas)
    return Programs(algorithm, task, replicas)
