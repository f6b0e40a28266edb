import math
import pickle
from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jedax.errors import JedaxError
from jedax.tasks.functions.settings import ArmConfig, FunctionConfig
from jedax.tasks.functions.task import PlanarArm, Rastrigin, Sphere

KEY = jax.random.key(0)
TASKS = [Sphere(dimensions=4), Sphere(dimensions=7), Rastrigin(dimensions=4), PlanarArm(joints=5)]
IDS = [repr(task) for task in TASKS]


def optimum(task):
    """A genotype of fitness 0."""
    return jnp.full(task.num_params, 0.0 if isinstance(task, PlanarArm) else 0.4 * 5.12, jnp.float32)


PI = math.pi


def evaluate(task, genotype):
    evaluation = task.evaluate(KEY, jnp.asarray(genotype, jnp.float32))
    return float(evaluation.fitness), np.asarray(evaluation.descriptor)


def genotypes_of(lengths, limit):
    numbers = st.floats(-limit, limit, width=32, allow_nan=False)
    return lengths.flatmap(lambda n: hnp.arrays(np.float32, n, elements=numbers))


def function_values(name, genotype):
    z = genotype.astype(np.float64) - 2.048
    if name == "sphere":
        return np.sum(z**2)
    return 10 * len(z) + np.sum(z**2 - 10 * np.cos(2 * np.pi * z))


def projection(genotype):
    clipped = [float(x) if abs(x) <= 5.12 else 5.12 / float(x) for x in genotype]
    half = len(clipped) // 2
    return np.array([math.fsum(clipped[:half]), math.fsum(clipped[half:])])


def arm_tip(angles):
    """Compose the links' rotations as complex numbers, from the last link back to the shoulder."""
    tip = 0.0
    for angle in angles.astype(np.float64)[::-1]:
        tip = np.exp(1j * angle) * (1 / len(angles) + tip)
    return np.array([tip.real, tip.imag])


class TestFunctionsByHand:
    def test_sphere_at_the_origin(self):
        fitness, descriptor = evaluate(Sphere(dimensions=4), np.zeros(4))
        assert fitness == pytest.approx(-4 * 4.194304)  # 2.048^2
        np.testing.assert_array_equal(descriptor, [0, 0])

    def test_sphere_away_from_the_optimum(self):
        # distances to 2.048: 1, 2, 0, 3
        fitness, descriptor = evaluate(Sphere(dimensions=4), [3.048, 0.048, 2.048, -0.952])
        assert fitness == pytest.approx(-14.0)
        np.testing.assert_allclose(descriptor, [3.096, 1.096], rtol=1e-6)

    @pytest.mark.parametrize(("z", "value"), [(0.0, 0.0), (1.0, 1.0), (0.5, 20.25), (0.25, 10.0625), (-2.0, 4.0)])
    def test_rastrigin_of_one_coordinate(self, z, value):
        fitness, _ = evaluate(Rastrigin(dimensions=3), [2.048, 2.048 + z, 2.048])
        assert fitness == pytest.approx(-value, abs=1e-4)

    def test_rastrigin_is_exact_near_the_optimum(self):
        x = np.full(2, 2.048, np.float32)
        x[0] += np.float32(1e-3)
        z = float(x[0]) - float(np.float32(2.048))
        fitness, _ = evaluate(Rastrigin(dimensions=2), x)
        assert fitness == pytest.approx(-(z**2) - 20 * math.sin(PI * z) ** 2, rel=1e-5, abs=0)

    def test_clipping(self):
        limit = float(np.float32(5.12))  # just within 5.12
        _, descriptor = evaluate(Sphere(dimensions=6), [limit, -limit, 10.24, -10.24, 512.0, -5.0])
        np.testing.assert_allclose(descriptor, [0.5, -0.5 + 0.01 - 5.0], rtol=1e-6)
        _, beyond = evaluate(Sphere(dimensions=2), [5.1201, -5.1201])
        np.testing.assert_allclose(beyond, [5.12 / 5.1201, -5.12 / 5.1201], rtol=1e-6)

    def test_odd_dimensions_give_the_second_half_one_more(self):
        task = Sphere(dimensions=5)
        _, descriptor = evaluate(task, [1, 2, 3, 4, 5])
        np.testing.assert_array_equal(descriptor, [3, 12])
        assert task.descriptor_bounds[1] == pytest.approx((10.24, 15.36))
        assert task.descriptor_bounds[0] == pytest.approx((-10.24, -15.36))

    def test_bounds_of_even_dimensions(self):
        assert Rastrigin(dimensions=20).descriptor_bounds[1] == pytest.approx((51.2, 51.2))

    def test_offsets(self):
        corner = np.full(20, -5.12)
        assert Sphere().qd_offset == pytest.approx(-1027.60448)  # 20 x 7.168^2
        assert evaluate(Sphere(), corner)[0] == pytest.approx(Sphere().qd_offset)
        assert Rastrigin().qd_offset == pytest.approx(-1427.60448)

    def test_rastrigin_best_local_optimum_misses_the_goal(self):
        z = np.linspace(0.9, 1.1, 2001)
        values = [function_values("rastrigin", np.array([2.048 + point])) for point in z]
        fitness, _ = evaluate(Rastrigin(dimensions=2), [2.048, 2.048 + z[int(np.argmin(values))]])
        assert fitness == pytest.approx(-0.99496, abs=1e-4)
        assert fitness < Rastrigin.goal_fitness


