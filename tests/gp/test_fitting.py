import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.gp.reference import KINDS, best_log_likelihood, cells, log_likelihood, logs, to_data

from jedax.gp import GPData, GPSettings, Hyperparameters, condition, fit, predict

STARTS = [(1.0, 0.1, 1.0), (1.0, 0.03, 0.3), (1.0, 0.5, 3.0)]
COLD = GPSettings().initial_hyperparameters()
QUERY = jnp.asarray(np.random.default_rng(9).random((20, 2)), jnp.float32)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("num", [60, 120])
def test_finds_the_likelihood_that_scipy_finds(seed, num, weighted):
    settings = GPSettings(gp=KINDS[weighted])
    x, fitness, counts = cells(seed, num)
    weights = 1 / counts if weighted else np.ones(num)
    gp = fit(settings, COLD, to_data(x, fitness, counts, size=128))
    best = best_log_likelihood(settings, x, fitness, weights, STARTS)
    there = log_likelihood(logs(gp.hyperparameters), x, fitness, weights)
    assert gp.ok
    assert gp.log_likelihood == pytest.approx(there, abs=1e-3)
    assert there > best - 0.05
    assert gp.num_evaluations <= 30


@pytest.mark.parametrize("function", ["smooth", "cliff", "noise"])
@pytest.mark.parametrize("weighted", [True, False])
def test_finds_the_likelihood_that_scipy_finds_on_functions_of_other_kinds(function, weighted):
    settings = GPSettings(gp=KINDS[weighted])
    x, _, counts = cells(11, 60)
    rng = np.random.default_rng(11)
    fitness = {
        "smooth": np.sin(5 * x[:, 0]) + x[:, 1] + 0.05 * rng.normal(size=60),
        "cliff": 1.0 * (x[:, 0] > 0.5) + 0.02 * rng.normal(size=60),
        "noise": rng.normal(size=60),
    }[function]
    fitness = fitness.astype(np.float32).astype(float)
    weights = 1 / counts if weighted else np.ones(60)
    gp = fit(settings, COLD, to_data(x, fitness, counts, size=128))
    assert gp.log_likelihood > best_log_likelihood(settings, x, fitness, weights, STARTS) - 0.05


def test_a_cold_start_prefers_structure_to_noise():
    x, fitness, counts = cells(3, 120)
    all_noise = log_likelihood(np.log([0.05, 0.01, 1.0]), x, fitness, np.ones(120))
    gp = fit(GPSettings(gp="standard"), COLD, to_data(x, fitness, counts, size=128))
    assert gp.log_likelihood > all_noise + 30
    assert gp.hyperparameters.noise < 0.8


def test_a_warm_start_takes_a_handful_of_evaluations():
    x, fitness, counts = cells(3, 120)
    before = fit(GPSettings(), COLD, to_data(x, fitness, counts, size=128))
    changed = np.arange(120) % 20 == 0
    fitness, counts = fitness + 3 * changed, counts + 500 * changed
    after = fit(GPSettings(), before.hyperparameters, to_data(x, fitness, counts, size=128))
    cold = fit(GPSettings(), COLD, to_data(x, fitness, counts, size=128))
    assert after.num_evaluations <= 4
    assert after.log_likelihood > cold.log_likelihood - 0.05
    again = fit(GPSettings(), after.hyperparameters, to_data(x, fitness, counts, size=128))
    assert again.num_evaluations == 2
    np.testing.assert_allclose(logs(again.hyperparameters), logs(after.hyperparameters), atol=1e-2)


@pytest.mark.parametrize(
    "start",
    [(1.0, 3.0, 0.01), (0.05, 10.0, 1.0), (0.05, 0.01, 1e-3), (20.0, 10.0, 100.0), (np.nan, 0.1, 1.0)],
)
def test_a_bad_warm_start_does_not_spoil_the_fit(start):
    data = to_data(*cells(3, 120), size=128)
    cold = fit(GPSettings(), COLD, data)
    assert fit(GPSettings(), Hyperparameters.of(*start), data).log_likelihood > cold.log_likelihood - 0.05


