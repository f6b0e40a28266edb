"""Functions of the user's: what they return is checked."""

import numpy as np
import pytest

from jedax.errors import JedaxError
from jedax.tasks.python.calls import checked, make


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("alone", r"work:alone: expected two results, fitness and descriptors, got ndarray; return both; "),
        (
            "three",
            r"work:three: expected two results, fitness and descriptors, got 3; return both; without descriptors",
        ),
        ("scalar", r"work:scalar: fitness: expected shape \(4,\), got \(\); return one row per genotype"),
        ("strange_descriptors", r"descriptors: expected shape \(4, 2\), got \(4, 3\); return one row per genotype"),
        ("words", r"work:words: fitness: expected numbers of shape \(4,\), got text"),
    ],
)
def test_wrong_results(name, message):
    with pytest.raises(JedaxError, match=message):
        make(f"tests.search.workers.work:{name}", 2)(np.zeros((4, 3), np.float32))


def test_any_number_of_descriptors():
    fitness, descriptors = make("tests.search.workers.work:strange_descriptors", None)(np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(fitness, [3, 3, 3, 3])
    assert descriptors.shape == (4, 3)


@pytest.mark.parametrize(
    ("values", "shape", "fits"),
    [
        (np.zeros((2, 0)), (2, None), False),
        (np.zeros((2, 5)), (2, None), True),
        ([[1], [2]], (2, 1), True),
        (np.zeros(2), (2, None), False),
        (np.zeros((2, 2, 2)), (2, None), False),
    ],
)
def test_shapes(values, shape, fits):
    if fits:
        assert checked("x", values, shape).dtype == np.float64
    else:
        with pytest.raises(JedaxError, match=r"x: expected shape \(2, d\)"):
            checked("x", values, shape)
