"""Choosing target cells from what a model predicts for all of them.

Importing this package, or reading `TARGET_CHOICES`, does not import JAX; reading one of the functions does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jedax.targets.pareto import choose_pareto, pareto_rank
    from jedax.targets.ucb import choose_bucb, choose_ucb
    from jedax.targets.uniform import choose_uniform

__all__ = ["TARGET_CHOICES", "choose_bucb", "choose_pareto", "choose_ucb", "choose_uniform", "pareto_rank"]

TARGET_CHOICES = ("pareto", "uniform", "gp-ucb", "gp-bucb")
"""Names of the choices, the paper's first."""

_HOME = {
    "choose_bucb": "ucb",
    "choose_pareto": "pareto",
    "choose_ucb": "ucb",
    "choose_uniform": "uniform",
    "pareto_rank": "pareto",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