class TestAgainstNumpy:
    @pytest.mark.parametrize("dimensions", [2, 5, 20, 100])
    @pytest.mark.parametrize("task_class", [Sphere, Rastrigin])
    def test_functions(self, task_class, dimensions):
        task = task_class(dimensions=dimensions)
        genotypes = np.random.default_rng(1).normal(0, 4, (50, dimensions)).astype(np.float32)
        assert (np.abs(genotypes) > 5.12).any()
        evaluation = task.evaluate_batch(KEY, jnp.asarray(genotypes))
        expected = [-function_values(task.name, genotype) for genotype in genotypes]
        np.testing.assert_allclose(evaluation.fitness, expected, rtol=2e-5)
        descriptors = [projection(genotype) for genotype in genotypes]
        np.testing.assert_allclose(evaluation.descriptor, descriptors, atol=2e-5 * dimensions)

    @pytest.mark.parametrize("joints", [2, 10, 100])
    def test_arm(self, joints):
        angles = np.random.default_rng(2).normal(0, 2, (50, joints)).astype(np.float32)
        evaluation = PlanarArm(joints=joints).evaluate_batch(KEY, jnp.asarray(angles))
        mean = angles.astype(np.float64).mean(axis=1, keepdims=True)
        np.testing.assert_allclose(evaluation.fitness, -np.mean((angles - mean) ** 2, axis=1), rtol=1e-5)
        np.testing.assert_allclose(evaluation.descriptor, [arm_tip(pose) for pose in angles], atol=1e-5)


class TestArmByHand:
    @pytest.mark.parametrize(
        ("angles", "tip", "variance"),
        [
            ([0, 0, 0, 0], (1, 0), 0),  # stretched out
            ([PI / 2, 0, 0, 0], (0, 1), 3 * PI**2 / 64),  # stretched upwards
            ([0, PI, 0, PI], (0.0, 0.0), PI**2 / 4),  # links to and fro: +, -, -, +
            ([0, PI, PI, PI], (0, 0), 3 * PI**2 / 16),  # folded: +, -, +, -
            ([0, 0, PI / 2, 0], (0.5, 0.5), 3 * PI**2 / 64),  # right angle in the middle
            ([PI / 2] * 4, (0, 0), 0),  # a closed square
            ([-PI / 4, 0, 0, 0], (math.sqrt(0.5), -math.sqrt(0.5)), 3 * PI**2 / 256),
            ([2 * PI, 0, 0, 0], (1, 0), 3 * PI**2 / 4),  # a full turn: same pose, lower fitness
        ],
    )
    def test_poses(self, angles, tip, variance):
        fitness, descriptor = evaluate(PlanarArm(joints=4), angles)
        np.testing.assert_allclose(descriptor, tip, atol=1e-6)
        assert fitness == pytest.approx(-variance, abs=1e-5)

    def test_link_positions(self):
        points = PlanarArm(joints=4).link_positions(jnp.array([PI / 2, -PI / 2, -PI / 2, PI / 2]))
        expected = [(0, 0), (0, 0.25), (0.25, 0.25), (0.25, 0), (0.5, 0)]
        np.testing.assert_allclose(points, expected, atol=1e-6)

    def test_the_tip_is_the_last_link_position(self):
        task = PlanarArm(joints=10)
        angles = task.init(jax.random.key(3))
        points = np.asarray(task.link_positions(angles))
        assert points.shape == (11, 2)
        np.testing.assert_allclose(points[-1], evaluate(task, angles)[1], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(np.diff(points, axis=0), axis=1), 0.1, rtol=1e-5)

    def test_all_equal_angles_are_optimal(self):
        fitness, _ = evaluate(PlanarArm(joints=10), np.full(10, 0.7))
        assert fitness == pytest.approx(0, abs=1e-12)

    def test_offset_is_reached_half_at_either_end(self):
        fitness, _ = evaluate(PlanarArm(joints=4), [PI, -PI, PI, -PI])
        assert fitness == pytest.approx(PlanarArm.qd_offset)


