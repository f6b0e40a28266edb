"""jedax: JEDi, Quality with Just Enough Diversity, in JAX.

Find the best solution of a hard black-box problem by looking at how solutions behave. Names are loaded when they
are first used, so that `import jedax` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jedax._version import __version__
from jedax.errors import JedaxError

if TYPE_CHECKING:
    from jedax import tasks
    from jedax.methods.jedi import JEDi
    from jedax.methods.settings import JediConfig
    from jedax.repertoire import Repertoire
    from jedax.report.compare import compare
    from jedax.report.pages import write_report
    from jedax.report.reevaluation import reevaluate
    from jedax.search.api import resume, run
    from jedax.search.loop import Interrupted, Report
    from jedax.search.optimizer import Optimizer
    from jedax.store.run import Run, Solution, load
    from jedax.types import Evaluation

__all__ = [
    "Evaluation",
    "Interrupted",
    "JEDi",
    "JedaxError",
    "JediConfig",
    "Optimizer",
    "Repertoire",
    "Report",
    "Run",
    "Solution",
    "__version__",
    "compare",
    "load",
    "reevaluate",
    "resume",
    "run",
    "tasks",
    "write_report",
]

_HOMES = {
    "Evaluation": "jedax.types",
    "Interrupted": "jedax.search.loop",
    "JEDi": "jedax.methods.jedi",
    "JediConfig": "jedax.methods.settings",
    "Optimizer": "jedax.search.optimizer",
    "Repertoire": "jedax.repertoire",
    "Report": "jedax.search.loop",
    "Run": "jedax.store.run",
    "Solution": "jedax.store.run",
    "compare": "jedax.report.compare",
    "load": "jedax.store.run",
    "reevaluate": "jedax.report.reevaluation",
    "resume": "jedax.search.api",
    "run": "jedax.search.api",
    "write_report": "jedax.report.pages",
}


def __getattr__(name: str) -> Any:
    if name == "tasks":
        return importlib.import_module("jedax.tasks")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
