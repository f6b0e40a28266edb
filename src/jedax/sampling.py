"""Combining several samples (evaluations) of one solution, for tasks with noise.

Fitness and each number of the descriptor are combined separately, by mean or median, so a median descriptor may be one
that no sample had. A solution fails if any of its samples fails: leaving failed samples out would favour solutions that
fail sometimes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import jax
import jax.numpy as jnp

from jedax.types import Array, Evaluation, Float

Aggregation = Literal["mean", "median"]


def aggregate(samples: Evaluation, how: Aggregation) -> Evaluation:
    """Return one evaluation per solution, combined from its samples.

    Args:
        samples: `fitness (samples, *batch)` and `descriptor (samples, *batch, d)`.
        how: "mean" or "median"; the median of an even number of samples is the mean of the middle two.

    Returns:
        `fitness (*batch)` and `descriptor (*batch, d)`, NaN where a sample failed. Transitions are concatenated along
        the axis of steps: `(batch, samples * steps, ...)`.
    """
    middle = jnp.mean if how == "mean" else jnp.median
    valid = samples.valid.all(axis=0)
    found = Evaluation(
        fitness=jnp.where(valid, middle(samples.fitness, axis=0), jnp.nan),
        descriptor=jnp.where(valid[..., None], middle(samples.descriptor, axis=0), jnp.nan),
    )
    if samples.transitions is None:
        return found
    return replace(found, transitions=jax.tree.map(_concatenate_episodes, samples.transitions))


def _concatenate_episodes(steps: Float[Array, "samples batch steps *rest"]) -> Float[Array, "batch all_steps *rest"]:
    steps = jnp.moveaxis(steps, 0, 1)
    return steps.reshape(steps.shape[0], -1, *steps.shape[3:])
