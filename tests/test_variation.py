"""The iso+line variation against its closed form: a normal distribution whose covariance is known."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import kstest, uniform

from jedax.variation import iso_line, log_uniform


def offspring(iso_sigma, line_sigma, number=40_000):
    parents = jnp.tile(jnp.float32([1, -2]), (number, 1))
    partners = jnp.tile(jnp.float32([4, 2]), (number, 1))
    return np.asarray(iso_line(jax.random.key(0), parents, partners, iso_sigma, line_sigma))


def test_mean_and_covariance():
    found = offspring(0.3, 0.5)
    line = np.array([3.0, 4.0])
    covariance = 0.3**2 * np.eye(2) + 0.5**2 * np.outer(line, line)
    # Standard errors at 40,000 samples: of the mean below .011, of the covariance below .03.
    np.testing.assert_allclose(found.mean(axis=0), [1, -2], atol=0.05)
    np.testing.assert_allclose(np.cov(found.T), covariance, atol=0.12)


def test_line_alone_stays_on_the_line():
    found = offspring(0.0, 0.5, 100) - [1, -2]
    np.testing.assert_allclose(found[:, 0] * 4, found[:, 1] * 3, atol=1e-4)
    assert found.std() > 0.5


def test_without_sigmas_nothing_varies():
    np.testing.assert_array_equal(offspring(0.0, 0.0, 10), np.tile([1, -2], (10, 1)))


def test_offspring_vary_independently():
    found = offspring(0.3, 0.5)
    assert abs(np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]) < 0.03


def test_an_intermediate_step_is_drawn_for_each_parameter():
    """Mean and covariance of the closed form: the parts of the line to the partner vary, and do so independently."""
    number = 40_000
    parents, partners = jnp.tile(jnp.float32([1, -2]), (number, 1)), jnp.tile(jnp.float32([4, 2]), (number, 1))
    sigmas = jnp.full((number, 1), 0.3), jnp.full((number, 1), 0.5)
    which = jnp.arange(number)[:, None] % 2 == 0
    found = np.asarray(iso_line(jax.random.key(0), parents, partners, *sigmas, which))
    # Standard errors at 20,000 samples: of the mean below .015, of the covariance below .045.
    line = np.array([3.0, 4.0])
    expected = (0.5**2 * np.diag(line**2), 0.5**2 * np.outer(line, line))
    for part, covariance in zip((found[::2], found[1::2]), expected, strict=True):
        np.testing.assert_allclose(part.mean(axis=0), [1, -2], atol=0.07)
        np.testing.assert_allclose(np.cov(part.T), 0.3**2 * np.eye(2) + covariance, atol=0.17)


def test_sigmas_of_each_parent():
    parents, partners = jnp.zeros((3, 500)), jnp.full((3, 500), 100.0)
    sigmas = jnp.float32([[0.0], [2.0], [0.0]]), jnp.float32([[0.0], [0.0], [0.5]])
    found = np.asarray(iso_line(jax.random.key(0), parents, partners, *sigmas, jnp.array([[False], [False], [True]])))
    np.testing.assert_array_equal(found[0], 0)
    # Standard error of the standard deviation of 500 numbers: 3 %.
    np.testing.assert_allclose(found[1:].std(axis=1), [2.0, 50.0], rtol=0.15)


def test_scales_are_log_uniform():
    scale = np.asarray(log_uniform(jax.random.key(0), jnp.zeros((400, 1)), (0.02, 5)))
    assert scale.shape == (400, 1)
    assert kstest(np.log(scale[:, 0]), uniform(np.log(0.02), np.log(5 / 0.02)).cdf).pvalue > 0.01
    assert abs(np.corrcoef(scale[:-1, 0], scale[1:, 0])[0, 1]) < 0.15
