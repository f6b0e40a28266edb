"""Names of the environments of gymnasium: `gym:ID`."""

from __future__ import annotations

import re

from jedax.errors import JedaxError, fail
from jedax.tasks.family import EnvironmentFamily
from jedax.tasks.gym.settings import PREFIX, GymConfig


class GymFamily(EnvironmentFamily):
    """Environments of gymnasium."""

    def explain(self, argument: str, name: str) -> JedaxError | None:
        """Return what to write instead of an ID such as CartPole-v1."""
        if not re.fullmatch(r"[\w/]+-v\d+", name):
            return None
        return fail(argument, expected="the name of a task", received=name, remedy=f"try {self.prefix}{name}")


FAMILY = GymFamily(PREFIX, GymConfig, "jedax.tasks.gym.task:Gym")
