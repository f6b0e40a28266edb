"""The weighted target fitness score (WTFS): how an ES weighs nearness to its target against fitness."""

from __future__ import annotations

import jax.numpy as jnp

from jedax.types import Array, Bool, Evaluation, Float


def weighted_target_fitness_score(
    evaluation: Evaluation, target: Float[Array, " descriptor"], alpha: Float[Array, ""]
) -> Float[Array, " population"]:
    """Score one population of one ES (paper, section 3.3, equation 4).

    Both terms are min-max normalised within the population, over its valid members only; a term that is the
    same for all of them is 0 and does not rank.

    Args:
        evaluation: Of one ES and one generation, `fitness (population,)`.
        target: The behaviour to come near to, in the units of the descriptors.
        alpha: Weight of nearness, 0 (fitness alone) to 1 (nearness alone).

    Returns:
        `(population,)`, maximised, 0 to 1; -inf for members that failed.
    """
    valid = evaluation.valid
    distance = _distance(evaluation.descriptor, target, valid)
    nearness = _normalise(-distance, valid)
    fitness = _normalise(evaluation.fitness, valid)
    return jnp.where(valid, alpha * nearness + (1 - alpha) * fitness, -jnp.inf)


def _distance(
    descriptors: Float[Array, "population descriptor"],
    target: Float[Array, " descriptor"],
    valid: Bool[Array, " population"],
) -> Float[Array, " population"]:
    """Return the distances to the target, up to a factor that all share."""
    points = _scaled(jnp.vstack([jnp.where(valid[:, None], descriptors, 0), target]))
    return jnp.linalg.norm(points[:-1] - points[-1], axis=-1)


def _normalise(values: Float[Array, " population"], valid: Bool[Array, " population"]) -> Float[Array, " population"]:
    values = _scaled(jnp.where(valid, values, 0))
    low = jnp.where(valid, values, jnp.inf).min()
    span = jnp.where(valid, values, -jnp.inf).max() - low
    return jnp.where(valid & (span > 0), (values - low) / jnp.where(span > 0, span, 1), 0)


def _scaled(values: Array) -> Array:
    """Return values divided by a power of two that brings the largest to about 1: squares and spans stay finite."""
    _, exponent = jnp.frexp(jnp.abs(values).max())
    return jnp.ldexp(values, -exponent)
