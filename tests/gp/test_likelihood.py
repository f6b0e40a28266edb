from functools import partial

import jax
import numpy as np
import pytest
from tests.gp.reference import KINDS, cells, dense, log_likelihood, standardised, to_data

from jedax.gp import GPSettings
from jedax.gp.data import cut, standardise
from jedax.gp.derivatives import evaluate
from jedax.gp.likelihood import rescale, solve
from jedax.gp.sequential import in_float64

HYPERPARAMETERS = [(1.0, 0.1, 1.0), (0.5, 0.3, 3.0), (2.0, 0.05, 0.3)]
SIGNS = [(1, 1), (1, -1), (-1, 1), (-1, -1)]


@in_float64
@partial(jax.jit, static_argnums=0)
def evaluate_(settings, theta, data):
    return evaluate(settings, solve(settings, theta, data), data)


@in_float64
@partial(jax.jit, static_argnums=0)
def value_(settings, theta, data):
    return rescale(settings, solve(settings, theta, data), data)[0]


solve_ = in_float64(jax.jit(solve, static_argnums=0))


@in_float64
def prepare(settings, *arguments, **keywords):
    return cut(standardise(settings, to_data(*arguments, **keywords)))


def log64(values):
    return np.log(np.asarray(values, float))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("values", HYPERPARAMETERS)
def test_value_gradient_and_hessian_are_those_of_the_float64_likelihood(weighted, values):
    settings = GPSettings(gp=KINDS[weighted])
    x, fitness, counts = cells(0, 50)
    weights = 1 / counts if weighted else np.ones(50)
    found = evaluate_(settings, log64(values), prepare(settings, x, fitness, counts, size=64))

    theta = np.asarray(found.theta, float)
    f = partial(log_likelihood, x=x, fitness=fitness, weights=weights)
    steps = 1e-3 * np.eye(3)
    gradient = np.array([f(theta + e) - f(theta - e) for e in steps]) / 2e-3
    corners = [[[f(theta + i * a + j * b) for i, j in SIGNS] for a in steps] for b in steps]
    hessian = (np.array(corners) @ [1, -1, -1, 1]) / 4e-6
    assert found.value == pytest.approx(f(theta), abs=1e-8)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found.hessian, hessian, rtol=0.1, atol=0.05 * np.abs(np.diag(hessian)).max())


@pytest.mark.parametrize("num", [300, 130])
def test_data_of_several_tiles_have_the_gradient_of_the_float64_likelihood(num):
    settings = GPSettings()
    x, fitness, counts = cells(5, num, side=20)
    found = evaluate_(settings, log64((0.5, 0.1, 1.0)), prepare(settings, x, fitness, counts, size=400))
    theta = np.asarray(found.theta, float)
    f = partial(log_likelihood, x=x, fitness=fitness, weights=1 / counts)
    gradient = np.array([f(theta + e) - f(theta - e) for e in 1e-3 * np.eye(3)]) / 2e-3
    assert found.value == pytest.approx(f(theta), abs=1e-7)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("values", HYPERPARAMETERS)
def test_signal_and_noise_are_rescaled_to_their_best_common_factor(values):
    settings = GPSettings()
    x, fitness, counts = cells(0, 50)
    found = evaluate_(settings, log64(values), prepare(settings, x, fitness, counts, size=64))
    theta = np.asarray(found.theta, float)
    shift = theta - np.log(values)
    assert shift[0] == pytest.approx(shift[2], abs=1e-5)
    assert shift[1] == pytest.approx(0, abs=1e-6)
    both = np.array([1, 0, 1])
    along = [log_likelihood(theta + d * both, x, fitness, 1 / counts) for d in (-0.05, 0, 0.05)]
    assert max(along) == along[1]


def test_rescaling_stops_at_the_bounds():
    x, fitness, counts = cells(0, 50)
    settings = GPSettings(gp_signal_bounds=(0.9, 1.1), gp_noise_bounds=(0.5, 1.05))
    found = evaluate_(settings, log64((1.0, 0.3, 1.0)), prepare(settings, x, fitness, counts))
    np.testing.assert_allclose(np.exp(found.theta), [1.05, 0.3, 1.05], rtol=1e-5)


