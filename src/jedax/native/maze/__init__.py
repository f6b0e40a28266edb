"""The maze simulator, several times as fast as the one in JAX (`jedax.tasks.maze`)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax.native.core import Kernel
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

KERNEL = Kernel("maze", "evaluate", "record")
# The noise of a whole batch is drawn before the first step; more numbers than this (256 MB) are left to JAX.
_MOST_NOISE = 2**26


@dataclass(frozen=True, eq=False)
class Settings:
    """A maze, its robot and the layout of controllers; C++ reads all but the walls by these names (`maze.h`).

    Lengths are in the units of the walls, angles in radians.
    """

    walls: Float[np.ndarray, "walls 4"]  # x1, y1, x2, y2 of each
    steps: int
    start_x: float
    start_y: float
    start_cos: float  # of the first heading
    start_sin: float
    target_x: float
    target_y: float
    target_radius_squared: float
    distance_weight: float  # what one unit of distance to the target costs a robot that never arrives
    robot_radius_squared: float
    wheel_speed: float  # travel of a wheel in one step at action 1
    turn: float  # half the angle of a turn for each unit by which the travel of the wheels differs
    laser_cos: Float[np.ndarray, " lasers"]  # of the bearings from the heading
    laser_sin: Float[np.ndarray, " lasers"]
    laser_range: float
    out_of_range: float  # what a laser reads that meets no wall within its range
    laser_noise: float  # standard deviation
    wheel_noise: float  # standard deviation
    layers: tuple[int, ...]  # neurons of each layer of the controller, inputs and outputs included
    activation: str  # of the hidden layers


def fits(settings: Settings, count: int) -> bool:
    """Return whether the kernel is available and the noise of `count` episodes is not too much to hold."""
    per_step = len(settings.laser_cos) * (settings.laser_noise > 0) + 2 * (settings.wheel_noise > 0)
    return KERNEL.available and count * (settings.steps + 1) * per_step <= _MOST_NOISE


def evaluate(settings: Settings, keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
    """Evaluate a batch, each member with its own key, as `Maze.evaluate` does one."""
    count = genotypes.shape[0]
    outputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((count,), (count, 2))]
    fitness, descriptor = _call("evaluate", outputs, settings, keys, genotypes)
    return Evaluation(fitness, descriptor)


def record(settings: Settings, keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> list[Array]:
    """Return the fields of a `Trajectory` of each member of a batch, batch first."""
    rows = (genotypes.shape[0], settings.steps)
    outputs = [jax.ShapeDtypeStruct((*rows, width), jnp.float32) for width in (settings.layers[0], 2, 2)]
    outputs.append(jax.ShapeDtypeStruct(rows[:1], jnp.int32))
    return _call("record", outputs, settings, keys, genotypes)


def _call(function: str, outputs, settings: Settings, keys: PRNGKeyArray, genotypes: Array) -> list[Array]:
    named = dict(vars(settings))
    walls = jnp.asarray(named.pop("walls"), jnp.float32)
    noise = _draw_noise(settings, keys)
    return KERNEL.call(function, outputs, genotypes.astype(jnp.float32), walls, *noise, **named)


def _draw_noise(settings: Settings, keys: PRNGKeyArray) -> tuple[Array, Array]:
    """Draw the standard normal numbers that `Maze.evaluate` draws step by step from the same keys.

    Those of the lasers are `(batch, steps + 1, lasers)`, before the first step and after each, those of the wheels
    `(batch, steps, 2)`; `(0,)` where there is no noise.
    """
    lasers = len(settings.laser_cos)
    none = jnp.zeros(0)

    def draw(key: PRNGKeyArray) -> tuple[Array, Array]:
        steps = jnp.arange(1, settings.steps + 1)
        step_keys = jax.vmap(lambda step: jax.random.split(jax.random.fold_in(key, step)))(steps)
        normal = jax.vmap(jax.random.normal, in_axes=(0, None))
        first = jax.random.normal(jax.random.fold_in(key, 0), (1, lasers))
        of_lasers = jnp.concatenate([first, normal(step_keys[:, 0], (lasers,))])
        return of_lasers, normal(step_keys[:, 1], (2,))

    if settings.laser_noise == 0 and settings.wheel_noise == 0:
        return none, none
    of_lasers, of_wheels = jax.vmap(draw)(keys)
    return of_lasers if settings.laser_noise > 0 else none, of_wheels if settings.wheel_noise > 0 else none
