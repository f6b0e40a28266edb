"""Settings that several families of tasks share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator, model_validator

from jedax.errors import fail
from jedax.settings import MOST, Config
from jedax.space import Space

Activation = Literal["relu", "tanh", "sigmoid", "elu", "gelu", "silu"]
Numbers = tuple[float, ...]
Hidden = tuple[Annotated[int, Field(ge=1, le=MOST)], ...]
Budget = Annotated[int, Field(ge=1, le=MOST, description="Budget of a run that names none.")]


def _read_space(given: Any) -> Any:
    return given if given is None or isinstance(given, Space) else Space.from_spec(given)


SpaceSetting = Annotated[
    Space | None,
    BeforeValidator(_read_space),
    PlainSerializer(lambda space: None if space is None else space.spec(), return_type=dict | None),
]
"""A `jedax.Space`, or the mapping that describes it in a file, see `Space.from_spec`."""


class TaskConfig(Config):
    """Settings of a task: derive from it and add fields, which become options of the command."""

    evaluations: Budget = 100_000


class UnknownTask(Config):
    """Settings of a task whose code must not be imported."""

    model_config = ConfigDict(extra="allow")


class WithDescriptorBounds(Config):
    """Settings of a task whose descriptor bounds are given, or measured at the start of a run."""

    name: str = Field(description="The task's name.")
    descriptor_lows: Numbers = Field(
        default=(), description="Lower bound of each descriptor; default: the natural or measured one."
    )
    descriptor_highs: Numbers = Field(default=(), description="Upper bound of each descriptor.")
    measured_on: int = Field(
        default=64, ge=2, le=MOST, description="Random genotypes on which bounds that are not given are measured, once."
    )
    goal_fitness: float | None = Field(default=None, description="Fitness that reaches the goal; default: none.")
    qd_offset: float = Field(default=0.0, description="Fitness from which the QD score counts.")
    evaluations: Budget = 100_000

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        lows, highs = self.descriptor_lows, self.descriptor_highs
        if len(lows) != len(highs) or any(low >= high for low, high in zip(lows, highs, strict=True)):
            raise fail(
                "descriptor_lows",
                expected="as many bounds as descriptor_highs, each below its upper one",
                received=f"{lows} and {highs}",
                remedy="change one of them",
            )
        return self


class WithNormalisation(Config):
    """Settings of a task whose policies may see normalised observations."""

    normalise: bool = Field(
        default=False,
        description="Whether policies see observations shifted and scaled to mean 0 and standard deviation 1; the "
        "statistics are those of random policies.",
    )
    observation_mean: Numbers = Field(
        default=(), description="Mean of each number of an observation, for normalise; default: measured."
    )
    observation_std: Numbers = Field(
        default=(), description="Standard deviation of each number, above 0; default: measured."
    )

    @model_validator(mode="after")
    def _check_statistics(self) -> Self:
        if len(self.observation_mean) != len(self.observation_std) or min(self.observation_std, default=1) <= 0:
            raise fail(
                "observation_std",
                expected="as many numbers above 0 as observation_mean has",
                received=f"{self.observation_std} beside {self.observation_mean}",
                remedy="change one of them, or leave both out",
            )
        return self


class WithPolicy(WithDescriptorBounds):
    """Settings of an environment and of the multilayer perceptron that acts in it."""

    descriptor: str = Field(
        default="feet-contact",
        description="Descriptor of an episode: feet-contact (share of steps in which each foot touches the ground), "
        "final-xy (where the robot ends), or module:function.",
    )
    feet: tuple[str, ...] = Field(
        default=(), description="Geoms that are feet, for feet-contact; default: those with 'foot' in their name."
    )
    hidden: Hidden = Field(default=(64, 64), description="Neurons in each hidden layer of the policy.")
    activation: Activation = Field(default="tanh", description="Activation of the hidden layers; the output is tanh.")
    steps: int | None = Field(
        default=None, ge=1, le=MOST, description="Longest episode; default: the environment's own."
    )
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
