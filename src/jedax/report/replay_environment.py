"""What a policy does in an environment of gymnasium or Playground: a film, a picture, and all of it as numbers.

MuJoCo's robots are filmed as those of `jedax.report.replay_control` are; other environments draw themselves.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jedax.report import plots, sticks
from jedax.report.films import Replay, departures, every, write_arrays, write_film
from jedax.report.pictures import write_picture
from jedax.report.replay_control import film_robot
from jedax.store.run import Solution
from jedax.tasks.gym.task import Gym
from jedax.tasks.motion import Motion
from jedax.tasks.playground.task import Playground

_MOST_FRAMES = 150
_POSES = 9


def show(task: Gym | Playground, solution: Solution, folder: Path, name: str) -> Replay:
    """Write a picture (PNG), a film (GIF) where one can be drawn, and the trajectory (.npz)."""
    if isinstance(task, Gym):
        motion = task.replay(solution.genotype, lambda length: every(length, _MOST_FRAMES).tolist())
    else:
        motion = task.replay(solution.genotype)
    fitness = float(motion.rewards.sum(dtype=np.float64))
    title = f"{task.name}: fitness {fitness:.1f} in {len(motion.rewards)} steps"
    files = [write_picture(folder / f"{name}.png", _picture(task, motion, title))]
    remark = _film(motion, folder / f"{name}.gif")
    if (folder / f"{name}.gif").exists():
        files.append(folder / f"{name}.gif")
    arrays = {field: getattr(motion, field) for field in ("rewards", "seen", "observations", "actions", "dt")}
    if motion.postures is not None:
        arrays |= {field: getattr(motion.postures, field) for field in ("q", "positions", "rotations")}
    files.append(write_arrays(folder / f"{name}.npz", arrays))
    why = "a mean over several episodes, or the environment magnifies rounding"
    remarks = [remark] * bool(remark) + departures(fitness, solution, why)
    return Replay(solution, fitness, tuple(files), tuple(remarks))


def _film(motion: Motion, path: Path) -> str:
    """Write a film where one can be drawn; return what is worth knowing of it, or nothing."""
    path.unlink(missing_ok=True)  # of another episode
    frames = every(len(motion.rewards), _MOST_FRAMES)
    seconds = motion.dt * len(motion.rewards) / len(frames)
    postures = motion.postures
    if postures is None:
        if motion.frames:
            write_film(path, motion.frames, seconds)
            return ""
        return f"no film, for the environment draws nothing here ({motion.lacking.rstrip('.')})"
    where = postures.positions[frames], postures.rotations[frames]
    return film_robot(path, postures.model, postures.q[frames], *where, seconds)


def _picture(task: Gym | Playground, motion: Motion, title: str) -> Figure:
    """Draw the episode: postures or the environment's own pictures above, below what the descriptor sees."""
    figure, (ax, below) = plt.subplots(2, 1, figsize=(8, 4.2), height_ratios=(3, 1.3), layout="constrained")
    postures = motion.postures
    body = None if postures is None else sticks.body_of(postures.model)
    if postures is not None and body is not None and len(body.links):
        sticks.poses(ax, body, postures.positions, postures.rotations, _POSES)
    elif motion.frames:
        _strip(ax, motion.frames)
    else:
        ax.plot(np.arange(1, len(motion.rewards) + 1), motion.observations, linewidth=1)
        ax.set(ylabel="observations", xlim=(0.5, len(motion.rewards) + 0.5))
    if task.config.descriptor == "feet-contact":
        sticks.gait(below, motion.seen, [name.removeprefix("share of ") for name in task.descriptor_names])
    elif task.config.descriptor == "final-xy":
        below.plot(*motion.seen.T, color=plots.PATH, linewidth=1.6)
        below.plot(*motion.seen[-1], "X", color=plots.STOP, markersize=8)
        below.set(**dict(zip(("xlabel", "ylabel"), task.descriptor_names, strict=True)))
    else:
        below.plot(np.arange(1, len(motion.rewards) + 1), np.cumsum(motion.rewards), color=plots.PATH)
        below.set(xlabel="step", ylabel="return", xlim=(0.5, len(motion.rewards) + 0.5))
    ax.set_title(title, fontsize=10)
    return figure


def _strip(ax: Axes, frames: list[np.ndarray]) -> None:
    """Draw pictures side by side."""
    shown = [frames[number] for number in every(len(frames), 4)]
    ax.imshow(np.concatenate(shown, axis=1))
    ax.set_axis_off()
