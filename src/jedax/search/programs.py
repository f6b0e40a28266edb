"""Which programs run a task; equal arguments share what is compiled."""

from __future__ import annotations

import functools
from typing import Any, Literal

from jax.sharding import Mesh

from jedax.errors import fail
from jedax.methods.base import Method
from jedax.search.compiled import Programs, StepPrograms
from jedax.search.devices import mesh_for
from jedax.search.host import HostPrograms
from jedax.tasks.base import Task
from jedax.tasks.measured import HostTask


def programs_for(method: Method, task: Task, replicas: int, devices: int | Literal["all"] = 1) -> Programs:
    """Return the programs of a method on a task.

    Args:
        method: The method.
        task: The task.
        replicas: Number of searches side by side.
        devices: Number of devices, see `jedax.search.devices.mesh_for`; 1 for a task outside JAX.

    Raises:
        JedaxError: More devices than there are, or than the task can use.
    """
    if not isinstance(task, HostTask):
        return _cached(method, task, replicas, mesh_for(devices, replicas))
    if devices not in ("all", 1):
        raise fail(
            "devices",
            expected=f"1 for {task.name}, which worker processes evaluate",
            received=devices,
            remedy="give --workers instead",
        )
    return _cached(method, task, replicas, None)


def step_programs_for(method: Method, task: Any) -> StepPrograms:
    """Return the programs of one replica whose evaluations are done elsewhere."""
    return _cached_steps(method, task)


def forget_programs() -> None:
    """Empty the cache of programs."""
    _cached.cache_clear()
    _cached_steps.cache_clear()


@functools.lru_cache(maxsize=8)
def _cached_steps(method: Method, task: Any) -> StepPrograms:
    return StepPrograms(method, task, 1)


@functools.lru_cache(maxsize=8)
def _cached(method: Method, task: Task, replicas: int, mesh: Mesh | None) -> Programs:
    if isinstance(task, HostTask):
        return HostPrograms(method, task, replicas)
    return Programs(method, task, replicas, mesh)
