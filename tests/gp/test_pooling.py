from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gp.reference import KINDS, ReferenceGP, cells, standardised, to_data

from jedax.gp import GPSettings, Hyperparameters, condition, fit, predict
from jedax.gp.data import standardise
from jedax.gp.derivatives import evaluate
from jedax.gp.likelihood import solve
from jedax.gp.pooling import pool, tree_leaves

SETTINGS = GPSettings(gp_max_rows=32, gp_noise_floor=1e-5)
leaves = jax.jit(tree_leaves, static_argnums=2)


def groups_of(x, weights, y, num):
    """Return which group each row is in, and the groups' centres and means, by plain loops."""
    leaf = np.asarray(leaves(jnp.asarray(x, jnp.float32), jnp.ones(len(x), bool), num))
    members = [np.flatnonzero(leaf == i) for i in range(num)]
    shares = [1 / weights[rows] for rows in members]
    centres = np.array([share @ x[rows] / share.sum() for rows, share in zip(members, shares, strict=True)])
    means = np.array([share @ y[rows] / share.sum() for rows, share in zip(members, shares, strict=True)])
    return leaf, centres, means


def dense_log_likelihood(theta, x, y, weights, leaf, floor):
    """Return log N(y; 0, P K P' + s_n^2 W), the definition, with the matrix of all rows."""
    signal, length_scale, noise = np.exp(theta)
    centres = groups_of(x, weights, y, 32)[1]
    gp = ReferenceGP(centres, np.zeros(32), np.zeros(32), signal, length_scale, noise, floor)
    matrix = gp.matrix[np.ix_(leaf, leaf)] + noise**2 * np.diag(weights)
    _, log_determinant = np.linalg.slogdet(matrix)
    return -0.5 * (y @ np.linalg.solve(matrix, y) + log_determinant + len(y) * np.log(2 * np.pi))


@pytest.mark.parametrize("weighted", [True, False])
def test_likelihood_is_that_of_the_kernel_of_low_rank_over_all_rows(weighted):
    settings = GPSettings(gp=KINDS[weighted], gp_max_rows=32, gp_noise_floor=1e-5)
    x, fitness, counts = cells(3, 100)
    weights = 1 / counts if weighted else np.ones(100)
    y = standardised(fitness)
    leaf, _, _ = groups_of(x, weights, y, 32)

    @jax.jit
    def evaluate_(theta, data):
        rows = standardise(settings, data)
        return evaluate(settings, solve(settings, theta, rows), rows)

    found = evaluate_(jnp.log(jnp.array([0.7, 0.2, 2.0])), to_data(x, fitness, counts, size=128))
    theta = np.asarray(found.theta, float)
    f = partial(dense_log_likelihood, x=x, y=y, weights=weights, leaf=leaf, floor=1e-5)
    steps = 1e-3 * np.eye(3)
    gradient = np.array([f(theta + e) - f(theta - e) for e in steps]) / 2e-3
    curvature = np.array([f(theta + e) - 2 * f(theta) + f(theta - e) for e in steps]) / 1e-6
    assert found.value == pytest.approx(f(theta), abs=0.01)
    np.testing.assert_allclose(found.gradient, gradient, atol=0.02)
    np.testing.assert_allclose(np.diag(found.hessian), curvature, rtol=0.1, atol=0.5)
    both = np.array([1, 0, 1])
    along = [f(theta + d * both) for d in (-0.05, 0, 0.05)]
    assert max(along) == along[1]  # also rescaling knows of the pooled rows


def test_prediction_is_that_of_the_kernel_of_low_rank_over_all_rows():
    x, fitness, counts = cells(3, 100)
    y, weights = standardised(fitness), 1 / counts
    leaf, centres, _ = groups_of(x, weights, y, 32)
    signal, length_scale, noise = 0.7, 0.2, 2.0
    gp = condition(SETTINGS, Hyperparameters.of(signal, length_scale, noise), to_data(x, fitness, counts, size=128))
    query = np.random.default_rng(0).random((20, 2))
    at = predict(gp, jnp.asarray(query, jnp.float32))

    kernel = ReferenceGP(centres, np.zeros(32), np.zeros(32), signal, length_scale, noise, 1e-5)
    matrix = kernel.matrix[np.ix_(leaf, leaf)] + noise**2 * np.diag(weights)
    cross = kernel.kernel(query, centres)[:, leaf]
    mean = cross @ np.linalg.solve(matrix, y)
    variance = signal**2 - np.einsum("qi,iq->q", cross, np.linalg.solve(matrix, cross.T))
    np.testing.assert_allclose(at.mean, fitness.mean() + fitness.std() * mean, atol=2e-3 * fitness.std())
    np.testing.assert_allclose(at.variance, fitness.std() ** 2 * variance, atol=2e-3 * fitness.std() ** 2)


