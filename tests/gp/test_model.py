import numpy as np
import pytest

from jedax.errors import JedaxError
from jedax.gp import GPSettings, Hyperparameters


def test_hyperparameters_are_kept_as_logs():
    h = Hyperparameters.of(2.0, 0.1, 0.5)
    assert float(h.log_length_scale) == pytest.approx(np.log(0.1))
    np.testing.assert_allclose([h.signal, h.length_scale, h.noise], [2.0, 0.1, 0.5], rtol=1e-6)


def test_the_start_is_that_of_the_settings():
    h = GPSettings(start=(2.0, 0.3, 0.7)).initial_hyperparameters()
    np.testing.assert_allclose([h.signal, h.length_scale, h.noise], [2.0, 0.3, 0.7], rtol=1e-6)


def test_equal_settings_are_equal_and_hash_alike():
    assert GPSettings() == GPSettings(weighted=True)
    assert hash(GPSettings()) == hash(GPSettings(weighted=True))
    assert GPSettings() != GPSettings(weighted=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signal_bounds", (0.0, 1.0)),
        ("length_scale_bounds", (1.0, 0.1)),
        ("noise_bounds", (1e-3, float("inf"))),
        ("start", (1.0, 0.001, 1.0)),
        ("noise_floor", 0.0),
        ("noise_floor", 1.0),
        ("max_steps", 0),
        ("tolerance", 0.0),
        ("tolerance", float("nan")),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(JedaxError, match=name):
        GPSettings(**{name: value})
