"""How environments of gymnasium are drawn and replayed."""

from __future__ import annotations

import numpy as np

from jedax.tasks.drawing import Episodes, every
from jedax.tasks.episode_drawing import MOST_FRAMES, EnvironmentDrawing
from jedax.tasks.motion import Motion
from jedax.types import Float


class GymDrawing(EnvironmentDrawing):
    """An environment of gymnasium, simulated in this process."""

    def episodes(self) -> Episodes:
        """Return how policies act again, side by side as in a worker."""
        return self.acted(self.task.config.chunk, self.task.record)

    def motion(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of a policy."""
        return self.task.replay(genotype, lambda length: every(length, MOST_FRAMES).tolist())
