"""Settings of tasks that others made: gymnasium, MuJoCo Playground, plain functions, classes of one's own."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from jedax._checks import JedaxError, fail
from jedax.config.base import Config
from jedax.config.maze import Activation
from jedax.config.text import read_yaml

Numbers = tuple[float, ...]
_BUDGET = 100_000


class WithDescriptorBounds(Config):
    """A task whose descriptors lie in a box that is given, or measured at the start of a run."""

    name: str = Field(description="The task's name.")
    descriptor_lows: Numbers = Field(
        default=(), description="Lower bound of each descriptor; default: the natural or measured one."
    )
    descriptor_highs: Numbers = Field(default=(), description="Upper bound of each descriptor.")
    measured_on: int = Field(
        default=64, ge=2, description="Random genotypes on which bounds that are not given are measured, once."
    )
    goal_fitness: float | None = Field(default=None, description="Fitness that reaches the goal; default: none.")
    qd_offset: float = Field(default=0.0, description="Fitness from which the QD score counts.")
    evaluations: int = Field(default=_BUDGET, ge=1, description="Budget of a run that names none.")

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        lows, highs = self.descriptor_lows, self.descriptor_highs
        if len(lows) != len(highs) or any(low >= high for low, high in zip(lows, highs, strict=True)):
            raise fail(
                "descriptor_lows",
                expected="as many bounds as descriptor_highs, each under its upper one",
                received=f"{lows} and {highs}",
                remedy="change one of them",
            )
        return self


class WithPolicy(WithDescriptorBounds):
    """An environment, and the multilayer perceptron that acts in it."""

    descriptor: str = Field(
        default="feet-contact",
        description="How an episode behaved: feet-contact (share of steps each foot touches the ground), final-xy "
        "(where the robot ends), or a function of yours as module:function.",
    )
    feet: tuple[str, ...] = Field(
        default=(), description="Geoms that are feet, for feet-contact; default: those with 'foot' in their name."
    )
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(64, 64), description="Neurons in each hidden layer of the policy."
    )
    activation: Activation = Field(default="tanh", description="Activation of the hidden layers; the output is tanh.")
    steps: int | None = Field(default=None, ge=1, description="Longest episode; default: the environment's own.")
    episode_seed: int = Field(
        default=0, ge=0, lt=2**31, description="Seed of every episode's start: the same for all solutions of a run."
    )

    @field_validator("descriptor")
    @classmethod
    def _check_descriptor(cls, name: str) -> str:
        if name not in ("feet-contact", "final-xy") and ":" not in name:
            raise fail(
                "descriptor",
                expected="feet-contact, final-xy or module:function",
                received=repr(name),
                remedy="choose one of them",
            )
        return name


class GymConfig(WithPolicy):
    """A gymnasium environment with Box observations and Box or Discrete actions."""

    arguments: tuple[str, ...] = Field(
        default=(), description="More arguments of gymnasium.make, as in healthy_reward=0.5; values are YAML."
    )
    chunk: int = Field(
        default=16, ge=1, description="Environments that a worker steps side by side; solutions it gets at a time."
    )

    @field_validator("arguments")
    @classmethod
    def _check_arguments(cls, arguments: tuple[str, ...]) -> tuple[str, ...]:
        parse_arguments(arguments)
        return arguments


def parse_arguments(arguments: tuple[str, ...]) -> dict[str, Any]:
    """Return `name=value` pairs as a dict.

    Raises:
        JedaxError: An entry that is none, or a value that is no YAML.
    """
    found = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        try:
            found[name] = read_yaml(value, "arguments")
        except JedaxError:
            equals = ""
        if not (equals and name.isidentifier()):
            remedy = "try: --arguments healthy_reward=0.5"
            raise fail("arguments", expected="name=value", received=repr(argument), remedy=remedy)
    return found


class PlaygroundConfig(WithPolicy):
    """An environment of MuJoCo Playground."""


class PythonFunctionConfig(WithDescriptorBounds):
    """A Python function from genotypes to fitness and descriptors, evaluated in worker processes."""

    num_params: int | None = Field(default=None, ge=1, description="Length of a genotype; must be given.")
    initial_std: float = Field(
        default=1.0, ge=0, description="Standard deviation of random genotypes, drawn around zero."
    )
    chunk: int = Field(default=16, ge=1, description="Genotypes in one call of the function.")
    descriptor_names: tuple[str, ...] = Field(default=(), description="Label of each descriptor, for the figures.")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names, lows = self.descriptor_names, self.descriptor_lows
        if names and lows and len(names) != len(lows):
            raise fail(
                "descriptor_names",
                expected=f"one for each of the {len(lows)} descriptors",
                received=names,
                remedy="change them, or leave them out",
            )
        return self


class OwnTaskConfig(Config):
    """A task class of the user's, made without arguments."""

    name: str = Field(description="The class, as module:class.")
    evaluations: int = Field(default=_BUDGET, ge=1, description="Budget of a run that names none.")
