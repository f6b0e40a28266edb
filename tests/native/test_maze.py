"""The native simulator against the one in JAX, against Kheperax, against closed forms, and against itself."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import USUAL_EMITTERS, assert_same_bits

from jedax.errors import JedaxError
from jedax.native import core
from jedax.native import maze as native
from jedax.tasks import Maze, make

needs_kernel = pytest.mark.skipif(not native.KERNEL.available, reason=str(native.KERNEL.status))
KEY = jax.random.key(0)
ROOT = Path(__file__).parents[2]
NORTH = math.pi / 2
LIBRARY = core.load()[0]
SETS = LIBRARY.jedax_instruction_sets().decode().split(",") if LIBRARY else []

evaluate_batch = jax.jit(lambda maze, key, genotypes: maze.evaluate_batch(key, genotypes), static_argnums=0)
rollout_batch = jax.jit(lambda maze, key, genotypes: maze.rollout_batch(key, genotypes), static_argnums=0)


@jax.jit(static_argnums=0, compiler_options=USUAL_EMITTERS)
def reference_batch(maze, key, genotypes):
    return maze.evaluate_in_jax(jax.random.split(key, len(genotypes)), genotypes)


@jax.jit(static_argnums=0)
def reference_rollouts(maze, key, genotypes):
    return jax.vmap(maze.rollout)(jax.random.split(key, len(genotypes)), genotypes)


def random_genotypes(maze, count, seed=0, scale=2.0):
    return scale * jax.vmap(maze.init)(jax.random.split(jax.random.key(seed), count))


def evaluate_with(name, maze, genotypes):
    """Fitness and descriptors, computed with an instruction set."""
    LIBRARY.jedax_use_instruction_set(name.encode())
    try:
        return pair(evaluate_batch(maze, KEY, genotypes))
    finally:
        LIBRARY.jedax_use_instruction_set(native.KERNEL.status.instruction_set.encode())


def agreement(one, other):
    """The share of robots that end alike: the rest grazed a wall, where float32 decides."""
    alike = np.isclose(one[0], other[0], atol=0.5) & np.isclose(one[1], other[1], atol=0.01).all(axis=1)
    return alike.mean()


def pair(evaluation):
    return np.asarray(evaluation.fitness), np.asarray(evaluation.descriptor)


def outcomes_of(maze, trajectories):
    """Fitness and descriptors from positions and lengths alone, by the rules of the task."""
    config, positions, length = maze.config, np.asarray(trajectories.positions), np.asarray(trajectories.length)
    start = np.broadcast_to(np.float32(config.start[:2]), positions[:, :1].shape)
    rows = np.arange(len(length))
    before = np.concatenate([start, positions], axis=1)[rows, length - 1]
    distance = np.hypot(*np.float64(positions[rows, length - 1] - np.float32(config.target)).T)
    missed = -config.steps - config.distance_weight * distance
    return np.where(distance < config.target_radius, -length, missed), before


@pytest.fixture(scope="module", params=["a", "b", "c", "quad_b"])
def reference(request):
    """A maze and what Kheperax, jedax in JAX and the native simulator make of the same 256 controllers."""
    data = dict(np.load(next((ROOT / "tests").rglob(f"maze_{request.param}.npz"))))
    maze = make("maze-" + request.param.replace("_", "-"))
    layers = ("hidden_kernel", "hidden_bias", "output_kernel", "output_bias")
    genotypes = np.concatenate([data[name].reshape(256, -1) for name in layers], axis=1)
    return SimpleNamespace(
        maze=maze,
        data=data,
        genotypes=genotypes,
        kheperax=(data["fitness"], data["descriptor"]),
        jax=pair(reference_batch(maze, KEY, genotypes)),
        native=pair(evaluate_batch(maze, KEY, genotypes)),
        trajectories=jax.tree.map(np.asarray, rollout_batch(maze, KEY, genotypes)),
    )


@needs_kernel
class TestAgainstOthers:
    @pytest.mark.parametrize("other", ["kheperax", "jax"])
    def test_outcomes(self, reference, other):
        expected = getattr(reference, other)
        assert agreement(reference.native, expected) >= 0.97
        arrived = (reference.native[0] >= -250) & (expected[0] >= -250)
        assert arrived.sum() >= 5
        assert (np.abs(reference.native[0] - expected[0])[arrived] <= 1).all()

    @pytest.mark.parametrize("name", SETS)
    def test_every_instruction_set(self, reference, name):
        assert agreement(evaluate_with(name, reference.maze, reference.genotypes), reference.jax) >= 0.97

    @pytest.mark.parametrize(
        ("what", "early", "late"),
        [("positions", 1e-4, 1e-2), ("observations", 2e-4, 3e-2), ("actions", 1e-3, 1e-1)],
    )
    def test_step_by_step(self, reference, what, early, late):
        difference = np.abs(getattr(reference.trajectories, what)[:16] - reference.data[what]).max(axis=-1)
        assert difference.shape == (16, 250)
        assert difference[:, :60].max() <= early
        assert (difference.max(axis=1) <= late).sum() >= 14

    def test_bumpers_step_by_step(self, reference):
        ours, theirs = reference.trajectories.observations[:16, :, 3:], reference.data["observations"][..., 3:]
        assert (ours == theirs).all(axis=(1, 2)).sum() >= 15

    def test_evaluation_ends_where_the_rollout_does(self, reference):
        fitness, descriptor = outcomes_of(reference.maze, reference.trajectories)
        np.testing.assert_array_equal(reference.native[1], descriptor)
        np.testing.assert_allclose(reference.native[0], fitness, rtol=1e-5)


@needs_kernel
class TestSameBits:
    """A robot's result depends on nothing but its genotype, key and maze."""

    MAZE = make("maze-c")

    @pytest.fixture(scope="class")
    @classmethod
    def whole(cls):
        genotypes = np.asarray(random_genotypes(cls.MAZE, 300, seed=1, scale=3.0))
        return genotypes, pair(evaluate_batch(cls.MAZE, KEY, genotypes))

    @pytest.mark.parametrize("threads", [1, 7])
    def test_threads(self, whole, threads, tmp_path):
        genotypes, _ = whole
        np.save(tmp_path / "genotypes.npy", genotypes)
        code = (
            "import tests.conftest; from tests.native.test_maze import SETS, evaluate_with, make, np, sys; "
            "genotypes, maze = np.load(sys.argv[1] + '/genotypes.npy'), make('maze-c'); "
            "found = {f'{name}_{i}': np.column_stack(evaluate_with(name, maze, genotypes)) "
            "for name in SETS for i in range(20)}; np.savez(sys.argv[1] + '/found.npz', **found)"
        )
        variables = os.environ | {"NPROC": str(threads)}
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, env=variables, check=True)
        found = np.load(tmp_path / "found.npz")
        for name in SETS:
            expected = np.column_stack(evaluate_with(name, self.MAZE, genotypes))
            for i in range(20):
                assert_same_bits(found[f"{name}_{i}"], expected)

    @pytest.mark.parametrize("count", [1, 2, 15, 17, 33, 65, 299])
    def test_size_of_the_batch(self, whole, count):
        genotypes, (fitness, descriptor) = whole
        found = pair(evaluate_batch(self.MAZE, KEY, genotypes[:count]))
        assert_same_bits(found, (fitness[:count], descriptor[:count]))

    def test_neighbours(self, whole):
        genotypes, (fitness, descriptor) = whole
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(genotypes))
            found = pair(evaluate_batch(self.MAZE, KEY, genotypes[order]))
            assert_same_bits(found, (fitness[order], descriptor[order]))

    def test_nobody(self):
        evaluation = evaluate_batch(self.MAZE, KEY, jnp.zeros((0, 66)))
        assert (evaluation.fitness.shape, evaluation.descriptor.shape) == ((0,), (0, 2))
        assert rollout_batch(self.MAZE, KEY, jnp.zeros((0, 66))).positions.shape == (0, 250, 2)

    def test_replicas(self, whole):
        genotypes, _ = whole
        stacked, keys = genotypes.reshape(3, 2, 50, 66), jax.random.split(KEY, (3, 2))
        nested = jax.jit(jax.vmap(jax.vmap(self.MAZE.evaluate_batch)))(keys, stacked)
        assert_same_bits(pair(nested), (whole[1][0].reshape(3, 2, 50), whole[1][1].reshape(3, 2, 50, 2)))
        many = jax.jit(jax.vmap(self.MAZE.rollout_batch))(keys[0], stacked[0, :, :3])
        assert_same_bits(jax.tree.map(lambda a: a[1], many), rollout_batch(self.MAZE, keys[0, 1], stacked[0, 1, :3]))

    def test_one_genotype_for_many_keys(self, whole):
        genotypes, _ = whole
        keys = jax.random.split(KEY, 3)
        found = jax.jit(jax.vmap(self.MAZE.evaluate_batch, (0, None)))(keys, genotypes[:20])
        assert_same_bits(found.fitness, np.broadcast_to(whole[1][0][:20], (3, 20)))

    def test_in_a_loop(self, whole):
        genotypes, (fitness, _) = whole

        @jax.jit
        def loop(genotypes):
            return jax.lax.scan(lambda _, rows: (None, self.MAZE.evaluate_batch(KEY, rows).fitness), None, genotypes)[1]

        assert_same_bits(loop(genotypes.reshape(6, 50, 66)), fitness.reshape(6, 50))


