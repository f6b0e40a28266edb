"""Mazes against the Kheperax simulator (see data/README.md), against closed forms, and against themselves."""

import math
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax import networks as policy
from jedax.errors import JedaxError
from jedax.tasks import Maze, make
from jedax.tasks.maze import robot
from jedax.tasks.maze.settings import MazeConfig

KEY = jax.random.key(0)
NORTH = math.pi / 2
# Nothing to run into, far from the target.
NOWHERE = {"border": False, "limits": ((-50, -50), (50, 50)), "target": (40, 40), "start": (0, 0, NORTH)}
REFERENCE = ["a", "b", "c", "quad_b"]

evaluate = jax.jit(lambda maze, key, genotype: maze.evaluate(key, genotype), static_argnums=0)
evaluate_batch = jax.jit(lambda maze, key, genotypes: maze.evaluate_batch(key, genotypes), static_argnums=0)
rollout = jax.jit(lambda maze, key, genotype: maze.rollout(key, genotype), static_argnums=0)


@jax.jit(static_argnums=0)
def rollouts(maze, keys, genotypes):
    return jax.vmap(maze.rollout)(keys, genotypes)


def wheels(left, right, maze=None):
    """A controller that gives its two wheels the same action, each in [-1, 1], whatever it senses."""
    with np.errstate(divide="ignore"):
        biases = np.clip(np.arctanh([left, right]), -20, 20)
    return jnp.zeros(66 if maze is None else maze.num_params).at[-2:].set(jnp.asarray(biases, jnp.float32))


FORWARD, BACKWARD = wheels(1, 1), wheels(-1, -1)


def outcome(maze, genotype, key=KEY):
    """Fitness and descriptor as plain numbers."""
    evaluation = evaluate(maze, key, genotype)
    return float(evaluation.fitness), evaluation.descriptor.tolist()


def random_genotypes(maze, count, seed=0, scale=2.0):
    return scale * jax.vmap(maze.init)(jax.random.split(jax.random.key(seed), count))


def outcomes_of(maze, trajectories):
    """Fitness and descriptors from positions alone, by the rules of the task."""
    config = maze.config
    positions = np.asarray(trajectories.positions, float)
    start = np.broadcast_to(config.start[:2], positions[:, :1].shape)
    distance = np.hypot(*np.moveaxis(positions - config.target, -1, 0))
    near = distance < config.target_radius
    arrived, steps = near.any(axis=1), np.argmax(near, axis=1) + 1
    length = np.where(arrived, steps, config.steps)
    missed = -config.steps - config.distance_weight * distance[:, -1]
    before = np.concatenate([start, positions], axis=1)[np.arange(len(length)), length - 1]
    return np.where(arrived, -steps, missed), before, length


@pytest.fixture(scope="session", params=REFERENCE)
def reference(request):
    """A maze, what the Kheperax simulator made of 256 controllers in it, and what jedax makes of them."""
    data = dict(np.load(Path(__file__).parent / "data" / f"maze_{request.param}.npz"))
    maze = make("maze-" + request.param.replace("_", "-"))
    layers = ("hidden_kernel", "hidden_bias", "output_kernel", "output_bias")
    genotypes = np.concatenate([data[name].reshape(256, -1) for name in layers], axis=1)
    evaluation = evaluate_batch(maze, KEY, genotypes)
    trajectories = rollouts(maze, jax.random.split(KEY, 256), genotypes)
    return SimpleNamespace(
        maze=maze,
        data=data,
        genotypes=genotypes,
        evaluation=jax.tree.map(np.asarray, evaluation),
        trajectories=jax.tree.map(lambda leaf: np.asarray(leaf)[:16], trajectories),
    )


class TestAgainstKheperax:
    def test_geometry(self, reference):
        def segments(walls):
            return {frozenset([(a, b), (c, d)]) for a, b, c, d in np.float32(walls).tolist()}

        config, data = reference.maze.config, reference.data
        assert segments(config.all_walls) == segments(data["walls"])
        np.testing.assert_array_equal(config.target, data["target"])
        np.testing.assert_array_equal(config.start, data["start"])
        np.testing.assert_array_equal(config.limits, data["limits"])
        assert config.target_radius == data["target_radius"]
        assert reference.maze.descriptor_bounds == config.limits

    def test_outcomes(self, reference):
        fitness, theirs = reference.evaluation.fitness, reference.data["fitness"]
        off = np.abs(reference.evaluation.descriptor - reference.data["descriptor"]).max(axis=1)
        agree = (np.abs(fitness - theirs) <= 0.5) & (off <= 0.01)
        assert agree.mean() >= 0.97

    def test_arrival_steps(self, reference):
        fitness, theirs = reference.evaluation.fitness, reference.data["fitness"]
        arrived = (fitness >= -250) & (theirs >= -250)
        assert arrived.sum() >= 5
        np.testing.assert_array_equal(fitness[arrived], theirs[arrived])

    # Float32: an error in the heading grows by a beam's slant on a wall, then by the weights. Both simulators
    # are this far from float64.
    @pytest.mark.parametrize(
        ("what", "early", "late"), [("positions", 1e-4, 1e-2), ("observations", 2e-4, 3e-2), ("actions", 1e-3, 1e-1)]
    )
    def test_step_by_step(self, reference, what, early, late):
        difference = np.abs(getattr(reference.trajectories, what) - reference.data[what]).max(axis=-1)
        assert difference.shape == (16, 250)
        assert difference[:, :60].max() <= early
        assert (difference.max(axis=1) <= late).sum() >= 14

    def test_bumpers_step_by_step(self, reference):
        ours, theirs = reference.trajectories.observations[..., 3:], reference.data["observations"][..., 3:]
        assert set(np.unique(ours)) <= {-1.0, 1.0}
        # A robot that grazes a wall touches it or not by the last bits.
        assert (ours == theirs).all(axis=(1, 2)).sum() >= 15

    def test_policy_on_their_observations(self, reference):
        act = jax.vmap(lambda genotype, row: jnp.stack(policy.apply(genotype, list(row), (5, 8, 2), "relu")), (None, 0))
        actions = jax.vmap(act)(reference.genotypes[:16], reference.data["observations"])
        np.testing.assert_allclose(actions, reference.data["actions"], atol=5e-6)

    def test_first_laser_reading_of_maze_c(self):
        readings = rollout(make("maze-c"), KEY, jnp.zeros(66)).observations[0]
        np.testing.assert_allclose(readings, [math.hypot(0.1, 0.1), 0.2, 0.2, -1, -1], atol=1e-6)


