"""A Gaussian process of fitness over descriptors that knows how often each cell was evaluated."""

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
