"""Where the work is done: on this machine, or on several. Nothing above knows which."""

from __future__ import annotations

from typing import Any

from jedax.errors import check_choice, fail
from jedax.search.engines.base import Engine, Errand, Failure
from jedax.search.engines.local import LocalEngine

__all__ = ["NAMES", "Engine", "Errand", "Failure", "LocalEngine", "make"]

NAMES = ("local", "ray")
"""The engines there are."""


def make(engine: str | Engine = "local", **settings: Any) -> Engine:
    """Return an engine by its name; one that is an engine already as it is.

    Args:
        engine: One of `NAMES`, or an engine.
        settings: Of the engine: `address`, `cpus_per_cell` and `gpus_per_cell` of Ray, see
            `jedax.search.engines.ray.RayEngine`; those that are None count as not given.

    Raises:
        JedaxError: There is none of that name, it takes no such settings, or its extra is not installed.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(engine, Engine):
        return engine
    if check_choice("engine", engine, NAMES) == "ray":
        from jedax.search.engines.ray import RayEngine

        return RayEngine(**given)
    if given:
        raise fail(
            next(iter(given)).replace("_", "-"),
            expected="an engine of several machines",
            received="the engine local",
            remedy="add --engine ray, or leave it out",
        )
    return LocalEngine()
