"""Several samples of one solution, where evaluations are noisy: what becomes of them.

Fitness is the mean or the median of the samples, and so is each number of the descriptor by itself: a median of
descriptors may be a behaviour that no sample showed. A solution fails if any of its samples does, for what a failed
episode is worth nobody can say, and to leave it out would favour solutions that fail now and then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import jax
import jax.numpy as jnp

from jedax.types import Array, Evaluation, Float

Aggregation = Literal["mean", "median"]


def aggregate(samples: Evaluation, how: Aggregation) -> Evaluation:
    """Return what the samples of each solution come to.

    Args:
        samples: With a leading axis `samples`: `fitness (samples, *batch)`, `descriptor (samples, *batch, d)`.
        how: "mean" or "median"; of an even number the median is the mean of the two in the middle.

    Returns:
        `fitness (*batch)` and `descriptor (*batch, d)`, NaN where a sample failed. Transitions, if there are any, are
        those of all samples, `(*batch, samples * steps, ...)`, one episode after the other.
    """
    middle = jnp.mean if how == "mean" else jnp.median
    valid = samples.valid.all(axis=0)
    found = Evaluation(
        fitness=jnp.where(valid, middle(samples.fitness, axis=0), jnp.nan),
        descriptor=jnp.where(valid[..., None], middle(samples.descriptor, axis=0), jnp.nan),
    )
    if samples.transitions is None:
        return found
    return replace(found, transitions=jax.tree.map(_one_after_the_other, samples.transitions))


def _one_after_the_other(steps: Float[Array, "samples batch steps *rest"]) -> Float[Array, "batch all_steps *rest"]:
    steps = jnp.moveaxis(steps, 0, 1)
    return steps.reshape(steps.shape[0], -1, *steps.shape[3:])
