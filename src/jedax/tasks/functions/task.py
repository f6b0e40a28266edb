"""Analytic tasks: known optimum, two descriptors, microseconds per evaluation; for tests and first tries.

All of them are deterministic: `evaluate` ignores its key.

References:
    Fontaine, Togelius, Nikolaidis & Hoover (2020), "Covariance Matrix Adaptation for the Rapid Illumination
    of Behavior Space" (CMA-ME): sphere and Rastrigin behind a linear projection.
    Vassiliades & Mouret (2018), "Discovering the Elite Hypervolume by Leveraging Interspecies Correlation":
    the planar arm.
"""

from __future__ import annotations

import abc
import math

import jax
import jax.numpy as jnp

from jedax.tasks.base import ConfiguredTask, computed
from jedax.tasks.functions.settings import ArmConfig, FunctionConfig
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

LIMIT = 5.12
"""Half the side of the box that `init` draws from; coordinates outside are clipped."""

SHIFT = 0.4 * LIMIT
"""The optimum of the test functions in every coordinate: 2.048."""


class LinearProjection(ConfiguredTask):
    """A function of n coordinates whose descriptors are two sums of clipped coordinates.

    Each descriptor sums `clip(x)` over one half of the coordinates (the first n // 2, and the rest). `clip(x)` is `x`
    within +-5.12 and `5.12 / x` outside. The bounds of a descriptor are +-5.12 times the number of its coordinates.
    Random genotypes crowd at the centre, because a sum of many random terms is near its mean; the borders are hard to
    reach, although each descriptor within the bounds belongs to some genotype of the box [-5.12, 5.12]^n.

    Genotypes are unbounded and have no unit; `init` draws uniformly from the box. In the box no fitness is below
    `qd_offset` (up to rounding). Outside, fitness can be lower: such an elite is valid and lowers the QD score.
    """

    config: FunctionConfig
    Config = FunctionConfig
    num_params = computed(lambda self: self.config.dimensions)
    goal_fitness = -0.01
    is_noisy = False
    descriptor_names = ("sum of first half", "sum of second half")

    @property
    def descriptor_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """`(lows, highs)` of the two sums."""
        first = self.num_params // 2
        highs = (LIMIT * first, LIMIT * (self.num_params - first))
        return (-highs[0], -highs[1]), highs

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw a genotype uniformly from the box [-5.12, 5.12]^n."""
        return jax.random.uniform(key, (self.num_params,), jnp.float32, -LIMIT, LIMIT)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Return as fitness minus the function's value at `genotype - 2.048`, at most 0; `key` is ignored."""
        del key
        self._check(genotype)
        clipped = _clip(genotype)
        half = self.num_params // 2
        descriptor = jnp.stack([clipped[:half].sum(), clipped[half:].sum()])
        return Evaluation(fitness=-self._terms(genotype - SHIFT).sum(), descriptor=descriptor)

    @abc.abstractmethod
    def _terms(self, x: Float[Array, " params"]) -> Float[Array, " params"]:
        """Return the contribution of each coordinate to the function's value: at least 0, and 0 at 0."""


class Sphere(LinearProjection):
    """The sphere function, `sum z_i^2` with `z = x - 2.048`, which has no local optima.

    The goal of -0.01 is a distance of 0.1 to the optimum.
    """

    name = "sphere"

    @property
    def qd_offset(self) -> float:
        """The lowest fitness in the box, -7.168^2 per coordinate: that of the corner -5.12."""
        return -self.num_params * (LIMIT + SHIFT) ** 2

    def _terms(self, x: Float[Array, " params"]) -> Float[Array, " params"]:
        return x**2


class Rastrigin(LinearProjection):
    """The Rastrigin function, `sum z_i^2 + 10 - 10 cos(2 pi z_i)` with `z = x - 2.048`: many local optima.

    They are near all points with integer z. The best local optima have a fitness of about -0.995, so the goal of -0.01
    is reached only near the global optimum.
    """

    name = "rastrigin"

    @property
    def qd_offset(self) -> float:
        """A lower bound of the fitness in the box, which no genotype reaches: -(7.168^2 + 20) per coordinate."""
        return -self.num_params * ((LIMIT + SHIFT) ** 2 + 20)

    def _terms(self, x: Float[Array, " params"]) -> Float[Array, " params"]:
        # 1 - cos(2a) = 2 sin(a)^2; the left side loses all digits near the optimum.
        return x**2 + 20 * jnp.sin(jnp.pi * x) ** 2


class PlanarArm(ConfiguredTask):
    """An arm of n links in the plane that reaches everywhere while bending all joints alike.

    A genotype holds the joint angles in radians, unbounded and not wrapped: joint i turns link i by its angle from the
    direction of link i - 1, the first from the x axis. The shoulder is the origin and each link has length 1/n. The
    descriptor is the position of the arm's tip. Its bounds are the square [-1, 1]^2, of which an arm reaches the unit
    disc: coverage ends near pi/4.

    Fitness is minus the variance of the angles in rad^2 (divided by n), as in the literature; some libraries take the
    standard deviation. The goal of -0.01 is a standard deviation of 0.1 rad. `init` draws each angle uniformly from
    [-pi, pi), a range that suffices to reach every point of the disc and in which no fitness is below `qd_offset` =
    -pi^2 (up to rounding). Outside, fitness can be lower: such an elite is valid and lowers the QD score.
    """

    config: ArmConfig
    Config = ArmConfig
    drawing_class = "jedax.tasks.functions.drawing:ArmDrawing"
    name = "arm"
    num_params = computed(lambda self: self.config.joints)
    goal_fitness = -0.01
    is_noisy = False
    descriptor_bounds = ((-1.0, -1.0), (1.0, 1.0))
    descriptor_names = ("tip x", "tip y")
    qd_offset = -(math.pi**2)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw each angle uniformly from [-pi, pi)."""
        return jax.random.uniform(key, (self.num_params,), jnp.float32, -jnp.pi, jnp.pi)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Return minus the variance of the angles, and x and y of the tip; `key` is ignored."""
        del key
        return Evaluation(fitness=-genotype.var(), descriptor=self._links(genotype).sum(axis=0))

    def link_positions(self, genotype: Float[Array, " params"]) -> Float[Array, "points 2"]:
        """Return the ends of the links of ONE arm, from the shoulder at the origin to the tip: `(joints + 1, 2)`."""
        links = self._links(genotype)
        return jnp.concatenate([jnp.zeros((1, 2), links.dtype), jnp.cumsum(links, axis=0)])

    def _links(self, genotype: Float[Array, " params"]) -> Float[Array, "params 2"]:
        """Return each link as a vector from its beginning to its end."""
        self._check(genotype)
        directions = jnp.cumsum(genotype)
        return jnp.stack([jnp.cos(directions), jnp.sin(directions)], axis=-1) / self.num_params


def _clip(x: Float[Array, " params"]) -> Float[Array, " params"]:
    outside = jnp.abs(x) > LIMIT
    # The inner `where` keeps the division, and its derivative, finite at 0.
    return jnp.where(outside, LIMIT / jnp.where(outside, x, 1.0), x)
