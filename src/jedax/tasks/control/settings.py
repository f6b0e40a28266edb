"""Settings of the control tasks, robots simulated by Brax (paper, section 5.1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from jedax.settings import Config
from jedax.tasks.maze.settings import Activation

Backend = Literal["spring", "generalized", "positional", "mjx"]
Robot = Literal["halfcheetah", "walker2d", "hopper", "ant", "humanoid"]


class ControlConfig(Config):
    """What all control tasks have: a simulator, a length, a policy and a start."""

    backend: Backend = Field(default="spring", description="Which of Brax's physics engines simulates.")
    steps: int = Field(default=1000, ge=1, description="Steps of an episode.")
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(256, 256), description="Neurons in each hidden layer of the policy."
    )
    activation: Activation = Field(default="tanh", description="Activation of the hidden layers; the output is tanh.")
    start_seed: int = Field(
        default=0, ge=0, lt=2**32, description="Which of Brax's random start states every episode begins in."
    )
    random_resets: bool = Field(
        default=False,
        description="Whether each episode begins in a random state of its own, with the noise of Brax's reset.",
    )


class LocomotionConfig(ControlConfig):
    """A robot that is to walk or run; its behaviour is how often each foot touches the floor."""

    name: Robot = Field(default="halfcheetah", description="Which of Brax's robots.")
    contact_margin: float = Field(
        default=1e-3, ge=0, description="A foot touches the floor that is this near to it, in metres."
    )
    evaluations: int = Field(default=5_000_000, ge=1, description="Budget of a run that names none.")


class AntMazeConfig(ControlConfig):
    """An ant that is to reach a target behind walls; its behaviour is where it ends."""

    steps: int = Field(default=250, ge=1, description="Steps of an episode.")
    early_death: Literal["charge", "paper"] = Field(
        default="charge",
        description="What the steps cost that an ant that dies no longer takes: the last distance each (charge), or "
        "nothing, so that dying early pays (paper).",
    )
    evaluations: int = Field(default=10_000_000, ge=1, description="Budget of a run that names none.")
