"""How tasks are drawn whose solutions are policies: one episode as a picture, a film and numbers."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from jedax.tasks.drawing import FEET, PATH, RETURN, STOP, WAY, Act, Episodes, Recording, TaskDrawing, every
from jedax.tasks.motion import Motion
from jedax.tasks.mujoco_film import render
from jedax.types import Float

MOST_FRAMES = 150
_SHOWN = 5


class EpisodeDrawing(TaskDrawing, abc.ABC):
    """A task whose solutions are policies. MuJoCo's renderer films its robots; other environments draw themselves."""

    @abc.abstractmethod
    def episodes(self) -> Episodes:
        """Return how policies act again."""

    @abc.abstractmethod
    def motion(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of a policy."""

    def replay(self, genotype: Float[np.ndarray, " params"], fitness: float, seed: int) -> Recording:
        """Return a policy's episode as a picture, a film where one can be drawn, and numbers."""
        motion = self.motion(genotype)
        steps, fitness = len(motion.rewards), float(motion.rewards.sum(dtype=np.float64))
        arrays = {name: getattr(motion, name) for name in ("rewards", "seen", "observations", "actions", "dt")}
        frames, lacking, robot = motion.frames, motion.lacking, motion.postures
        if robot is not None:
            frames, lacking = render(robot.model, robot.q[every(steps, MOST_FRAMES)])
            arrays |= {name: getattr(robot, name) for name in ("q", "positions", "rotations")}
        figure = self.draw_episode(motion, frames)
        figure.axes[0].set_title(f"{self.task.name}: fitness {fitness:.5g} in {steps} steps", fontsize=10)
        remarks = () if frames else (f"no film: {lacking}",)
        return Recording(figure, fitness, frames, motion.dt * steps, arrays | motion.more, remarks)

    def draw_episode(self, motion: Motion, frames: Sequence[np.ndarray]) -> Figure:
        """Draw some frames, or the observations where there are none; below what the descriptor sees, or the return."""
        steps, episodes = np.arange(1, len(motion.rewards) + 1), self.episodes()
        heights = (1.7, 0.3 * len(episodes.feet) or 1.0)
        size = 9, sum(heights) + 0.9
        figure, (ax, below) = plt.subplots(2, 1, figsize=size, height_ratios=heights, layout="constrained")
        if frames:
            ax.imshow(np.concatenate([frames[number] for number in every(len(frames), _SHOWN)], axis=1))
            ax.set_axis_off()
        else:
            ax.plot(steps, motion.observations, linewidth=1)
            ax.set(ylabel="observations", xlim=(0.5, len(steps) + 0.5))
        if episodes.kind == FEET:
            shares = motion.seen.mean(axis=0)
            labels = [f"{foot} {share:.0%}" for foot, share in zip(episodes.feet, shares, strict=True)]
            below.pcolormesh(motion.seen.T, cmap="Blues", vmin=0, vmax=1.3)
            below.set(xlabel="step (dark: foot on the floor)", yticks=np.arange(len(labels)) + 0.5, yticklabels=labels)
            below.invert_yaxis()
        elif episodes.kind == WAY:
            below.plot(*motion.seen.T, color=PATH, linewidth=1.6)
            below.plot(*motion.seen[-1], "X", color=STOP, markersize=8)
            below.set(**dict(zip(("xlabel", "ylabel"), self.task.descriptor_names, strict=True)))
        else:
            below.plot(steps, np.cumsum(motion.rewards), color=PATH)
            below.set(xlabel="step", ylabel="return", xlim=(0.5, len(steps) + 0.5))
        return figure


class EnvironmentDrawing(EpisodeDrawing):
    """A policy in an environment; the task's setting `descriptor` says what is seen of it."""

    @property
    def why_different(self) -> str:
        """Why a replay may achieve another fitness than the run recorded."""
        return "a mean over several episodes, or the environment magnifies rounding"

    def acted(self, batch: int, act: Act) -> Episodes:
        """Return the episodes of policies that act so."""
        kind = {"feet-contact": FEET, "final-xy": WAY}.get(self.task.config.descriptor, RETURN)
        names = self.task.descriptor_names if kind == FEET else ()
        return Episodes(kind, batch, act, tuple(name.removeprefix("share of ") for name in names))
