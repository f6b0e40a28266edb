"""Where evaluations and jobs run: on this machine or on a Ray cluster. Results do not depend on the engine."""

from __future__ import annotations

from typing import Any

from jedax.errors import check_choice, fail
from jedax.search.engines.base import Engine, Failure, Job, LocalEngine

__all__ = ["NAMES", "Engine", "Failure", "Job", "LocalEngine", "make"]

NAMES = ("local", "ray")
"""The names of all engines."""


def make(engine: str | Engine = "local", **settings: Any) -> Engine:
    """Return the engine of that name; an engine is returned as it is.

    Args:
        engine: One of `NAMES`, or an engine.
        settings: Arguments of `jedax.search.engines.ray.RayEngine`; None: the default.

    Raises:
        JedaxError: The name is unknown, or the engine does not have that setting.
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
