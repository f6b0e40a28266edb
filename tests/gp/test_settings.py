import numpy as np
import pytest

from jedax.errors import JedaxError
from jedax.gp import GPSettings, Hyperparameters


def test_hyperparameters_are_kept_as_logs():
    h = Hyperparameters.of(2.0, 0.1, 0.5)
    assert float(h.log_length_scale) == pytest.approx(np.log(0.1))
    np.testing.assert_allclose([h.signal, h.length_scale, h.noise], [2.0, 0.1, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("start", "expected"), [((2.0, 0.3, 0.7), (2.0, 0.3, 0.7)), ((0.01, 0.3, 1000.0), (0.05, 0.3, 100.0))]
)
def test_initial_hyperparameters_are_the_start_clipped_to_the_bounds(start, expected):
    h = GPSettings(gp_start=start).initial_hyperparameters()
    np.testing.assert_allclose([h.signal, h.length_scale, h.noise], expected, rtol=1e-6)


def test_equal_settings_are_equal_and_hash_alike():
    assert GPSettings() == GPSettings(gp="weighted")
    assert hash(GPSettings()) == hash(GPSettings(gp="weighted"))
    assert GPSettings() != GPSettings(gp="standard")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gp_signal_bounds", (0.0, 1.0)),
        ("gp_length_scale_bounds", (1.0, 0.1)),
        ("gp_noise_bounds", (1e-3, float("inf"))),
        ("gp_start", (1.0, 0.0, 1.0)),
        ("gp_noise_floor", 0.0),
        ("gp_noise_floor", 1.0),
        ("gp_max_noise_floor", 1e-11),
        ("gp_max_steps", 0),
        ("gp_tolerance", 0.0),
        ("gp_tolerance", float("nan")),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(JedaxError, match=f"^{name}.*: expected"):
        GPSettings.build({name: value})
