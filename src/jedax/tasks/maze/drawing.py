"""How mazes and the paths of robots through them are drawn, replayed and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle

from jedax.tasks.drawing import (
    PATH,
    STOP,
    TARGET,
    WALL,
    Recording,
    Scene,
    TaskDrawing,
    Trace,
    draw_path,
    frame,
    jitted,
    legend_below,
    plain,
)
from jedax.tasks.maze.settings import distance_to_wall
from jedax.tasks.motion import every
from jedax.types import Float

ARRIVED = "A robot that reaches the goal in {cost} steps"
COLLIDED = "A robot that ends at a wall"
TIMED_OUT = "A robot that runs out of time"

_BATCH = 4096
_MOST_FRAMES = 120
_SECONDS_PER_FRAME = 0.05


class MazeDrawing(TaskDrawing):
    """A maze from above, and robots as their paths.

    Robots drive in a batch, as in the search: another program could round a path that grazes a wall differently.
    """

    solution = "robot"
    place = "places in the maze"
    wanted = "a robot that drives from the start to the goal in as few steps as it can"

    @property
    def map_text(self) -> str:
        """How to read the map of cells."""
        return (
            "Each cell of the map is a place where robots ended up, and holds the best robot that ended there. Its "
            "fitness is minus the steps it took to the goal. If it did not arrive, its fitness is below "
            f"-{self.task.config.steps}, and falls with its distance to the goal."
        )

    def outcome(self, fitness: float, *, reached: bool) -> str:
        """Return how many steps the best robot takes, or how far from the goal it ends."""
        if reached:
            return f"reaches the goal in {-fitness:.0f} steps"
        weight = self.task.config.distance_weight
        away = f"{(-fitness - self.task.config.steps) / weight:.2f} " if weight else ""
        return f"does not reach the goal and ends {away}away from it"

    def draw_space(self, ax: Axes) -> None:
        """Draw walls, start and target; the target is a ring, so that the cells below it can be seen."""
        self._draw_maze(ax, "none")

    def draw_solution(self, ax: Axes, genotype: Float[np.ndarray, " params"], seed: int) -> bool:
        """Draw a robot's path in its maze."""
        self._draw_path(ax, self.traces(genotype[None], seed)[0].points)
        return True

    def scene(self) -> Scene:
        """Return the maze."""
        config = self.task.config
        note = "One of many possible paths: this maze has noise." if self.task.is_noisy else ""
        return Scene(config.limits, config.all_walls, 0.0, config.start[:2], config.target, config.target_radius, note)

    def traces(self, genotypes: Float[np.ndarray, "n params"], seed: int) -> Sequence[Trace]:
        """Return the path of each robot, without the steps in which it stands still at its end."""
        found = []
        for first in range(0, len(genotypes), _BATCH):
            part = jnp.asarray(genotypes[first : first + _BATCH])
            driven = self.task.rollout_batch(jax.random.key(seed), part)
            positions, lengths = np.asarray(driven.positions), np.asarray(driven.length)
            found += [self._trace(mine[:length]) for mine, length in zip(positions, lengths, strict=True)]
        return found

    def replay(self, genotype: Float[np.ndarray, " params"], fitness: float, seed: int) -> Recording:
        """Return a robot's path as a picture, a film and numbers."""
        key, genotypes = jax.random.key(seed), jnp.asarray(genotype)[None]
        driven = jitted(self.task.rollout_batch, key, genotypes)
        fitness = float(jitted(self.task.evaluate_batch, key, genotypes).fitness[0])
        length = int(driven.length[0])
        arrays = {name: getattr(driven, name)[0, :length] for name in ("positions", "actions", "observations")}
        arrays["positions"] = np.concatenate([[self.task.config.start[:2]], arrays["positions"]])
        title = plain(f"{self.task.name}: fitness {fitness:.5g} in {length} steps")
        figure, ax = plt.subplots(figsize=(4.6, 4.6))
        self._draw_path(ax, arrays["positions"])
        ax.set_title(title, fontsize=10)
        frames = self._film(title, arrays["positions"])
        return Recording(figure, fitness, frames, _SECONDS_PER_FRAME * len(frames), arrays)

    def _trace(self, positions: Float[np.ndarray, "steps 2"]) -> Trace:
        config = self.task.config
        moving = np.flatnonzero((positions[1:] != positions[:-1]).any(axis=1))
        points = np.concatenate([[config.start[:2]], positions[: moving[-1] + 2] if len(moving) else positions[:1]])
        x, y = positions[-1].tolist()
        if np.hypot(x - config.target[0], y - config.target[1]) < config.target_radius:
            return Trace(points, ARRIVED, "star")
        nearest = min((distance_to_wall((x, y), wall) for wall in config.all_walls), default=np.inf)
        return Trace(points, COLLIDED, "cross") if nearest <= config.robot_radius * 1.001 else Trace(points, TIMED_OUT)

    def _draw_maze(self, ax: Axes, fill: str) -> None:
        config = self.task.config
        walls = [((x1, y1), (x2, y2)) for x1, y1, x2, y2 in config.all_walls]
        ax.add_collection(LineCollection(walls, colors=WALL, linewidths=2, zorder=3, capstyle="round"))
        style: dict[str, Any] = {"facecolor": fill, "edgecolor": TARGET, "linewidth": 1.6, "zorder": 3}
        ax.add_patch(Circle(config.target, config.target_radius, **style))
        ax.scatter([], [], s=60, label="goal", **style)
        ax.plot(*config.start[:2], "o", color=PATH, markersize=6, zorder=4, label="start", markeredgecolor="white")
        frame(ax, config.limits, ("x", "y"))

    def _draw_path(self, ax: Axes, points: Float[np.ndarray, "points 2"]) -> None:
        self._draw_maze(ax, TARGET)
        draw_path(ax, points)
        legend_below(ax)

    def _film(self, title: str, points: Float[np.ndarray, "points 2"]) -> list[np.ndarray]:
        figure, ax = plt.subplots(figsize=(4.6, 4.6), dpi=100)
        self._draw_maze(ax, TARGET)
        ax.set_title(title, fontsize=10)
        (trail,) = ax.plot([], [], color=PATH, linewidth=1.6, zorder=5)
        robot = Circle((0, 0), self.task.config.robot_radius, facecolor=STOP, edgecolor="white", zorder=6)
        ax.add_patch(robot)
        figure.tight_layout()
        frames = []
        for step in every(len(points), _MOST_FRAMES):
            trail.set_data(*points[: step + 1].T)
            robot.set_center(tuple(points[step]))
            figure.canvas.draw()
            frames.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())  # type: ignore[attr-defined]
        plt.close(figure)
        return frames
