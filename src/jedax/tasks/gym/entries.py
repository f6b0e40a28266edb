"""Names of the environments of gymnasium: `gym:ID`."""

from __future__ import annotations

from jedax.tasks.family import EnvironmentFamily
from jedax.tasks.gym.settings import PREFIX, GymConfig

FAMILY = EnvironmentFamily(PREFIX, GymConfig, "jedax.tasks.gym.task:Gym")
