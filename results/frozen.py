"""The frozen set: 20 mazes, 6 arms and 6 functions that no setting is ever chosen on.

    python results/frozen.py            # draws them again and writes results/frozen/
    python results/frozen.py --check    # only compares what is drawn with what is there

`python results/beyond.py --only beyond-frozen` runs them.

They were drawn before the work on step sizes, restarts and covariance began, from one seed that was not tried
beforehand. `hash.txt` is the SHA-256 of `problems.json`, from which everything else follows. The set is run when such
work is done, and all of it is reported.

Mazes: 8 labyrinths of 3 to 7 fields a side; 12 of 4 to 9 random walls, in which a robot of radius 0.015 finds a way
from the start to the target. Arms: ArmWall and ArmHook of problems.py, and 4 of 12 to 30 joints with random walls that
do not cut the base off from the point. Functions: rotated and shifted ellipsoid, Rosenbrock, Rastrigin and
Schaffer-like, a double funnel, and a step ellipsoid, of 8 to 40 parameters; the behaviour is a random projection.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
from collections import deque
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import yaml
from keeping import HERE
from problems import ArmHook, ArmWall, labyrinth

from jedax.store.files import write_atomic
from jedax.tasks.base import Task
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

SEED = 20261123
FOLDER = HERE / "frozen"
_GRID = 100  # points a side, on which ways are looked for
_BODY = 0.02  # no way is nearer to a wall


def draw() -> dict[str, Any]:
    """Return all problems as numbers."""
    chance = random.Random(SEED)
    mazes = [labyrinth(3 + number % 5, chance.randrange(10**6)) for number in range(8)]
    mazes += [_room(number, chance) for number in range(12)]
    arms = [_arm(number, chance) for number in range(4)]
    functions = [
        {"kind": kind, "size": chance.choice((8, 12, 20, 40)), "seed": chance.randrange(10**6)} for kind in FUNCTIONS
    ]
    return {"mazes": mazes, "arms": arms, "functions": functions}


def _room(number: int, chance: random.Random) -> dict[str, Any]:
    """Return a square room with random walls in which there is a way, and which is worth a search."""
    while True:
        walls = [_segment(chance, 0.15, 0.7) for _ in range(chance.randrange(4, 10))]
        start, target = ([round(chance.uniform(0.08, 0.92), 3) for _ in range(2)] for _ in range(2))
        far = math.dist(start, target) > 0.5
        clear = all(_gap(point, wall) > 0.06 for point in (start, target) for wall in walls)
        hidden = any(_crossing((*start, *target), wall) for wall in walls)
        if far and clear and hidden and (way := _way(walls, start, target)):
            break
    return {
        "name": f"room-{number}",
        "walls": walls,
        "start": [*start, round(chance.uniform(-math.pi, math.pi), 3)],
        "target": target,
        "target_radius": 0.05,
        "steps": max(250, math.ceil(4 * way / 0.025)),
        "wheel_speed": 0.025,
    }


def _arm(number: int, chance: random.Random) -> dict[str, Any]:
    """Return walls and a point for an arm whose base lies in the origin and that is 1 long."""
    while True:
        walls = [_segment(chance, 0.3, 1.0, -0.8, 0.8) for _ in range(chance.randrange(1, 4))]
        point = [round(chance.uniform(-0.75, 0.75), 3) for _ in range(2)]
        far = 0.4 < math.hypot(*point) < 0.8
        clear = all(_gap((0, 0), wall) > 0.12 and _gap(point, wall) > 0.05 for wall in walls)
        hidden = any(_crossing((0, 0, *point), wall) for wall in walls)
        shown = [[(value + 1) / 2 for value in wall] for wall in walls]
        way = _way(shown, (0.5, 0.5), [(value + 1) / 2 for value in point])
        if far and clear and hidden and way and 2 * way < 0.85:
            return {
                "name": f"frozen-arm-{number}",
                "joints": chance.choice((12, 20, 30)),
                "walls": walls,
                "point": point,
            }


def _segment(
    chance: random.Random, shortest: float, longest: float, low: float = 0.0, high: float = 1.0
) -> list[float]:
    """Return a wall within a square, in one of eight directions."""
    while True:
        x, y = chance.uniform(low, high), chance.uniform(low, high)
        length, turn = chance.uniform(shortest, longest), math.pi / 4 * chance.randrange(8)
        end = x + length * math.cos(turn), y + length * math.sin(turn)
        if all(low <= value <= high for value in end):
            return [round(value, 3) for value in (x, y, *end)]


def _gap(point: Any, wall: list[float]) -> float:
    """Return the distance of a point from a wall."""
    (x, y), (x1, y1, x2, y2) = point, wall
    along = ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / ((x2 - x1) ** 2 + (y2 - y1) ** 2)
    along = min(1.0, max(0.0, along))
    return math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1))


def _crossing(one: Any, other: Any) -> bool:
    def side(a: Any, b: Any, c: Any) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    a, b, c, d = one[:2], one[2:], other[:2], other[2:]
    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def _way(walls: list[list[float]], start: Any, target: Any) -> float:
    """Return the length of the shortest way on a grid of the unit square that keeps off the walls; 0: there is none."""
    free = {
        (i, j)
        for i in range(1, _GRID)
        for j in range(1, _GRID)
        if all(_gap((i / _GRID, j / _GRID), wall) > _BODY for wall in walls)
    }
    begin, end = (tuple(round(value * _GRID) for value in point) for point in (start, target))
    steps, queue = {begin: 0}, deque([begin])
    while queue:
        i, j = place = queue.popleft()
        if place == end:
            return steps[place] / _GRID
        for new in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if new in free and new not in steps:
                steps[new] = steps[place] + 1
                queue.append(new)
    return 0.0


@dataclass(frozen=True)
class FrozenArm(ArmWall):
    """One of the arms of the set, by its number."""

    number: int = 0

    def __post_init__(self) -> None:
        found = _stored()["arms"][self.number]
        walls = tuple(((a, b), (c, d)) for a, b, c, d in found["walls"])
        values = {"name": found["name"], "num_params": found["joints"], "walls": walls, "point": tuple(found["point"])}
        for name, value in values.items():
            object.__setattr__(self, name, value)


FUNCTIONS = ("ellipsoid", "rosenbrock", "rastrigin", "schaffer", "double-funnel", "step-ellipsoid")


@dataclass(frozen=True)
class FrozenFunction(Task):
    """One of the functions of the set, by its number; its highest value is 0."""

    number: int = 0
    descriptor_bounds: tuple = ((-2.0, -2.0), (2.0, 2.0))
    qd_offset: float = -1e7
    is_noisy: bool = False

    @property
    def _found(self) -> dict[str, Any]:
        return _stored()["functions"][self.number]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"frozen-{self._found['kind']}"

    @property
    def num_params(self) -> int:  # type: ignore[override]
        return self._found["size"]

    @cached_property
    def _drawn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the highest point lies, a rotation, and the projection on the behaviour."""
        random_numbers = np.random.default_rng(self._found["seed"])
        n = self.num_params
        rotation = np.linalg.qr(random_numbers.normal(size=(n, n)))[0]
        return random_numbers.uniform(-1.5, 1.5, n), rotation, random_numbers.normal(size=(n, 2)) / math.sqrt(n)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        return jax.random.normal(key, (self.num_params,))

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        top, rotation, projection = (jnp.asarray(part, jnp.float32) for part in self._drawn)
        z = rotation @ (genotype - top)
        return Evaluation(-self._cost(z), genotype @ projection)

    def _cost(self, z: Float[Array, " params"]) -> Float[Array, ""]:
        n, kind = len(z), self._found["kind"]
        scale = 10.0 ** (jnp.arange(n) / (n - 1))
        if kind == "ellipsoid":
            return jnp.sum(scale**6 * z**2)
        if kind == "step-ellipsoid":
            return jnp.sum(scale**2 * jnp.floor(jnp.abs(4 * z) + 0.5) ** 2) / 16 + 1e-4 * jnp.sum(jnp.abs(z))
        if kind == "rosenbrock":
            w = z + 1
            return jnp.sum(100 * (w[1:] - w[:-1] ** 2) ** 2 + (w[:-1] - 1) ** 2)
        if kind == "rastrigin":
            return jnp.sum(10 * (1 - jnp.cos(2 * jnp.pi * z)) + z**2)
        if kind == "schaffer":
            s = z[1:] ** 2 + z[:-1] ** 2
            return (jnp.sum(s**0.25 * (1 + jnp.sin(50 * s**0.1) ** 2)) / (n - 1)) ** 2
        # Two funnels with ripples: the broad one, twice as far from the middle, ends 0.1 a parameter higher.
        broad = 0.1 * n + 0.3 * jnp.sum((z - 2.5) ** 2)
        return jnp.minimum(jnp.sum(z**2), broad) + 2 * jnp.sum(1 - jnp.cos(2 * jnp.pi * z))


