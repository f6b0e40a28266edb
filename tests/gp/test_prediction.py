import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
from tests.gp.reference import KINDS, ReferenceGP, cells, standardised, to_data

from jedax.gp import GPData, GPSettings, Hyperparameters, condition, posterior, predict

QUERY = np.random.default_rng(9).random((40, 2)).astype(np.float32).astype(float)
VALUES = [(1.0, 0.1, 1.0), (0.6, 0.25, 3.0), (2.0, 0.05, 0.3)]


def query32(query=QUERY):
    return jnp.asarray(query, jnp.float32)


def conditioned(x, fitness, counts, values, *, weighted=True, size=128):
    settings = GPSettings(gp=KINDS[weighted])
    return condition(settings, Hyperparameters.of(*values), to_data(x, fitness, counts, size=size))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("values", VALUES)
def test_mean_variance_and_covariance_are_those_of_the_float64_process(values, weighted):
    x, fitness, counts = cells(0, 50)
    weights = 1 / counts if weighted else np.ones(50)
    reference = ReferenceGP(x, standardised(fitness), weights, *values)
    at = posterior(conditioned(x, fitness, counts, values, weighted=weighted), query32())
    scale = fitness.std()
    covariance = scale**2 * reference.covariance(QUERY)
    prior = (scale * values[0]) ** 2
    np.testing.assert_allclose(at.mean, fitness.mean() + scale * reference.mean(QUERY), atol=1e-3 * scale)
    np.testing.assert_allclose(at.variance, np.diag(covariance), rtol=1e-3, atol=1e-5 * prior)
    for i in (0, 17):
        np.testing.assert_allclose(at.covariance(jnp.int32(i)), covariance[i], rtol=1e-3, atol=1e-5 * prior)


@pytest.mark.parametrize("weighted", [True, False])
def test_mean_variance_and_likelihood_are_those_of_tinygp(weighted):
    x, fitness, counts = cells(1, 50)
    signal, length_scale, noise = values = (1.0, 0.15, 1.0)
    gp = conditioned(x, fitness, counts, values, weighted=weighted)
    diagonal = noise**2 / counts if weighted else np.full(50, noise**2)
    other = tinygp.GaussianProcess(
        signal**2 * tinygp.kernels.ExpSquared(length_scale),
        jnp.asarray(x, jnp.float32),
        diag=jnp.asarray(diagonal + 1e-6, jnp.float32),
    )
    found = other.condition(jnp.asarray(standardised(fitness), jnp.float32), query32(), diag=jnp.zeros(40))
    mean, variance = predict(gp, query32())
    scale = fitness.std()
    assert gp.log_likelihood == pytest.approx(float(found.log_probability), abs=0.02)
    np.testing.assert_allclose(mean, fitness.mean() + scale * found.gp.mean, atol=1e-3 * scale)
    np.testing.assert_allclose(variance, scale**2 * found.gp.variance, rtol=1e-3, atol=1e-5 * scale**2)


