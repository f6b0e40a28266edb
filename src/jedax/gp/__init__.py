"""A Gaussian process of fitness over descriptors that knows how often each cell was evaluated.

Importing this package does not import JAX; reading one of its names does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jedax.gp.fitting import condition, fit
    from jedax.gp.model import FittedGP, GPData, GPSettings, Hyperparameters
    from jedax.gp.prediction import Posterior, posterior, predict

__all__ = [
    "FittedGP",
    "GPData",
    "GPSettings",
    "Hyperparameters",
    "Posterior",
    "condition",
    "fit",
    "posterior",
    "predict",
]

_HOME = {
    "FittedGP": "model",
    "GPData": "model",
    "GPSettings": "model",
    "Hyperparameters": "model",
    "Posterior": "prediction",
    "condition": "fitting",
    "fit": "fitting",
    "posterior": "prediction",
    "predict": "prediction",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
