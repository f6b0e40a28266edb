"""The twin critic against networks written out in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.rl.reference import Net, layers_of

from jedax.rl import TwinCritic


@pytest.mark.parametrize("hidden", [(16,), (7, 5), (256, 256)])
class TestTwinCritic:
    def drawn(self, hidden):
        critic = TwinCritic(observation_size=4, action_size=3, hidden=hidden)
        params = critic.init(jax.random.key(0)) + 0.1  # biases other than zero
        rng = np.random.default_rng(1)
        return critic, params, rng.normal(size=(11, 4)).astype("f4"), rng.uniform(-1, 1, (11, 3)).astype("f4")

    def test_values_and_slopes(self, hidden):
        critic, params, observations, actions = self.drawn(hidden)
        weights = np.random.default_rng(2).normal(size=(2, 11))
        values, pull = jax.vjp(lambda p, a: critic.values(p, observations, a), params, actions)
        slope, action_slope = pull(jnp.asarray(weights, jnp.float32))
        net = Net((7, *hidden, 1), tanh=False)
        expected_action_slope = np.zeros((11, 3))
        for row in range(2):
            flat = np.asarray(params[row], float)
            outputs, kept = net.forward(flat, np.concatenate([observations, actions], axis=1, dtype=float))
            expected, back = net.backward(flat, kept, outputs, weights[row][:, None])
            np.testing.assert_allclose(values[row], outputs[:, 0], rtol=2e-4, atol=2e-4)
            np.testing.assert_allclose(slope[row], expected, rtol=1e-3, atol=1e-3)
            expected_action_slope += back[:, 4:]
        np.testing.assert_allclose(action_slope, expected_action_slope, rtol=1e-3, atol=1e-3)

    def test_networks_are_two_and_can_be_asked_alone(self, hidden):
        critic, params, observations, actions = self.drawn(hidden)
        both = critic.values(params, observations, actions)
        assert both.shape == (2, 11)
        assert (jnp.abs(both[0] - both[1]) > 1e-4).all()
        np.testing.assert_allclose(critic.values(params[:1], observations, actions)[0], both[0], rtol=1e-5)

    def test_init(self, hidden):
        critic = TwinCritic(4, 3, hidden)
        for row in np.asarray(critic.init(jax.random.key(3))):
            for inputs, (kernel, bias) in zip((7, *hidden), layers_of(row, critic.sizes), strict=True):
                assert (bias == 0).all()
                assert 0.5 * np.sqrt(3 / inputs) < np.abs(kernel).max() <= np.sqrt(3 / inputs)


def test_a_critic_may_see_observations_shifted_and_scaled():
    plain = TwinCritic(2, 1, (5,))
    scaled = TwinCritic(2, 1, (5,), mean=(1.0, -2.0), std=(0.5, 4.0))
    params = plain.init(jax.random.key(0))
    observations, actions = np.float32([[1.5, 2.0], [0.0, -2.0]]), np.float32([[0.3], [-0.7]])
    expected = plain.values(params, np.float32([[1.0, 1.0], [-2.0, 0.0]]), actions)
    np.testing.assert_allclose(scaled.values(params, observations, actions), expected, rtol=1e-6)