@pytest.mark.parametrize("values", HYPERPARAMETERS)
def test_value_alone_is_the_value_of_the_whole(values):
    settings = GPSettings()
    data = prepare(settings, *cells(0, 50), size=64)
    whole = float(evaluate_(settings, log64(values), data).value)
    assert value_(settings, log64(values), data) == pytest.approx(whole, abs=1e-3)


def test_padding_changes_nothing_whatever_it_holds():
    settings = GPSettings()
    theta = log64((1.0, 0.1, 1.0))
    bare = evaluate_(settings, theta, prepare(settings, *cells(1, 40)))
    for padding in (np.nan, np.inf, -1e30, 0.5):
        padded = evaluate_(settings, theta, prepare(settings, *cells(1, 40), size=64, padding=padding))
        np.testing.assert_allclose(padded.theta, bare.theta, rtol=1e-5)
        np.testing.assert_allclose(padded.value, bare.value, atol=1e-3)
        np.testing.assert_allclose(padded.gradient, bare.gradient, atol=1e-2)
        np.testing.assert_allclose(padded.hessian, bare.hessian, rtol=1e-3, atol=5e-2)


def test_standardising_gives_mean_0_and_deviation_1_over_the_real_rows():
    x, fitness, counts = cells(2, 30)
    rows = in_float64(standardise)(GPSettings(), to_data(x, fitness, counts, size=40))
    np.testing.assert_allclose(rows.y[:30], standardised(fitness), rtol=1e-12)
    assert not rows.y[30:].any()
    assert rows.fitness_mean == pytest.approx(fitness.mean(), rel=1e-13)
    assert rows.fitness_scale == pytest.approx(fitness.std(), rel=1e-13)
    np.testing.assert_allclose(rows.weights, np.append(1 / counts, np.zeros(10)), rtol=1e-13)
    assert prepare(GPSettings(gp="standard"), x, fitness, counts, size=40).weights[0].tolist() == 30 * [1] + 10 * [0]


def test_equal_fitness_has_deviation_exactly_0_in_spite_of_rounding():
    x, _, counts = cells(2, 30)
    rows = in_float64(standardise)(GPSettings(), to_data(x, np.full(30, -250.1), counts))
    assert not rows.varied
    assert not rows.y.any()
    assert rows.fitness_scale == 1


def test_the_floor_rises_until_the_factorisation_succeeds():
    settings = GPSettings(gp="standard", gp_noise_floor=1e-19)
    x, fitness, counts = cells(0, 200)
    for points in (x, np.repeat(x[:2], 100, axis=0)):  # a nearly linear process, and duplicate points
        rows = prepare(settings, points, fitness, counts)
        at = solve_(settings, log64((20.0, 10.0, 1e-12)), rows)
        floor = float(at.noise_floor)
        kernel = 400 * np.exp(-np.square(points[:, None] - points[None]).sum(axis=-1) / 200)
        lower = dense(at.factor.lower)[:200, :200]
        assert at.factor.ok
        assert 5e-19 < floor < 2e-12
        assert np.log10(floor) == pytest.approx(round(np.log10(floor)), abs=1e-4)
        np.testing.assert_allclose(lower @ lower.T, kernel + 400 * floor * np.eye(200), rtol=1e-13)


def test_a_factorisation_that_fails_with_the_highest_floor_is_not_ok():
    settings = GPSettings(gp="standard", gp_noise_floor=1e-19, gp_max_noise_floor=1e-18)
    x, fitness, counts = cells(0, 200)
    rows = prepare(settings, x, fitness, counts)
    theta = log64((20.0, 10.0, 1e-12))
    at = solve_(settings, theta, rows)
    assert not at.factor.ok
    assert at.noise_floor == pytest.approx(1e-18)
    failed = evaluate_(settings, theta, rows)
    assert failed.value == -np.inf
    assert value_(settings, theta, rows) == -np.inf
    assert np.isfinite(failed.theta).all()
    assert not failed.gradient.any()