def test_error_against_the_exact_process_on_a_smooth_landscape_falls_with_the_rows():
    rng = np.random.default_rng(1)
    x, query = rng.random((600, 2)), jnp.asarray(rng.random((300, 2)), jnp.float32)
    counts = np.floor(10 ** rng.uniform(1, 4, 600))
    fitness = np.sin(5 * x[:, 0]) + np.cos(4 * x[:, 1]) + rng.normal(0, 1, 600) / np.sqrt(counts)
    data = to_data(x, fitness, counts)

    def at(max_rows):
        settings = GPSettings(gp_max_rows=max_rows)
        return predict(fit(settings, settings.initial_hyperparameters(), data), query)

    exact = at(600)
    errors = [float(jnp.sqrt(jnp.mean((at(rows).mean - exact.mean) ** 2))) / fitness.std() for rows in (32, 128)]
    # Measured: 4.4 % and 0.8 % of the standard deviation of fitness.
    assert errors[0] < 0.08
    assert errors[1] < 0.02


@given(num=st.integers(0, 40), max_groups=st.sampled_from([1, 2, 16, 17, 31]), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_leaves_are_balanced_and_apart(num, max_groups, seed):
    num_leaves = 2 ** int(np.log2(max_groups))
    x = np.random.default_rng(seed).random((40, 3))
    leaf = np.asarray(leaves(jnp.asarray(x, jnp.float32), jnp.arange(40) < num, num_leaves))[:num]
    sizes = np.bincount(leaf, minlength=num_leaves)
    assert len(sizes) == num_leaves
    assert sizes.max() - sizes.min() <= 1
    if num_leaves == 2 and num >= 2:
        low, high = (x[:num][leaf == i] for i in (0, 1))
        side = np.ptp(x[:num], axis=0).argmax()
        assert low[:, side].max() <= high[:, side].min()


def test_as_many_groups_as_real_rows_change_nothing():
    x, fitness, counts = cells(2, 30)
    data = to_data(x, fitness, counts, size=64)
    query = jnp.asarray(np.random.default_rng(0).random((20, 2)), jnp.float32)
    exact, pooled = (
        condition(GPSettings(gp_max_rows=rows), Hyperparameters.of(1.0, 0.1, 1.0), data) for rows in (64, 32)
    )
    assert pooled.log_likelihood == pytest.approx(float(exact.log_likelihood), abs=1e-3)
    for a, b in zip(predict(pooled, query), predict(exact, query), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-2)


def test_rows_that_are_not_real_change_nothing_whatever_they_hold():
    x, fitness, counts = cells(2, 70)
    thetas = [
        fit(SETTINGS, SETTINGS.initial_hyperparameters(), to_data(x, fitness, counts, size=96, padding=padding))
        for padding in (np.nan, 0.5)
    ]
    assert thetas[0].ok
    assert float(thetas[0].log_likelihood) == float(thetas[1].log_likelihood)


@pytest.mark.parametrize("what", ["x", "fitness"])
def test_a_real_row_that_is_not_finite_gives_the_prior(what):
    x, fitness, counts = cells(2, 70)
    (x if what == "x" else fitness)[3] = np.nan
    gp = fit(SETTINGS, SETTINGS.initial_hyperparameters(), to_data(x, fitness, counts, size=96))
    assert not gp.ok
    assert np.isfinite(predict(gp, jnp.zeros((2, 2))).variance).all()


def test_groups_come_first_and_say_what_their_rows_say():
    x, y, weights = np.array([[0.1], [0.9], [0.2], [0.5]]), np.array([1.0, 5.0, 2.0, 7.0]), np.array([1.0, 1, 0.5, 1])
    found = pool(*(jnp.asarray(a, jnp.float32) for a in (x, y, weights)), jnp.array([True, True, True, False]), 2)
    assert found.mask.tolist() == [True, True]
    np.testing.assert_allclose(found.x[:, 0], [0.5 / 3, 0.9], rtol=1e-6)
    np.testing.assert_allclose(found.y, [5 / 3, 5.0], rtol=1e-6)
    np.testing.assert_allclose(found.weights, [1 / 3, 1.0], rtol=1e-6)
    assert found.num_more == 1
    assert found.scatter == pytest.approx((1 - 5 / 3) ** 2 + 2 * (2 - 5 / 3) ** 2, rel=1e-5)
    assert found.log_weights == pytest.approx(np.log(1 / 3) - np.log(0.5), rel=1e-5)
