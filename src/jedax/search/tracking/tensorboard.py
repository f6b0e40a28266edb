"""TensorBoard: event files in `tensorboard/` of the run's directory, written by tensorboardX, without TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jedax.imports import require
from jedax.search.tracking.base import About

FOLDER = "tensorboard"
"""Where in a run's directory event files go."""


class TensorBoard:
    """Numbers as scalars; settings and summary as texts. A run that goes on adds a file to those that are there."""

    def __init__(self) -> None:
        self._about: About | None = None
        self._writer: Any = None

    def begin(self, about: About) -> None:
        """Take note of the run; its file begins with the first numbers."""
        self._about = about

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers as scalars, to be seen at once."""
        writer = self._open(step)
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary and close the file."""
        writer = self._open(None)
        writer.add_text("summary", _table(summary))
        writer.close()

    def _open(self, step: int | None) -> Any:
        """Return the writer; what an earlier process wrote for this step and later ones is shown no more."""
        if self._writer is None:
            assert self._about is not None
            assert self._about.folder is not None
            package = require("tensorboardX", "tensorboard", "track tensorboard")
            # Files that began in the same second would have one name.
            name = {"filename_suffix": f".{time.time_ns()}"}
            self._writer = package.SummaryWriter(str(Path(self._about.folder) / FOLDER), purge_step=step, **name)
            self._writer.add_text("config", _table(self._about.config))
        return self._writer


def _table(values: Mapping[str, Any]) -> str:
    """Return names and values as YAML in a block that TensorBoard shows as it is."""
    import yaml

    return f"```\n{yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)}```"
