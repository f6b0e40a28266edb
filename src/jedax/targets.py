"""The choice of target cells: by Pareto rank, by upper confidence bound (UCB), or uniformly.

References:
    The paper, section "Target selection".

    [1] Kung, Luccio & Preparata 1975, "On finding the maxima of a set of vectors".

    [2] Srinivas et al. 2012, "Information-Theoretic Regret Bounds for Gaussian Process Optimization in the Bandit
        Setting" (GP-UCB).

    [3] Desautels, Krause & Burdick 2014, "Parallelizing Exploration-Exploitation Tradeoffs in Gaussian Process Bandit
        Optimization" (GP-BUCB).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jedax.errors import fail
from jedax.types import Array, Bool, Float, Int, PRNGKeyArray

__all__ = ["choose_bucb", "choose_pareto", "choose_ucb", "choose_uniform", "pareto_rank"]


def choose_uniform(key: PRNGKeyArray, num_cells: int, num_targets: int) -> Int[Array, " num_targets"]:
    """Return distinct indices of cells, drawn uniformly from all cells, empty or not.

    Source: the paper's ablation "uniform sampling" (section "Ablation studies").

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    _check_num_targets(num_targets, num_cells)
    return jax.random.choice(key, num_cells, (num_targets,), replace=False)


def choose_pareto(
    key: PRNGKeyArray, mean: Float[Array, " cells"], variance: Float[Array, " cells"], num_targets: int
) -> Int[Array, " num_targets"]:
    """Return distinct indices of the cells of lowest Pareto rank, in order of rank; ties are random.

    Args:
        key: Random key.
        mean: `(cells,)`, predicted mean.
        variance: `(cells,)`, predicted variance.
        num_targets: 1 to `cells`.

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    _check_num_targets(num_targets, mean.shape[0])
    return _lowest(key, pareto_rank(mean, variance, num_targets), num_targets)


def pareto_rank(
    mean: Float[Array, " cells"], variance: Float[Array, " cells"], num_needed: int
) -> Int[Array, " cells"]:
    """Return the Pareto rank of each cell, maximising mean and variance; 0 is the non-dominated front.

    A cell is dominated if another is at least as good in both objectives and better in one; equal cells do not dominate
    each other. Rank `r + 1` is the non-dominated front after removing ranks 0 to `r`. With two objectives a front takes
    one sort and one running maximum ([1]).

    Args:
        mean: `(cells,)`. A cell whose mean or variance is NaN ranks after all others.
        variance: `(cells,)`.
        num_needed: Ranks are computed until this many cells have one, 0 to `cells`; the rank of other cells is `cells`.
    """
    mean, variance = (jnp.asarray(values, float) for values in (mean, variance))
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
        best = jax.lax.cummax(jnp.where(rank == num_cells, variance, -jnp.inf))
        best_of_higher_mean = jnp.where(begin > 0, best[begin - 1], -jnp.inf)
        best_of_same_or_higher = best[end]
        on_front = (variance > best_of_higher_mean) & (variance >= best_of_same_or_higher)
        return front + 1, jnp.where(on_front & (rank == num_cells), front, rank)

    def lacking(state: tuple[Int[Array, ""], Int[Array, " cells"]]) -> Bool[Array, ""]:
        return jnp.sum(state[1] < num_cells) < num_needed

    none = jnp.full(num_cells, num_cells, jnp.int32)
    _, rank = jax.lax.while_loop(lacking, peel, (jnp.zeros((), jnp.int32), none))
    return jnp.zeros_like(rank).at[order].set(rank)


def choose_ucb(
    key: PRNGKeyArray,
    mean: Float[Array, " cells"],
    variance: Float[Array, " cells"],
    num_targets: int,
    beta: float | Float[Array, ""] = 2.0,
) -> Int[Array, " num_targets"]:
    """Return the distinct indices of the cells with the highest `mean + beta * sqrt(variance)`, best first.

    Args:
        key: Random key, for the order of cells with equal bounds.
        mean: `(cells,)`, predicted mean. A bound that is NaN ranks last.
        variance: `(cells,)`, predicted variance, at least 0.
        num_targets: 1 to `cells`.
        beta: Weight of the standard deviation, at least 0; `sqrt(beta_t)` in [2], eq. (6).

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    _check_num_targets(num_targets, mean.shape[0])
    return _lowest(key, -_bound(mean, variance, beta), num_targets)


def choose_bucb(
    key: PRNGKeyArray,
    predicted: Any,
    noise_variance: float | Float[Array, ""],
    num_targets: int,
    beta: float | Float[Array, ""] = 2.0,
) -> Int[Array, " num_targets"]:
    """Return the indices of cells with the highest upper confidence bound, chosen one after the other.

    After each choice the variances are updated as if the cell had been observed, while the means stay the same: the
    hallucinated observations of [3]. As in the source, a cell can be chosen again if its bound is still the highest.

    Args:
        key: Random key, for the order of cells with equal bounds.
        predicted: A joint Gaussian prediction for all cells, such as `jedax.gp.Posterior`: `mean (cells,)`, `variance
            (cells,)` and `covariance(index) -> (cells,)`. A bound that is NaN ranks last.
        noise_variance: Noise variance of the hallucinated observation, in squared units of the mean, at least 0: that
            of one evaluation divided by the number of evaluations at a target.
        num_targets: 1 to `cells`.
        beta: Weight of the standard deviation, at least 0.

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    mean = predicted.mean
    _check_num_targets(num_targets, mean.shape[0])
    shuffled = jax.random.permutation(key, mean.shape[0])

    def choose(
        state: tuple[Float[Array, " cells"], Float[Array, "num_targets cells"]], turn: Int[Array, ""]
    ) -> tuple[tuple[Array, Array], Int[Array, ""]]:
        variance, updates = state
        chosen = shuffled[jnp.argmax(_bound(mean, variance, beta)[shuffled])]
        # Each observation subtracts the matrix update' update, of rank one, from the covariance.
        with_chosen = predicted.covariance(chosen) - updates[:, chosen] @ updates
        observed = jnp.maximum(with_chosen[chosen], 0.0) + noise_variance
        update = jnp.where(observed > 0, with_chosen / jnp.sqrt(jnp.where(observed > 0, observed, 1.0)), 0.0)
        return (jnp.maximum(variance - jnp.square(update), 0.0), updates.at[turn].set(update)), chosen

    updates = jnp.zeros((num_targets, *mean.shape), mean.dtype)
    return jax.lax.scan(choose, (predicted.variance, updates), jnp.arange(num_targets))[1]


def _bound(
    mean: Float[Array, " cells"], variance: Float[Array, " cells"], beta: float | Float[Array, ""]
) -> Float[Array, " cells"]:
    bound = mean + beta * jnp.sqrt(variance)
    return jnp.where(jnp.isnan(bound), -jnp.inf, bound)


def _lowest(key: PRNGKeyArray, values: Array, number: int) -> Int[Array, " number"]:
    """Return the indices of the lowest values, lowest first; equal values are in random order."""
    shuffled = jax.random.permutation(key, values.shape[0])
    return shuffled[jnp.argsort(values[shuffled], stable=True)][:number]


def _check_num_targets(num_targets: int, num_cells: int) -> None:
    if not 1 <= num_targets <= num_cells:
        raise fail(
            "num_targets",
            expected=f"1 to {num_cells}, the number of cells",
            received=num_targets,
            remedy="use a smaller pool or a finer repertoire",
        )