class TestDriving:
    """Constant wheels where there is no wall: straight lines and circles."""

    ACTIONS = (
        (1, 1), (0.3, 0.3), (-0.5, -0.5), (0, 0), (0.4, 0.400001),
        (0.5, 0.25), (0.2, 0.9), (-0.7, 0.1), (1, 0), (1, -1), (-0.3, 0.3), (-1, -0.9),
    )  # fmt: skip

    @pytest.mark.parametrize(
        ("heading", "speed", "radius"), [(NORTH, 0.025, 0.015), (-2.5, 0.025, 0.015), (0.3, 0.1, 0.02)]
    )
    def test_lines_and_circles(self, heading, speed, radius):
        maze = Maze(**NOWHERE | {"start": (0.5, -0.2, heading)}, wheel_speed=speed, robot_radius=radius, steps=60)
        genotypes = jnp.stack([wheels(*pair) for pair in self.ACTIONS])
        got = rollouts(maze, jax.random.split(KEY, len(genotypes)), genotypes)
        step = np.arange(1, 61)
        for (left, right), actions, positions in zip(self.ACTIONS, got.actions, got.positions, strict=True):
            np.testing.assert_allclose(actions, np.broadcast_to([left, right], (60, 2)), atol=1e-6)
            left, right = np.asarray(actions[0], float)  # as rounded to float32
            if right == left:
                ahead = speed * (left + right) / 2 * step
                expected = np.stack([ahead * math.cos(heading), ahead * math.sin(heading)], axis=-1)
            else:
                circle = radius * (left + right) / (right - left)
                turned = heading + step * speed * (right - left) / (2 * radius)
                expected = circle * np.stack(
                    [np.sin(turned) - math.sin(heading), math.cos(heading) - np.cos(turned)], axis=-1
                )
            np.testing.assert_allclose(positions, expected + np.array([0.5, -0.2]), atol=2e-5 * max(1, speed / 0.025))

    def test_full_circle_comes_back(self):
        # 40 steps of pi/20 each: the wheels' travel differs by axle * pi / 20.
        difference = 0.03 * math.pi / 20 / 0.025
        maze = Maze(**NOWHERE, steps=40)
        positions = rollout(maze, KEY, wheels(0.6 - difference / 2, 0.6 + difference / 2)).positions
        np.testing.assert_allclose(positions[-1], [0, 0], atol=1e-5)
        np.testing.assert_allclose(positions[19], [-2 * 0.6 * 0.025 / (math.pi / 20), 0], atol=1e-5)

    @pytest.mark.parametrize("largest", [0.05, 0.8334, 1.5, 1.51, 4.0])
    def test_sinc_and_cos(self, largest):
        angles = np.concatenate([np.linspace(-largest, largest, 1001), [0.0, 1e-12, -1e-7, 1e-4]])
        sinc, cos = robot.sinc_and_cos(jnp.asarray(angles, jnp.float32), largest)
        np.testing.assert_allclose(sinc, np.sinc(angles / np.pi), atol=2e-7)
        np.testing.assert_allclose(cos, np.cos(angles), atol=3e-7)


