"""What a Gaussian process (GP) of fitness over descriptors is made of: settings, hyperparameters and data.

The model is the paper's (section "Weighted Gaussian Process" and its appendix): an RBF kernel
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

from jedax.errors import fail
from jedax.gp.tiles import Factor
from jedax.types import Array, Bool, Float, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Hyperparameters:
    """The three hyperparameters as logarithms, in units of the standardised fitness and of the unit box.

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
        """Return the hyperparameters whose natural values are given; each must be above 0."""
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


@dataclass(frozen=True)
class GPSettings:
    """How the process is fitted. Hashable: equal settings do not compile anew.

    Fitness is standardised, so that `s` is of order 1. Cells of a repertoire of 1,024 in two dimensions lie
    about 0.03 apart: below `l = 0.01` they are independent of each other, above 10 the process is nearly
    linear. The bounds of `s_n` leave room for both models: at 1e-3 the noise is under the noise floor, and
    100 gives a cell of 1e5 evaluations a standard deviation of 0.3, one of 1e3 evaluations 3.

    Attributes:
        weighted: Whether a cell with `n` evaluations has noise variance `s_n^2 / n` rather than `s_n^2`.
        signal_bounds: Lowest and highest `s`.
        length_scale_bounds: Lowest and highest `l`.
        noise_bounds: Lowest and highest `s_n`.
        start: `(s, l, s_n)` to start from when there is no earlier fit, and whenever it is likelier than the
            earlier one. A short length scale and noise that matters: from there the likelihood climbs to the
            structured optimum, not to the one that calls everything noise.
        noise_floor: Added to the noise variance, in units of `s^2`, since float32 cannot factorise without.
        max_noise_floor: A factorisation that fails is tried again with the floor ten times higher, up to
            this.
        max_rows: Up to this many real rows the process is exact. More are pooled with their neighbours into this
            many groups, rounded down to a power of two (see `jedax.gp.pooling`).
        max_steps: Most likelihood evaluations of one fit.
        tolerance: The search ends when the next step promises less than this much log likelihood (nats).
    """

    weighted: bool = True
    signal_bounds: tuple[float, float] = (0.05, 20.0)
    length_scale_bounds: tuple[float, float] = (0.01, 10.0)
    noise_bounds: tuple[float, float] = (1e-3, 100.0)
    start: tuple[float, float, float] = (1.0, 0.1, 1.0)
    noise_floor: float = 1e-6
    max_noise_floor: float = 1e-2
    max_rows: int = 1024
    max_steps: int = 25
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            JedaxError: A bound, the start, a floor or a limit is out of range.
        """
        for name in ("signal_bounds", "length_scale_bounds", "noise_bounds"):
            low, high = getattr(self, name)
            if not 0 < low < high < float("inf"):
                raise fail(name, expected="0 < low < high", received=(low, high), remedy="swap or widen them")
        if not all(low <= value <= high for value, (low, high) in zip(self.start, self.bounds, strict=True)):
            raise fail("start", expected="(s, l, s_n) inside the bounds", received=self.start, remedy="move it")
        if not 0 < self.noise_floor <= self.max_noise_floor < float("inf"):
            raise fail(
                "noise_floor",
                expected="0 < noise_floor <= max_noise_floor",
                received=(self.noise_floor, self.max_noise_floor),
                remedy="keep the defaults, 1e-6 and 1e-2",
            )
        for name in ("max_rows", "max_steps"):
            if getattr(self, name) < 1:
                raise fail(name, expected="at least 1", received=getattr(self, name), remedy="raise it")
        if not self.tolerance > 0:
            raise fail("tolerance", expected="above 0", received=self.tolerance, remedy="keep the default, 0.05")

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Bounds of `s`, `l` and `s_n`, in this order."""
        return self.signal_bounds, self.length_scale_bounds, self.noise_bounds

    def initial_hyperparameters(self) -> Hyperparameters:
        """Return `start`, for the first fit of a search."""
        return Hyperparameters.of(*self.start)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GPData:
    """Filled cells, padded to a fixed size so that a growing repertoire does not compile anew.

    What is computed costs as much as if the data ended at the last real row, so real rows should come first.

    Attributes:
        x: `(size, d)`, stored descriptors scaled to the unit box.
        fitness: `(size,)`, raw fitness.
        counts: `(size,)`, evaluations that landed in the cell; below 1 counts as 1. Unused if not weighted.
        mask: `(size,)`, which rows are real. The others have no influence, whatever they hold, NaN included.
    """

    x: Float[Array, "size d"]
    fitness: Float[Array, " size"]
    counts: Int[Array, " size"] | Float[Array, " size"]
    mask: Bool[Array, " size"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedGP:
    """A process conditioned on data, ready to predict.

    Attributes:
        hyperparameters: In units of the standardised fitness: warm start of the next fit.
        x: `(d, tiles, tile)`, the data's descriptors in tiles (see `jedax.gp.tiles`), or the centres of what was
            pooled; 0 in rows that are not real.
        mask: `(tiles, tile)`, rows that predictions rest on: the real ones, or none if not `ok`.
        factor: Cholesky factor of `K + s_n^2 W`, without tiles in use if not `ok`.
        weights: `(tiles, tile)`, `(K + s_n^2 W)^-1 y` of the standardised fitness `y`.
        fitness_mean: Mean of the data's fitness, 0 without data.
        fitness_scale: Standard deviation of the data's fitness, 1 where that is 0 and without data.
        log_likelihood: Log marginal likelihood of the standardised fitness; -inf if not `ok`.
        noise_floor: The floor the factorisation needed, above the setting where it had to be mended.
        num_evaluations: Likelihood evaluations of the fit; one of them, a third as costly, only looks at
            `GPSettings.start`.
        ok: Whether all numbers are finite. If not (no floor up to the highest helped, or a real row is not
            finite), the process predicts its prior.
    """

    hyperparameters: Hyperparameters
    x: Float[Array, "d tiles tile"]
    mask: Bool[Array, "tiles tile"]
    factor: Factor
    weights: Float[Array, "tiles tile"]
    fitness_mean: Float[Array, ""]
    fitness_scale: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    noise_floor: Float[Array, ""]
    num_evaluations: Int[Array, ""]
    ok: Bool[Array, ""]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """`s_n^2` in squared fitness units: the noise variance of one evaluation."""
        return jnp.square(self.hyperparameters.noise * self.fitness_scale)


def kernel_and_distance(
    theta: Float[Array, "3"], one: Sequence[Float[Array, " n"]], other: Sequence[Float[Array, " m"]]
) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
    """Return the kernel between two sets of points, and `|x - x'|^2 / l^2`, exactly 0 for equal points.

    Args:
        theta: Logs of `s`, `l`, and what is not looked at.
        one: For each dimension, the coordinates of the points.
        other: The same for the other set.
    """
    distance = sum((jnp.square(a[:, None] - b[None]) for a, b in zip(one, other, strict=True)), start=jnp.zeros(()))
    ratio = distance / jnp.exp(2 * theta[1])
    return jnp.exp(2 * theta[0]) * jnp.exp(-0.5 * ratio), ratio
