"""Rankers: how an evolution strategy scores its population.

A ranker is a function from an `Outcome` to scores, `(population,)`, maximised, -inf for members that failed; an ES
uses only their order. JEDi has a score of its own, `weighted_target_fitness_score`.

| ranker | name (as in pyribs) | used by |
|---|---|---|
| `two_stage_improvement` | 2imp | CMA-ME's improvement emitter [1] |
| `improvement` | imp | CMA-MAE [2] |
| `objective` | obj | CMA-ME's optimising emitter [1] |
| `random_direction` | rd | CMA-ME's random direction emitter [1] |

References:
    [1] M. Fontaine, J. Togelius, S. Nikolaidis, A. Hoover. Covariance Matrix Adaptation for the Rapid Illumination of
        Behavior Space. GECCO 2020, arXiv:1912.02400.

    [2] M. Fontaine, S. Nikolaidis. Covariance Matrix Adaptation MAP-Annealing. GECCO 2023, arXiv:2205.10752.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp

from jedax.errors import check_choice, fail
from jedax.imports import is_custom
from jedax.settings import resolve
from jedax.types import Array, Bool, Evaluation, Float, Insertion


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """The evaluated population of one ES.

    Attributes:
        evaluation: `fitness (population,)` and `descriptor (population, d)`.
        insertion: The outcome of adding it to the repertoire.
        direction: `(d,)`, a random direction of the ES, divided by the widths of the descriptor box.
    """

    evaluation: Evaluation
    insertion: Insertion
    direction: Float[Array, " descriptor"]


Ranker = Callable[[Outcome], Float[Array, " population"]]


def objective(outcome: Outcome) -> Float[Array, " population"]:
    """Score by fitness alone ([1], optimising emitter)."""
    return outcome.evaluation.fitness_or_worst


def two_stage_improvement(outcome: Outcome) -> Float[Array, " population"]:
    """Rank by status, then by improvement ([1], improvement emitter).

    Solutions that filled an empty cell come first, by fitness; then those that improved a cell, by how much; then the
    rest, by how little they fell short.

    Returns:
        `(population,)`, the position from the end, 0 for the worst of the population; -inf for members that failed.
    """
    insertion = outcome.insertion
    order = jnp.lexsort((insertion.improvement, insertion.status))
    places = jnp.zeros_like(insertion.improvement).at[order].set(jnp.arange(order.shape[0], dtype=float))
    return jnp.where(outcome.evaluation.valid, places, -jnp.inf)


def improvement(outcome: Outcome) -> Float[Array, " population"]:
    """Score by fitness above the threshold of the cell, empty or not ([2], Algorithm 1)."""
    return outcome.insertion.improvement


def random_direction(outcome: Outcome) -> Float[Array, " population"]:
    """Score by progress along a direction in the descriptor space ([1], random direction emitter)."""
    evaluation = outcome.evaluation
    along = (jnp.where(evaluation.valid[:, None], evaluation.descriptor, 0) * outcome.direction).sum(axis=-1)
    return jnp.where(evaluation.valid, along, -jnp.inf)


RANKERS: dict[str, Ranker] = {
    "2imp": two_stage_improvement, "imp": improvement, "obj": objective, "rd": random_direction,
}  # fmt: skip
"""Rankers by pyribs' names."""


def ranker_named(ranker: Any) -> Ranker:
    """Return a ranker given by its name in `RANKERS`, as `module:function`, or as a function.

    Raises:
        JedaxError: The name is unknown, or the object cannot be imported or called.
    """
    if isinstance(ranker, str) and ":" not in ranker:
        return RANKERS[check_choice("ranker", ranker, RANKERS)]
    found = resolve("ranker", ranker)
    if not callable(found):
        expected = f"one of {', '.join(RANKERS)}, or a function of an Outcome"
        raise fail("ranker", expected=expected, received=repr(found), remedy="see jedax.rankers")
    return cast(Ranker, found)


def check_ranker(ranker: Any) -> Any:
    """Return `ranker` if `ranker_named` accepts it; `custom:` names are refused only when they are needed."""
    if not is_custom(ranker):
        ranker_named(ranker)
    return ranker


def weighted_target_fitness_score(
    evaluation: Evaluation, target: Float[Array, " descriptor"], alpha: Float[Array, ""]
) -> Float[Array, " population"]:
    """Score one population of one ES (paper, section 3.3, equation 4).

    Both terms are min-max normalised within the population, over its valid members only; a term that is the
    same for all of them is 0 and does not rank. Where there are constraints, the penalised score takes the place of
    the fitness.

    Args:
        evaluation: Of one ES and one generation, `fitness (population,)`.
        target: The behaviour to come near to, in the units of the descriptors; JEDi scales both to the unit box.
        alpha: Weight of nearness, 0 (fitness alone) to 1 (nearness alone).

    Returns:
        `(population,)`, maximised, 0 to 1; -inf for members that failed or whose penalised score is not finite.
    """
    scores = evaluation.fitness_or_worst
    valid = jnp.isfinite(scores)
    points = _scaled(jnp.vstack([jnp.where(valid[:, None], evaluation.descriptor, 0), target]))
    nearness = _normalise(-jnp.linalg.norm(points[:-1] - points[-1], axis=-1), valid)
    fitness = _normalise(scores, valid)
    return jnp.where(valid, alpha * nearness + (1 - alpha) * fitness, -jnp.inf)


def _normalise(values: Float[Array, " population"], valid: Bool[Array, " population"]) -> Float[Array, " population"]:
    values = _scaled(jnp.where(valid, values, 0))
    low = jnp.where(valid, values, jnp.inf).min()
    span = jnp.where(valid, values, -jnp.inf).max() - low
    return jnp.where(valid & (span > 0), (values - low) / jnp.where(span > 0, span, 1), 0)


def _scaled(values: Array) -> Array:
    """Return values divided by a power of two that brings the largest to about 1: squares and spans stay finite."""
    _, exponent = jnp.frexp(jnp.abs(values).max())
    return jnp.ldexp(values, -exponent)
