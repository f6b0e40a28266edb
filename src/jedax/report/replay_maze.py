"""A robot's way through its maze, as a picture and as a film."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from jedax.report import plots
from jedax.report.films import Replay, every, jitted, write_arrays, write_film
from jedax.report.pictures import write_picture
from jedax.store.run import Solution
from jedax.tasks import Maze

_MOST_FRAMES = 120
_SECONDS = 6.0


def show(task: Maze, solution: Solution, seed: int, folder: Path, name: str) -> Replay:
    """Write a robot's path as PNG, GIF and .npz; errors as in `jedax.report.replay.replay`."""
    genotypes = jnp.asarray(solution.genotype)[None]
    # In a batch, as the search evaluated it: another program could round a path that grazes a wall elsewhere.
    key = jax.random.key(seed)
    trajectory = jitted(task.rollout_batch, key, genotypes)
    fitness = float(jitted(task.evaluate_batch, key, genotypes).fitness[0])
    length = int(trajectory.length[0])
    positions = np.concatenate([[task.config.start[:2]], trajectory.positions[0, :length]])
    actions = trajectory.actions[0, :length]
    title = f"{task.name}: fitness {fitness:.2f} in {length} steps"

    figure, ax = _stage(task, title)
    ax.plot(*positions.T, color=plots.PATH, linewidth=1.6, zorder=5, label="path")
    ax.plot(*positions[-1], "X", color=plots.STOP, markersize=9, zorder=6, label="end", markeredgecolor="white")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncol=4, frameon=False, fontsize=8)
    picture = write_picture(folder / f"{name}.png", figure)

    film = write_film(folder / f"{name}.gif", _frames(task, title, positions), _SECONDS / _MOST_FRAMES)
    arrays = {"positions": positions, "actions": actions, "observations": trajectory.observations[0, :length]}
    numbers = write_arrays(folder / f"{name}.npz", arrays)
    return Replay(solution, fitness, (picture, film, numbers))


def _stage(task: Maze, title: str) -> tuple[Figure, Axes]:
    figure, ax = plt.subplots(figsize=(4.6, 4.6))
    plots.maze(ax, task.config)
    (x0, y0), (x1, y1) = task.config.limits
    margin = 0.02 * max(x1 - x0, y1 - y0)
    ax.set(xlim=(x0 - margin, x1 + margin), ylim=(y0 - margin, y1 + margin), xlabel="x", ylabel="y", aspect="equal")
    ax.set_title(title, fontsize=10)
    return figure, ax


def _frames(task: Maze, title: str, positions: np.ndarray) -> list[np.ndarray]:
    figure, ax = _stage(task, title)
    (trail,) = ax.plot([], [], color=plots.PATH, linewidth=1.6, zorder=5)
    robot = Circle((0, 0), task.config.robot_radius, facecolor=plots.STOP, edgecolor="white", zorder=6)
    ax.add_patch(robot)
    figure.set_dpi(100)
    figure.tight_layout()
    frames = []
    for step in every(len(positions), _MOST_FRAMES):
        trail.set_data(*positions[: step + 1].T)
        robot.set_center(tuple(positions[step]))
        figure.canvas.draw()
        frames.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())  # type: ignore[attr-defined]
    plt.close(figure)
    return frames
