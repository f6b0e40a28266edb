"""Targets from the Pareto fronts of predicted mean and variance, as in the paper.

References:
    The paper, section "Target selection". Kung, Luccio & Preparata 1975, "On finding the maxima of a set of
    vectors": with two objectives a front takes one sort and one running maximum.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from jedax.targets.checks import check_num_targets
from jedax.types import Array, Bool, Float, Int, PRNGKeyArray


def pareto_rank(
    mean: Float[Array, " cells"], variance: Float[Array, " cells"], num_needed: int
) -> Int[Array, " cells"]:
    """Return the Pareto rank of each cell, maximising mean and variance; 0 is the non-dominated front.

    A cell is dominated if another is at least as good in both objectives and better in one; equal cells do not dominate
    each other. Rank `r + 1` is the non-dominated front after removing ranks 0 to `r`.

    Args:
        mean: `(cells,)`. A cell whose mean or variance is NaN ranks after all others.
        variance: `(cells,)`.
        num_needed: Ranks are computed until this many cells have one, 0 to `cells`.

    Returns:
        `(cells,)`, the rank, or `cells` for ranks that are not computed.
    """
    num_cells = mean.shape[0]
    failed = jnp.isnan(mean) | jnp.isnan(variance)
    lowest = jnp.finfo(mean.dtype).min
    mean, variance = (jnp.where(failed, lowest, jnp.maximum(v, lowest)) for v in (mean, variance))
    order = jnp.argsort(-mean)
    falling, variance = -mean[order], variance[order]
    # First and last position of each block of cells with equal mean.
    begin = jnp.searchsorted(falling, falling, side="left")
    end = jnp.searchsorted(falling, falling, side="right") - 1

    def peel(state: tuple[Int[Array, ""], Int[Array, " cells"]]) -> tuple[Array, Array]:
        front, rank = state
        best = lax.cummax(jnp.where(rank == num_cells, variance, -jnp.inf))
        best_of_higher_mean = jnp.where(begin > 0, best[begin - 1], -jnp.inf)
        best_of_same_or_higher = best[end]
        on_front = (variance > best_of_higher_mean) & (variance >= best_of_same_or_higher)
        return front + 1, jnp.where(on_front & (rank == num_cells), front, rank)

    def lacking(state: tuple[Int[Array, ""], Int[Array, " cells"]]) -> Bool[Array, ""]:
        return jnp.sum(state[1] < num_cells) < num_needed

    none = jnp.full(num_cells, num_cells, jnp.int32)
    _, rank = lax.while_loop(lacking, peel, (jnp.zeros((), jnp.int32), none))
    return jnp.zeros_like(rank).at[order].set(rank)


def choose_pareto(
    key: PRNGKeyArray, mean: Float[Array, " cells"], variance: Float[Array, " cells"], num_targets: int
) -> Int[Array, " num_targets"]:
    """Return distinct indices of the `num_targets` cells of lowest Pareto rank, in order of rank; ties are random.

    Args:
        key: Random key.
        mean: `(cells,)`, predicted mean.
        variance: `(cells,)`, predicted variance.
        num_targets: 1 to `cells`.

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    check_num_targets(num_targets, mean.shape[0])
    rank = pareto_rank(mean, variance, num_targets)
    shuffled = jax.random.permutation(key, mean.shape[0])
    return shuffled[jnp.argsort(rank[shuffled], stable=True)][:num_targets]
