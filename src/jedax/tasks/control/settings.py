"""Settings of the control tasks, robots simulated by Brax (paper, section 5.1); the ant's maze."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jedax.settings import MOST
from jedax.tasks.settings import Activation, Budget, Hidden, WithNormalisation

Backend = Literal["spring", "generalized", "positional", "mjx"]
Physics = Literal["auto", "native", "brax"]
Robot = Literal["halfcheetah", "walker2d", "hopper", "ant", "humanoid"]

# The ant's maze, in metres; x and y are in the plane of the floor.
LIMITS = ((-5.0, -5.0), (40.0, 40.0))
"""Lower left and upper right corner of the box; the walls along its sides are centred on them."""
TARGET = (35.0, 0.0)
"""The target: x, y."""
RADIUS = 0.5
"""Radius of the walls, which are capsules on the floor, and so the height of their centres."""
WALLS = (
    (20.0, -4.5, 20.0, 19.5), (10.5, 7.5, 19.5, 7.5), (10.0, 20.25, 10.0, 39.75),
    (-5.5, -5.0, 40.5, -5.0), (-5.5, 40.0, 40.5, 40.0), (-5.0, -4.5, -5.0, 39.5), (40.0, -4.5, 40.0, 39.5)
)  # fmt: skip
"""Three inner walls and the four sides of the box, each x1, y1, x2, y2 from end to end, caps included."""


class ControlConfig(WithNormalisation):
    """Settings of all control tasks: simulator, length, policy and start."""

    backend: Backend = Field(default="spring", description="Which of Brax's physics engines simulates.")
    physics: Physics = Field(
        default="auto",
        description="What simulates: native code (native), Brax (brax), or native code on a CPU where it can (auto).",
    )
    steps: int = Field(default=1000, ge=1, le=MOST, description="Steps of an episode.")
    hidden: Hidden = Field(default=(256, 256), description="Neurons in each hidden layer of the policy.")
    activation: Activation = Field(default="tanh", description="Activation of the hidden layers; the output is tanh.")
    weights: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="Precision of the policy's weights: bfloat16 rounds them to 8 significant bits when it acts, which "
        "is faster on a CPU.",
    )
    start_seed: int = Field(
        default=0, ge=0, lt=2**32, description="Seed of Brax's reset, which draws the state all episodes begin in."
    )
    random_resets: bool = Field(
        default=False, description="Whether each episode begins in its own random state, drawn by Brax's reset."
    )


class LocomotionConfig(ControlConfig):
    """Settings of a robot that walks or runs; its behaviour is a share or a mean over the steps of an episode."""

    name: Robot = Field(default="halfcheetah", description="Which of Brax's robots.")
    descriptor: Literal["feet-contact", "speed-height"] = Field(
        default="feet-contact",
        description="Descriptor of an episode: feet-contact (share of steps in which each foot touches the floor), or "
        "speed-height (mean speed forward in m/s and mean height of the torso in m).",
    )
    contact_margin: float = Field(
        default=1e-3, ge=0, description="Height below which a foot touches the floor, in metres."
    )
    evaluations: Budget = 5_000_000


class AntMazeConfig(ControlConfig):
    """Settings of the ant that walks to a target behind walls; its behaviour is its last position."""

    steps: int = Field(default=250, ge=1, le=MOST, description="Steps of an episode.")
    early_death: Literal["charge", "paper"] = Field(
        default="charge",
        description="Cost of each step after the ant has died: its last distance (charge), or nothing, so that an "
        "early death pays (paper).",
    )
    evaluations: Budget = 10_000_000
