"""Tasks whose descriptor bounds may be measured at the start of a run, and tasks that worker processes evaluate."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np

from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.base import ConfiguredTask, computed
from jedax.tasks.settings import WithDescriptorBounds
from jedax.tasks.work import Work
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

MARGIN = 0.1
"""Margin of measured bounds on each side, as a share of the measured range."""
# Random genotypes for a trial of code of the user's, where bounds need no measuring.
_TRIALS = 2


class MeasuredTask(ConfiguredTask):
    """A task whose descriptor bounds may have to be measured."""

    config: WithDescriptorBounds
    # Whether evaluations call code of the user's, which is tried before a run directory is written.
    runs_own_code: bool = True
    # Bounds that follow from the kind of descriptor.
    natural_bounds: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    name = computed(lambda self: self.config.name)
    goal_fitness = computed(lambda self: self.config.goal_fitness)
    qd_offset = computed(lambda self: self.config.qd_offset)

    @property
    def given_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Bounds from the settings, or natural ones; None: they must be measured."""
        if self.config.descriptor_lows:
            return self.config.descriptor_lows, self.config.descriptor_highs
        return self.natural_bounds

    @property
    def num_given(self) -> int | None:
        """Number of descriptor dimensions, where bounds tell it."""
        return None if self.given_bounds is None else len(self.given_bounds[0])

    @property
    def descriptor_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """`(lows, highs)`; a `JedaxError` if they were neither given nor measured, see `settled`."""
        if self.given_bounds is None:
            raise fail(
                "descriptor_lows",
                expected="bounds of the descriptors",
                received="none",
                remedy="give descriptor_lows and descriptor_highs, or take those that jedax.run measures",
            )
        return self.given_bounds

    def prepared(self) -> Self:
        """Return the task with what must be measured before it is evaluated the first time: by default nothing."""
        return self

    def settled(self, evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Self:
        """Return the task with its final bounds: those given, or those measured on random genotypes.

        The genotypes are the same for all seeds and methods, so that results can be compared. `evaluate` takes
        genotypes `(n, params)` to fitness `(n,)` and descriptors `(n, d)`.
        """
        measures = self.given_bounds is None
        if not measures and not self.runs_own_code:
            return self
        # Where bounds are given, few genotypes are tried; all of these may happen to fail.
        for number in (self.config.measured_on,) if measures else (_TRIALS, self.config.measured_on):
            genotypes = jax.vmap(self.init)(jax.random.split(jax.random.key(0), number))
            fitness, descriptors = evaluate(np.asarray(genotypes, np.float64))
            valid = np.isfinite(fitness) & np.isfinite(descriptors).all(axis=1)
            if valid.any():
                break
        else:
            raise fail(
                self.name,
                expected=f"a finite fitness and descriptor for one of {number} random genotypes",
                received="none",
                remedy="correct the task: it raised errors, or returned NaN or infinity",
            )
        return self._measured(descriptors[valid].astype(np.float64)) if measures else self

    def _measured(self, descriptors: np.ndarray) -> Self:
        lows, highs = descriptors.min(axis=0), descriptors.max(axis=0)
        if (lows == highs).any():
            raise fail(
                "descriptor_lows",
                expected="descriptors that differ between random genotypes, to measure their bounds",
                received=f"{lows[lows == highs][0]:g} for all in dimension {int(np.argmax(lows == highs))}",
                remedy="give descriptor_lows and descriptor_highs",
            )
        margin = MARGIN * (highs - lows)
        digits = 4 + int(max(0, np.floor(np.log10(np.abs([lows, highs]).max(axis=0) / (highs - lows))).max()))
        bounds = {
            "descriptor_lows": in_digits(lows - margin, digits), "descriptor_highs": in_digits(highs + margin, digits)
        }  # fmt: skip
        return type(self)(self.config.replace(**bounds))


def in_digits(values: np.ndarray, digits: int = 4) -> tuple[float, ...]:
    """Return numbers rounded to some digits, so that settings can be read and machines agree."""
    return tuple(float(f"{value:.{digits}g}") for value in values)


class HostTask(MeasuredTask):
    """A task that JAX cannot run: searches evaluate it in worker processes. `init` runs in JAX.

    `evaluate` and `evaluate_batch` run in this process, cannot be traced, and ignore their key.
    """

    @property
    @abc.abstractmethod
    def work(self) -> Work:
        """The evaluation that workers do."""

    def sample_seed(self, sample: int) -> int | None:
        """Return the seed of sample 0, 1, ... of every solution; None: `work` takes no seeds."""
        return None

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype."""
        self._check(genotype)
        row: Any = np.asarray(genotype)[None]  # not of JAX, which rounds to float32
        return jax.tree.map(lambda value: value[0], self.evaluate_batch(key, row))

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch."""
        self._check_batch(genotypes)
        evaluator: Any = load_object(self.work.factory, "worker")(**self.work.settings)
        try:
            fitness, descriptors = evaluator(np.asarray(genotypes, np.float64))
        finally:
            getattr(evaluator, "close", lambda: None)()
        results: Any = np.asarray(fitness), np.asarray(descriptors)
        return Evaluation(*results)
