"""Robots as thick strokes: spheres and capsules seen from the side or from above at an angle, by matplotlib alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from jedax.report import plots

_SPHERE, _CAPSULE = 2, 3  # mjtGeom
_SLIDE, _HINGE = 2, 3  # mjtJoint
_ANGLE = np.deg2rad(35)  # of sight above the floor, and of y in the picture, for robots that move in space
_POINT = 1e-3  # half the length of a stroke that is to be a dot, for matplotlib leaves out those without any
_WINDOW = 2.2  # metres from the robot to the edge of a film


@dataclass(frozen=True)
class Body:
    """The spheres and capsules of a model.

    Attributes:
        links: `(geoms,)`, the link that each belongs to; -1: it stands still.
        ends: `(geoms, 2, 3)`, centres of the spheres at its ends, in the link's frame; for a sphere next to each other.
        radii: `(geoms,)`, in metres.
        planar: Whether the robot can move in the plane y = 0 only.
    """

    links: np.ndarray
    ends: np.ndarray
    radii: np.ndarray
    planar: bool

    def placed(self, positions: np.ndarray, rotations: np.ndarray) -> np.ndarray:
        """Return the ends in the world, `(geoms, 2, 3)`; positions and rotations (quaternions) are the links'."""
        positions = np.concatenate([positions, [[0, 0, 0]]])
        rotations = np.concatenate([rotations, [[1, 0, 0, 0]]])
        w, v = rotations[self.links, None, :1], rotations[self.links, None, 1:]
        turned = self.ends + 2 * np.cross(v, np.cross(v, self.ends) + w * self.ends)
        return turned + positions[self.links, None]

    def projected(self, points: np.ndarray) -> np.ndarray:
        """Return where points, `(..., 3)`, are in the picture, `(..., 2)`, in metres."""
        if self.planar:
            return points[..., [0, 2]]
        x, y, z = np.moveaxis(points, -1, 0)
        return np.stack([x + 0.4 * y, np.sin(_ANGLE) * y + np.cos(_ANGLE) * z], axis=-1)


def body_of(model: Any) -> Body:
    """Return the spheres and capsules of a MuJoCo model."""
    geoms = np.flatnonzero(np.isin(model.geom_type, (_SPHERE, _CAPSULE)))
    w, x, y, z = model.geom_quat[geoms].T
    axis = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=-1)
    half = np.where(model.geom_type[geoms] == _CAPSULE, model.geom_size[geoms, 1], _POINT)
    along = axis * half[:, None]
    centres = model.geom_pos[geoms]
    return Body(
        links=model.geom_bodyid[geoms] - 1,
        ends=np.stack([centres - along, centres + along], axis=1),
        radii=model.geom_size[geoms, 0],
        planar=_is_planar(model),
    )


def _is_planar(model: Any) -> bool:
    """Whether all joints slide within the plane y = 0 or turn around an axis across it."""
    across = np.abs(model.jnt_axis[:, 1]) > 0.5
    return bool(np.where(across, model.jnt_type == _HINGE, model.jnt_type == _SLIDE).all())


def gait(ax: Axes, touches: np.ndarray, names: Sequence[str]) -> None:
    """Draw when each foot touches the floor: `(steps, feet)`, by the feet's names."""
    ax.imshow(touches.T, aspect="auto", cmap="Blues", vmin=0, vmax=1.3, interpolation="nearest",
              extent=(0.5, len(touches) + 0.5, len(names) - 0.5, -0.5))  # fmt: skip
    labels = [f"{name} {share:.0%}" for name, share in zip(names, touches.mean(axis=0), strict=True)]
    ax.set_yticks(range(len(names)), labels, fontsize=8)
    ax.set_xlabel("step (dark: foot on the floor)", fontsize=8)


def draw(ax: Axes, body: Body, positions: np.ndarray, rotations: np.ndarray, alpha: float = 1.0) -> LineCollection:
    """Draw a robot; limits and aspect of the axes must be set, for they make the width of its strokes."""
    ends = body.placed(positions, rotations)
    order = np.argsort(-ends[..., 1].mean(axis=1))  # what is nearer covers what is behind it
    moving = body.links[order] >= 0
    colors = np.where(moving, plots.PATH, "#9aa0a6")
    lines = LineCollection(
        list(body.projected(ends[order])), linewidths=2 * body.radii[order] * _points_per_metre(ax), colors=colors,
        capstyle="round", alpha=alpha, zorder=3,
    )  # fmt: skip
    ax.add_collection(lines)
    return lines


def _points_per_metre(ax: Axes) -> float:
    figure: Any = ax.figure
    figure.canvas.draw()
    (left, right), width = ax.get_xlim(), ax.get_window_extent().width
    return width / (right - left) * 72 / figure.dpi


def poses(ax: Axes, body: Body, positions: np.ndarray, rotations: np.ndarray, number: int) -> None:
    """Draw a robot at evenly spread steps, the later the stronger."""
    shown = np.unique(np.linspace(0, len(positions) - 1, number).round().astype(int))
    seen = np.concatenate([body.projected(body.placed(positions[i], rotations[i])).reshape(-1, 2) for i in shown])
    low, high = seen.min(axis=0) - 0.3, seen.max(axis=0) + 0.3
    ax.set(xlim=(low[0], high[0]), ylim=(min(low[1], -0.1), high[1]), xlabel="x in m", aspect="equal")
    ax.set_yticks([])
    ax.axhline(0, color="#bbbbbb", linewidth=1, zorder=1)
    for place, step in enumerate(shown):
        draw(ax, body, positions[step], rotations[step], alpha=0.25 + 0.75 * place / max(1, len(shown) - 1))


def film(body: Body, positions: np.ndarray, rotations: np.ndarray) -> list[np.ndarray]:
    """Return a frame, `(height, width, 3)` bytes, for each posture; the camera goes with the robot.

    Args:
        body: The robot.
        positions: `(frames, links, 3)`, of its links.
        rotations: `(frames, links, 4)`, their quaternions.
    """
    figure, ax = plt.subplots(figsize=(4.8, 3.2), dpi=100)
    figure.subplots_adjust(0, 0, 1, 1)
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    height = 2 * _WINDOW / 1.5
    frames = []
    for where, turned in zip(positions, rotations, strict=True):
        ax.clear()
        ax.set_axis_off()
        centre = body.projected(where[0])
        bottom = -0.3 if body.planar else centre[1] - height / 2
        ax.set(xlim=(centre[0] - _WINDOW, centre[0] + _WINDOW), ylim=(bottom, bottom + height))
        _floor(ax, body, where[0])
        draw(ax, body, where, turned)
        figure.canvas.draw()
        frames.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())  # type: ignore[attr-defined]
    plt.close(figure)
    return frames


def _floor(ax: Axes, body: Body, centre: np.ndarray) -> None:
    """Draw a mark on the floor at every metre, so that one sees the robot move."""
    around = np.arange(-6, 7)
    x, y = np.meshgrid(np.floor(centre[0]) + around, [0.0] if body.planar else np.floor(centre[1]) + around)
    marks = body.projected(np.stack([x, y, np.zeros_like(x)], axis=-1)).reshape(-1, 2)
    if body.planar:
        ax.axhline(0, color="#888888", linewidth=1.5, zorder=1)
    ax.plot(*marks.T, "|" if body.planar else "+", color="#888888", markersize=8, zorder=1)
