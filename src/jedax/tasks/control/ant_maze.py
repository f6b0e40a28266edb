"""The ant in a maze; the behaviour is where it ends."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from jedax.tasks.control.base import ControlTask, Tally
from jedax.tasks.control.layout import LIMITS, TARGET
from jedax.tasks.control.settings import AntMazeConfig
from jedax.types import Array, Bool, Float


class AntMaze(ControlTask):
    """Brax's ant, which is to get from the origin to a target behind walls (paper, section 5.1; QDax's AntMaze).

    Fitness: minus the distance from the torso to the target after each step, summed up. The episode ends when the
    torso leaves z in [0.2, 5]; what is left of it is charged at the last distance, or, with `early_death="paper"`,
    costs nothing. Descriptor: x and y of the torso after the last counted step, in metres. The walls are in Brax's
    model, see `jedax.tasks.control.simulator.AntMazeEnv`. Genotype as in `Locomotion`; the observation begins with x
    and y, from -1 to 1 over the box.
    """

    config: AntMazeConfig
    config_class = AntMazeConfig
    name = "ant-maze"
    descriptor_names = ("x", "y")
    descriptor_bounds = LIMITS
    observation_size = 29
    action_size = 8
    sums_behaviour = False

    @property
    def robot(self) -> str:
        """The ant among walls."""
        return self.name

    @property
    def qd_offset(self) -> float:
        """The fitness of an ant that stands in the corner of the box that is farthest from the target."""
        farthest = max(math.dist(TARGET, (x, y)) for x in (LIMITS[0][0], LIMITS[1][0]) for y in (-5.0, 40.0))
        return -self.config.steps * farthest

    def _seen(self, physics: Any) -> Float[Array, "2"]:
        return physics.x.pos[0, :2]

    def _earned(self, reward: Float[Array, ""], done: Bool[Array, ""], tally: Tally) -> Float[Array, ""]:
        if self.config.early_death == "paper":
            return reward
        return jnp.where(done, reward * (self.config.steps - tally.length), reward)
