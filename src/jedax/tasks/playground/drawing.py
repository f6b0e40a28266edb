"""How environments of MuJoCo Playground are drawn and replayed."""

from __future__ import annotations

import jax
import numpy as np

from jedax.tasks.drawing import Episodes, acting
from jedax.tasks.episode_drawing import EnvironmentDrawing
from jedax.tasks.motion import Motion
from jedax.types import Float

_BATCH = 16


class PlaygroundDrawing(EnvironmentDrawing):
    """An environment of MuJoCo Playground, simulated in JAX."""

    def episodes(self) -> Episodes:
        """Return how policies act again."""
        return self.acted(_BATCH, acting(jax.vmap(self.task.record), _BATCH))

    def motion(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of a policy."""
        return self.task.replay(genotype)
