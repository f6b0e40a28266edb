"""The problems that JEDi-X is judged by: labyrinths can be solved, functions are worth what they should be."""

import hashlib
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from tests.scripts import script

from jedax.tasks.base import check_task
from jedax.tasks.maze.settings import MazeConfig, load_maze_file

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def problems():
    return script("problems")


@pytest.fixture(scope="module")
def frozen():
    return script("frozen")


@pytest.mark.parametrize(("size", "seed"), [(2, 0), (4, 0), (8, 104)])
def test_a_labyrinth_joins_all_its_fields_by_one_way_each(problems, size, seed):
    maze = MazeConfig(**problems.labyrinth(size, seed))
    assert len(maze.walls) == (size - 1) ** 2
    walls = {tuple(np.round(np.multiply(wall, 2 * size)).astype(int)) for wall in maze.walls}
    reached, waiting = {(1, 1)}, [(1, 1)]  # middles of fields, in halves of a field
    while waiting:
        x, y = waiting.pop()
        for dx, dy in ((2, 0), (-2, 0), (0, 2), (0, -2)):
            mx, my = x + dx // 2, y + dy // 2
            between = (mx, my - 1, mx, my + 1) if dx else (mx - 1, my, mx + 1, my)
            new = x + dx, y + dy
            if min(new) > 0 and max(new) < 2 * size and between not in walls and new not in reached:
                reached.add(new)
                waiting.append(new)
    assert len(reached) == size * size
    np.testing.assert_allclose(maze.target, [1 - 0.5 / size] * 2)


def test_maze_files_are_those_drawn(problems):
    files = [name for name in (*problems.DEVELOPMENT, *problems.HELD_OUT) if name.endswith(".yaml")]
    assert len(files) == 8
    for file in files:
        size, seed = map(int, Path(file).stem.split("-")[1:])
        assert load_maze_file(file) == MazeConfig(**problems.labyrinth(size, seed))


def at(place):
    """Return a genotype of the functions on a plane that behaves so."""
    place = np.float32(place)
    return jnp.zeros(20).at[:2].set(np.log(place / (1 - place)))


@pytest.mark.parametrize(
    ("name", "genotype", "fitness"),
    [
        ("Barrier", at([0.95, 0.95]), 2.0),
        ("Barrier", at([0.05, 0.05]), 1.0),
        ("Barrier", at([0.05, 0.05]).at[9].set(5.0), 0.75),
        ("Barrier", at([0.95, 0.75]), 1 - np.hypot(0.9, 0.7)),
        ("Moat", at([0.85, 0.8]), 0.0),
        ("Moat", at([0.85, 0.7]), -3.1),
        ("Moat", at([0.85, 0.5]), -0.3),
        ("PointInU", jnp.zeros(24), -0.17),
        ("PointInU", jnp.ones(24), -0.94),
        ("NarrowPeak", jnp.full(10, -0.5), 0.0),
        ("NarrowPeak", jnp.full(10, 1.475), -39.00625 + 40 * np.exp(-0.0125)),
        ("Traps", jnp.ones(40), 40.0),
        ("Traps", -jnp.ones(40), 30.0),
        ("Traps", jnp.ones(40).at[::4].set(-1.0), 0.0),
    ],
)
def test_functions_by_hand(problems, name, genotype, fitness):
    task = check_task(getattr(problems, name)())
    assert float(task.evaluate(jax.random.key(0), genotype).fitness) == pytest.approx(fitness, abs=1e-4)


def bent(first, second):
    """Return an arm whose first half points one way and whose second half another, angles in radians."""
    return jnp.zeros(20).at[0].set(first).at[10].set(second - first)


