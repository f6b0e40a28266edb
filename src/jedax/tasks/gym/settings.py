"""Settings of environments of gymnasium."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator

from jedax.errors import JedaxError, fail
from jedax.settings import MOST
from jedax.tasks.settings import WithNormalisation, WithPolicy
from jedax.yaml_text import read_yaml

PREFIX = "gym:"
"""Start of the names of these tasks."""


class GymConfig(WithPolicy, WithNormalisation):
    """Settings of a gymnasium environment."""

    arguments: tuple[str, ...] = Field(
        default=(),
        description="Further arguments of gymnasium.make, as in healthy_reward=0.5; values are YAML; "
        "a dict in Python and in files.",
    )
    chunk: int = Field(
        default=16,
        ge=1,
        le=MOST,
        description="Solutions that a worker gets at a time, and environments that it steps side by side.",
    )

    @field_validator("arguments", mode="before")
    @classmethod
    def _read_arguments(cls, given: Any) -> Any:
        return [f"{name}={json.dumps(value)}" for name, value in given.items()] if isinstance(given, Mapping) else given

    @field_validator("arguments")
    @classmethod
    def _check_arguments(cls, arguments: tuple[str, ...]) -> tuple[str, ...]:
        parse_arguments(arguments)
        return arguments


def parse_arguments(arguments: tuple[str, ...]) -> dict[str, Any]:
    """Return `name=value` pairs as a dict; values are YAML."""
    found = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        try:
            found[name] = json.loads(value)  # YAML reads 1e-3 as text
        except ValueError:
            try:
                found[name] = read_yaml(value, "arguments")
            except JedaxError:
                equals = ""
        if not (equals and name.isidentifier()):
            remedy = "try: --arguments healthy_reward=0.5"
            raise fail("arguments", expected="name=value", received=repr(argument), remedy=remedy)
    return found
