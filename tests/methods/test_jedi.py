"""JEDi on descriptors of different units."""

import numpy as np
import pytest

import jedax
from jedax.methods.jedi import JediConfig

UNITS = np.array([1.0, 1024.0])  # powers of two, so that nothing is rounded
LOWS, HIGHS = np.array([-2.0, -2.0]), np.array([2.0, 2.0])


@pytest.mark.parametrize("targets", ["uniform", "pareto"])
def test_units_of_descriptors_change_nothing(targets):
    config = JediConfig(cells=64, population=4, pool=2, generations=3, targets=targets, gp_max_steps=5)
    searches = [
        jedax.Optimizer(3, (LOWS * units, HIGHS * units), evaluations=400, seed=1, method=config)
        for units in (np.ones(2), UNITS)
    ]
    for _ in range(12):
        for optimizer, units in zip(searches, (np.ones(2), UNITS), strict=True):
            genotypes = optimizer.ask()
            optimizer.tell(genotypes, -np.square(genotypes - 1).sum(axis=1), np.clip(genotypes[:, :2], -2, 2) * units)
    plain, other = (optimizer.repertoire for optimizer in searches)
    np.testing.assert_array_equal(other.genotypes, plain.genotypes)
    np.testing.assert_array_equal(other.descriptors, plain.descriptors * UNITS)