def test_arms_may_not_reach_through_walls(problems):
    wall, slit = check_task(problems.ArmWall()), check_task(problems.ArmSlit())
    key = jax.random.key(0)
    straight = wall.evaluate(key, jnp.zeros(20))
    assert float(straight.fitness) == pytest.approx(-np.hypot(0.4, 0.1) - 0.5, abs=1e-5)
    np.testing.assert_allclose(straight.descriptor, [1, 0], atol=1e-6)
    high = wall.evaluate(key, bent(1.3, 0.0))  # at height 0.48, above the wall
    tip = 0.5 * np.array([np.cos(1.3) + 1, np.sin(1.3)])
    assert float(high.fitness) == pytest.approx(-np.hypot(*(tip - [0.6, 0.1])), abs=1e-5)
    angle = np.arctan2(0.19, 0.4)  # through the middle of the slit
    through = slit.evaluate(key, jnp.zeros(20).at[0].set(angle))
    tip = np.array([np.cos(angle), np.sin(angle)])
    assert float(through.fitness) == pytest.approx(-np.hypot(*(tip - [0.6, -0.2])), abs=1e-5)
    assert float(slit.evaluate(key, jnp.zeros(20)).fitness) == pytest.approx(-np.hypot(0.4, 0.2) - 0.5, abs=1e-5)


def test_an_arm_reaches_under_the_hook_from_below_alone(problems):
    hook = check_task(problems.ArmHook())
    key, point = jax.random.key(0), np.array([0.42, 0.28])
    assert float(hook.evaluate(key, bent(1.2, -1.0)).fitness) < -0.5  # over the roof
    below = hook.evaluate(key, bent(-0.87, 1.32))  # under the wall's lower end
    tip = 0.5 * np.array([np.cos(-0.87) + np.cos(1.32), np.sin(-0.87) + np.sin(1.32)])
    assert float(below.fitness) == pytest.approx(-np.hypot(*(tip - point)), abs=1e-5)


class TestFrozen:
    """The set that nothing is tuned on stays as it was drawn."""

    HASH = "6b1b1475a55b76e82579d6fd1e03f9880a22566d1518164a9aa819773d1b892f"

    def test_the_hash(self, frozen):
        stored = (frozen.FOLDER / "problems.json").read_bytes()
        assert hashlib.sha256(stored).hexdigest() == (frozen.FOLDER / "hash.txt").read_text().strip() == self.HASH

    @pytest.mark.nightly
    def test_it_is_what_the_seed_draws(self, frozen):
        assert frozen._text(frozen.draw()) == (frozen.FOLDER / "problems.json").read_text()

    def test_the_functions_are_highest_where_they_should_be(self, frozen):
        for task in frozen.functions():
            at = np.stack([task._drawn[0], task._drawn[0] + 0.1]).astype(np.float32)
            top, beside = (float(task.evaluate(KEY, jnp.asarray(row)).fitness) for row in at)
            assert beside < -1e-3
            assert -1e-3 < top <= 0

    def test_the_mazes_are_tasks(self, frozen):
        files = sorted(frozen.FOLDER.glob("*.yaml"))
        assert len(files) == 20
        for file in files:
            assert MazeConfig(**yaml.safe_load(file.read_text())).name == file.stem


def test_the_shortest_way_is_straight_where_nothing_is_between_and_bends_round_the_end_of_a_wall():
    """By hand: two tangents to the circle around the end of the wall, and the arc between them."""
    shortest, radius = script("shortest"), 0.015
    free = MazeConfig(walls=())
    assert shortest.shortest_way(free) == pytest.approx((math.dist((0.15, 0.15), (0.9, 0.9)) - 0.05) / 0.025, rel=1e-3)
    start, target, end = (0.2, 0.5), (0.8, 0.5), (0.5, 0.7)
    behind = MazeConfig(walls=((0.5, 0.0, *end),), start=(*start, 0.0), target=target)
    far = math.dist(start, end)
    tangent, turned = math.sqrt(far**2 - radius**2), math.acos(radius / far)
    between = 2 * math.atan2(0.3, 0.2)  # angle at the end of the wall from the start, over the wall, to the target
    arc = radius * (2 * math.pi - between - 2 * turned)
    assert 0 < arc < 0.1
    assert shortest.shortest_way(behind) == pytest.approx((2 * tangent + arc - 0.05) / 0.025, rel=2e-3)
