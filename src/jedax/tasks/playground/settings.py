"""Settings of environments of MuJoCo Playground."""

from __future__ import annotations

from jedax.tasks.settings import WithPolicy


class PlaygroundConfig(WithPolicy):
    """An environment of MuJoCo Playground."""