@pytest.mark.parametrize("task", TASKS, ids=IDS)
class TestContract:
    def test_optimum_has_fitness_zero_and_meets_the_goal(self, task):
        fitness, _ = evaluate(task, optimum(task))
        assert fitness == 0
        assert fitness >= task.goal_fitness > task.qd_offset

    def test_nothing_near_the_optimum_is_better(self, task):
        noise = jax.random.normal(KEY, (200, task.num_params)) * jnp.logspace(-4, 1, 200)[:, None]
        assert (task.evaluate_batch(KEY, optimum(task) + noise).fitness <= 0).all()

    def test_shapes_and_names(self, task):
        evaluation = task.evaluate(KEY, task.init(KEY))
        assert evaluation.fitness.shape == ()
        assert evaluation.descriptor.shape == (2,)
        assert evaluation.fitness.dtype == evaluation.descriptor.dtype == jnp.float32
        assert task.num_descriptors == len(task.descriptor_names) == 2

    def test_init_fills_its_range_and_stays_above_the_offset(self, task):
        genotypes = jax.vmap(task.init)(jax.random.split(KEY, 2000))
        limit = PI if isinstance(task, PlanarArm) else 5.12
        assert genotypes.dtype == jnp.float32
        assert 0.99 * limit < jnp.abs(genotypes).max() <= limit
        np.testing.assert_allclose(genotypes.mean(axis=0), 0, atol=0.1 * limit)
        np.testing.assert_allclose(genotypes.std(axis=0), limit / math.sqrt(3), rtol=0.05)
        assert (task.evaluate_batch(KEY, genotypes).fitness >= task.qd_offset).all()

    def test_jit_vmap_and_single_calls_agree(self, task):
        genotypes = 2 * jax.vmap(task.init)(jax.random.split(KEY, 8))
        single = [task.evaluate(KEY, genotype) for genotype in genotypes]
        batch = task.evaluate_batch(KEY, genotypes)
        jitted = jax.jit(task.evaluate_batch)(KEY, genotypes)
        for field in ("fitness", "descriptor"):
            expected = np.stack([getattr(evaluation, field) for evaluation in single])
            np.testing.assert_allclose(getattr(batch, field), expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(getattr(jitted, field), expected, rtol=1e-5, atol=1e-5)

    def test_the_key_changes_nothing(self, task):
        genotype = task.init(KEY)
        one, other = (task.evaluate(jax.random.key(seed), genotype) for seed in (1, 2))
        assert one.fitness == other.fitness
        np.testing.assert_array_equal(one.descriptor, other.descriptor)

    def test_gradients_are_finite(self, task):
        for genotype in (jnp.zeros(task.num_params), optimum(task), 2 * task.init(KEY)):
            jacobian = jax.jacobian(lambda g: task.evaluate(KEY, g))(genotype)
            assert jnp.isfinite(jacobian.fitness).all()
            assert jnp.isfinite(jacobian.descriptor).all()

    def test_nan_and_overflow_are_invalid(self, task):
        good = task.init(KEY)
        bad = jnp.stack([good.at[0].set(jnp.nan), good.at[0].set(jnp.inf), good.at[0].set(1e30), good])
        assert task.evaluate_batch(KEY, bad).valid.tolist() == [False, False, False, True]

    def test_wrong_shape(self, task):
        with pytest.raises(JedaxError, match=rf"genotype: expected shape \({task.num_params},\), got \(3, "):
            task.evaluate(KEY, jnp.zeros((3, task.num_params)))
        with pytest.raises(JedaxError, match="genotype"):
            task.evaluate(KEY, jnp.zeros(task.num_params + 1))

    def test_immutable_and_picklable(self, task):
        with pytest.raises(FrozenInstanceError):
            task.config = task.config.replace()
        assert pickle.loads(pickle.dumps(task)) == task


class TestEquality:
    def test_equal_settings_are_equal_objects(self):
        assert Sphere(dimensions=4) == Sphere(FunctionConfig(dimensions=4))
        assert hash(Sphere(dimensions=4)) == hash(Sphere(FunctionConfig(dimensions=4)))
        assert Sphere() == Sphere(dimensions=20)
        assert PlanarArm() == PlanarArm(joints=10) == PlanarArm(ArmConfig())

    def test_other_settings_or_functions_differ(self):
        assert Sphere(dimensions=4) != Sphere(dimensions=5)
        assert Sphere(dimensions=4) != Rastrigin(dimensions=4)
        assert PlanarArm(joints=4) != PlanarArm(joints=5)

    def test_equal_tasks_share_one_trace(self):
        traces = []

        def step(task, key, genotype):
            traces.append(task)
            return task.evaluate(key, genotype).fitness

        jitted = jax.jit(step, static_argnums=0)
        genotype = jnp.ones(4)
        first = jitted(Sphere(dimensions=4), KEY, genotype)
        assert jitted(Sphere(FunctionConfig(dimensions=4)), KEY, genotype) == first
        assert len(traces) == 1
        assert jitted(Rastrigin(dimensions=4), KEY, genotype) != first
        assert traces == [Sphere(dimensions=4), Rastrigin(dimensions=4)]


class TestConstructor:
    def test_config_and_changed_settings(self):
        assert Sphere(FunctionConfig(dimensions=4), dimensions=6).num_params == 6

    def test_value_out_of_range(self):
        with pytest.raises(JedaxError, match="dimensions: expected greater than or equal to 2, got 1"):
            Sphere(dimensions=1)
        with pytest.raises(JedaxError, match="joints"):
            PlanarArm(joints=2.5)

    def test_unknown_setting(self):
        with pytest.raises(JedaxError, match=r"unknown name 'dimension'; did you mean 'dimensions'\?"):
            Rastrigin(dimension=4)

    @pytest.mark.parametrize("config", [20, ArmConfig()])
    def test_not_its_config(self, config):
        with pytest.raises(JedaxError, match=r"config of Sphere: expected a FunctionConfig.*dimensions="):
            Sphere(config)


@settings(max_examples=50, deadline=None)
@given(genotypes_of(st.sampled_from([2, 3, 8]), 100.0))
def test_bounds_contain_every_projection(genotype):
    task = Sphere(dimensions=len(genotype))
    _, descriptor = evaluate(task, genotype)
    lows, highs = np.asarray(task.descriptor_bounds)
    assert (descriptor >= lows * (1 + 1e-6)).all()
    assert (descriptor <= highs * (1 + 1e-6)).all()


@settings(max_examples=50, deadline=None)
@given(genotypes_of(st.sampled_from([2, 3, 8]), 100.0))
def test_the_tip_stays_in_the_unit_disc(angles):
    fitness, descriptor = evaluate(PlanarArm(joints=len(angles)), angles)
    assert np.linalg.norm(descriptor) <= 1 + 1e-6
    assert fitness <= 0


@settings(max_examples=50, deadline=None)
@given(genotypes_of(st.sampled_from([2, 3, 8]), float(np.float32(5.12))))
def test_offsets_bound_the_box(genotype):
    for task in (Sphere(dimensions=len(genotype)), Rastrigin(dimensions=len(genotype))):
        assert task.qd_offset * (1 + 1e-6) <= evaluate(task, genotype)[0] <= 0
