"""The search methods, each put together from the blocks below."""

from __future__ import annotations

import importlib

from jedax.methods.base import Algorithm, Problem
from jedax.methods.settings import MethodConfig

__all__ = ["Algorithm", "Problem", "make_algorithm"]

_CLASSES = {
    "JediConfig": ("jedi", "JEDi"),
    "JediXConfig": ("jedi_x", "JEDiX"),
    "ESConfig": ("es", "ES"),
    "MapElitesConfig": ("map_elites", "MapElites"),
    "CMAMEConfig": ("cma_me", "CMAME"),
    "PGAMEConfig": ("pga_me", "PGAME"),
}


def make_algorithm(config: MethodConfig, problem: Problem) -> Algorithm:
    """Return the search method that these parameters belong to.

    Args:
        config: Parameters of a method, such as a `JediConfig`.
        problem: The task, or what is known of it.

    Raises:
        JedaxError: Parameters that do not fit the task.
    """
    module, name = _CLASSES[type(config).__name__]
    kind: type[Algorithm] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return kind.build(config, problem)
