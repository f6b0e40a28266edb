"""What samples of a solution come to."""

import statistics

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.noisy import Noisy

from jedax.sampling import aggregate
from jedax.types import Evaluation, Transitions

NUMBERS = st.floats(-1e3, 1e3, width=32)


def samples_of(rows):
    fitness = jnp.array(rows, jnp.float32)  # (samples, batch)
    return Evaluation(fitness, jnp.stack([fitness, -2 * fitness], axis=-1))


@settings(deadline=None, max_examples=30)
@given(rows=st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=n,
                                                         max_size=n)))  # fmt: skip
def test_mean_and_median_are_those_of_the_standard_library(rows):
    for how, of in (("mean", statistics.mean), ("median", statistics.median)):
        found = aggregate(samples_of(rows), how)
        expected = [of(column) for column in np.transpose(np.float32(rows)).astype(float).tolist()]
        np.testing.assert_allclose(found.fitness, expected, rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(found.descriptor[:, 0], expected, rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(found.descriptor[:, 1], -2 * np.array(expected), rtol=1e-5, atol=2e-3)


@pytest.mark.parametrize("how", ["mean", "median"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_failed_sample_fails_the_solution(how, bad):
    found = aggregate(samples_of([[1.0, 2, 3], [1, bad, 3], [1, 2, 3]]), how)
    assert found.valid.tolist() == [True, False, True]
    assert np.isnan(found.fitness[1])
    assert np.isnan(found.descriptor[1]).all()
    np.testing.assert_array_equal(found.fitness[::2], [1, 3])


@pytest.mark.parametrize("how", ["mean", "median"])
def test_a_descriptor_that_is_not_finite_fails_the_solution(how):
    samples = samples_of([[1.0, 2], [1, 2]])
    samples = Evaluation(samples.fitness, samples.descriptor.at[1, 0, 1].set(jnp.nan))
    assert aggregate(samples, how).valid.tolist() == [False, True]


@pytest.mark.parametrize(
    ("how", "samples", "variance"),
    # Of the median of three normal numbers: David & Nagaraja, Order Statistics (2003), table 3.2.
    [("mean", 4, 1 / 4), ("mean", 9, 1 / 9), ("median", 3, 0.4487)],
)
def test_noise_shrinks_as_it_should(how, samples, variance):
    number = 20_000
    task, genotypes = Noisy(sigma=3.0, spread=0.5), jnp.zeros((number, 2))
    keys = jax.random.split(jax.random.key(1), samples)
    found = jax.jit(lambda k: aggregate(jax.vmap(task.evaluate_batch, (0, None))(k, genotypes), how))(keys)
    relative = 4 * np.sqrt(2 / number)  # four standard errors of a variance
    np.testing.assert_allclose(np.var(found.fitness), 9 * variance, rtol=relative)
    np.testing.assert_allclose(np.var(found.descriptor, axis=0), 0.25 * variance, rtol=relative)


def test_transitions_of_all_samples_follow_each_other():
    def steps(start):
        rewards = start + jnp.arange(2 * 5, dtype=jnp.float32).reshape(2, 5)  # batch 2, 5 steps
        wide = jnp.stack([rewards] * 3, axis=-1)
        yes = jnp.ones((2, 5), bool)
        return Transitions(wide, wide, rewards, wide, yes, yes)

    parts = [Evaluation(jnp.zeros(2), jnp.zeros((2, 2)), steps(100.0 * sample)) for sample in range(3)]
    found = aggregate(jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts), "mean").transitions
    assert found.observations.shape == (2, 15, 3)
    np.testing.assert_array_equal(found.rewards[1], [*range(5, 10), *range(105, 110), *range(205, 210)])
    np.testing.assert_array_equal(found.observations[1, :, 2], found.rewards[1])
