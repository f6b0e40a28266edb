"""Robots that are to walk or run; the behaviour is how often each foot touches the floor."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jedax.tasks.control.base import ControlTask, Tally
from jedax.tasks.control.settings import LocomotionConfig
from jedax.types import Array, Bool, Float


class _Robot(NamedTuple):
    observation_size: int
    action_size: int
    feet: tuple[str, ...]  # names of their geometries in Brax's model
    names: tuple[str, ...]
    lowest: float  # about the worst mean reward of a step


ROBOTS = {
    "halfcheetah": _Robot(17, 6, ("bfoot", "ffoot"), ("back foot", "front foot"), -9.231),
    "walker2d": _Robot(17, 6, ("foot_geom", "foot_left_geom"), ("right foot", "left foot"), -1.413),
    "hopper": _Robot(11, 3, ("foot_geom",), ("foot",), -0.9),
    "ant": _Robot(
        27, 8, ("left_foot_geom", "right_foot_geom", "third_foot_geom", "fourth_foot_geom"),
        ("front left foot", "front right foot", "back left foot", "back right foot"), -3.24,
    ),
    "humanoid": _Robot(244, 17, ("right_foot", "left_foot"), ("right foot", "left foot"), 0.0),
}  # fmt: skip
"""Brax's robots by name. The lowest rewards are the offsets that QDax subtracts from QD scores of these tasks."""


class Locomotion(ControlTask):
    """One of Brax's robots, on a plane, for the reward of Brax's own environment (paper, section 5.1).

    Fitness: the sum of rewards (running forward fast with little effort, and for all but the half cheetah staying
    upright). Descriptor: for each foot the share of steps, 0 to 1, after which it touches the floor. Genotype: weights
    of a multilayer perceptron from Brax's observation to Brax's action, layer by layer.

    Give it as a `LocomotionConfig`, or its parameters by name, as in `Locomotion(name="walker2d", steps=500)`.
    """

    config: LocomotionConfig
    config_class = LocomotionConfig
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
    def observation_size(self) -> int:
        """Numbers in one observation."""
        return ROBOTS[self.config.name].observation_size

    @property
    def action_size(self) -> int:
        """Numbers in one action."""
        return ROBOTS[self.config.name].action_size

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """Which foot each number of a descriptor is about."""
        return tuple(f"{foot} on the floor" for foot in ROBOTS[self.config.name].names)

    @property
    def descriptor_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Never and always, for each foot."""
        feet = len(ROBOTS[self.config.name].feet)
        return (0.0,) * feet, (1.0,) * feet

    @property
    def qd_offset(self) -> float:
        """About the lowest fitness: in each step the lowest reward of `ROBOTS`."""
        return self.config.steps * ROBOTS[self.config.name].lowest

    def touches(
        self, positions: Float[Array, "*batch links 3"], rotations: Float[Array, "*batch links 4"]
    ) -> Bool[Array, "*batch feet"]:
        """Return whether each foot touches the floor: its lowest point is no higher than `contact_margin`.

        Args:
            positions: Of Brax's links, in metres.
            rotations: Of the links, quaternions with the real part first.
        """
        feet = self._simulator.feet_of(self.robot, self.config.backend, ROBOTS[self.config.name].feet)
        return feet.heights(positions, rotations) <= self.config.contact_margin

    def _seen(self, physics: Any) -> Float[Array, " feet"]:
        return self.touches(physics.x.pos, physics.x.rot).astype(jnp.float32)

    def _descriptor(self, tally: Tally) -> Float[Array, " feet"]:
        return tally.behaviour / jnp.maximum(tally.length, 1)