@pytest.mark.parametrize(
    ("bounds", "weighted"),
    [
        ({"gp_signal_bounds": (0.05, 0.5), "gp_start": (0.3, 0.1, 1.0)}, True),
        ({"gp_length_scale_bounds": (0.3, 0.5), "gp_start": (1.0, 0.4, 1.0)}, False),
        ({"gp_noise_bounds": (1e-3, 0.2), "gp_start": (1.0, 0.1, 0.1)}, True),
        ({"gp_signal_bounds": (0.05, 0.5), "gp_length_scale_bounds": (0.01, 0.03), "gp_start": (0.3, 0.02, 1)}, False),
    ],
)
def test_hyperparameters_stay_inside_the_bounds(bounds, weighted):
    settings = GPSettings(gp=KINDS[weighted], **bounds)
    x, fitness, counts = cells(3, 60)
    weights = 1 / counts if weighted else np.ones(60)
    gp = fit(settings, settings.initial_hyperparameters(), to_data(x, fitness, counts, size=128))
    low, high = np.log(settings.gp_bounds).T
    assert (logs(gp.hyperparameters) >= low - 1e-5).all()
    assert (logs(gp.hyperparameters) <= high + 1e-5).all()
    best = best_log_likelihood(settings, x, fitness, weights, [settings.gp_start])
    assert gp.log_likelihood > best - 0.05 - 1e-5 * abs(best)


def test_the_number_of_evaluations_is_capped():
    data = to_data(*cells(3, 60), size=128)
    gp = fit(GPSettings(gp_max_steps=3), COLD, data)
    assert gp.num_evaluations == 1 + 3 * 3  # one look, and three steps from each start
    assert gp.log_likelihood < fit(GPSettings(), COLD, data).log_likelihood


def test_padding_changes_nothing():
    bare = fit(GPSettings(), COLD, to_data(*cells(4, 64)))
    for padding in (np.nan, -np.inf, 0.0):
        padded = fit(GPSettings(), COLD, to_data(*cells(4, 64), size=128, padding=padding))
        assert padded.log_likelihood == pytest.approx(float(bare.log_likelihood), abs=0.01)
        np.testing.assert_allclose(logs(padded.hyperparameters), logs(bare.hyperparameters), atol=0.01)
        for padded_part, bare_part in zip(predict(padded, QUERY), predict(bare, QUERY), strict=True):
            np.testing.assert_allclose(padded_part, bare_part, rtol=2e-2, atol=0.05)


def test_the_order_of_the_data_changes_nothing():
    parts = cells(4, 60)
    order = np.random.default_rng(0).permutation(60)
    one = fit(GPSettings(), COLD, to_data(*parts, size=128))
    other = fit(GPSettings(), COLD, to_data(*(part[order] for part in parts), size=128))
    assert other.log_likelihood == pytest.approx(float(one.log_likelihood), abs=0.05)
    np.testing.assert_allclose(logs(other.hyperparameters), logs(one.hyperparameters), atol=0.1)


def test_scaling_and_shifting_fitness_scales_and_shifts_the_prediction():
    x, fitness, counts = cells(4, 60)
    one = predict(fit(GPSettings(), COLD, to_data(x, fitness, counts, size=128)), QUERY)
    other = predict(fit(GPSettings(), COLD, to_data(x, 8 * fitness - 1000, counts, size=128)), QUERY)
    np.testing.assert_allclose(other[0], 8 * one[0] - 1000, rtol=1e-4)
    np.testing.assert_allclose(other[1], 64 * one[1], rtol=1e-2)


def test_without_data_the_process_is_its_prior():
    start = Hyperparameters.of(2.0, 0.3, 1.0)
    gp = fit(GPSettings(), start, to_data(*(part[:0] for part in cells(0, 1)), size=128))
    mean, variance = predict(gp, QUERY)
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(variance, 4, rtol=1e-5)
    np.testing.assert_allclose(logs(gp.hyperparameters), logs(start), rtol=1e-6)
    assert gp.num_evaluations == 0
    assert gp.ok


@pytest.mark.parametrize("num", [1, 2, 30])
def test_data_of_equal_fitness_leave_the_hyperparameters_alone(num):
    x, _, counts = cells(0, num)
    start = Hyperparameters.of(0.5, 0.2, 0.1)
    gp = fit(GPSettings(), start, to_data(x, np.full(num, -250.1), counts, size=128))
    mean, variance = predict(gp, jnp.concatenate([QUERY, jnp.asarray(x, jnp.float32)]))
    np.testing.assert_allclose(mean, -250.1, rtol=1e-6)
    np.testing.assert_allclose(logs(gp.hyperparameters), logs(start), rtol=1e-6)
    assert (variance[:20] <= 0.25 + 1e-6).all()
    assert (variance[20:] < 0.02).all()
    assert gp.ok


