"""The policy for many observations against the one for a single one, and against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax import networks as policy


def one_by_one(genotype, observations, sizes, activation):
    single = jax.vmap(lambda row: jnp.stack(policy.apply(genotype, list(row), sizes, activation)))
    return single(observations)


class TestApplyBatch:
    @pytest.mark.parametrize("activation", policy.ACTIVATIONS)
    @pytest.mark.parametrize("sizes", [(5, 8, 2), (3, 2), (4, 7, 6, 3)])
    def test_like_apply(self, sizes, activation):
        genotype = policy.init(jax.random.key(0), sizes) + 0.1 * jax.random.normal(
            jax.random.key(1), (policy.num_params(sizes),)
        )
        observations = jax.random.normal(jax.random.key(2), (30, sizes[0]))
        expected = one_by_one(genotype, observations, sizes, activation)
        got = policy.apply_batch(genotype, observations, sizes, activation)
        assert got.shape == (30, sizes[-1])
        np.testing.assert_allclose(got, expected, atol=1e-6)

    def test_slopes_like_those_of_apply(self):
        sizes = (5, 8, 2)
        genotype, observations = policy.init(jax.random.key(0), sizes), jax.random.normal(jax.random.key(2), (30, 5))
        slopes = [
            jax.grad(lambda g, network=network: network(g, observations, sizes, "tanh")[:, 0].sum())(genotype)
            for network in (policy.apply_batch, one_by_one)
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
        got = policy.apply_batch(jnp.asarray(genotype, jnp.float32), jnp.asarray(observations), sizes, "tanh")
        np.testing.assert_allclose(got, x, atol=2e-5)
