"""jedax: JEDi, Quality with Just Enough Diversity, in JAX.

Find the best solution of a hard black-box problem by looking at how solutions behave. Names are imported when they are
first used, so that `import jedax` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jedax._version import __version__
from jedax.errors import JedaxError
from jedax.imports import lazy_names

if TYPE_CHECKING:
    from jedax import tasks
    from jedax.api import resume, run
    from jedax.methods.base import Method, MethodConfig
    from jedax.methods.jedi import JEDi, JediConfig
    from jedax.methods.jedi_x import JEDiX, JediXConfig
    from jedax.repertoire import Repertoire
    from jedax.report.comparisons import compare
    from jedax.report.pages import write_report
    from jedax.report.reevaluation import reevaluate
    from jedax.search.interrupts import Interrupted
    from jedax.search.loop import Report
    from jedax.search.minimize import minimize
    from jedax.search.optimizer import Optimizer
    from jedax.space import Choice, Integer, Real, Space
    from jedax.store.run import Run, Solution, load
    from jedax.types import Evaluation

__all__ = [
    "Choice", "Evaluation", "Integer", "Interrupted", "JEDi", "JEDiX", "JedaxError", "JediConfig", "JediXConfig",
    "Method", "MethodConfig", "Optimizer", "Real", "Repertoire", "Report", "Run", "Solution", "Space", "__version__",
    "compare", "load", "minimize", "reevaluate", "resume", "run", "tasks", "write_report",
]  # fmt: skip

_HOMES = {
    "jedax.api": ("resume", "run"),
    "jedax.methods.base": ("Method", "MethodConfig"),
    "jedax.methods.jedi": ("JEDi", "JediConfig"),
    "jedax.methods.jedi_x": ("JEDiX", "JediXConfig"),
    "jedax.repertoire": ("Repertoire",),
    "jedax.report.comparisons": ("compare",),
    "jedax.report.pages": ("write_report",),
    "jedax.report.reevaluation": ("reevaluate",),
    "jedax.search.interrupts": ("Interrupted",),
    "jedax.search.loop": ("Report",),
    "jedax.search.minimize": ("minimize",),
    "jedax.search.optimizer": ("Optimizer",),
    "jedax.space": ("Choice", "Integer", "Real", "Space"),
    "jedax.store.run": ("Run", "Solution", "load"),
    "jedax.types": ("Evaluation",),
}
_MODULES = ("es", "gp", "methods", "rankers", "repertoire", "report", "rl", "targets", "tasks", "types", "variation")
__getattr__, __dir__ = lazy_names(
    __name__, {name: module for module, names in _HOMES.items() for name in names}, _MODULES
)
