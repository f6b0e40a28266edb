"""The policies in NumPy are those in JAX."""

import jax
import numpy as np
import pytest

from jedax import networks as policy
from jedax.tasks.gym.networks import ACTIVATIONS, Networks

SIZES = (5, 7, 3, 2)


def drawn(number, seed=0):
    chance = np.random.default_rng(seed)
    genotypes = chance.normal(size=(number, policy.num_params(SIZES))).astype(np.float32)
    return genotypes, chance.normal(size=(number, SIZES[0])).astype(np.float32)


@pytest.mark.parametrize("activation", sorted(policy.ACTIVATIONS))
def test_same_outputs_as_in_jax(activation):
    assert set(ACTIVATIONS) == set(policy.ACTIVATIONS)
    genotypes, observations = drawn(6)
    expected = jax.vmap(lambda genotype, seen: policy.apply_batch(genotype, seen[None], SIZES, activation)[0])(
        genotypes, observations
    )
    np.testing.assert_allclose(Networks(genotypes, SIZES, activation)(observations), expected, rtol=2e-5, atol=2e-6)


def test_outputs_do_not_depend_on_the_others():
    genotypes, observations = drawn(33)
    together = Networks(genotypes, SIZES, "tanh")
    outputs = together(observations)
    for row in range(33):
        alone = Networks(genotypes[row : row + 1], SIZES, "tanh")(observations[row : row + 1])
        np.testing.assert_array_equal(alone[0], outputs[row])
    which = np.arange(33) % 3 == 1
    np.testing.assert_array_equal(together.keep(which)(observations[which]), outputs[which])