class TestArriving:
    """From (0.5, 0.11) to the north at 0.025 a step, the target at (0.5, 0.5) is near after step 14."""

    def maze(self, **settings):
        return Maze(**{"start": (0.5, 0.11, NORTH), "target": (0.5, 0.5)} | settings)

    def test_fitness_and_descriptor(self):
        fitness, descriptor = outcome(self.maze(), FORWARD)
        assert fitness == -14
        assert descriptor == pytest.approx([0.5, 0.11 + 13 * 0.025], abs=1e-6)

    def test_the_rollout_goes_on(self):
        trajectory = rollout(self.maze(), KEY, FORWARD)
        assert trajectory.length == 14
        assert trajectory.observations.shape == (250, 5)
        np.testing.assert_allclose(trajectory.positions[:30, 1], 0.11 + 0.025 * np.arange(1, 31), atol=1e-5)

    def test_exactly_at_the_last_step(self):
        maze = self.maze(steps=14)
        fitness, descriptor = outcome(maze, FORWARD)
        assert fitness == maze.goal_fitness == -14
        assert descriptor == pytest.approx([0.5, 0.435], abs=1e-6)
        assert rollout(maze, KEY, FORWARD).length == 14

    def test_one_step_short(self):
        maze = self.maze(steps=13)
        fitness, descriptor = outcome(maze, FORWARD)
        assert fitness == pytest.approx(-13 - 100 * (0.5 - 0.435), abs=1e-4)
        assert fitness < maze.goal_fitness
        assert descriptor == pytest.approx([0.5, 0.41], abs=1e-6)
        assert rollout(maze, KEY, FORWARD).length == 13

    def test_never(self):
        fitness, descriptor = outcome(self.maze(steps=40, distance_weight=7.0), wheels(0.1, 0.1))
        assert fitness == pytest.approx(-40 - 7 * (0.39 - 40 * 0.0025), abs=1e-4)
        assert descriptor == pytest.approx([0.5, 0.11 + 39 * 0.0025], abs=1e-6)

    def test_within_the_target_from_the_start_takes_one_step(self):
        fitness, descriptor = outcome(self.maze(target=(0.5, 0.12)), wheels(0, 0))
        assert fitness == -1
        assert descriptor == pytest.approx([0.5, 0.11])

    def test_one_step_in_all(self):
        fitness, descriptor = outcome(self.maze(steps=1), FORWARD)
        assert fitness == pytest.approx(-1 - 100 * 0.365, abs=1e-4)
        assert descriptor == pytest.approx([0.5, 0.11])

    def test_exactly_as_far_as_the_radius_is_too_far(self):
        # All numbers are exact in float32; after 3 steps the target is 0.25 away.
        maze = Maze(
            **NOWHERE | {"start": (0, 0, 0), "target": (1, 0)}, target_radius=0.25, wheel_speed=0.25, robot_radius=0.25
        )
        assert outcome(maze, FORWARD) == (-4, [0.75, 0])

    def test_numbers_of_the_task(self):
        maze = Maze(limits=((-1, -2), (2, 2)), steps=30, distance_weight=10.0, evaluations=7)
        assert maze.qd_offset == -30 - 10 * 5
        assert (maze.goal_fitness, maze.default_evaluations) == (-30, 7)
        assert maze.descriptor_names == ("x", "y")
        assert maze.num_descriptors == 2
        budgets = [make(name).default_evaluations for name in ("maze-a", "maze-b", "maze-c", "maze-quad-b")]
        assert budgets == [1_000_000, 1_000_000, 2_000_000, 2_000_000]


class TestRunningIntoWalls:
    """From (0.5, 0.12) to the north, a wall at y = 0.5 is touched by step 15, at y = 0.495."""

    def maze(self, **settings):
        return Maze(**{"start": (0.5, 0.12, NORTH), "walls": [(0.2, 0.5, 0.8, 0.5)]} | settings)

    def test_the_touching_move_happens_then_it_stays(self):
        positions = rollout(self.maze(), KEY, FORWARD).positions
        y = np.minimum(0.12 + 0.025 * np.arange(1, 251), 0.495)
        np.testing.assert_allclose(positions, np.stack([np.full(250, 0.5), y], axis=-1), atol=1e-5)
        assert (positions[15:] == positions[14]).all()

    @pytest.mark.parametrize(("steps", "y"), [(250, 0.495), (16, 0.495), (15, 0.47)])
    def test_outcome(self, steps, y):
        maze = self.maze(steps=steps)
        fitness, descriptor = outcome(maze, FORWARD)
        assert fitness == pytest.approx(-steps - 100 * math.hypot(0.4, 0.405), abs=1e-3)
        assert descriptor == pytest.approx([0.5, y], abs=1e-6)
        expected, before, length = outcomes_of(maze, rollouts(maze, KEY[None], FORWARD[None]))
        assert fitness == pytest.approx(expected[0], abs=1e-3)
        assert descriptor == pytest.approx(before[0].tolist(), abs=1e-6)
        assert length == steps

    @pytest.mark.parametrize(("target", "fitness"), [(0.53, -15), (0.56, -250 - 6.5)])
    def test_the_touching_move_may_arrive(self, target, fitness):
        assert outcome(self.maze(target=(0.5, target)), FORWARD)[0] == pytest.approx(fitness, abs=1e-3)

    def test_no_turning_on_the_spot_once_touching(self):
        # One eighth of a turn to the right per step; it drives an arc of radius 0.12 into the wall above.
        trajectory = rollout(self.maze(walls=[(0.2, 0.22, 0.8, 0.22)]), KEY, wheels(1, 0.8))
        still = (trajectory.positions == trajectory.positions[-1]).all(axis=-1)
        stop = int(np.argmax(still))
        assert 2 < stop < 10
        assert still[stop:].all()
        lasers = trajectory.observations[:, :3]
        assert (lasers[stop + 1 :] == lasers[stop + 1]).all()
        assert (lasers[stop] != lasers[stop + 1]).any()

    def test_a_driver_along_a_wall_that_keeps_its_distance_passes(self):
        maze = Maze(start=(0.5, 0.1, NORTH), target=(0.5, 0.7), walls=[(0.5151, 0.2, 0.5151, 0.6)])
        assert outcome(maze, FORWARD)[0] == -23
        closer = maze.config.replace(walls=[(0.5149, 0.2, 0.5149, 0.6)])
        assert outcome(Maze(closer), FORWARD)[0] < -250

    @pytest.mark.parametrize("reach", [0.01, 0.02])
    def test_the_end_of_a_wall_is_round(self, reach):
        # The wall's end is `reach` to the right of the path, at the height of the robot after 8 steps.
        maze = Maze(start=(0.5, 0.495, NORTH), target=(0.5, 0.9), walls=[(0.5 + reach, 0.695, 0.9, 0.695)])
        assert (outcome(maze, FORWARD)[0] == -15) == (reach > 0.015)

    def test_exactly_as_far_as_the_radius_touches_but_presses_no_bumper(self):
        maze = Maze(
            **NOWHERE | {"start": (0, 0, 0)}, walls=[(1, -4, 1, 4)], wheel_speed=0.25, robot_radius=0.25, steps=9
        )
        trajectory = rollout(maze, KEY, FORWARD)
        assert trajectory.positions[:, 0].tolist() == [0.25, 0.5, *[0.75] * 7]
        assert (trajectory.observations[:, 3:] == -1).all()


