"""Policies for many observations against those for a single one, and those in JAX against NumPy."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax import networks as policy
from jedax.tasks.settings import Activation

SIZES = (5, 7, 3, 2)


def together(genotype, observations, sizes, activation):
    return policy.forward(policy.layers(genotype, sizes), observations, activation)


def one_by_one(genotype, observations, sizes, activation):
    single = jax.vmap(lambda row: jnp.stack(policy.apply(genotype, list(row), sizes, activation)))
    return single(observations)


class TestForward:
    @pytest.mark.parametrize("activation", policy.ACTIVATIONS)
    @pytest.mark.parametrize("sizes", [(5, 8, 2), (3, 2), (4, 7, 6, 3)])
    def test_like_apply(self, sizes, activation):
        genotype = policy.init(jax.random.key(0), sizes) + 0.1 * jax.random.normal(
            jax.random.key(1), (policy.num_params(sizes),)
        )
        observations = jax.random.normal(jax.random.key(2), (30, sizes[0]))
        expected = one_by_one(genotype, observations, sizes, activation)
        got = together(genotype, observations, sizes, activation)
        assert got.shape == (30, sizes[-1])
        np.testing.assert_allclose(got, expected, atol=1e-6)

    def test_slopes_like_those_of_apply(self):
        sizes = (5, 8, 2)
        genotype, observations = policy.init(jax.random.key(0), sizes), jax.random.normal(jax.random.key(2), (30, 5))
        slopes = [
            jax.grad(lambda g, network=network: network(g, observations, sizes, "tanh")[:, 0].sum())(genotype)
            for network in (together, one_by_one)
        ]
        np.testing.assert_allclose(*slopes, atol=1e-5)

    def test_a_large_network(self):
        sizes = (18, 256, 256, 6)
        rng = np.random.default_rng(0)
        kernels = [rng.normal(0, 1 / np.sqrt(i), (i, o)) for i, o in ((18, 256), (256, 256), (256, 6))]
        biases = [rng.normal(size=o) for o in (256, 256, 6)]
        genotype = np.concatenate([np.append(k.ravel(), b) for k, b in zip(kernels, biases, strict=True)])
        assert len(genotype) == policy.num_params(sizes)
        x = observations = rng.normal(size=(10, 18))
        for kernel, bias in zip(kernels, biases, strict=True):
            x = np.tanh(x @ kernel + bias)
        got = together(jnp.asarray(genotype, jnp.float32), jnp.asarray(observations), sizes, "tanh")
        np.testing.assert_allclose(got, x, atol=2e-5)


def drawn(number):
    rng = np.random.default_rng(0)
    genotypes = rng.normal(size=(number, policy.num_params(SIZES))).astype(np.float32)
    return genotypes, rng.normal(size=(number, SIZES[0])).astype(np.float32)


class TestPolicies:
    """Policies in NumPy, for worker processes."""

    @pytest.mark.parametrize("activation", policy.ACTIVATIONS)
    def test_same_outputs_as_in_jax(self, activation):
        genotypes, observations = drawn(6)
        expected = jax.vmap(lambda genotype, seen: together(genotype, seen[None], SIZES, activation)[0])(
            genotypes, observations
        )
        got = policy.Policies(genotypes, SIZES, activation)(observations)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)

    def test_outputs_do_not_depend_on_the_others(self):
        genotypes, observations = drawn(33)
        together = policy.Policies(genotypes, SIZES, "tanh")
        outputs = together(observations)
        for row in range(33):
            alone = policy.Policies(genotypes[row : row + 1], SIZES, "tanh")(observations[row : row + 1])
            np.testing.assert_array_equal(alone[0], outputs[row])
        which = np.arange(33) % 3 == 1
        np.testing.assert_array_equal(together.keep(which)(observations[which]), outputs[which])


def test_activations_are_those_of_the_settings():
    assert get_args(Activation) == policy.ACTIVATIONS
