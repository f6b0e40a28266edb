"""The checkpoints of a search: when one is due, and whether one belongs to a run."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from jedax.errors import fail
from jedax.methods.base import Method
from jedax.store.config import RunConfig
from jedax.store.directory import RunDirectory

_PAUSE = 20  # the pause between two checkpoints, in times of the duration of the last one; large states take seconds
_LONGEST_PAUSE = 10  # in times of `checkpoint_seconds`


class Checkpoints:
    """Saves and restores the states of a search; a checkpoint must have the checksum `digest` of the settings."""

    def __init__(self, source: RunDirectory | None, digest: str, method: Method, settings: RunConfig):
        self.source, self.digest = source, digest
        self._method, self._settings = method, settings
        self._saved_at, self._took = -math.inf, 0.0

    def restore(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Return the newest whole state, with the structure of `like`, and its facts; None: there is no checkpoint."""
        found = None if self.source is None else self.source.load_checkpoint(like)
        if found is None or self.source is None:
            return None
        state, facts = found
        if facts["config"] != self.digest:
            raise fail(
                str(self.source.path),
                expected="a checkpoint of the run in config.yaml",
                received="one with other settings",
                remedy="restore config.yaml or start anew with --overwrite",
            )
        if not self._agree(state, facts):
            raise fail(
                str(self.source.path),
                expected="a checkpoint whose state and manifest agree",
                received=f"a manifest that says {facts['evaluations']} evaluations",
                remedy="remove it, or start anew with --overwrite",
            )
        return state, facts

    def _agree(self, state: Any, facts: dict[str, Any]) -> bool:
        first, evaluations = self._method.initial_evaluations, facts["evaluations"]
        generations = np.asarray(state.generation).astype(int)
        counts = [len(numbers) for numbers in facts.get("failures", {}).values()]  # old checkpoints have none
        return (
            first <= evaluations <= self._settings.evaluations
            and bool((first + generations * self._method.evaluations_per_generation == evaluations).all())
            and all(count == self._settings.replicas for count in counts)
        )

    def is_due(self) -> bool:
        """Return whether enough time has passed since the last checkpoint."""
        wanted = self._settings.checkpoint_seconds
        pause = max(wanted, min(_PAUSE * self._took, _LONGEST_PAUSE * wanted))
        return time.perf_counter() - self._saved_at >= pause

    def save(self, directory: RunDirectory, state: Any, facts: dict[str, Any]) -> None:
        """Save a checkpoint."""
        began = time.perf_counter()
        directory.save_checkpoint(state, {**facts, "config": self.digest})
        self._saved_at = time.perf_counter()
        self._took = self._saved_at - began
