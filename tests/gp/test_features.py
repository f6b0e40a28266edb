import jax.numpy as jnp
import numpy as np
import pytest
from tests.gp.reference import ReferenceGP, best_log_likelihood, log_likelihood, logs, standardised, to_data

from jedax.gp import GPSettings, Hyperparameters, condition, fit, posterior, predict
from jedax.gp.features import _products, shortest_length_scale

QUERY = np.random.default_rng(9).random((60, 2)).astype(np.float32).astype(float)
FEW = GPSettings(gp_max_rows=256)


def surface(num, length_scale, *, dimensions=2, noise=0.3, seed=0):
    """Return descriptors, fitness and counts of a sample of the process itself; float32 values."""
    rng = np.random.default_rng(seed)
    x, counts = rng.random((num, dimensions)).astype(np.float32).astype(float), np.floor(10 ** rng.uniform(0, 4, num))
    gp = ReferenceGP(x, np.zeros(num), np.zeros(num), 1.0, length_scale, 0.0, 1e-8)
    fitness = np.linalg.cholesky(gp.matrix) @ rng.normal(size=num) + noise * rng.normal(size=num) / np.sqrt(counts)
    return x, fitness.astype(np.float32).astype(float), counts


@pytest.mark.parametrize(("length_scale", "by_features"), [(0.25, True), (0.03, False)])
def test_many_rows_have_the_exact_likelihood_and_prediction(length_scale, by_features):
    x, fitness, counts = surface(900, length_scale)
    values = (1.0, length_scale, 0.3)
    gp = condition(FEW, Hyperparameters.of(*values), to_data(x, fitness, counts, size=1000))
    reference = ReferenceGP(x, standardised(fitness), 1 / counts, *np.exp(logs(gp.hyperparameters)))
    assert bool(gp.by_features) == by_features
    assert gp.log_likelihood == pytest.approx(reference.log_likelihood(), abs=FEW.gp_tolerance)
    at = posterior(gp, jnp.asarray(QUERY, jnp.float32))
    scale, covariance = fitness.std(), reference.covariance(QUERY)
    np.testing.assert_allclose(at.mean, fitness.mean() + scale * reference.mean(QUERY), atol=1e-5 * scale)
    np.testing.assert_allclose(at.variance, scale**2 * np.diag(covariance), rtol=1e-3, atol=1e-8)
    np.testing.assert_allclose(at.covariance(jnp.int32(3)), scale**2 * covariance[3], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("num", [1300, pytest.param(2500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("length_scale", [0.15, 0.02])
def test_many_rows_lose_little_against_the_best_hyperparameters_of_scipy(length_scale, num):
    """The hyperparameters come from 1,024 rows, which costs about 3/2 (num / 1024 - 1) nats."""
    x, fitness, counts = surface(num, length_scale, seed=1)
    gp = fit(GPSettings(), GPSettings().initial_hyperparameters(), to_data(x, fitness, counts))
    there = log_likelihood(logs(gp.hyperparameters), x, fitness, 1 / counts)
    best = best_log_likelihood(GPSettings(), x, fitness, 1 / counts, [np.exp(logs(gp.hyperparameters))], maxiter=2)
    assert gp.log_likelihood == pytest.approx(there, abs=GPSettings().gp_tolerance + 0.01)
    assert there > best - 0.01 * len(x)


def test_a_repertoire_too_large_for_the_whole_matrix_has_length_scales_that_the_features_resolve():
    settings = GPSettings(gp_max_rows=128)
    shortest = shortest_length_scale(settings, 2)
    x, fitness, counts = surface(600, 0.02)
    gp = fit(settings, settings.initial_hyperparameters(), to_data(x, fitness, counts))
    assert gp.ok
    assert gp.by_features
    assert 0.1 < shortest < 0.5
    assert gp.hyperparameters.length_scale >= shortest * (1 - 1e-6)
    there = log_likelihood(logs(gp.hyperparameters), x, fitness, 1 / counts)
    assert gp.log_likelihood == pytest.approx(there, rel=1e-4)


@pytest.mark.parametrize(("dimensions", "expected"), [(2, 0.06), (3, 0.22), (4, 0.5)])
def test_the_shortest_length_scale_is_that_of_the_guide(dimensions, expected):
    assert shortest_length_scale(GPSettings(), dimensions) == pytest.approx(expected, rel=0.06)


def test_a_repertoire_of_less_than_a_tile_has_the_exact_process_whatever_the_rows_are():
    settings = GPSettings(gp_max_rows=16)
    x, fitness, counts = surface(100, 0.3)
    gp = fit(settings, settings.initial_hyperparameters(), to_data(x, fitness, counts))
    there = log_likelihood(logs(gp.hyperparameters), x, fitness, 1 / counts)
    assert gp.ok
    assert gp.log_likelihood == pytest.approx(there, rel=1e-4)


def test_products_of_many_descriptors_are_few():
    """No more than 2^14: beyond fourteen descriptors the others do not vary."""
    for dimensions in (1, 2, 3, 14, 24):
        products = _products(dimensions)
        assert products.shape[1] == dimensions
        assert 64 <= len(products) <= 2**14
        assert len(np.unique(products, axis=0)) == len(products)


@pytest.mark.parametrize(("dimensions", "length_scale"), [(1, 0.1), (3, 1.2)])
def test_descriptors_of_other_dimensions(dimensions, length_scale):
    x, fitness, counts = surface(400, length_scale, dimensions=dimensions)
    gp = condition(FEW, Hyperparameters.of(1.0, length_scale, 0.3), to_data(x, fitness, counts))
    there = log_likelihood(logs(gp.hyperparameters), x, fitness, 1 / counts)
    assert gp.by_features
    assert gp.log_likelihood == pytest.approx(there, abs=FEW.gp_tolerance)


def test_rows_that_are_not_real_change_nothing_whatever_they_hold():
    x, fitness, counts = surface(300, 0.3)
    data = [to_data(x, fitness, counts, size=400, padding=padding) for padding in (np.nan, 0.5)]
    one, other = (fit(FEW, FEW.initial_hyperparameters(), d) for d in data)
    assert one.ok
    assert float(one.log_likelihood) == float(other.log_likelihood)


@pytest.mark.parametrize("what", ["x", "fitness"])
def test_a_real_row_that_is_not_finite_gives_the_prior(what):
    x, fitness, counts = surface(300, 0.3)
    (x if what == "x" else fitness)[3] = np.nan
    gp = fit(FEW, FEW.initial_hyperparameters(), to_data(x, fitness, counts))
    assert not gp.ok
    assert np.isfinite(predict(gp, jnp.zeros((2, 2))).variance).all()
