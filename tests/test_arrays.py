"""What a user's code returns becomes float64, or one sentence says why it does not."""

import datetime
import decimal

import jax.numpy as jnp
import numpy as np
import pytest

from jedax.arrays import as_floats
from jedax.errors import JedaxError


class Tensor:
    """As of PyTorch, with gradients."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")


@pytest.mark.parametrize(
    "values",
    [
        [1.5, 2, -3.25],
        (1.5, 2, -3.25),
        np.array([1.5, 2, -3.25]),
        np.array([1.5, 2, -3.25], np.float16),
        jnp.array([1.5, 2, -3.25], jnp.bfloat16),
        np.ma.array([1.5, 2, -3.25], mask=[False] * 3),
        [decimal.Decimal("1.5"), np.float32(2), jnp.float32(-3.25)],
    ],
)
def test_real_numbers(values):
    found = as_floats("fitness", values, (3,), "change it")
    np.testing.assert_array_equal(found, np.array([1.5, 2, -3.25], np.float32))
    assert found.dtype == np.float64


def test_none_and_what_is_not_finite_count_as_failed():
    found = as_floats("fitness", [None, np.nan, -np.inf], (3,), "change it")
    np.testing.assert_array_equal(found, np.array([np.nan, np.nan, -np.inf], np.float32))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "received"),
    [
        (np.array([1 + 1j, 2, 3]), "complex numbers"),
        ([1 + 0j, 2, 3], "complex numbers"),
        (np.array([1j, 2, 3], object), "complex numbers"),
        (np.ma.array([1.0, 2, 3], mask=[False, True, False]), "masked values"),
        ([1.0, np.ma.masked, 3.0], "masked values"),
        (DAYS, "dates"),
        (list(DAYS), "dates"),
        (np.array([*DAYS[:2], 3.0], object), "dates"),
        (DAYS - DAYS[0], "durations"),
        ([datetime.date(2020, 1, 1)] * 3, "list"),
        (["1.5", "2", "3"], "text"),
        ([b"1.5", b"2", b"3"], "bytes"),
        ([10**400] * 3, "a number beyond all floats"),
        ([[1.0], [2.0, 3.0], [4.0]], "list"),
        ({1.0, 2.0, 3.0}, "set"),
        (Tensor(), "Tensor"),
    ],
)
def test_others_are_refused(values, received):
    with pytest.raises(JedaxError) as caught:
        as_floats("fitness", values, (3,), "change it")
    assert str(caught.value) == f"fitness: expected numbers of shape (3,), got {received}; change it."


def test_masked_rows():
    rows = [np.ma.array([1.0, 2.0], mask=[False, True]), np.array([3.0, 4.0])]
    with pytest.raises(JedaxError, match="masked values"):
        as_floats("descriptors", rows, (2, 2), "change it")
