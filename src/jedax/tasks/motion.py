"""Episodes step by step, for learning and for drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.types import Array, Bool, Float, Int, Shaped

MOST_FRAMES = 150
"""Pictures in a film, at most."""

Act = Callable[[Float[np.ndarray, "n params"]], Sequence[tuple[np.ndarray, np.ndarray]]]
"""A function from policies to the rewards of each and what was seen, as in `jedax.tasks.drawing.Episodes`."""


class Trajectory(NamedTuple):
    """All steps of one episode, simulated to the end even if the episode ends before."""

    observations: Float[Array, "steps observation"]  # before each step
    actions: Float[Array, "steps action"]  # each number in [-1, 1]
    positions: Float[Array, "steps ..."]  # after each step: `(2,)` of a robot in the plane, `(links, 3)` of its links
    length: Int[Array, ""]  # steps that count: up to and including the one that ends the episode
    # None for mazes:
    rewards: Float[Array, " steps"] = None  # type: ignore[assignment]
    next_observations: Float[Array, "steps observation"] = None  # type: ignore[assignment]
    done: Bool[Array, " steps"] = None  # type: ignore[assignment]  # whether the step ended the episode
    q: Float[Array, "steps q"] = None  # type: ignore[assignment]  # joint coordinates after each step
    rotations: Float[Array, "steps links 4"] = None  # type: ignore[assignment]  # quaternions, real part first


@dataclass(frozen=True, eq=False)
class Postures:
    """Positions of the bodies of a MuJoCo robot, all but the world, after each step."""

    model: Any  # MuJoCo's
    q: Float[np.ndarray, "steps q"]  # `qpos`
    positions: Float[np.ndarray, "steps bodies 3"]  # in metres
    rotations: Float[np.ndarray, "steps bodies 4"]  # quaternions


@dataclass(frozen=True, eq=False)
class Motion:
    """One episode of one solution, with what it takes to draw it."""

    rewards: Float[np.ndarray, " steps"]
    seen: Shaped[np.ndarray, "steps seen"]  # after each step: whether each foot is on the ground, x and y, or nothing
    observations: Float[np.ndarray, "steps observation"]  # before each step
    actions: Shaped[np.ndarray, "steps ..."]  # as the environment got them
    dt: float  # seconds from step to step
    postures: Postures | None = None  # None: the environment is not one of MuJoCo's
    frames: list[np.ndarray] = field(default_factory=list)  # by the environment itself, only without postures
    lacking: str = ""  # why the environment drew nothing
    more: dict[str, np.ndarray] = field(default_factory=dict)  # further values of each step


def every(length: int, most: int) -> np.ndarray:
    """Return at most `most` of the indices below `length`, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))


def acting(program: Callable[[Any], tuple[Any, Any, Any]], batch: int) -> Act:
    """Return `Episodes.act` for a JAX program, which is compiled for one batch size.

    The program takes policies `(batch, params)` to rewards `(batch, steps)`, the number of steps that count `(batch,)`,
    and what was seen `(batch, steps, seen)`.
    """
    compiled = jax.jit(program)

    def act(genotypes: Float[np.ndarray, "n params"]) -> list[tuple[np.ndarray, np.ndarray]]:
        filled = np.concatenate([genotypes, np.repeat(genotypes[-1:], batch - len(genotypes), axis=0)])
        rewards, lengths, seen = map(np.asarray, compiled(jnp.asarray(filled)))
        return [(rewards[row, : lengths[row]], seen[row, : lengths[row]]) for row in range(len(genotypes))]

    return act
