"""A task whose noise is known."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax import Evaluation
from jedax.tasks.base import Task


@dataclass(frozen=True)
class Noisy(Task):
    """Fitness and both descriptors are normal around 0 (or around the genotype), whoever is evaluated.

    Attributes:
        sigma: Standard deviation of the fitness.
        spread: Standard deviation of each descriptor.
        failing: Share of evaluations that fail.
    """

    sigma: float = 1.0
    spread: float = 0.0
    failing: float = 0.0

    name = "noisy"
    num_params = 2
    descriptor_bounds = ((-4.0, -4.0), (4.0, 4.0))

    def init(self, key):
        return jax.random.normal(key, (2,))

    def evaluate(self, key, genotype):
        fitness_key, descriptor_key, fails_key = jax.random.split(key, 3)
        fitness = self.sigma * jax.random.normal(fitness_key)
        fails = jax.random.uniform(fails_key) < self.failing
        descriptor = genotype + self.spread * jax.random.normal(descriptor_key, (2,))
        return Evaluation(jnp.where(fails, jnp.nan, fitness), descriptor)


def expected_maximum(number):
    """Mean and variance of the largest of some standard normal numbers, by integration."""
    from scipy.stats import norm

    x = np.linspace(-8, 8, 20_001)
    density = number * norm.pdf(x) * norm.cdf(x) ** (number - 1)
    mean = np.trapezoid(x * density, x)
    return mean, np.trapezoid((x - mean) ** 2 * density, x)