class TestBumpers:
    """Read before the move: a contact after step k is first felt in the decision of step k + 2."""

    def readings(self, walls, genotype=FORWARD, start=(0.5, 0.495, NORTH), **settings):
        return rollout(Maze(walls=walls, start=start, steps=12, **settings), KEY, genotype).observations[:, 3:]

    @pytest.mark.parametrize(("wall", "contact"), [((0.51, 0.7, 0.9, 0.7), [1, -1]), ((0.1, 0.7, 0.49, 0.7), [-1, 1])])
    def test_right_and_left(self, wall, contact):
        # Step 8 ends 0.01 beside and 0.005 below the wall's end; step 9 (row 8) does not feel it yet.
        readings = self.readings([wall])
        np.testing.assert_array_equal(readings[:9], np.full((9, 2), -1))
        np.testing.assert_array_equal(readings[9:], np.broadcast_to(contact, (3, 2)))

    def test_two_walls_press_both(self):
        readings = self.readings([(0.51, 0.7, 0.9, 0.7), (0.1, 0.7, 0.49, 0.7)])
        assert (readings[:9] == -1).all()
        assert (readings[9:] == 1).all()

    def test_straight_ahead_presses_both(self):
        # Symmetric about the x axis, so that the bearing is 0 in float32 too.
        readings = self.readings([(0.21, -1, 0.21, 1)], start=(0, 0, 0), limits=((-2, -2), (2, 2)))
        assert (readings[:9] == -1).all()  # step 8 ends at 0.2
        assert (readings[9:] == 1).all()

    def test_behind_is_not_felt(self):
        maze = Maze(start=(0.5, 0.11, NORTH), steps=12)
        trajectory = rollout(maze, KEY, BACKWARD)
        assert (trajectory.positions[4:] == trajectory.positions[3]).all()  # step 4 ends at y = 0.01
        assert (trajectory.observations[:, 3:] == -1).all()