OPEN = {"border": False, "limits": ((-50, -50), (50, 50)), "target": (40, 40), "start": (0, 0, NORTH)}
WALLS = [(0.1, 0.4, 0.3, 0.3), (0.3, 0.0, 0.3, 0.2), (0.0, 0.5, 0.2, 0.5)]
OTHERS = {
    "no walls": {**OPEN, "walls": (), "hidden": (9,)},
    "minus one": {"laser_out_of_range": "minus-one", "activation": "sigmoid"},
    "one laser": {"laser_angles": (0.1,), "hidden": ()},
    "seven lasers": {"laser_angles": tuple(np.linspace(-3, 3, 7)), "activation": "elu"},
    "two hidden layers": {"hidden": (6, 5), "activation": "gelu"},
    "three hidden layers": {"hidden": (8, 3, 16), "activation": "tanh"},
    "fast": {"wheel_speed": 0.04, "activation": "silu"},
    "turning far in one step": {"wheel_speed": 0.1},
    "noise of the wheels": {"wheel_noise": 0.005},
    "all noise": {"laser_noise": 0.01, "wheel_noise": 0.005, "laser_out_of_range": "minus-one"},
    "other numbers": {"distance_weight": 3.0, "target_radius": 0.1, "laser_range": 0.5, "robot_radius": 0.02},
}


