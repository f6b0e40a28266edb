"""Slow tasks that record the processes that evaluate them."""

import os
import time
from pathlib import Path

import numpy as np


def _mark(seconds):
    """Leave a file named after this process, and take some time."""
    (Path(os.environ["JEDAX_TEST_PIDS"]) / str(os.getpid())).touch()
    time.sleep(seconds)


def patient(genotypes):
    """Evaluate in a worker, 1 ms each."""
    _mark(0.001 * len(genotypes))
    return -np.abs(genotypes).max(axis=1), np.clip(genotypes[:, :2], -1, 1)


patient.num_params = 3
patient.descriptor_lows = (-1.0, -1.0)
patient.descriptor_highs = (1.0, 1.0)


def __getattr__(name):
    """Return `Slow`, evaluated in JAX, 2 ms each. Workers do not import JAX."""
    if name != "Slow":
        raise AttributeError(name)
    import jax
    import jax.numpy as jnp

    import jedax

    def wait(genotype):
        _mark(0.002)
        return genotype

    class Slow(jedax.tasks.Task):
        name = "slow"
        num_params = 3
        descriptor_bounds = ((-1.0, -1.0), (1.0, 1.0))

        def init(self, key):
            return jax.random.normal(key, (3,))

        def evaluate(self, key, genotype):
            shape = jax.ShapeDtypeStruct(genotype.shape, genotype.dtype)
            genotype = jax.pure_callback(wait, shape, genotype, vmap_method="sequential")
            return jedax.Evaluation(-jnp.abs(genotype).max(), jnp.clip(genotype[:2], -1, 1))

    globals()["Slow"] = Slow
    return Slow
