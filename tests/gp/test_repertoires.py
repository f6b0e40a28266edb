"""Repertoires of JEDi on the mazes: `data/gp_repertoires.npz`, made by `benchmarks/gp_against_scipy.py --make`.

Each array has a row per filled cell: descriptor in the unit box, fitness, number of evaluations.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from tests.gp.reference import (
    KINDS,
    ReferenceGP,
    best_log_likelihood,
    front,
    log_likelihood,
    logs,
    standardised,
    to_data,
)

from jedax.gp import GPSettings, fit, predict

STORED = np.load(Path(__file__).parents[1] / "data" / "gp_repertoires.npz")
STARTS = [(1.0, 0.1, 1.0), (1.0, 0.03, 0.3), (2.0, 0.4, 0.05)]
CENTRES = (np.stack(np.meshgrid(*2 * [np.arange(24)]), axis=-1).reshape(-1, 2) + 0.5) / 24


def repertoire(name):
    rows = STORED[name].astype(float)
    return rows[:, :2], rows[:, 2], rows[:, 3]


def fitted(name, *, weighted=True):
    settings = GPSettings(gp=KINDS[weighted])
    return fit(settings, settings.initial_hyperparameters(), to_data(*repertoire(name), size=384))


@pytest.mark.parametrize(
    "name", ["maze-a-200000-2", "maze-a-600000-4", "maze-b-600000-3", "maze-c-200000-2", "maze-quad-b-600000-3"]
)
def test_the_fit_is_the_best_that_scipy_finds_in_float64(name):
    """In each of these one of SciPy's starts ends in a maximum that is 3 to 38 nats lower."""
    x, fitness, counts = repertoire(name)
    gp = fitted(name)
    there = log_likelihood(logs(gp.hyperparameters), x, fitness, 1 / counts)
    assert gp.noise_floor == pytest.approx(1e-10)
    assert gp.log_likelihood == pytest.approx(there, abs=0.01)
    assert there > best_log_likelihood(GPSettings(), x, fitness, 1 / counts, STARTS) - 0.5


@pytest.mark.parametrize("name", ["maze-a-600000-4", "maze-c-600000-4"])
def test_the_weights_decide_who_is_on_the_front(name):
    """The front of the weighted process is that of the reference, and not that of equal noise."""
    x, fitness, counts = repertoire(name)
    fronts, expected = [], []
    for weighted in (True, False):
        gp = fitted(name, weighted=weighted)
        weights = 1 / counts if weighted else np.ones_like(counts)
        reference = ReferenceGP(x, standardised(fitness), weights, *np.exp(logs(gp.hyperparameters)), 1e-10)
        fronts.append(front(*map(np.asarray, predict(gp, jnp.asarray(CENTRES, jnp.float32)))))
        expected.append(front(reference.mean(CENTRES), np.diag(reference.covariance(CENTRES))))
        assert len(fronts[-1] ^ expected[-1]) <= 1 + 0.05 * len(expected[-1])
    weighted, standard = expected
    assert len(weighted & standard) < 0.7 * len(weighted | standard)


def test_the_weighted_noise_is_above_the_floor():
    _, _, counts = repertoire("maze-a-600000-3")
    h = fitted("maze-a-600000-3").hyperparameters
    assert (h.noise**2 / counts > 100 * 1e-10 * h.signal**2).all()
