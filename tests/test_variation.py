"""The iso+line variation against its closed form: a normal distribution whose covariance is known."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import kstest, norm, uniform

from jedax.variation import iso_line, log_uniform_iso


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


def test_scales_are_log_uniform():
    """With 4,000 parameters the spread of an offspring tells its scale to about 1 %."""
    parents = jnp.tile(jnp.linspace(-3, 3, 4000), (400, 1))
    found = np.asarray(log_uniform_iso(jax.random.key(0), parents, jnp.float32([0.02, 5]))) - np.asarray(parents)
    scale = found.std(axis=1)
    assert kstest(np.log(scale), uniform(np.log(0.02), np.log(5 / 0.02)).cdf).pvalue > 0.01
    assert kstest((found / scale[:, None])[:, :50].ravel(), norm.cdf).pvalue > 0.01
    assert abs(np.corrcoef(scale[:-1], scale[1:])[0, 1]) < 0.15