class TestLasers:
    @pytest.fixture(scope="class")
    @classmethod
    def look(cls):
        """`look(config, [(x, y, heading), ...])`: the lasers' readings, one row each."""

        @jax.jit(static_argnums=0)
        def read(config, postures):
            def one(posture):
                x, y, heading = posture
                seen = robot.look_around(config, robot.Posture(x, y, jnp.cos(heading), jnp.sin(heading)))
                return jnp.stack(robot.read_lasers(config, KEY, seen.beams)), seen.clearance

            return jax.vmap(one)(postures)

        return lambda config, postures: jax.tree.map(np.asarray, read(config, jnp.asarray(postures, jnp.float32)))

    @pytest.mark.parametrize(("mode", "beyond"), [("range", 0.2), ("minus-one", -1.0)])
    def test_a_wall_at_known_distances(self, look, mode, beyond):
        config = MazeConfig(**NOWHERE, walls=[(0.1, -3, 0.1, 3)], laser_out_of_range=mode)
        side = math.sqrt(2)
        rows = {
            (0, 0, 0): [0.1 * side, 0.1, 0.1 * side],
            (0.2, 0, math.pi): [0.1 * side, 0.1, 0.1 * side],
            (-0.05, 1, 0): [beyond, 0.15, beyond],  # the slanted beams would be 0.212 long
            (-0.11, 1, 0): [beyond, beyond, beyond],
            (0.05, 0, NORTH): [0.05 * side, beyond, beyond],
            (0.05, 0, -NORTH): [beyond, beyond, 0.05 * side],
            (0.15, 0, NORTH): [beyond, beyond, 0.05 * side],
            (0.2, 0, 0): [beyond, beyond, beyond],  # behind
            (0.05, 0, math.pi / 4): [0.05, 0.05 * side, beyond],
        }
        readings, _ = look(config, list(rows))
        np.testing.assert_allclose(readings, list(rows.values()), atol=1e-6)

    def test_exactly_at_the_range_is_seen(self, look):
        config = MazeConfig(
            **NOWHERE, walls=[(0.25, -3, 0.25, 3)], laser_range=0.25, laser_out_of_range="minus-one", laser_angles=(0,)
        )
        readings, _ = look(config, [(0, 0, 0), (-1e-4, 0, 0)])
        np.testing.assert_array_equal(readings, [[0.25], [-1]])

    def test_other_angles(self, look):
        config = MazeConfig(
            **NOWHERE,
            walls=[(0.1, -3, 0.1, 3), (-3, 0.12, 3, 0.12), (-0.15, -3, -0.15, 3)],
            laser_angles=(math.pi, NORTH, -NORTH, 0),
        )
        readings, _ = look(config, [(0, 0, 0), (0, 0, NORTH)])
        np.testing.assert_allclose(readings, [[0.15, 0.12, 0.2, 0.1], [0.2, 0.15, 0.1, 0.12]], atol=1e-6)
        assert Maze(config).layer_sizes == (6, 8, 2)

    def test_the_nearest_of_several_walls_is_seen(self, look):
        walls = [(0.15, -1, 0.15, 1), (0.05, -1, 0.05, 1), (0.1, -1, 0.1, 1)]
        readings, _ = look(MazeConfig(**NOWHERE, walls=walls, laser_angles=(0,)), [(0, 0, 0)])
        assert readings[0, 0] == pytest.approx(0.05, abs=1e-6)

    @pytest.mark.parametrize("wall", [(0.1, 0.1, 0.3, 0.1), (0.3, 0.1, 0.1, 0.1), (0.1, 0.1, 0.1, 0.3)])
    def test_a_beam_through_the_very_end_of_a_wall_hits(self, look, wall):
        readings, _ = look(MazeConfig(**NOWHERE, walls=[wall]), [(0, 0, 0), (0, 0, NORTH)])
        np.testing.assert_allclose(
            readings, [[0.2, 0.2, 0.1 * math.sqrt(2)], [0.1 * math.sqrt(2), 0.2, 0.2]], atol=1e-6
        )

    def test_a_beam_past_the_end_of_a_wall_misses(self, look):
        walls = [(0.1001, 0.1, 0.3, 0.1), (0.1, -0.1001, 0.1, -0.3)]
        readings, _ = look(MazeConfig(**NOWHERE, walls=walls), [(0, 0, 0)])
        np.testing.assert_array_equal(readings, np.float32([[0.2, 0.2, 0.2]]))

    def test_a_parallel_beam_misses(self, look):
        config = MazeConfig(**NOWHERE, walls=[(0.02, 0.01, 0.15, 0.01), (0.02, -0.01, 0.15, -0.01)], laser_angles=(0,))
        readings, _ = look(config, [(0, 0, 0)])
        np.testing.assert_array_equal(readings, np.float32([[0.2]]))

    def test_random_postures_against_linear_equations(self, look):
        """Every beam and wall as two equations in float64, but for beams that graze the end of a wall."""
        config = make("maze-c").config.replace(laser_range=10.0)
        random = np.random.default_rng(0)
        postures = random.uniform([0.01, 0.01, -math.pi], [0.99, 0.99, math.pi], (300, 3))
        readings, clearance = look(config, postures)
        walls = np.array(config.all_walls)
        ends, spans = walls[:, :2], walls[:, 2:] - walls[:, :2]
        used = 0
        for posture, row, squared in zip(postures, readings, clearance, strict=True):
            for angle, reading in zip(config.laser_angles, row, strict=True):
                beam = np.array([math.cos(posture[2] + angle), math.sin(posture[2] + angle)])
                matrices = np.stack([np.broadcast_to(beam, spans.shape), -spans], axis=-1)
                solutions = np.linalg.solve(matrices, (ends - posture[:2])[..., None])[..., 0]
                length, along = solutions.T
                if np.abs(np.concatenate([along, along - 1])).min() < 1e-3:
                    continue
                expected = length[(length >= 0) & (along >= 0) & (along <= 1)].min()
                assert reading == pytest.approx(expected, rel=1e-3)
                used += 1
            samples = ends[:, None] + np.linspace(0, 1, 2001)[:, None] * spans[:, None]
            nearest = np.hypot(*np.moveaxis(samples - posture[:2], -1, 0)).min()
            assert math.sqrt(squared) == pytest.approx(nearest, abs=3e-4)
        assert used > 800