def mazes() -> list[str]:
    """Return the maze files of the set."""
    return [str(FOLDER / f"{maze['name']}.yaml") for maze in _stored()["mazes"]]


def arms() -> list[Task]:
    """Return the arms of the set."""
    return [ArmWall(), ArmHook(), *(FrozenArm(number=number) for number in range(4))]


def functions() -> list[Task]:
    """Return the functions of the set."""
    return [FrozenFunction(number=number) for number in range(len(FUNCTIONS))]


def _text(problems: dict[str, Any]) -> str:
    return json.dumps(problems, indent=1, sort_keys=True) + "\n"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest() + "\n"


@cache
def _stored() -> dict[str, Any]:
    return json.loads((FOLDER / "problems.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    problems = draw()
    text = _text(problems)
    if parser.parse_args().check:
        same = (FOLDER / "problems.json").read_text() == text and (FOLDER / "hash.txt").read_text() == _hash(text)
        sys.exit(0 if same else "what is drawn differs from what is there")
    FOLDER.mkdir(exist_ok=True)
    write_atomic(FOLDER / "problems.json", text)
    write_atomic(FOLDER / "hash.txt", _hash(text))
    for maze in problems["mazes"]:
        lines = f"# Drawn by results/frozen.py.\n{yaml.safe_dump(maze, sort_keys=False, default_flow_style=None)}"
        write_atomic(FOLDER / f"{maze['name']}.yaml", lines)


if __name__ == "__main__":
    main()
