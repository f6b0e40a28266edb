"""Episodes step by step, for learning and for drawing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jedax.types import Array, Bool, Float, Int, Shaped


class Trajectory(NamedTuple):
    """All steps of one episode, simulated to the end even if the episode ends before.

    Attributes:
        observations: `(steps, o)`, before each step.
        actions: `(steps, a)`, each in [-1, 1].
        positions: `(steps, 2)`, of a robot in the plane, or `(steps, links, 3)`, of its links; after each step.
        length: Steps that count: up to and including the one that ends the episode.
        rewards: `(steps,)`, of each step; this and all below is None for mazes.
        next_observations: `(steps, o)`, after each step.
        done: `(steps,)`, whether the step ended the episode.
        q: `(steps, q)`, joint coordinates after each step.
        rotations: `(steps, links, 4)`, quaternions of the links, real part first.
    """

    observations: Float[Array, "steps observation"]
    actions: Float[Array, "steps action"]
    positions: Float[Array, "steps ..."]
    length: Int[Array, ""]
    rewards: Float[Array, " steps"] = None  # type: ignore[assignment]
    next_observations: Float[Array, "steps observation"] = None  # type: ignore[assignment]
    done: Bool[Array, " steps"] = None  # type: ignore[assignment]
    q: Float[Array, "steps q"] = None  # type: ignore[assignment]
    rotations: Float[Array, "steps links 4"] = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Postures:
    """Positions of the bodies of a MuJoCo robot.

    Attributes:
        model: MuJoCo's model.
        q: `(steps, q)`, `qpos` after each step.
        positions: `(steps, bodies, 3)`, of all bodies but the world, in metres.
        rotations: `(steps, bodies, 4)`, their quaternions.
    """

    model: Any
    q: Float[np.ndarray, "steps q"]
    positions: Float[np.ndarray, "steps bodies 3"]
    rotations: Float[np.ndarray, "steps bodies 4"]


@dataclass(frozen=True, eq=False)
class Motion:
    """One episode of one solution, with what it takes to draw it.

    Attributes:
        rewards: `(steps,)`, of each step.
        seen: `(steps, s)`, what the descriptor saw after each step: whether each foot touched the ground, the position
            of the robot, or nothing.
        observations: `(steps, o)`, before each step.
        actions: `(steps, ...)`, as the environment got them.
        dt: Seconds from step to step.
        postures: The robot after each step; None: the environment is not one of MuJoCo's.
        frames: Pictures by the environment itself, `(height, width, 3)` bytes each; only without postures.
        lacking: Why the environment drew nothing.
        more: Further values of each step, by name.
    """

    rewards: Float[np.ndarray, " steps"]
    seen: Shaped[np.ndarray, "steps seen"]
    observations: Float[np.ndarray, "steps observation"]
    actions: Shaped[np.ndarray, "steps ..."]
    dt: float
    postures: Postures | None = None
    frames: list[np.ndarray] = field(default_factory=list)
    lacking: str = ""
    more: dict[str, np.ndarray] = field(default_factory=dict)
