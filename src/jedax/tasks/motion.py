"""One episode of an environment of others, step by step, with what it takes to draw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jedax.types import Float, Shaped


@dataclass(frozen=True, eq=False)
class Postures:
    """Where the bodies of one of MuJoCo's robots were.

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
    """One episode of one solution.

    Attributes:
        rewards: `(steps,)`, of each step.
        seen: `(steps, s)`, what the descriptor saw after each step: whether each foot touched the ground, where the
            robot was, or nothing.
        observations: `(steps, o)`, before each step.
        actions: `(steps, ...)`, as the environment got them.
        dt: Seconds from step to step.
        postures: The robot after each step; None: the environment is none of MuJoCo's.
        frames: What the environment itself drew, `(height, width, 3)` bytes each; only without postures.
        lacking: Why it drew nothing.
    """

    rewards: Float[np.ndarray, " steps"]
    seen: Shaped[np.ndarray, "steps seen"]
    observations: Float[np.ndarray, "steps observation"]
    actions: Shaped[np.ndarray, "steps ..."]
    dt: float
    postures: Postures | None = None
    frames: list[np.ndarray] = field(default_factory=list)
    lacking: str = ""
