"""Tasks that JAX cannot run: worker processes evaluate them."""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.imports import load_object
from jedax.tasks.measured import MeasuredTask
from jedax.tasks.work import Work
from jedax.types import Array, Evaluation, Float, PRNGKeyArray


class HostTask(MeasuredTask):
    """A task whose evaluations run outside JAX; `init` runs in JAX.

    `evaluate` and `evaluate_batch` run in this process and cannot be traced; searches use worker processes instead.
    """

    @property
    @abc.abstractmethod
    def work(self) -> Work:
        """The evaluation that workers do."""

    def sample_seed(self, sample: int) -> int | None:
        """Return the seed of a sample's random numbers, the same for all solutions; None: `work` takes no seeds.

        Args:
            sample: Number of the sample; sample 0 has the seed of evaluations without samples.
        """
        return None

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype in this process; `key` is ignored."""
        self._check(genotype)
        return jax.tree.map(lambda value: value[0], self.evaluate_batch(key, jnp.asarray(genotype)[None]))

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch in this process; `key` is ignored."""
        self._check_batch(genotypes)
        evaluator: Any = load_object(self.work.factory, "worker")(**self.work.settings)
        fitness, descriptors = evaluator(np.asarray(genotypes))
        return Evaluation(jnp.asarray(fitness), jnp.asarray(descriptors))
