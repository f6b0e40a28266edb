"""Weights & Biases: offline, in `wandb/` of the run's directory, unless `WANDB_MODE` says otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jedax.imports import require
from jedax.search.tracking.base import About


class WandB:
    """A run of the project `WANDB_PROJECT`, "jedax" by default; `wandb sync` sends what was kept offline."""

    def __init__(self) -> None:
        self._run: Any = None

    def begin(self, about: About) -> None:
        """Begin a run."""
        wandb = require("wandb", "wandb", "track wandb")
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "jedax"),
            name=about.title,
            config=dict(about.config),
            dir=None if about.folder is None else str(about.folder),
            mode=os.environ.get("WANDB_MODE", "offline"),
            reinit="create_new",
            # What the run prints stays the run's.
            settings=wandb.Settings(console="off", silent=True),
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log numbers."""
        self._run.log(dict(numbers), step=step)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Keep the outcome and end the run."""
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=int(summary.get("status") == "failed"))
