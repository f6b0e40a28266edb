"""A Gaussian process of fitness over descriptors that knows how often each cell was evaluated."""

from jedax.gp.fitting import condition, fit
from jedax.gp.model import FittedGP, GPData, GPSettings, Hyperparameters
from jedax.gp.prediction import Posterior, Prediction, posterior, predict
from jedax.gp.sequential import one_by_one

__all__ = [
    "FittedGP",
    "GPData",
    "GPSettings",
    "Hyperparameters",
    "Posterior",
    "Prediction",
    "condition",
    "fit",
    "one_by_one",
    "posterior",
    "predict",
]
