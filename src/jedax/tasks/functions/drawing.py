"""How the planar arm is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from jedax.tasks.drawing import PATH, STOP, TaskDrawing, Trace, frame, legend_below
from jedax.types import Float


class ArmDrawing(TaskDrawing):
    """An arm as its links and joints."""

    marks_points = True

    def draw_solution(self, ax: Axes, genotype: Float[np.ndarray, " params"], seed: int) -> bool:
        """Draw the links of an arm."""
        links = np.asarray(self.task.link_positions(jnp.asarray(genotype)))
        ax.plot(*links.T, "-o", color=PATH, linewidth=2.5, markersize=5)
        ax.plot(*links[-1], "o", color=STOP, markersize=9, label="tip")
        frame(ax, self.task.descriptor_bounds, self.task.descriptor_names)
        legend_below(ax)
        return True

    def traces(self, genotypes: Float[np.ndarray, "n params"], seed: int) -> Sequence[Trace]:
        """Return the joints of each arm, from the shoulder to the tip."""
        links = np.asarray(jax.vmap(self.task.link_positions)(jnp.asarray(genotypes)))
        return [Trace(points, "The arm of this cell, from its shoulder to its tip") for points in links]
