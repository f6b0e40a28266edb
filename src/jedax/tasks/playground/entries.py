"""Names of the environments of MuJoCo Playground: `playground:ID`."""

from __future__ import annotations

from jedax.tasks.family import EnvironmentFamily
from jedax.tasks.playground.settings import PREFIX, PlaygroundConfig

FAMILY = EnvironmentFamily(PREFIX, PlaygroundConfig, "jedax.tasks.playground.task:Playground")
