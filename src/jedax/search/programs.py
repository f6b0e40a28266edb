"""The programs that fit a task."""

from __future__ import annotations

import functools
from typing import Literal

from jax.sharding import Mesh

from jedax.errors import fail
from jedax.methods import Algorithm
from jedax.search.compiled import Programs
from jedax.search.devices import mesh_for
from jedax.search.host import HostPrograms
from jedax.tasks.base import Task
from jedax.tasks.host import HostTask


def programs_for(algorithm: Algorithm, task: Task, replicas: int, devices: int | Literal["all"] = 1) -> Programs:
    """Return the programs of an algorithm on a task; equal arguments share what is compiled.

    Args:
        algorithm: The method.
        task: The task.
        replicas: Searches side by side.
        devices: That share them, see `jedax.search.devices.mesh_for`; a task outside JAX takes one.

    Raises:
        JedaxError: More devices than there are, or than the task can use.
    """
    if not isinstance(task, HostTask):
        return _cached(algorithm, task, replicas, mesh_for(devices, replicas))
    if devices not in ("all", 1):
        raise fail(
            "devices",
            expected=f"1 for {task.name}, which worker processes evaluate",
            received=devices,
            remedy="give --workers instead",
        )
    return _cached(algorithm, task, replicas, None)


def forget_programs() -> None:
    """Let go of all programs that nothing else holds."""
    _cached.cache_clear()


@functools.lru_cache(maxsize=8)
def _cached(algorithm: Algorithm, task: Task, replicas: int, mesh: Mesh | None) -> Programs:
    if isinstance(task, HostTask):
        return HostPrograms(algorithm, task, replicas)
    return Programs(algorithm, task, replicas, mesh)