def test_a_point_of_weight_n_is_that_point_n_times():
    """The appendix's claim; fitness of +-1 in equal shares is standardised alike in both data sets."""
    rng = np.random.default_rng(3)
    x = rng.random((12, 2))
    fitness = np.tile([1.0, -1.0], 6)
    counts = np.repeat(rng.integers(1, 9, 6), 2)
    values = (1.5, 0.3, 0.8)
    weighted = conditioned(x, fitness, counts.astype(float), values)
    repeated = conditioned(
        np.repeat(x, counts, axis=0),
        np.repeat(fitness, counts),
        np.ones(counts.sum()),
        values,
        weighted=False,
    )
    assert counts.max() > 3
    for one, other in zip(predict(weighted, query32()), predict(repeated, query32()), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
    standard = conditioned(x, fitness, counts.astype(float), values, weighted=False)
    assert np.abs(predict(standard, query32())[1] - predict(repeated, query32())[1]).max() > 0.05


def test_more_evaluations_leave_less_variance_and_only_if_weighted():
    x, fitness, counts = cells(0, 50)
    few, many = (predict(conditioned(x, fitness, c, VALUES[0]), query32())[1] for c in (counts, 100 * counts))
    assert (many <= few * (1 + 1e-4) + 1e-3).all()
    assert (many < 0.9 * few).any()
    standard = [
        predict(conditioned(x, fitness, c, VALUES[0], weighted=False), query32())[1] for c in (counts, 100 * counts)
    ]
    np.testing.assert_array_equal(*standard)


def test_a_cell_with_many_evaluations_is_certain_and_one_with_few_is_not():
    x = np.array([[0.1, 0.1], [0.9, 0.9]])
    gp = conditioned(x, np.array([-300.0, -200.0]), np.array([1e5, 1.0]), (1.0, 0.1, 1.0))
    mean, variance = predict(gp, query32(x))
    # One datum each: variance 1 / (1 + 1 / noise variance), mean shrunk by 1 / (1 + noise variance).
    np.testing.assert_allclose(mean, [-300, -225], atol=0.01)
    np.testing.assert_allclose(variance, [2500 * 1e-5, 2500 * 0.5], rtol=0.05)


def test_far_from_all_data_the_prediction_is_the_prior():
    x, fitness, counts = cells(0, 50)
    mean, variance = predict(conditioned(x, fitness, counts, (1.5, 0.05, 1.0)), query32(np.array([[9.0, 9.0]])))
    np.testing.assert_allclose(mean, fitness.mean(), rtol=1e-5)
    np.testing.assert_allclose(variance, (1.5 * fitness.std()) ** 2, rtol=1e-4)


def test_variance_is_never_negative():
    x, fitness, counts = cells(0, 200)
    gp = conditioned(x, fitness, 1e5 + 0 * counts, (1.0, 1.0, 1e-3), size=200)
    _, variance = predict(gp, query32(np.concatenate([x, QUERY])))
    assert (variance >= 0).all()
    assert variance.max() < 1e-2 * fitness.var()


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 1e9), (1e25, 0.0), (1e-25, 0.0)])
def test_in_float64_predictions_follow_any_unit_of_the_fitness(factor, offset):
    """In float32 means would lose what distinguishes them, and variances would overflow."""
    x, fitness, counts = cells(0, 50)
    with jax.enable_x64(True):

        def at(values):
            data = GPData(*(jnp.asarray(a, float) for a in (x, values, counts)), mask=jnp.ones(50, bool))
            return posterior(condition(GPSettings(), Hyperparameters.of(*VALUES[0]), data), jnp.asarray(QUERY, float))

        one, other = at(fitness), at(factor * fitness + offset)
        np.testing.assert_allclose((other.mean - offset) / factor, one.mean, atol=1e-6)
        np.testing.assert_allclose(other.variance / factor**2, one.variance, rtol=1e-6)
        covariances = [np.asarray(of.covariance(jnp.int32(3))) for of in (one, other)]
        np.testing.assert_allclose(covariances[1] / factor**2, covariances[0], rtol=1e-6)


def test_noise_variance_is_in_squared_fitness_units():
    x, fitness, counts = cells(0, 50)
    gp = conditioned(x, fitness, counts, (1.0, 0.1, 3.0))
    assert gp.noise_variance == pytest.approx(9 * fitness.var(), rel=1e-4)


def test_posterior_under_vmap_is_that_of_each_alone():
    gps = [conditioned(*cells(seed, 40), VALUES[seed]) for seed in (0, 1)]
    together = jax.vmap(posterior, in_axes=(0, None))(jax.tree.map(lambda *a: jnp.stack(a), *gps), query32())
    covariance = jax.vmap(lambda at, i: at.covariance(i), in_axes=(0, 0))(together, jnp.array([3, 5]))
    for i, index in enumerate((3, 5)):
        alone = posterior(gps[i], query32())
        np.testing.assert_allclose(together.mean[i], alone.mean, rtol=1e-5)
        np.testing.assert_allclose(together.variance[i], alone.variance, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(covariance[i], alone.covariance(jnp.int32(index)), rtol=1e-4, atol=1e-2)
