"""Settings of environments of MuJoCo Playground."""

from __future__ import annotations

from jedax.tasks.settings import WithPolicy

PREFIX = "playground:"
"""Start of the names of these tasks."""


class PlaygroundConfig(WithPolicy):
    """Settings of an environment of MuJoCo Playground."""
