"""How Brax's robots and the ant's maze are drawn, replayed and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import BoxStyle, FancyBboxPatch

from jedax.tasks.control import settings
from jedax.tasks.drawing import (
    FEET,
    PATH,
    RETURN,
    TARGET,
    WALL,
    WAY,
    EpisodeDrawing,
    Episodes,
    Scene,
    draw_path,
    jitted,
    legend_below,
)
from jedax.tasks.motion import Motion, Postures, acting
from jedax.types import Float, Shaped


class ControlDrawing(EpisodeDrawing):
    """One of Brax's robots."""

    kind = RETURN
    feet: tuple[str, ...] = ()
    start: tuple[float, float] | None = None

    @property
    def why_different(self) -> str:
        """Why a replay may achieve another fitness than the run recorded."""
        noisy = self.task.is_noisy
        return "its episodes began in other states" if noisy else "robots magnify the rounding of another program"

    def episodes(self) -> Episodes:
        """Return how policies act again, as many as a search simulates together, so that they round alike."""
        batch = self.task.part
        return Episodes(self.kind, batch, acting(self._act, batch), self.feet, self.start)

    def seen(self, positions: Any, rotations: Any) -> Shaped[Any, "*batch steps seen"]:
        """Return what is seen after each step, from the positions and rotations of the robot's links: nothing."""
        return positions[..., 0, :0]

    def motion(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of a policy, as the search simulated it."""
        steps = jitted(self.task.replay, jnp.asarray(genotype))._asdict()
        length, environment = int(steps.pop("length")), self.task.environment
        more = {name: values[:length] for name, values in steps.items()}
        bodies = {name: more.pop(name) for name in ("q", "positions", "rotations")}
        return Motion(
            **{name: more.pop(name) for name in ("rewards", "observations", "actions")},
            seen=jitted(self.seen, bodies["positions"], bodies["rotations"]),
            dt=environment.dt,
            postures=Postures(environment.sys.mj_model, **bodies),
            more=more,
        )

    def _act(self, genotypes: Any) -> tuple[Any, Any, Any]:
        steps = self.task.rollout_batch(jax.random.key(0), genotypes)
        return steps.rewards, steps.length, self.seen(steps.positions, steps.rotations)


class LocomotionDrawing(ControlDrawing):
    """A robot that walks or runs."""

    @property
    def kind(self) -> str:
        """What is seen beside the return: the feet, if the descriptor is theirs."""
        return FEET if self.task.sees_feet else RETURN

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet that are seen."""
        names = self.task.descriptor_names if self.task.sees_feet else ()
        return tuple(name.removesuffix(" on the floor") for name in names)

    def seen(self, positions: Any, rotations: Any) -> Shaped[Any, "*batch steps feet"]:
        """Return whether each foot that is seen touches the floor after each step."""
        see = self.task.touches if self.task.sees_feet else super().seen
        return see(positions, rotations)


class AntMazeDrawing(ControlDrawing):
    """The ant's maze from above, and ants as their paths."""

    kind = WAY
    start: tuple[float, float] = (0.0, 0.0)
    solution = "ant"
    place = "places in the maze"
    wanted = "an ant that walks around the walls and gets near the goal soon"

    @property
    def map_text(self) -> str:
        """How to read the map of cells."""
        return "Each cell of the map is a place where ants ended up, and holds the best ant that ended there."

    def draw_space(self, ax: Axes) -> None:
        """Draw walls as thick as they are, start and target."""
        radius = settings.RADIUS
        for x1, y1, x2, y2 in settings.WALLS:
            # A capsule has its caps within its ends, and its radius on both sides of the line between them.
            rx, ry = radius * (x1 == x2), radius * (y1 == y2)
            style = BoxStyle("Round", pad=0, rounding_size=radius)
            ax.add_patch(FancyBboxPatch((x1 - rx, y1 - ry), x2 - x1 + 2 * rx, y2 - y1 + 2 * ry, boxstyle=style,
                                        facecolor=WALL, linewidth=0, zorder=3))  # fmt: skip
        ax.plot(*settings.TARGET, "*", color=TARGET, markersize=13, markeredgecolor="white", zorder=4, label="goal")
        ax.plot(*self.start, "o", color=PATH, markersize=6, zorder=4, label="start", markeredgecolor="white")

    def scene(self) -> Scene:
        """Return the ant's maze; its walls are lines between the middles of their caps."""
        r = settings.RADIUS
        walls = [(x1 + r * (x2 > x1), y1 + r * (y2 > y1), x2 - r * (x2 > x1), y2 - r * (y2 > y1))
                 for x1, y1, x2, y2 in settings.WALLS]  # fmt: skip
        return Scene(((-6.0, -6.0), (41.0, 41.0)), walls, 2 * r, self.start, settings.TARGET)

    def seen(self, positions: Any, rotations: Any) -> Shaped[Any, "*batch steps 2"]:
        """Return x and y of the torso after each step."""
        return positions[..., 0, :2]

    def draw_episode(self, motion: Motion, frames: Sequence[np.ndarray]) -> Figure:
        """Draw an ant's path in its maze."""
        figure, ax = plt.subplots(figsize=(4.6, 4.6))
        self.draw_space(ax)
        draw_path(ax, np.concatenate([[self.start], motion.seen]))
        ax.set(xlim=(-6, 41), ylim=(-6, 41), xlabel="x in m", ylabel="y in m", aspect="equal")
        legend_below(ax)
        return figure
