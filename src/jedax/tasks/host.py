"""Tasks that JAX cannot run: worker processes evaluate them, between programs that are compiled."""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.imports import load_object
from jedax.search.workers.pool import Work
from jedax.tasks.measured import MeasuredTask
from jedax.types import Array, Evaluation, Float, PRNGKeyArray


class HostTask(MeasuredTask):
    """A task whose evaluations run outside JAX; `init` is JAX as everywhere.

    `evaluate` and `evaluate_batch` work in this process and cannot be traced; searches use workers instead, see
    `jedax.search.host`.
    """

    @property
    @abc.abstractmethod
    def work(self) -> Work:
        """What a worker does."""

    def sample_seed(self, sample: int) -> int | None:
        """Return the seed of a sample's random numbers, for all solutions alike; None: the work takes no seeds.

        Args:
            sample: Which of them, from 0; sample 0 has the seed of evaluations that say nothing of samples.
        """
        return None

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype in this process; `key` is ignored.

        Raises:
            JedaxError: The genotype's shape is not `(params,)`.
        """
        self._check(genotype)
        return jax.tree.map(lambda value: value[0], self.evaluate_batch(key, jnp.asarray(genotype)[None]))

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch in this process; `key` is ignored."""
        self._check_batch(genotypes)
        evaluator: Any = load_object(self.work.factory, "worker")(**self.work.settings)
        fitness, descriptors = evaluator(np.asarray(genotypes))
        return Evaluation(jnp.asarray(fitness), jnp.asarray(descriptors))