class TestNoise:
    def test_off_by_default(self):
        maze = make("maze-a")
        assert (maze.config.wheel_noise, maze.config.laser_noise) == (0, 0)
        genotype = random_genotypes(maze, 1)[0]
        one, other = (rollout(maze, jax.random.key(seed), genotype) for seed in (1, 2))
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), one, other))

    @pytest.fixture(scope="class", params=["wheel_noise", "laser_noise"])
    @classmethod
    def noisy(cls, request):
        return Maze(make("maze-a").config, steps=60, **{request.param: 0.01})

    def test_by_key(self, noisy):
        genotype = random_genotypes(noisy, 4, seed=3)[1]
        first, again, other = (rollout(noisy, jax.random.key(seed), genotype) for seed in (1, 1, 2))
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), first, again))
        assert (first.positions != other.positions).any()

    def test_evaluate_takes_the_same_noise_as_rollout(self, noisy):
        genotypes, keys = random_genotypes(noisy, 24, seed=4), jax.random.split(jax.random.key(5), 24)
        fitness, descriptor, _ = outcomes_of(noisy, rollouts(noisy, keys, genotypes))
        evaluation = evaluate_batch(noisy, jax.random.key(5), genotypes)
        np.testing.assert_allclose(evaluation.fitness, fitness, atol=1e-2)
        np.testing.assert_allclose(evaluation.descriptor, descriptor, atol=1e-4)

    def test_each_member_of_a_batch_has_its_own(self, noisy):
        genotypes = jnp.broadcast_to(random_genotypes(noisy, 4, seed=3)[1], (8, 66))
        assert len(set(evaluate_batch(noisy, KEY, genotypes).fitness.tolist())) == 8

    def test_raw_keys(self, noisy):
        genotypes = random_genotypes(noisy, 8)
        raw, key = jax.random.PRNGKey(5), jax.random.key(5)
        for keys in ((raw, key), (jax.random.split(raw, 8), jax.random.split(key, 8))):
            one, other = (evaluate_batch(noisy, each, genotypes) for each in keys)
            np.testing.assert_array_equal(one.fitness, other.fitness)

    def test_another_number_of_keys(self, noisy):
        with pytest.raises(JedaxError, match=r"^key: expected one key or 8, got shape \(2,\); give one key"):
            noisy.evaluate_batch(jax.random.split(KEY, 2), random_genotypes(noisy, 8))

    def test_wheel_noise_has_the_given_spread(self):
        maze = Maze(**NOWHERE, wheel_noise=0.005)
        positions = rollouts(maze, jax.random.split(KEY, 16), jnp.broadcast_to(wheels(0, 0), (16, 66))).positions
        lengths = np.hypot(*np.moveaxis(np.diff(np.asarray(positions, float), axis=1), -1, 0))
        # The centre travels the mean of two independent travels.
        assert np.sqrt((lengths**2).mean()) == pytest.approx(0.005 / math.sqrt(2), rel=0.05)

    def test_travel_is_clipped_after_the_noise(self):
        # Noise this large leaves every wheel at full speed, one way or the other.
        maze = Maze(**NOWHERE, wheel_noise=1e4, steps=200)
        positions = np.asarray(rollout(maze, KEY, wheels(0.5, 0.5)).positions, float)
        lengths = np.hypot(*np.diff(positions, axis=0).T)
        straight = lengths > 0.01
        np.testing.assert_allclose(lengths, np.where(straight, 0.025, 0), atol=1e-5)
        assert 60 < straight.sum() < 140

    def test_laser_noise(self):
        def readings(noise, wall, mode="range"):
            maze = Maze(
                **NOWHERE | {"start": (0, 0, 0)},
                walls=[(wall, -5, wall, 5)],
                laser_noise=noise,
                laser_out_of_range=mode,
            )
            return np.asarray(rollout(maze, KEY, wheels(0, 0)).observations[:, :3])

        fine = readings(0.01, 0.1)
        np.testing.assert_allclose(fine.mean(axis=0), [0.1414, 0.1, 0.1414], atol=0.003)
        np.testing.assert_allclose(fine.std(axis=0), 0.01, rtol=0.2)
        np.testing.assert_allclose(np.corrcoef(fine.T), np.eye(3), atol=0.25)
        coarse = readings(0.5, 0.1)
        assert coarse.min() == 0
        assert coarse.max() == np.float32(0.2)
        assert (coarse == 0).mean() == pytest.approx(0.41, abs=0.05)  # P(z < -0.1 / 0.5) and P(z < -0.1414 / 0.5)
        assert set(readings(0.5, 0.201).ravel().tolist()) == {float(np.float32(0.2))}
        marked = readings(0.5, 0.1, "minus-one")
        assert (marked.min(), (marked == 0).any()) == (-1, True)
        assert ((marked == -1) == (coarse == np.float32(0.2))).all()