def test_a_real_row_that_is_not_finite_is_reported_and_gives_the_prior():
    x, fitness, counts = cells(0, 30)
    for broken in (np.nan, np.inf):
        start = Hyperparameters.of(2.0, 0.3, 1.0)
        gp = fit(GPSettings(), start, to_data(x, np.append(fitness[1:], broken), counts, size=128))
        mean, variance = predict(gp, QUERY)
        assert not gp.ok
        assert gp.log_likelihood == -np.inf
        np.testing.assert_array_equal(mean, 0)
        np.testing.assert_allclose(variance, 4, rtol=1e-5)
        np.testing.assert_allclose(logs(gp.hyperparameters), logs(start), rtol=1e-6)


SINGULAR = Hyperparameters.of(1.0, 10.0, 1e-12)


def test_a_factorisation_beyond_mending_is_reported_and_gives_the_prior():
    settings = GPSettings(gp="standard", gp_noise_floor=1e-19, gp_max_noise_floor=1e-18)
    gp = condition(settings, SINGULAR, to_data(*cells(0, 200)))
    mean, variance = predict(gp, QUERY)
    assert not gp.ok
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(variance, 1, rtol=1e-5)


def test_a_mended_factorisation_is_reported():
    x, fitness, counts = cells(0, 200)
    gp = condition(GPSettings(gp="standard", gp_noise_floor=1e-19), SINGULAR, to_data(x, fitness, counts))
    assert gp.ok
    assert gp.noise_floor > 5e-19
    mean, variance = predict(gp, QUERY)
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()


def test_condition_takes_the_hyperparameters_as_they_are():
    x, fitness, counts = cells(0, 50)
    start = Hyperparameters.of(0.7, 0.2, 2.0)
    gp = condition(GPSettings(), start, to_data(x, fitness, counts, size=128))
    np.testing.assert_array_equal(logs(gp.hyperparameters), logs(start))
    expected = log_likelihood(logs(start), x, fitness, 1 / counts)
    assert gp.log_likelihood == pytest.approx(expected, abs=0.01)
    assert gp.noise_floor == pytest.approx(1e-10)
    assert gp.num_evaluations == 0


def test_vmap_over_replicas_fits_each_as_if_alone():
    all_data = [to_data(*cells(seed, num), size=128) for seed, num in ((0, 60), (1, 33), (2, 0))]
    starts = [COLD, Hyperparameters.of(0.5, 0.2, 2.0), COLD]
    data, start = (jax.tree.map(lambda *a: jnp.stack(a), *trees) for trees in (all_data, starts))
    together = jax.vmap(lambda s, d: fit(GPSettings(), s, d))(start, data)
    means, variances = jax.vmap(predict, in_axes=(0, None))(together, QUERY)
    for i in range(3):
        alone = fit(GPSettings(), starts[i], all_data[i])
        np.testing.assert_array_equal(together.num_evaluations[i], alone.num_evaluations)
        for name in ("log_likelihood", "weights", "mask", "noise_floor", "ok"):
            np.testing.assert_allclose(getattr(together, name)[i], getattr(alone, name), rtol=1e-4, atol=1e-4)
        mean, variance = predict(alone, QUERY)
        np.testing.assert_allclose(means[i], mean, rtol=1e-5)
        np.testing.assert_allclose(variances[i], variance, rtol=1e-3, atol=1e-3)


def test_replicas_take_turns_with_lapack():
    """Batched calls at the same time can wait for each other for ever; see `jedax.gp.sequential`."""
    data = to_data(*cells(0, 60), size=128)
    data, start = (jax.tree.map(lambda a: jnp.broadcast_to(a, (7, *a.shape)), tree) for tree in (data, COLD))
    fitted = jax.jit(jax.vmap(lambda s, d: fit(GPSettings(), s, d)))
    predicted = jax.jit(jax.vmap(lambda gp: predict(gp, QUERY)))
    calls = []
    for program in (fitted.lower(start, data), predicted.lower(fitted(start, data))):
        calls += [line for line in program.as_text().splitlines() if "lapack_" in line or "blas_" in line]
    assert calls
    assert not any("7x128" in line for line in calls)


def test_equal_settings_do_not_compile_anew():
    traced = []

    def likelihood(settings: GPSettings, at: Hyperparameters, data: GPData):
        traced.append(settings)
        return condition(settings, at, data).log_likelihood

    compiled = jax.jit(likelihood, static_argnums=0)
    data = to_data(*cells(0, 60), size=128)
    for num in (60, 30):
        compiled(GPSettings(), COLD, dataclasses.replace(data, mask=jnp.arange(128) < num))
    assert len(traced) == 1
    compiled(GPSettings(gp="standard"), COLD, data)
    assert len(traced) == 2