@needs_kernel
class TestOtherMazes:
    @pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS.keys())
    def test_rollouts_and_outcomes(self, settings):
        # Short, so that rounding stays small.
        maze = Maze(**{"walls": WALLS, "steps": 25} | settings)
        genotypes = random_genotypes(maze, 19, seed=3)
        found, expected = rollout_batch(maze, KEY, genotypes), reference_rollouts(maze, KEY, genotypes)
        for what in ("observations", "actions", "positions"):
            one, other = (np.asarray(getattr(trajectory, what)) for trajectory in (found, expected))
            alike = np.abs(one - other).max(axis=(1, 2)) < 1e-3
            assert one.shape == other.shape
            assert alike.mean() >= 0.94, what
        assert (np.asarray(found.length) == np.asarray(expected.length)).mean() >= 0.94
        fitness, descriptor = outcomes_of(maze, found)
        evaluation = evaluate_batch(maze, KEY, genotypes)
        np.testing.assert_array_equal(evaluation.descriptor, descriptor)
        np.testing.assert_allclose(evaluation.fitness, fitness, rtol=1e-5)

    def test_noise_of_replicas(self):
        maze = Maze(**{"walls": WALLS, "steps": 25} | OTHERS["all noise"])
        genotypes, keys = random_genotypes(maze, 38, seed=3).reshape(2, 19, -1), jax.random.split(KEY, 2)
        found = jax.jit(jax.vmap(maze.evaluate_batch))(keys, genotypes)
        alone = [evaluate_batch(maze, key, rows).descriptor for key, rows in zip(keys, genotypes, strict=True)]
        np.testing.assert_allclose(found.descriptor, alone, atol=1e-5)
        assert (np.abs(alone[0] - evaluate_batch(maze, keys[1], genotypes[0]).descriptor) > 1e-4).any()

    def test_too_much_noise_for_memory_is_left_to_jax(self):
        settings = make("maze-a", wheel_noise=0.01).native_settings()
        assert native.fits(settings, 1000)
        assert not native.fits(settings, 2**27 // 251)
        assert native.fits(dataclasses.replace(settings, wheel_noise=0.0), 10**9)

    def test_500_walls(self):
        random = np.random.default_rng(0)
        ends = random.uniform(0, 1, (500, 2))
        ends = ends[np.hypot(*(ends - 0.15).T) > 0.12]
        spans = 0.05 * random.normal(size=ends.shape) * random.integers(0, 2, ends.shape)
        spans[(spans == 0).all(axis=1)] = 0.05, 0.0
        walls = np.concatenate([ends, ends + spans], axis=1)
        maze = Maze(walls=[tuple(wall) for wall in walls.tolist()], steps=40)
        genotypes = random_genotypes(maze, 40, seed=4)
        found, expected = pair(evaluate_batch(maze, KEY, genotypes)), pair(reference_batch(maze, KEY, genotypes))
        assert agreement(found, expected) >= 0.97
        assert np.ptp(found[1], axis=0).min() > 0.05

    def test_walls_in_one_line_may_be_joined(self):
        pieces = [(0.0, 0.25, 0.3, 0.25), (0.75, 0.25, 0.2, 0.25), (0.4, 0.25, 0.5, 0.25), (0.75, 0.25, 0.8, 0.25)]
        few = make("maze-a", walls=[(0.0, 0.25, 0.8, 0.25), (0.3, 0.6, 0.3, 1.0)])
        many = make("maze-a", walls=[*pieces, (0.3, 0.8, 0.3, 0.6), (0.3, 0.8, 0.3, 1.0), *pieces])
        genotypes = random_genotypes(few, 64, seed=5, scale=3.0)
        expected = pair(evaluate_batch(few, KEY, genotypes))
        assert agreement(pair(evaluate_batch(many, KEY, genotypes)), expected) >= 0.97
        # A gap is a gap.
        gap = make("maze-a", walls=[(0.0, 0.25, 0.1, 0.25), (0.2, 0.25, 0.8, 0.25), (0.3, 0.6, 0.3, 1.0)])
        assert agreement(pair(evaluate_batch(gap, KEY, genotypes)), expected) < 0.97


@needs_kernel
class TestBumpers:
    """Ten robots drive straight to the north; from step 8 on they touch, or not, what lies 0.2 ahead."""

    CONTACTS = (
        ([(0.51, 0.7, 0.9, 0.7)], [1, -1]),
        ([(0.1, 0.7, 0.49, 0.7)], [-1, 1]),
        ([(0.51, 0.7, 0.9, 0.7), (0.1, 0.7, 0.49, 0.7)], [1, 1]),
        ([(0.51, 0.7, 0.9, 0.71)], [1, -1]),
        ([(0.1, 0.71, 0.49, 0.7)], [-1, 1]),
        ([(0.51, 0.7, 0.51, 0.9)], [1, -1]),
        ([(0.52, 0.7, 0.9, 0.7)], [-1, -1]),
    )

    @pytest.mark.parametrize(("walls", "contact"), CONTACTS)
    def test_right_and_left(self, walls, contact):
        maze = Maze(walls=walls, start=(0.5, 0.495, NORTH), steps=12)
        genotypes = np.zeros((10, 66), np.float32)
        genotypes[:, -2:] = 20
        readings = np.asarray(rollout_batch(maze, KEY, genotypes).observations)[..., 3:]
        # Read before the move: a contact after step 8 is felt in the decision of step 10.
        np.testing.assert_array_equal(readings[:, :9], np.full((10, 9, 2), -1))
        np.testing.assert_array_equal(readings[:, 9:], np.broadcast_to(contact, (10, 3, 2)))

    def test_behind_is_not_felt(self):
        maze = Maze(start=(0.5, 0.11, NORTH), steps=12)
        genotypes = np.zeros((1, 66), np.float32)
        genotypes[:, -2:] = -20
        trajectory = rollout_batch(maze, KEY, genotypes)
        assert (trajectory.positions[0, 4:] == trajectory.positions[0, 3]).all()
        assert (trajectory.observations[..., 3:] == -1).all()


@needs_kernel
class TestFunctions:
    """The controller's functions, seen through the action of a robot whose weights are zero but for biases."""

    def actions(self, biases, **settings):
        maze = Maze(**OPEN, steps=1, **settings)
        genotypes = np.zeros((len(biases), maze.num_params), np.float32)
        return maze, genotypes

    def test_tanh(self):
        values = np.concatenate([np.linspace(-10, 10, 2001), np.geomspace(1e-20, 1, 500), [0, 88, -1e30, 1e30]])
        values = np.float32(values)
        maze, genotypes = self.actions(values, hidden=())
        genotypes[:, -2:] = values[:, None]
        actions = np.asarray(rollout_batch(maze, KEY, genotypes).actions)[:, 0]
        expected = np.tanh(values.astype(float))
        np.testing.assert_allclose(actions[:, 0], expected, rtol=3.5e-7, atol=0)
        assert_same_bits(actions[:, 0], actions[:, 1])
        assert np.abs(actions).max() <= 1

    @pytest.mark.parametrize(
        ("activation", "function"),
        [
            ("relu", lambda x: np.maximum(x, 0)),
            ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
            ("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
            ("gelu", lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
            ("silu", lambda x: x / (1 + np.exp(-x))),
        ],
    )
    def test_activations(self, activation, function):
        values = np.float32(np.concatenate([np.linspace(-30, 30, 3001), [-1000, 1000], -np.geomspace(1e-6, 1, 100)]))
        maze, genotypes = self.actions(values, hidden=(1,), activation=activation)
        genotypes[:, 5], genotypes[:, 6] = values, 1  # hidden bias, weight of the left wheel
        left = np.asarray(rollout_batch(maze, KEY, genotypes).actions)[:, 0, 0]
        with np.errstate(over="ignore"):
            expected = np.tanh(function(values.astype(float)))
        np.testing.assert_allclose(left, expected, rtol=1e-6, atol=3e-7)


@needs_kernel
class TestBadWeights:
    def test_not_finite_fails_alone(self):
        maze = make("maze-a")
        good = np.asarray(random_genotypes(maze, 1)[0])
        bad = np.stack([good] * 200)
        bad[np.arange(200), np.arange(200) % 66] = np.resize([np.nan, np.inf, -np.inf], 200)
        genotypes = np.concatenate([[good], bad, [good]])
        for name in SETS:
            fitness, descriptor = evaluate_with(name, maze, genotypes)
            assert np.isnan(fitness[1:-1]).all()
            assert np.isnan(descriptor[1:-1]).all()
            assert np.isfinite([fitness[0], *descriptor[0]]).all()
            assert fitness[0] == fitness[-1]
        expected = pair(reference_batch(maze, KEY, genotypes))
        np.testing.assert_allclose(fitness, expected[0], atol=0.1)
        np.testing.assert_allclose(descriptor, expected[1], atol=1e-3)

    def test_rollouts_with_nan_and_inf_are_those_of_jax(self):
        maze = make("maze-a", steps=5)
        genotypes = np.asarray(random_genotypes(maze, 6)).copy()
        genotypes[np.arange(5), [0, 41, 50, 64, 65]] = np.nan, np.inf, -np.inf, np.inf, np.nan
        found, expected = rollout_batch(maze, KEY, genotypes), reference_rollouts(maze, KEY, genotypes)
        assert np.isnan(found.actions).any()
        assert np.isfinite(found.actions[-1]).all()
        for what in ("observations", "actions", "positions", "length"):
            np.testing.assert_allclose(getattr(found, what), getattr(expected, what), atol=1e-4, err_msg=what)

    def test_huge_weights_never_give_a_good_fitness(self):
        maze = make("maze-a")
        fitness, descriptor = pair(evaluate_batch(maze, KEY, random_genotypes(maze, 64) * 1e30))
        assert (~np.isfinite(fitness) | (fitness <= -1)).all()
        assert descriptor.shape == (64, 2)


@needs_kernel
class TestMistakes:
    """Settings are read by name, and what does not fit together is refused."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"layers": (5, 9, 2)}, "genotypes: they do not fit the layers"),
            ({"layers": (6, 8, 2)}, "layers: they do not fit the lasers"),
            ({"activation": "step"}, "activation: an unknown name"),
            ({"steps": 0}, "steps: fewer than one"),
            ({"turn": 1}, "turn: Wrong scalar data type"),
        ],
    )
    def test_settings(self, changes, message):
        settings = dataclasses.replace(make("maze-a").native_settings(), **changes)
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            native.evaluate(settings, jax.random.split(KEY, 2), jnp.zeros((2, 66)))

    def test_names(self):
        outputs = jax.ShapeDtypeStruct((2,), jnp.float32), jax.ShapeDtypeStruct((2, 2), jnp.float32)
        settings = dict(vars(make("maze-a").native_settings()))
        arrays = jnp.zeros((2, 66)), jnp.asarray(settings.pop("walls")), jnp.zeros(0), jnp.zeros(0)
        with pytest.raises(jax.errors.JaxRuntimeError, match="a setting of unknown name"):
            native.KERNEL.call("evaluate", outputs, *arrays, **settings, lazer_range=0.1)
        del settings["laser_range"]
        with pytest.raises(jax.errors.JaxRuntimeError, match="laser_range: Unexpected attribute"):
            native.KERNEL.call("evaluate", outputs, *arrays, **settings)

    def test_wrong_shape(self):
        with pytest.raises(JedaxError, match=r"^genotypes: expected shape \(batch, 66\), got "):
            make("maze-a").rollout_batch(KEY, jnp.zeros((3, 67)))