class TestEvaluations:
    @pytest.fixture(scope="class", params=["maze-a", "maze-b", "maze-c", "maze-quad-b"])
    @classmethod
    def maze(cls, request):
        return make(request.param)

    def test_evaluate_agrees_with_rollout(self, maze):
        # Two programs of which the compiler rounds each in its own way: a few that graze a wall may part.
        genotypes = random_genotypes(maze, 256, seed=1, scale=3.0)
        trajectories = rollouts(maze, jax.random.split(KEY, 256), genotypes)
        fitness, descriptor, length = outcomes_of(maze, trajectories)
        np.testing.assert_array_equal(trajectories.length, length)
        evaluation = evaluate_batch(maze, KEY, genotypes)
        agree = np.isclose(evaluation.fitness, fitness, atol=1e-1)
        agree &= np.isclose(evaluation.descriptor, descriptor, atol=1e-3).all(axis=1)
        assert agree.mean() >= 0.97

    def test_evaluate_agrees_with_rollout_while_rounding_is_small(self):
        maze = make("maze-c", steps=30, target=(0.3, 0.2), target_radius=0.1)
        genotypes = random_genotypes(maze, 256, seed=1, scale=3.0)
        fitness, descriptor, length = outcomes_of(maze, rollouts(maze, jax.random.split(KEY, 256), genotypes))
        assert 5 < (length < 30).sum() < 250
        evaluation = evaluate_batch(maze, KEY, genotypes)
        np.testing.assert_allclose(evaluation.fitness, fitness, atol=1e-2)
        np.testing.assert_allclose(evaluation.descriptor, descriptor, atol=1e-4)

    def test_limits_contain_every_descriptor(self, maze):
        descriptors = np.asarray(evaluate_batch(maze, KEY, random_genotypes(maze, 256, seed=1, scale=3.0)).descriptor)
        lows, highs = np.array(maze.descriptor_bounds)
        assert (descriptors >= lows - 0.015).all()
        assert (descriptors <= highs + 0.015).all()
        assert (np.ptp(descriptors, axis=0) > 0.2).all()

    # Not bit for bit, since XLA vectorises a batch; and short, since grazing a wall blows rounding up.
    @pytest.mark.parametrize("count", [1, 15, 17])
    def test_batch_equals_single_evaluations(self, count):
        maze = make("maze-c", steps=60)
        genotypes = random_genotypes(maze, count, seed=2)
        batch = evaluate_batch(maze, KEY, genotypes)
        keys = jax.random.split(KEY, count)
        single = [evaluate(maze, key, genotype) for key, genotype in zip(keys, genotypes, strict=True)]
        assert batch.fitness.shape == (count,)
        assert batch.descriptor.shape == (count, 2)
        np.testing.assert_allclose(batch.fitness, np.stack([e.fitness for e in single]), atol=2e-3, rtol=0)
        np.testing.assert_allclose(batch.descriptor, np.stack([e.descriptor for e in single]), atol=2e-5)

    def test_neighbours_in_a_batch_do_not_matter(self):
        maze = make("maze-c", steps=60)
        genotypes = random_genotypes(maze, 17, seed=2)
        whole, mirrored = evaluate_batch(maze, KEY, genotypes), evaluate_batch(maze, KEY, genotypes[::-1])
        part = evaluate_batch(maze, KEY, genotypes[:15])
        np.testing.assert_allclose(whole.fitness, mirrored.fitness[::-1], atol=2e-3, rtol=0)
        np.testing.assert_allclose(whole.descriptor, mirrored.descriptor[::-1], atol=2e-5)
        np.testing.assert_allclose(whole.fitness[:15], part.fitness, atol=2e-3, rtol=0)

    def test_weights_that_are_not_finite_fail_alone(self):
        maze = make("maze-a")
        good = random_genotypes(maze, 1)[0]
        bad = [good.at[i].set(v) for i in (0, 41, 50, 65) for v in (jnp.nan, jnp.inf, -jnp.inf)]
        evaluation = evaluate_batch(maze, KEY, jnp.stack([good, *bad, good]))
        assert not np.isfinite(evaluation.fitness[1:-1]).any()
        assert evaluation.valid.tolist() == [True, *[False] * 12, True]
        assert evaluation.fitness[0] == evaluation.fitness[-1] == evaluate(maze, KEY, good).fitness

    def test_huge_weights_never_give_a_good_fitness(self):
        maze = make("maze-a")
        evaluation = evaluate_batch(maze, KEY, random_genotypes(maze, 16) * 1e30)
        assert (~evaluation.valid | (evaluation.fitness <= -1)).all()

    @pytest.mark.parametrize("shape", [(65,), (67,), (2, 66), ()])
    def test_wrong_shape(self, shape):
        with pytest.raises(JedaxError, match=r"^genotype: expected shape \(66,\), got .*evaluate_batch takes many"):
            make("maze-a").evaluate(KEY, jnp.zeros(shape))

    @pytest.mark.parametrize("shape", [(3, 67), (66,), (2, 3, 66), ()])
    def test_wrong_shape_of_a_batch(self, shape):
        with pytest.raises(JedaxError, match=r"^genotypes: expected shape \(batch, 66\), got .*per row\.$"):
            make("maze-a").evaluate_batch(KEY, jnp.zeros(shape))

    @pytest.mark.parametrize("count", [0, 4, 6])
    def test_wrong_number_of_readings(self, count):
        with pytest.raises(JedaxError, match=f"^observation: expected 5 numbers, got {count}; "):
            make("maze-a").act(jnp.zeros(66), [0.0] * count)

    def test_wrong_shape_of_a_rollout(self):
        with pytest.raises(JedaxError, match=r"^genotype: expected shape \(66,\), got \(67,\)"):
            make("maze-a").rollout(KEY, jnp.zeros(67))


class TestNumberOfWalls:
    def test_none_at_all(self):
        maze = Maze(**NOWHERE | {"target": (0, 1)})
        assert maze.config.all_walls == ()
        fitness, descriptor = outcome(maze, FORWARD)
        assert fitness == -39  # 0.975 after 39 steps, 0.95 after 38: not nearer than 0.05 by more than rounding
        assert descriptor == pytest.approx([0, 0.95], abs=1e-5)
        observations = rollout(maze, KEY, FORWARD).observations
        np.testing.assert_array_equal(observations, np.broadcast_to(np.float32([0.2, 0.2, 0.2, -1, -1]), (250, 5)))

    @pytest.mark.parametrize("count", [40, 500])
    def test_duplicates_change_nothing(self, count):
        """Also says that the last walls count: the real ones come after `count` copies of one side."""
        config = make("maze-a").config.replace(border=False, steps=60)
        sides = make("maze-a").config.all_walls[-4:]
        few = Maze(config, walls=(*config.walls, *sides))
        many = Maze(config, walls=(sides[0],) * (count - 7) + few.config.walls)
        assert len(many.config.all_walls) == count
        genotypes = random_genotypes(few, 32, seed=6)
        expected, got = (evaluate_batch(maze, KEY, genotypes) for maze in (few, many))
        np.testing.assert_allclose(got.fitness, expected.fitness, atol=1e-3)
        np.testing.assert_allclose(got.descriptor, expected.descriptor, atol=1e-5)
        without = evaluate_batch(Maze(config, walls=(sides[0],) * 7), KEY, genotypes)
        assert (np.abs(without.descriptor - expected.descriptor).max(axis=1) > 0.05).mean() > 0.2


