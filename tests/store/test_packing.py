"""Packed numbers come back as exact as they promise."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jedax.store.packing import pack, unpack

NUMBERS = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=50)


@given(NUMBERS)
def test_what_was_packed_comes_back(numbers):
    values = np.array(numbers, float)
    back = unpack(pack(values))
    known = np.isfinite(values)
    np.testing.assert_array_equal(np.isfinite(back), known)
    if known.any():
        low, high = values[known].min(), values[known].max()
        error = np.abs(back[known] / 2 - values[known] / 2)
        assert (error <= (high / 2 - low / 2) / 131_068 * 1.001 + 1e-15 * max(abs(low), abs(high))).all()
        if low < high:
            # The two ends are exact.
            assert back[known].min() == low
            assert back[known].max() == high


def test_the_code_of_each_number():
    packed = pack([1.0, 3.0, np.nan, 2.0])
    assert (packed["low"], packed["high"]) == (1.0, 3.0)
    assert np.frombuffer(base64.b64decode(packed["data"]), "<u2").tolist() == [0, 65534, 65535, 32767]


@pytest.mark.parametrize("far", [[-1e9], [1e9], [-1e300, 1e300, np.nan], [3e7] * 200])
def test_a_few_numbers_far_away_take_no_digits_from_the_others(far):
    """As failed solutions do, whose fitness is a penalty."""
    near = np.random.default_rng(0).normal(size=1000)
    values = np.random.default_rng(1).permutation([*near, *far])
    back = unpack(json.loads(json.dumps(pack(values))))
    is_far = ~(np.abs(values) < 10)
    np.testing.assert_array_equal(back[is_far], values[is_far])
    np.testing.assert_allclose(back[~is_far], values[~is_far], atol=1e-4)


@pytest.mark.parametrize(
    "packed",
    [
        {}, {"low": 0, "high": 1, "data": "?"}, {"low": None, "data": 3}, 7,
        *(pack([1.0, 2.0]) | {"others": others} for others in (
            [], {"places": [0]}, {"places": [2], "values": [1.0]}, {"places": [-1], "values": [1.0]},
            {"places": [0], "values": [None]}, {"places": [0], "values": ["x"]},
            {"places": [0, 1], "values": [1.0, 2.0, 3.0]}, {"places": [10**30], "values": [1.0]},
            {"places": [0], "values": [float("inf")]},
        )),
    ],
)  # fmt: skip
def test_nothing_packed(packed):
    with pytest.raises(ValueError, match="no packed numbers"):
        unpack(packed)
