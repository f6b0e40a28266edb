"""Deceptive problems beside the paper's: labyrinths, functions with traps, arms that must reach round walls.

    python results/problems.py

writes the labyrinths as maze files into results/beyond/labyrinths. `DEVELOPMENT` are the problems that JEDi-X was made
with. No setting was chosen on `HELD_OUT`, but earlier versions of JEDi-X were run on them, too.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import yaml
from keeping import HERE

from jedax.store.files import write_atomic
from jedax.tasks import PlanarArm
from jedax.tasks.base import Task
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

LABYRINTHS = HERE / "beyond" / "labyrinths"
WHEEL_SPEED = 0.025

# Size and seed of each labyrinth.
_DEVELOPMENT_LABYRINTHS = ((4, 0), (5, 0), (6, 0))
_HELD_OUT_LABYRINTHS = ((4, 700), (5, 701), (6, 702), (7, 703), (8, 704))


def _file(size: int, seed: int) -> str:
    return str(LABYRINTHS / f"labyrinth-{size}-{seed}.yaml")


DEVELOPMENT = (
    *(_file(*which) for which in _DEVELOPMENT_LABYRINTHS),
    "problems:Barrier",
    "problems:ArmWall",
    "problems:ArmHook",
    "rastrigin",
)
"""Problems that were looked at while JEDi-X was made."""

HELD_OUT = (
    *(_file(*which) for which in _HELD_OUT_LABYRINTHS),
    "problems:Moat", "problems:Traps", "problems:ArmSlit", "problems:ArmChicane", "sphere",
)  # fmt: skip
"""Problems that were not."""

LATE = (
    *(str(HERE / "beyond" / "late" / f"{name}.yaml") for name in ("cellar", "cul-de-sac", "dead-end")),
    "problems:PointInU", "problems:NarrowPeak",
)  # fmt: skip
"""Problems made to find out where the third JEDi-X came late, and `cellar`, drawn when the fourth was done."""

HELD_OUT_SLOW = ("gym:Walker2d-v5",)
"""Neither was this one, of which a core evaluates 60 a second."""

Place = tuple[int, int]


def labyrinth(size: int, seed: int) -> dict:
    """Return a maze whose `size` x `size` fields are joined by exactly one way each, drawn depth first.

    The robot begins in the lower left field and is to reach the upper right one; an episode lasts four times what the
    shortest way from field to field takes at full speed, and at least 250 steps.
    """
    draw = random.Random(seed)
    fields = [(x, y) for x in range(size) for y in range(size)]
    open_between: dict[Place, set[Place]] = {field: set() for field in fields}
    way = [(0, 0)]
    while way:
        new = [n for n in _neighbours(way[-1], size) if not open_between[n] and n != (0, 0)]
        if not new:
            way.pop()
            continue
        chosen = draw.choice(new)
        open_between[way[-1]].add(chosen)
        open_between[chosen].add(way[-1])
        way.append(chosen)
    width, half = 1 / size, 0.5 / size
    walls = []
    for x, y in fields:
        if x + 1 < size and (x + 1, y) not in open_between[x, y]:
            walls.append([(x + 1) * width, y * width, (x + 1) * width, (y + 1) * width])
        if y + 1 < size and (x, y + 1) not in open_between[x, y]:
            walls.append([x * width, (y + 1) * width, (x + 1) * width, (y + 1) * width])
    shortest = _distance(open_between, (0, 0), (size - 1, size - 1)) * width / WHEEL_SPEED
    return {
        "name": f"labyrinth-{size}-{seed}",
        "walls": [[round(number, 6) for number in wall] for wall in walls],
        "start": [half, half, math.pi / 2],
        "target": [1 - half, 1 - half],
        "target_radius": min(0.05, half),
        "steps": max(250, math.ceil(4 * shortest)),
        "wheel_speed": WHEEL_SPEED,
    }


def _neighbours(field: Place, size: int) -> list[Place]:
    x, y = field
    around = ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
    return [(a, b) for a, b in around if 0 <= a < size and 0 <= b < size]


def _distance(open_between: dict[Place, set[Place]], start: Place, end: Place) -> int:
    distance, queue = {start: 0}, deque([start])
    while queue:
        field = queue.popleft()
        for new in open_between[field] - distance.keys():
            distance[new] = distance[field] + 1
            queue.append(new)
    return distance[end]


class _Normal(Task):
    """Its random genotypes are normal numbers."""

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        return jax.random.normal(key, (self.num_params,))


@dataclass(frozen=True)
class _Plane(_Normal):
    """20 parameters; the first two, squashed into the unit square, are the behaviour, the rest should be near zero."""

    num_params: int = 20
    descriptor_bounds: tuple = ((0.0, 0.0), (1.0, 1.0))
    qd_offset: float = -10.0

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        place = jax.nn.sigmoid(genotype[:2])
        rest = 0.01 * (genotype[2:] ** 2).sum()
        return Evaluation(self.height(place) - rest, place)

    def height(self, place: Float[Array, "2"]) -> Float[Array, ""]:
        raise NotImplementedError


@dataclass(frozen=True)
class Barrier(_Plane):
    """A climb to 1 into the wrong corner; the peak of 2 in the other is narrow, and the way there leads down."""

    name: str = "barrier"

    def height(self, place: Float[Array, "2"]) -> Float[Array, ""]:
        wrong = 1 - jnp.linalg.norm(place - 0.05)
        return jnp.maximum(wrong, 2 - 20 * jnp.linalg.norm(place - 0.95))


@dataclass(frozen=True)
class Moat(_Plane):
    """Nearer to the target is better, but for a ring of width 0.15 around it in which all is 3 worse."""

    name: str = "moat"

    def height(self, place: Float[Array, "2"]) -> Float[Array, ""]:
        distance = jnp.linalg.norm(place - jnp.asarray([0.85, 0.8]))
        return -distance - 3 * ((distance > 0.05) & (distance < 0.2))


@dataclass(frozen=True)
class Traps(_Normal):
    """Ten deceptive traps of four bits, a bit being the sign of a parameter (Goldberg 1987; Deb & Goldberg 1993).

    A trap is worth 4 with four ones, else 3 less the number of its ones: all ways lead to zeros but the last step. The
    behaviour is the share of ones in either half.
    """

    name: str = "traps"
    num_params: int = 40
    descriptor_bounds: tuple = ((0.0, 0.0), (1.0, 1.0))
    qd_offset: float = 0.0

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        ones = (genotype.reshape(10, 4) > 0).sum(axis=1)
        worth = jnp.where(ones == 4, 4, 3 - ones).sum().astype(jnp.float32)
        return Evaluation(worth, ones.reshape(2, 5).sum(axis=1) / 20)


@dataclass(frozen=True)
class ArmWall(Task):
    """A planar arm of 20 joints is to touch a point behind a wall that none of its links may cross.

    Fitness: minus the distance of its tip from the point, and minus 0.5 for each link that crosses a wall. Behaviour:
    where the tip is.
    """

    name: str = "arm-wall"
    num_params: int = 20
    descriptor_bounds: tuple = ((-1.0, -1.0), (1.0, 1.0))
    qd_offset: float = -10.0
    walls: tuple = (((0.4, -0.4), (0.4, 0.4)),)
    point: tuple = (0.6, 0.1)

    @property
    def arm(self) -> PlanarArm:
        return PlanarArm(joints=self.num_params)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        return self.arm.init(key)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        joints = self.arm.link_positions(genotype)
        crossings = sum(_cross(joints[:-1], joints[1:], wall).sum() for wall in jnp.asarray(self.walls))
        distance = jnp.linalg.norm(joints[-1] - jnp.asarray(self.point))
        return Evaluation(-distance - 0.5 * crossings, joints[-1])


@dataclass(frozen=True)
class ArmSlit(ArmWall):
    """The same through a slit of 0.08 in a wall from side to side."""

    name: str = "arm-slit"
    walls: tuple = (((0.4, -1.0), (0.4, 0.15)), ((0.4, 0.23), (0.4, 1.0)))
    point: tuple = (0.6, -0.2)


@dataclass(frozen=True)
class ArmHook(ArmWall):
    """The same round the end of a wall with a roof, under which the point lies."""

    name: str = "arm-hook"
    walls: tuple = (((0.3, -0.3), (0.3, 0.4)), ((0.3, 0.4), (0.6, 0.4)))
    point: tuple = (0.42, 0.28)


@dataclass(frozen=True)
class ArmChicane(ArmWall):
    """The same between two walls, over the end of the first and under that of the second."""

    name: str = "arm-chicane"
    walls: tuple = (((0.3, -1.0), (0.3, 0.1)), ((0.5, -0.05), (0.5, 1.0)))
    point: tuple = (0.65, 0.1)


@dataclass(frozen=True)
class PointInU(_Normal):
    """A point goes 24 steps of 0.07, each in a direction of its own, out of a U that is open away from the goal.

    The steps' directions are the parameters, in units of pi; a step into a wall is not taken. The behaviour is where it
    ends.
    """

    name: str = "point-in-u"
    num_params: int = 24
    descriptor_bounds: tuple = ((0.0, 0.0), (1.0, 1.0))
    qd_offset: float = -2.0
    goal_fitness: float = -0.1
    is_noisy: bool = False
    walls: tuple = (((0.3, 0.25), (0.8, 0.25)), ((0.3, 0.75), (0.8, 0.75)), ((0.8, 0.25), (0.8, 0.75)))

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        def step(place: Float[Array, "2"], turn: Array) -> tuple[Float[Array, "2"], None]:
            there = place + 0.07 * jnp.stack([jnp.cos(jnp.pi * turn), jnp.sin(jnp.pi * turn)])
            crossings = sum(_cross(place[None], there[None], wall).sum() for wall in jnp.asarray(self.walls))
            stays = (crossings > 0) | (there < 0).any() | (there > 1).any()
            return jnp.where(stays, place, there), None

        end = jax.lax.scan(step, jnp.array([0.5, 0.5]), genotype)[0]
        return Evaluation(fitness=-jnp.linalg.norm(end - jnp.array([0.95, 0.5])), descriptor=end)


@dataclass(frozen=True)
class NarrowPeak(_Normal):
    """A broad hill around -0.5 and a narrow peak, half a unit higher, near 1.5; behaviour: the means of both halves."""

    name: str = "narrow-peak"
    num_params: int = 10
    descriptor_bounds: tuple = ((-2.0, -2.0), (2.0, 2.0))
    qd_offset: float = -100.0
    goal_fitness: float = 0.3
    is_noisy: bool = False

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        hill = -jnp.square(genotype + 0.5).sum()
        peak = 40 * jnp.exp(-2 * jnp.square(genotype - 1.5).sum())
        return Evaluation(fitness=hill + peak, descriptor=genotype.reshape(2, -1).mean(axis=1))


def _cross(starts: Float[Array, "links 2"], ends: Float[Array, "links 2"], wall: Float[Array, "2 2"]) -> Array:
    """Return which of the links from `starts` to `ends` cross a wall."""

    def side(a: Array, b: Array, point: Array) -> Array:
        along, to = b - a, point - a
        return along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0]

    apart = side(starts, ends, wall[0]) * side(starts, ends, wall[1]) < 0
    return apart & (side(wall[0], wall[1], starts) * side(wall[0], wall[1], ends) < 0)


def main() -> None:
    for which in (*_DEVELOPMENT_LABYRINTHS, *_HELD_OUT_LABYRINTHS):
        maze = labyrinth(*which)
        LABYRINTHS.mkdir(parents=True, exist_ok=True)
        text = f"# Drawn by results/problems.py.\n{yaml.safe_dump(maze, sort_keys=False, default_flow_style=None)}"
        write_atomic(LABYRINTHS / f"{maze['name']}.yaml", text)


if __name__ == "__main__":
    main()
