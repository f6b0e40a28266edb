"""Robots in native code: against Brax from the same states, every way to evaluate them, and what is left to Brax.

Known differences: the angles of the humanoid's joints with two or three hinges near 0. Brax takes them from an
arccosine near 1, whose rounding is up to 6e-4; native code takes an arctangent. HalfCheetah magnifies any rounding from
step to step.
"""

import copy
import dataclasses
import functools
from types import SimpleNamespace

import brax.contact
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax.base import Transform
from brax.io import mjcf
from scipy.spatial.transform import Rotation
from tests.conftest import assert_same_bits
from tests.tasks.control.beside_brax import COMPARED, QUICK, ROBOTS, ROUNDING, Robot, errors

from jedax.errors import JedaxError
from jedax.native import control, core
from jedax.tasks import make
from jedax.tasks.control import native_model
from jedax.tasks.control.task import AntMaze, Locomotion, _find_native

pytestmark = pytest.mark.skipif(not control.KERNEL.available, reason=str(control.KERNEL.status))
KEY = jax.random.key(0)
STATES = 256
STATE_QUANTITIES = tuple(name for name in COMPARED if name != "reward")


@functools.cache
def robot_of(name):
    return Robot(name)


@functools.cache
def scene_of(name):
    """States that random and trained policies meet, and the policies."""
    robot = robot_of(name)
    policies = np.concatenate([robot.random_policies(STATES // 4), robot.trained_policies(STATES // 4)])
    rows, policy = robot.states(policies, STATES, steps=250)
    return SimpleNamespace(robot=robot, policies=policies, rows=rows, genotypes=policies[policy])


@pytest.fixture(scope="module", params=ROBOTS)
def scene(request):
    yield scene_of(request.param)
    jax.clear_caches()


def limits(robot):
    """The largest difference that rounding explains, in units of a quantity's scale."""
    found = dict.fromkeys(COMPARED, 1e-4) | {"velocities": 3e-4}
    if robot.name == "humanoid":
        found |= {"q": 1e-3, "observation": 1e-3}
    if robot.name == "ant-maze":  # at 40 m, positions round to 4e-6 m, which the joints turn into speed
        found |= {"velocities": 4e-4, "qd": 4e-4, "observation": 4e-4}
    return found


def beyond(found, robot, names=COMPARED):
    """Whether any quantity of a state differs by more than rounding."""
    return np.any([found[name] > limits(robot)[name] for name in names], axis=0)


class TestAgainstBrax:
    def compare(self, scene, substeps, names):
        robot, rows, genotypes = scene.robot, scene.rows, scene.genotypes
        expected = robot.brax(rows, genotypes, 1, substeps)
        found = jax.tree.map(lambda leaf: leaf[:, 0], robot.native(rows, genotypes, 1, substeps)[0])
        off = beyond(errors(found, expected), robot, names)
        # Where rounding decides whether a contact begins or ends, Brax departs from itself as well.
        others = (robot.brax(robot.perturbed(rows, ROUNDING, seed), genotypes, 1, substeps) for seed in range(8))
        shaky = np.any([beyond(errors(other, expected), robot, names) for other in others], axis=0)
        assert off.mean() <= 0.02
        assert (off & ~shaky).sum() <= 2
        return found, expected, off

    def test_policies_differ(self, scene):
        random, trained = np.split(np.asarray(scene.robot.evaluate(scene.policies).fitness), 2)
        assert np.median(trained) > np.quantile(random, 0.75)

    def test_a_substep(self, scene):
        self.compare(scene, 1, STATE_QUANTITIES)

    def test_a_control_step(self, scene):
        found, expected, off = self.compare(scene, None, COMPARED)
        np.testing.assert_array_equal(found.done[~off], expected.done[~off])
        assert expected.done.any() == (scene.robot.name != "halfcheetah")

    def test_ten_control_steps(self, scene):
        robot, rows, genotypes = scene.robot, scene.rows, scene.genotypes
        found, length = robot.native(rows, genotypes, 10)
        lives = length == 10
        assert lives.mean() > 0.5
        chosen = functools.partial(jax.tree.map, lambda leaf: leaf[lives])
        expected = chosen(robot.brax(rows, genotypes, 10))
        ours = errors(chosen(jax.tree.map(lambda leaf: leaf[:, -1], found)), expected)
        theirs = errors(chosen(robot.brax(robot.perturbed(rows, ROUNDING), genotypes, 10)), expected)
        for name in COMPARED:
            for share in (0.5, 0.9):
                own = np.quantile(theirs[name], share)  # Brax against Brax from states that differ by rounding
                assert np.quantile(ours[name], share) <= max(1e-4, 4 * own), (name, share)
            if name not in ("qd", "observation"):
                assert np.median(ours[name]) <= 1e-2, name

    def test_evaluations(self, scene):
        """Fitness, descriptor and length of short episodes are sums over Brax's steps."""
        robot, steps = scene.robot, 6
        rows = np.repeat(robot.start, STATES, 0)
        episode = dataclasses.replace(robot.episode, steps=steps)
        if robot.name != "ant-maze":  # both descriptors at once
            averaged = native_model.speed_and_height(robot.environment)
            episode = dataclasses.replace(episode, averaged=averaged)
        found = jax.jit(lambda rows, genotypes: control.evaluate(robot.model, episode, genotypes, rows))(
            rows, scene.genotypes
        )
        states = [robot.brax(rows, scene.genotypes, step) for step in range(1, steps + 1)]
        assert not any(state.done.any() for state in states)
        assert (found.length == steps).all()
        fitness = np.sum([state.reward for state in states], axis=0)
        np.testing.assert_allclose(found.fitness, fitness, rtol=1e-3, atol=0.02)
        if robot.name == "ant-maze":
            expected = states[-1].positions[:, 0, :2]
        else:
            touches = [robot.task.touches(state.positions, state.rotations) for state in states]
            values = [np.stack([state.qd[:, 0], state.positions[:, 0, 2]], axis=1) for state in states]
            expected = np.concatenate([np.mean(touches, axis=0), np.mean(values, axis=0)], axis=1)
        alike = np.abs(np.asarray(found.descriptor) - expected).max(axis=1) < 1e-3
        assert alike.mean() >= 0.95

    def test_speed_and_height_lie_within_their_bounds(self, scene):
        robot = scene.robot
        if robot.name == "ant-maze":
            pytest.skip("its descriptor is a place")
        task = make(robot.name, hidden=(16,), physics="native", descriptor="speed-height")
        found = jax.jit(task.evaluate_batch)(KEY, scene.policies).descriptor
        lows, highs = task.descriptor_bounds
        assert ((found > np.array(lows)) & (found < np.array(highs))).all()

    def test_pairs_of_shapes(self, scene):
        robot = scene.robot
        system = getattr(robot.environment, "maze", robot.environment.sys)
        x = Transform(pos=scene.rows[0, : 13 * robot.links].reshape(-1, 13)[:, :3],
                      rot=scene.rows[0, : 13 * robot.links].reshape(-1, 13)[:, 3:7])  # fmt: skip
        contact = jax.jit(functools.partial(brax.contact.get, system))(x)
        expected = {
            (int(a), int(b)): (float(friction), float(bounce))
            for a, b, friction, bounce in zip(*contact.geom.T, contact.friction[:, 0], contact.elasticity, strict=True)
        }
        # Native code numbers only the shapes that may touch others.
        used = sorted({shape for pair in expected for shape in pair})
        model = robot.model
        found = {
            (used[a], used[b]): (friction, bounce)
            for (a, b), friction, bounce in zip(
                model["pair_shapes"], model["pair_friction"], model["pair_bounce"], strict=True
            )
        }
        assert found.keys() == expected.keys()
        assert len(model["pair_shapes"]) == len(expected)
        for pair, numbers in expected.items():
            np.testing.assert_allclose(found[pair], numbers, rtol=1e-6)

    def test_angles(self, scene):
        """Native angles are those of float64; for joints with several hinges they are nearer than Brax's."""
        robot, model = scene.robot, scene.robot.model
        expected = robot.brax(scene.rows, scene.genotypes, 1, 1)
        found = jax.tree.map(lambda leaf: leaf[:, 0], robot.native(scene.rows, scene.genotypes, 1, 1)[0])
        q, dof, worst = 0, 0, {"native": [], "brax": []}
        for link, count in enumerate(model["freedom"].tolist()):
            if count and model["turns"][dof : dof + count].all():
                for name, after in (("native", found), ("brax", expected)):
                    turns = [Rotation.from_quat(np.roll(np.float64(after.rotations[:, one]), -1, axis=-1)).as_matrix()
                             for one in (model["parents"][link], link)]  # fmt: skip
                    off = after.q[:, q : q + count] - angles_of(model, link, *turns)[:, :count]
                    worst[name].append(np.abs(off).max())
            q, dof = q + (count or 7), dof + (count or 6)
        assert max(worst["native"]) < 5e-6
        assert (max(worst["brax"]) > 1e-4) == (robot.name == "humanoid")


def angles_of(model, link, parent_turn, turn):
    """Return the intrinsic angles x-y'-z'' from the axes of the parent to those of the child."""
    p = np.einsum("bij,kj->kbi", parent_turn, model["parent_axes"][link])
    c = np.einsum("bij,kj->kbi", turn, model["axes"][link])

    def dot(a, b):
        return (a * b).sum(axis=-1)

    nodes = np.cross(c[2], p[0])
    psi = np.arctan2(dot(nodes, np.cross(p[0], p[1])), dot(nodes, p[1]))
    theta = np.arcsin(np.clip(dot(p[0], c[2]), -1, 1))
    phi = np.arctan2(dot(nodes, np.cross(c[1], c[2])) * model["parity"][link], dot(nodes, c[1]))
    return np.stack([psi, theta, phi], axis=1)


def all_ways(task):
    """Return one program that evaluates a batch in each of three ways, and once more for a key of two."""

    def run(keys, genotypes):
        return (
            task.evaluate_with_transitions(keys[0], genotypes), task.evaluate_batch(keys[0], genotypes),
            task.rollout_batch(keys[0], genotypes), jax.vmap(task.evaluate_batch, (0, None))(keys, genotypes)
        )  # fmt: skip

    return jax.jit(run, compiler_options=QUICK)


class TestWaysToEvaluate:
    @pytest.mark.parametrize(("name", "resets"), [("hopper", True), ("hopper", False), ("ant-maze", False)])
    def test_they_agree_bit_for_bit(self, name, resets):
        task = make(name, steps=60, hidden=(7, 5), physics="native", random_resets=resets)
        genotypes = 3 * jax.vmap(task.init)(jax.random.split(KEY, 35))
        keys = jnp.stack([KEY, jax.random.key(1)])
        steps, batch, rollout, many = all_ways(task)(keys, genotypes)
        transitions = steps.transitions
        assert_same_bits((steps.fitness, steps.descriptor), (batch.fitness, batch.descriptor))
        np.testing.assert_array_equal(transitions.valid.sum(axis=1), rollout.length)
        for one, other in (("rewards", "rewards"), ("actions", "actions"), ("observations", "observations"),
                           ("next_observations", "next_observations"), ("terminal", "done")):  # fmt: skip
            assert_same_bits(getattr(transitions, one), getattr(rollout, other))
        rewards = np.asarray(rollout.rewards)
        fitness = np.float32([functools.reduce(np.add, row[:n], np.float32(0))
                              for row, n in zip(rewards, rollout.length, strict=True)])  # fmt: skip
        assert_same_bits(batch.fitness, fitness)
        if not resets:
            one = jax.jit(task.evaluate)(KEY, genotypes[4])
            assert_same_bits((one.fitness, one.descriptor), (batch.fitness[4], batch.descriptor[4]))
            assert_same_bits(task.replay(genotypes[4]), jax.tree.map(lambda leaf: leaf[4], rollout))
            assert np.ptp(rollout.observations[:, 0], axis=0).max() == 0
        if resets:  # Brax's reset rounds otherwise in a batch of batches
            assert np.isclose(many.fitness[0], batch.fitness, rtol=0.01).mean() > 0.8
            assert (np.asarray(many.fitness[1]) != np.asarray(batch.fitness)).all()
            assert np.ptp(rollout.observations[:, 0], axis=0).max() > 1e-3
        else:
            assert_same_bits((many.fitness[1], many.descriptor[0]), (batch.fitness, batch.descriptor))
            stacked = jax.jit(jax.vmap(task.evaluate_batch))(keys, genotypes[:34].reshape(2, 17, -1))
            assert_same_bits(stacked.descriptor.reshape(34, -1), batch.descriptor[:34])

    @pytest.mark.parametrize("descriptor", ["feet-contact", "speed-height"])
    def test_as_the_task_by_brax(self, descriptor):
        tasks = [make("hopper", steps=5, hidden=(7,), physics=physics, descriptor=descriptor)
                 for physics in ("native", "brax")]  # fmt: skip
        genotypes = 3 * jax.vmap(tasks[0].init)(jax.random.split(KEY, 8))
        found, expected = (
            jax.jit(task.evaluate_with_transitions, compiler_options=QUICK)(KEY, genotypes) for task in tasks
        )
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)

    def test_of_one_size_or_another(self):
        task = make("hopper", steps=30, hidden=(4,), physics="native")
        genotypes = 3 * jax.vmap(task.init)(jax.random.split(KEY, 35))
        whole = jax.jit(task.rollout_batch)(KEY, genotypes)
        part = jax.jit(task.rollout_batch)(KEY, genotypes[30:])
        assert_same_bits(part, jax.tree.map(lambda leaf: leaf[30:], whole))


class TestEnds:
    def test_a_fall_is_terminal_and_nothing_counts_after_it(self):
        task = make("hopper", steps=120, hidden=(8,), physics="native")
        genotypes = 4 * jax.vmap(task.init)(jax.random.split(KEY, 64))
        steps, _, rollout, _ = all_ways(task)(jax.random.split(KEY), genotypes)
        length, transitions = np.asarray(rollout.length), steps.transitions
        assert (length < 120).sum() > 5
        number = np.arange(120)
        np.testing.assert_array_equal(transitions.valid, number < length[:, None])
        np.testing.assert_array_equal(transitions.terminal, (number == length[:, None] - 1) & (length < 120)[:, None])
        # The hopper's rule: height above 0.7, the torso's angle within 0.2
        q = np.asarray(rollout.q)
        z = np.asarray(rollout.positions)[:, :, 0, 2]
        fallen = (z <= 0.7) | (np.abs(q[:, :, 2]) >= 0.2)
        np.testing.assert_array_equal(fallen & (number < length[:, None]), transitions.terminal)
        after = number >= length[:, None]
        for rows in (transitions.rewards, transitions.actions, rollout.q, rollout.positions, rollout.rotations):
            assert not np.asarray(rows)[after].any()
        touching = np.asarray(task.touches(rollout.positions, rollout.rotations))[..., 0] & ~after
        np.testing.assert_allclose(steps.descriptor[:, 0], touching.sum(axis=1) / length, rtol=1e-6)

    def test_speed_and_height_are_means_of_the_steps_that_count(self):
        settings = {"steps": 120, "hidden": (8,), "physics": "native"}
        feet, task = make("hopper", **settings), make("hopper", descriptor="speed-height", **settings)
        genotypes = 4 * jax.vmap(task.init)(jax.random.split(KEY, 64))
        steps, batch, rollout, _ = all_ways(task)(jax.random.split(KEY), genotypes)
        length = np.asarray(rollout.length)
        assert (length < 120).sum() > 5
        # A hopper sees five coordinates, then velocities up to 10 m/s.
        speeds = np.asarray(steps.transitions.next_observations, np.float64)[..., 5]
        heights = np.asarray(rollout.positions, np.float64)[:, :, 0, 2]
        counts = np.arange(120) < length[:, None]
        assert np.abs(speeds[counts]).max() < 10
        expected = [np.where(counts, values, 0).sum(axis=1) / length for values in (speeds, heights)]
        np.testing.assert_allclose(batch.descriptor, np.stack(expected, axis=1), rtol=1e-5, atol=1e-5)
        assert_same_bits(steps.descriptor, batch.descriptor)
        assert_same_bits(batch.fitness, jax.jit(feet.evaluate_batch)(KEY, genotypes).fitness)

    def test_ants_that_die_early(self):
        ways = {rule: make("ant-maze", steps=200, hidden=(8,), physics="native", early_death=rule)
                for rule in ("charge", "paper")}  # fmt: skip
        genotypes = 5 * jax.vmap(ways["paper"].init)(jax.random.split(KEY, 64))
        charged, paper = (jax.jit(task.evaluate_with_transitions)(KEY, genotypes) for task in ways.values())
        length = np.asarray(paper.transitions.valid.sum(axis=1))
        dead = np.asarray(paper.transitions.terminal.any(axis=1))
        assert 3 < dead.sum() < 61
        assert_same_bits(charged.descriptor, paper.descriptor)
        rewards = np.asarray(paper.transitions.rewards)
        last = rewards[np.arange(64), length - 1]
        np.testing.assert_allclose(charged.fitness, paper.fitness + last * np.where(dead, 200 - length, 0), rtol=1e-5)
        np.testing.assert_allclose(paper.fitness, rewards.sum(axis=1), rtol=1e-5)
        np.testing.assert_allclose(last, -np.hypot(*(np.asarray(paper.descriptor) - [35, 0]).T), rtol=1e-5)

    def test_dying_at_the_last_step_costs_nothing_more(self):
        task = functools.partial(make, "ant-maze", hidden=(8,), physics="native")
        genotypes = 5 * jax.vmap(task().init)(jax.random.split(KEY, 64))
        length = np.asarray(jax.jit(task(steps=200).rollout_batch)(KEY, genotypes).length)
        steps = int(length.min())
        assert steps < 200
        one, other = (task(steps=steps, early_death=rule) for rule in ("charge", "paper"))
        found = jax.jit(one.evaluate_with_transitions)(KEY, genotypes)
        assert found.transitions.terminal[:, -1].any()
        assert_same_bits(found.fitness, jax.jit(other.evaluate_batch)(KEY, genotypes).fitness)


CYLINDER = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body><freejoint/>
<geom type="cylinder" size="0.1 0.1" mass="1"/></body></worldbody></mujoco>"""
ELLIPSOID = CYLINDER.replace('"cylinder" size="0.1', '"ellipsoid" size="0.1 0.1')
BOX = CYLINDER.replace('"cylinder" size="0.1', '"box" size="0.1 0.1')


def with_system(system):
    """Return a hopper whose environment has another system."""

    class Changed(Locomotion):
        @property
        def environment(self):
            changed = copy.copy(super().environment)
            changed.sys = system(changed.sys)
            return changed

    return Changed


def biased(system):
    bias = system.actuator.bias_q.at[0].set(-3.0)
    return system.replace(actuator=system.actuator.replace(bias_q=bias))


REFUSED = {
    "a fluid": lambda system: system.replace(enable_fluid=True),
    "a motor whose force depends on position or speed": biased,
    "contacts of a plane and a cylinder": lambda system: mjcf.loads(CYLINDER),
    "contacts of a plane and a ellipsoid": lambda system: mjcf.loads(ELLIPSOID),
    "contacts of a plane and a box": lambda system: mjcf.loads(BOX),
}


class TestWhatIsLeftToBrax:
    def check(self, reason, kind=Locomotion, **settings):
        settings = {"name": "hopper", "hidden": (2,)} | settings
        auto, native = kind(**settings), kind(**settings, physics="native")
        assert auto.physics == f"brax: {reason}"
        message = rf"^physics: expected a task that native code simulates, got .*{reason}.*; choose --physics brax"
        for method in ("evaluate_batch", "evaluate_with_transitions", "rollout_batch"):
            with pytest.raises(JedaxError, match=message):
                getattr(native, method)(KEY, jnp.zeros((2, native.num_params)))
        with pytest.raises(JedaxError, match=message):
            native.evaluate(KEY, jnp.zeros(native.num_params))
        return auto

    @pytest.mark.parametrize("reason", REFUSED)
    def test_systems(self, reason):
        self.check(reason, with_system(REFUSED[reason]))

    def test_everything_at_once(self):
        system = biased(make("hopper").environment.sys).replace(enable_fluid=True)
        with pytest.raises(control.Unsupported, match=r"^a fluid, a motor whose force depends on position or speed$"):
            control.model(system, 4)

    @pytest.mark.parametrize("backend", ["generalized", "positional", "mjx"])
    def test_engines(self, backend):
        self.check(f"the engine {backend}", backend=backend)

    def test_by_setting(self):
        assert make("hopper", physics="brax").physics == "brax: the setting physics"
        assert make("hopper").physics == make("hopper", physics="native").physics == "native"

    def test_switched_off(self, monkeypatch):
        def forget():
            vars(control.KERNEL).pop("status", None)
            _find_native.cache_clear()

        monkeypatch.setenv(core.OFF, "control")
        forget()
        try:
            task = self.check("JEDAX_NATIVE_OFF names control")
            genotypes = jnp.zeros((2, task.num_params))
            assert "jedax_control" not in str(jax.make_jaxpr(task.evaluate_batch)(KEY, genotypes))
        finally:
            monkeypatch.undo()
            forget()
        assert "jedax_control" in str(jax.make_jaxpr(task.evaluate_batch)(KEY, genotypes))

    def test_another_version_of_brax(self):
        environment = copy.copy(AntMaze().environment)
        del environment._healthy_z_range
        with pytest.raises(control.Unsupported, match=r"another version of Brax .*_healthy_z_range"):
            native_model.episode("ant-maze", environment)
