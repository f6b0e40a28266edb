"""A task without solutions."""

import jax
import jax.numpy as jnp

import jedax


class Failing(jedax.tasks.Task):
    """A task that never gives a number."""

    name = "failing"
    num_params = 2
    descriptor_bounds = ((-1.0, -1.0), (1.0, 1.0))

    def init(self, key):
        return jax.random.uniform(key, (2,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(jnp.nan * genotype[0], genotype)
