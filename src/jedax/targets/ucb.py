"""Targets of highest upper confidence bound (UCB), chosen independently or as a batch.

References:
    Srinivas et al. 2012, "Information-Theoretic Regret Bounds for Gaussian Process Optimization in the Bandit
    Setting" (GP-UCB). Desautels, Krause & Burdick 2014, "Parallelizing Exploration-Exploitation Tradeoffs in
    Gaussian Process Bandit Optimization" (GP-BUCB).
"""

from __future__ import annotations

from typing import Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jedax.targets.checks import check_num_targets
from jedax.types import Array, Float, Int, PRNGKeyArray


class JointPrediction(Protocol):
    """A joint Gaussian prediction for all cells, such as `jedax.gp.Posterior`."""

    @property
    def mean(self) -> Float[Array, " cells"]:
        """`(cells,)`."""
        ...

    @property
    def variance(self) -> Float[Array, " cells"]:
        """`(cells,)`, at least 0."""
        ...

    def covariance(self, index: Int[Array, ""]) -> Float[Array, " cells"]:
        """Return the covariance of cell `index` with all cells, `(cells,)`."""
        ...


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
        beta: Weight of the standard deviation, at least 0; `sqrt(beta_t)` in Srinivas et al. 2012, eq. (6).

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    check_num_targets(num_targets, mean.shape[0])
    shuffled = jax.random.permutation(key, mean.shape[0])
    bound = _bound(mean, variance, beta)
    return shuffled[jnp.argsort(-bound[shuffled], stable=True)][:num_targets]


def choose_bucb(
    key: PRNGKeyArray,
    predicted: JointPrediction,
    noise_variance: float | Float[Array, ""],
    num_targets: int,
    beta: float | Float[Array, ""] = 2.0,
) -> Int[Array, " num_targets"]:
    """Return the indices of cells with the highest upper confidence bound, chosen one after the other.

    After each choice the variances are updated as if the cell had been observed, while the means stay the same: the
    hallucinated observations of Desautels et al. 2014. As in the source, a cell can be chosen again if its bound is
    still the highest.

    Args:
        key: Random key, for the order of cells with equal bounds.
        predicted: Mean, variance and covariance of the cells. A bound that is NaN ranks last.
        noise_variance: Noise variance of the hallucinated observation, in squared units of the mean, at least 0: that
            of one evaluation divided by the number of evaluations at a target.
        num_targets: 1 to `cells`.
        beta: Weight of the standard deviation, at least 0.

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    mean = predicted.mean
    check_num_targets(num_targets, mean.shape[0])
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
    _, chosen = lax.scan(choose, (predicted.variance, updates), jnp.arange(num_targets))
    return chosen


def _bound(
    mean: Float[Array, " cells"], variance: Float[Array, " cells"], beta: float | Float[Array, ""]
) -> Float[Array, " cells"]:
    bound = mean + beta * jnp.sqrt(variance)
    return jnp.where(jnp.isnan(bound), -jnp.inf, bound)
