"""Settings of tasks of the user's own: functions, and classes without settings."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from jedax.errors import fail
from jedax.settings import MOST, Config
from jedax.tasks.settings import Budget, SpaceSetting, WithDescriptorBounds


class PythonFunctionConfig(WithDescriptorBounds):
    """Settings of a function from genotypes to fitness and descriptors, which worker processes call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    num_params: int | None = Field(
        default=None, ge=1, le=MOST, description="Length of a genotype; must be given, or space."
    )
    space: SpaceSetting = Field(
        default=None,
        description="Parameters with bounds, scales and names, as a mapping in a file or a jedax.Space; the function "
        "then gets their values, or a list of dicts where they have names.",
    )
    initial_std: float = Field(
        default=1.0, ge=0, description="Standard deviation of random genotypes, drawn around zero."
    )
    chunk: int = Field(default=1, ge=1, le=MOST, description="Genotypes in one call of the function.")
    descriptor_names: tuple[str, ...] = Field(default=(), description="Label of each descriptor, for the figures.")

    @property
    def length(self) -> int | None:
        """Length of a genotype; None: not known yet."""
        return self.num_params if self.space is None else self.space.num_params

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
    """Settings of a task class, or a task, that has none of its own."""

    name: str = Field(description="The class or task, as module:name.")
    evaluations: Budget = 100_000
