"""A Gaussian process of fitness over descriptors, whose noise depends on the number of evaluations of each cell."""

from jedax.gp.fitting import condition, fit
from jedax.gp.model import FittedGP, GPData, Hyperparameters
from jedax.gp.prediction import Posterior, Prediction, posterior, predict
from jedax.gp.sequential import one_by_one
from jedax.gp.settings import GPSettings

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
