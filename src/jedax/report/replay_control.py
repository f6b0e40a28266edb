"""What a robot does: a film, a picture of its gait or of its way, and its trajectory as numbers.

The film comes from MuJoCo's renderer where that works without a screen, and else from matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from jedax.report import plots, sticks
from jedax.report.films import Replay, departures, every, jitted, write_arrays, write_film
from jedax.report.mujoco_film import render
from jedax.report.pictures import write_picture
from jedax.store.run import Solution
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.control.base import ControlTask
from jedax.tasks.control.locomotion import Locomotion

_MOST_FRAMES = 150
_POSES = 9


def show(task: ControlTask, solution: Solution, folder: Path, name: str) -> Replay:
    """Write a robot's film (GIF), picture (PNG) and trajectory (.npz); errors as in `jedax.report.replay.replay`."""
    steps = jitted(task.replay, jnp.asarray(solution.genotype))
    length = int(steps.length)
    fitness = float(np.where(np.arange(task.config.steps) < length, steps.rewards, 0).sum(dtype=np.float64))
    body = sticks.body_of(task.environment.sys.mj_model)
    title = f"{task.name}: fitness {fitness:.1f} in {length} steps"
    picture = write_picture(folder / f"{name}.png", _picture(task, body, steps, title))
    frames = every(length, _MOST_FRAMES)
    seconds = float(task.environment.dt) * length / len(frames)
    film = folder / f"{name}.gif"
    remark = film_robot(film, task.environment.sys.mj_model, steps.q[frames], steps.positions[frames],
                        steps.rotations[frames], seconds)  # fmt: skip
    arrays = {field: value[:length] for field, value in steps._asdict().items() if field != "length"}
    numbers = write_arrays(folder / f"{name}.npz", arrays | {"dt": task.environment.dt})
    why = "its episodes began elsewhere" if task.is_noisy else "robots magnify the rounding of another program"
    remarks = [remark] * bool(remark) + departures(fitness, solution, why)
    return Replay(solution, fitness, (picture, film, numbers), tuple(remarks))


def film_robot(
    path: Path, model: Any, q: np.ndarray, positions: np.ndarray, rotations: np.ndarray, seconds_per_frame: float
) -> str:
    """Write a film (GIF) of a robot's postures, where one can be drawn.

    Args:
        path: Where to.
        model: MuJoCo's model of the robot.
        q: `(frames, q)`, MuJoCo's coordinates.
        positions: `(frames, bodies, 3)`, of all bodies but the world, in metres.
        rotations: `(frames, bodies, 4)`, their quaternions.
        seconds_per_frame: How long each is shown.

    Returns:
        What is worth knowing of it, in words; empty: nothing.
    """
    missing = render(model, q, path, seconds_per_frame)
    if not missing:
        return ""
    body = sticks.body_of(model)
    if not len(body.links):
        return f"no film, for MuJoCo cannot render here ({missing}) and matplotlib draws spheres and capsules alone"
    write_film(path, sticks.film(body, positions, rotations), seconds_per_frame)
    return f"drawn by matplotlib, for MuJoCo cannot render here ({missing})"


def _picture(task: ControlTask, body: sticks.Body, steps: Any, title: str) -> Figure:
    length = int(steps.length)
    if isinstance(task, AntMaze):
        figure, ax = plt.subplots(figsize=(4.6, 4.6))
        plots.ant_maze(ax)
        path = np.concatenate([[[0, 0]], steps.positions[:length, 0, :2]])
        ax.plot(*path.T, color=plots.PATH, linewidth=1.6, zorder=5, label="path")
        ax.plot(*path[-1], "X", color=plots.STOP, markersize=9, zorder=6, label="end", markeredgecolor="white")
        ax.set(xlim=(-6, 41), ylim=(-6, 41), xlabel="x in m", ylabel="y in m", aspect="equal")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=4, frameon=False, fontsize=8)
    else:
        assert isinstance(task, Locomotion)
        figure, (ax, gait) = plt.subplots(2, 1, figsize=(8, 3.6), height_ratios=(3, 1))
        sticks.poses(ax, body, steps.positions[:length], steps.rotations[:length], _POSES)
        touches = jitted(task.touches, steps.positions, steps.rotations)[:length]
        sticks.gait(gait, touches, [name.removesuffix(" on the floor") for name in task.descriptor_names])
    ax.set_title(title, fontsize=10)
    figure.tight_layout()
    return figure
