"""The ant in a maze."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from jedax.tasks.control.base import ControlTask, State
from jedax.tasks.control.layout import LIMITS, TARGET
from jedax.tasks.control.settings import AntMazeConfig
from jedax.types import Array, Bool, Float


class AntMaze(ControlTask):
    """Brax's ant walks from the origin to a target behind walls (paper, section 5.1; QDax's AntMaze).

    Fitness: minus the sum, over the steps, of the distance from the torso to the target after the step. The episode
    ends when the torso leaves z in [0.2, 5]. Each remaining step then costs the last distance, or nothing with
    `early_death="paper"`. Descriptor: x and y of the torso after the last step that counts, in metres. The walls are
    part of Brax's model, see `jedax.tasks.control.simulator.AntMazeEnv`. Genotype as in `Locomotion`; the observation
    begins with x and y, from -1 to 1 over the box.
    """

    config: AntMazeConfig
    Config = AntMazeConfig
    drawing_class = "jedax.tasks.control.drawing:AntMazeDrawing"
    name = "ant-maze"
    robot = "ant-maze"
    descriptor_names = ("x", "y")
    descriptor_bounds = LIMITS
    observation_size = 29
    action_size = 8
    sums_behaviour = False

    @property
    def qd_offset(self) -> float:
        """The fitness of an ant that stands in the corner of the box farthest from the target."""
        farthest = max(math.dist(TARGET, (x, y)) for x in (LIMITS[0][0], LIMITS[1][0]) for y in (-5.0, 40.0))
        return -self.config.steps * farthest

    def _seen(self, physics: Any) -> Float[Array, "2"]:
        return physics.x.pos[0, :2]

    def _earned(self, reward: Float[Array, ""], done: Bool[Array, ""], state: State) -> Float[Array, ""]:
        if self.config.early_death == "paper":
            return reward
        return jnp.where(done, reward * (self.config.steps - state.length), reward)
