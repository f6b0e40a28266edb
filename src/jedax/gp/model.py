"""The Gaussian process (GP) of fitness over descriptors: hyperparameters, data, kernel, and the fitted process.

The model is the one of the paper (section "Weighted Gaussian Process" and its appendix): an RBF kernel
`k(x, x') = s^2 exp(-|x - x'|^2 / (2 l^2))` over descriptors scaled to the unit box, and observation noise
`s_n^2 W` with `W_ii = 1 / n_i`, so that a cell with `n_i` evaluations counts as `n_i` observations.

References:
    Calandriello et al. 2022, "Scaling Gaussian Process Optimization by Evaluating a Few Unique Candidates
    Multiple Times". Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", chapters 2 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jedax.gp.tiles import Factor
from jedax.types import Array, Bool, Float, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Hyperparameters:
    """The logarithms of the three hyperparameters, in units of the standardised fitness and of the unit box.

    Attributes:
        log_signal: Log of `s`, the standard deviation of the prior.
        log_length_scale: Log of `l`, the distance over which fitness is correlated.
        log_noise: Log of `s_n`, the standard deviation of one evaluation.
    """

    log_signal: Float[Array, "*batch"]
    log_length_scale: Float[Array, "*batch"]
    log_noise: Float[Array, "*batch"]

    @classmethod
    def of(cls, signal: float, length_scale: float, noise: float) -> Hyperparameters:
        """Return hyperparameters given by their values, each above 0."""
        return cls(*(jnp.log(jnp.asarray(value, jnp.float32)) for value in (signal, length_scale, noise)))

    @property
    def signal(self) -> Float[Array, "*batch"]:
        """`s`, the standard deviation of the prior."""
        return jnp.exp(self.log_signal)

    @property
    def length_scale(self) -> Float[Array, "*batch"]:
        """`l`, in units of the unit box."""
        return jnp.exp(self.log_length_scale)

    @property
    def noise(self) -> Float[Array, "*batch"]:
        """`s_n`, the standard deviation of one evaluation."""
        return jnp.exp(self.log_noise)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GPData:
    """The filled cells, padded to a fixed size so that a growing repertoire does not cause a new compilation.

    The cost depends on the position of the last real row, so real rows should come first.

    Attributes:
        x: `(size, d)`, stored descriptors scaled to the unit box.
        fitness: `(size,)`, fitness in the units of the task.
        counts: `(size,)`, evaluations in the cell; values below 1 count as 1. Not used by the standard process.
        mask: `(size,)`, which rows are real. Other rows are padding and have no effect, even if they are NaN.
    """

    x: Float[Array, "size d"]
    fitness: Float[Array, " size"]
    counts: Int[Array, " size"] | Float[Array, " size"]
    mask: Bool[Array, " size"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedGP:
    """A process conditioned on data.

    Attributes:
        hyperparameters: Start of the next fit.
        x: `(d, tiles, tile)`, descriptors of the rows in tiles (see `jedax.gp.tiles`); 0 in padding.
        mask: `(tiles, tile)`, rows used for predictions: the real rows, or none if not `ok`.
        factor: Cholesky factor of `K + s_n^2 W`, in float64; no tiles are in use if not `ok`.
        weights: `(tiles, tile)`, `(K + s_n^2 W)^-1 y` of the standardised fitness `y`.
        by_features: Whether `factor` and `weights` are those of features (see `jedax.gp.features`); None: never.
        theta: Logs of `s`, `l` and `s_n` of `factor` and `weights`, in float64.
        shift: What the hyperparameters add to `log s` and `log s_n` of `theta`.
        fitness_mean: Mean of the fitness; 0 without data.
        fitness_scale: Standard deviation of the fitness; 1 if that is 0, and without data.
        log_likelihood: Log marginal likelihood of the standardised fitness; -inf if not `ok`.
        noise_floor: Noise floor of the factorisation; above `gp_noise_floor` if that was too low.
        num_evaluations: Likelihood evaluations of the fit. One of them, at `gp_start`, computes no derivatives and
            costs a third of the others.
        ok: Whether all numbers are finite. If not (no noise floor was high enough, or a real row is not finite), the
            process predicts its prior.
    """

    hyperparameters: Hyperparameters
    x: Float[Array, "d tiles tile"]
    mask: Bool[Array, "tiles tile"]
    factor: Factor
    weights: Float[Array, "tiles tile"]
    by_features: Bool[Array, ""] | None
    theta: Float[Array, "3"]
    shift: Float[Array, ""]
    fitness_mean: Float[Array, ""]
    fitness_scale: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    noise_floor: Float[Array, ""]
    num_evaluations: Int[Array, ""]
    ok: Bool[Array, ""]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """The noise variance `s_n^2` of one evaluation, in squared units of the fitness."""
        return jnp.square(self.hyperparameters.noise * self.fitness_scale.astype(jnp.float32))


def kernel_and_distance(
    theta: Float[Array, "3"], one: Sequence[Float[Array, " n"]], other: Sequence[Float[Array, " m"]]
) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
    """Return the kernel between two sets of points, and `|x - x'|^2 / l^2`, exactly 0 for equal points.

    Args:
        theta: Logs of `s`, `l` and `s_n`; the last is not used and may be missing.
        one: Coordinates of the first set, one array per dimension.
        other: Coordinates of the second set.
    """
    distance = sum(
        (jnp.square(a[:, None] - b[None]) for a, b in zip(one, other, strict=True)), start=jnp.zeros((), one[0].dtype)
    )
    ratio = distance / jnp.exp(2 * theta[1])
    return jnp.exp(2 * theta[0]) * jnp.exp(-0.5 * ratio), ratio
