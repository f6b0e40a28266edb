"""Robots that walk or run; the behaviour is how often each foot touches the floor."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jedax.tasks.control.base import ControlTask, State
from jedax.tasks.control.settings import LocomotionConfig
from jedax.types import Array, Bool, Float


class _Robot(NamedTuple):
    observation_size: int
    action_size: int
    feet: tuple[str, ...]  # names of their geoms in Brax's model
    names: tuple[str, ...]
    lowest: float  # about the lowest mean reward of a step


ROBOTS = {
    "halfcheetah": _Robot(17, 6, ("bfoot", "ffoot"), ("back foot", "front foot"), -9.231),
    "walker2d": _Robot(17, 6, ("foot_geom", "foot_left_geom"), ("right foot", "left foot"), -1.413),
    "hopper": _Robot(11, 3, ("foot_geom",), ("foot",), -0.9),
    "ant": _Robot(
        27, 8, ("left_foot_geom", "right_foot_geom", "third_foot_geom", "fourth_foot_geom"),
        ("front left foot", "front right foot", "back left foot", "back right foot"), -3.24
    ),
    "humanoid": _Robot(244, 17, ("right_foot", "left_foot"), ("right foot", "left foot"), 0.0)
}  # fmt: skip
"""Brax's robots by name. The lowest rewards are the offsets that QDax subtracts from QD scores of these tasks."""


class Locomotion(ControlTask):
    """One of Brax's robots on a plane, with the reward of Brax's own environment (paper, section 5.1).

    Fitness: the sum of rewards (for speed with little effort and, except for the half cheetah, for staying upright).
    Descriptor: for each foot the share of steps, 0 to 1, after which it touches the floor. Genotype: weights of a
    multilayer perceptron from Brax's observation to Brax's action, layer by layer.

    Give it as a `LocomotionConfig`, or its parameters by name, as in `Locomotion(name="walker2d", steps=500)`.
    """

    config: LocomotionConfig
    Config = LocomotionConfig
    drawing_class = "jedax.tasks.control.drawing:LocomotionDrawing"
    sums_behaviour = True

    @property
    def name(self) -> str:
        """The robot's name."""
        return self.config.name

    @property
    def robot(self) -> str:
        """The robot's name."""
        return self.config.name

    @property
    def _robot(self) -> _Robot:
        return ROBOTS[self.config.name]

    @property
    def observation_size(self) -> int:
        """Length of an observation."""
        return self._robot.observation_size

    @property
    def action_size(self) -> int:
        """Length of an action."""
        return self._robot.action_size

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """The foot of each number of a descriptor."""
        return tuple(f"{foot} on the floor" for foot in self._robot.names)

    @property
    def descriptor_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """0 (never) and 1 (always) for each foot."""
        feet = len(self._robot.feet)
        return (0.0,) * feet, (1.0,) * feet

    @property
    def qd_offset(self) -> float:
        """About the lowest fitness: in each step the lowest reward of `ROBOTS`."""
        return self.config.steps * self._robot.lowest

    def touches(
        self, positions: Float[Array, "*batch links 3"], rotations: Float[Array, "*batch links 4"]
    ) -> Bool[Array, "*batch feet"]:
        """Return whether each foot touches the floor: its lowest point is no higher than `contact_margin`.

        Args:
            positions: Of Brax's links, in metres.
            rotations: Quaternions of the links, real part first.
        """
        feet = self._simulator.feet_of(self.robot, self.config.backend, self._robot.feet)
        return feet.heights(positions, rotations) <= self.config.contact_margin

    def _seen(self, physics: Any) -> Float[Array, " feet"]:
        return self.touches(physics.x.pos, physics.x.rot).astype(jnp.float32)

    def _descriptor(self, state: State) -> Float[Array, " feet"]:
        return state.behaviour / jnp.maximum(state.length, 1)