class TestController:
    def test_init(self):
        maze = Maze()
        genotypes = np.asarray(jax.vmap(maze.init)(jax.random.split(KEY, 1000)))
        assert genotypes.shape == (1000, 66)
        assert genotypes.dtype == np.float32
        hidden, output = genotypes[:, :40], genotypes[:, 48:64]
        for kernel, inputs in ((hidden, 5), (output, 8)):
            bound = math.sqrt(3 / inputs)
            assert 0.999 * bound < np.abs(kernel).max() <= bound
            np.testing.assert_allclose(kernel.std(axis=0), math.sqrt(1 / inputs), rtol=0.08)
            np.testing.assert_allclose(kernel.mean(axis=0), 0, atol=0.15 * bound)
        assert (genotypes[:, 40:48] == 0).all()
        assert (genotypes[:, 64:] == 0).all()
        assert len(np.unique(genotypes[0])) == 57  # 56 weights, all different, and zero

    @pytest.mark.parametrize(
        ("settings", "sizes", "params"),
        [
            ({}, (5, 8, 2), 66),
            ({"hidden": (16,)}, (5, 16, 2), 130),
            ({"hidden": (8, 4)}, (5, 8, 4, 2), 48 + 36 + 10),
            ({"hidden": ()}, (5, 2), 12),
            ({"laser_angles": (0.0,)}, (3, 8, 2), 50),
            ({"activation": "tanh"}, (5, 8, 2), 66),
        ],
    )
    def test_sizes(self, settings, sizes, params):
        maze = Maze(**settings)
        assert maze.layer_sizes == sizes
        assert maze.num_params == params == policy.num_params(sizes)
        genotype = maze.init(KEY)
        assert genotype.shape == (params,)
        assert evaluate(Maze(**settings, steps=3), KEY, genotype).valid

    @pytest.mark.parametrize("activation", sorted(policy.ACTIVATIONS))
    def test_outputs_and_order_of_the_weights(self, activation):
        functions = {
            "relu": lambda x: np.maximum(x, 0),
            "tanh": np.tanh,
            "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
            "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
            "gelu": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
            "silu": lambda x: x / (1 + np.exp(-x)),
        }
        random = np.random.default_rng(1)
        genotype, inputs = random.normal(size=3 * 4 + 4 + 4 * 5 + 5 + 5 * 2 + 2), random.normal(size=3)
        values, rest = inputs, genotype
        for size, function in ((4, functions[activation]), (5, functions[activation]), (2, np.tanh)):
            kernel, bias, rest = np.split(rest, [len(values) * size, (len(values) + 1) * size])
            values = function(values @ kernel.reshape(len(values), size) + bias)
        outputs = policy.apply(jnp.asarray(genotype), list(jnp.asarray(inputs)), (3, 4, 5, 2), activation)
        np.testing.assert_allclose(outputs, values, atol=1e-5)

    def test_the_maze_uses_its_activation(self):
        maze = make("maze-a", activation="tanh", steps=1)
        genotype = random_genotypes(maze, 1)[0]
        trajectory = rollout(maze, KEY, genotype)
        expected = policy.apply(genotype, list(trajectory.observations[0]), (5, 8, 2), "tanh")
        np.testing.assert_allclose(trajectory.actions[0], expected, atol=1e-6)
        other = rollout(make("maze-a", steps=1), KEY, genotype).actions[0]
        assert np.abs(trajectory.actions[0] - other).max() > 1e-3


class TestEquality:
    def test_equal_settings_are_equal_objects(self):
        walls = [(0, 0.5, 0.7, 0.5)]
        one, other = Maze(walls=walls), Maze(MazeConfig(walls=[[0.0, 0.5, 0.7, 0.5]]))
        assert one == other
        assert hash(one) == hash(other)
        assert make("maze-b") == make("maze-b")
        assert make("maze-a") != make("maze-b")
        assert one != Maze(walls=walls, steps=100)

    def test_equal_mazes_are_traced_once(self):
        traces = []

        @jax.jit(static_argnums=0)
        def fitness(maze, key, genotype):
            traces.append(maze.name)
            return maze.evaluate(key, genotype).fitness

        first = fitness(Maze(steps=5), KEY, jnp.zeros(66))
        assert fitness(Maze(MazeConfig(steps=5)), jax.random.key(1), jnp.zeros(66)) == first
        assert len(traces) == 1
        fitness(Maze(steps=6), KEY, jnp.zeros(66))
        assert len(traces) == 2


def test_the_goal_is_only_reached_by_robots_that_arrive():
    assert Maze(steps=30).goal_fitness == -30
    assert Maze(steps=30, distance_weight=0.0).goal_fitness == -29  # all others have -30
