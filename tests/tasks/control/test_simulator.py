"""Brax's robots as jedax sees them: against Brax's own environments, MuJoCo and geometry done anew."""

import copy
import functools
import warnings

import brax.contact
import brax.envs
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from brax.base import Transform
from scipy.spatial.transform import Rotation
from tests.conftest import USUAL_EMITTERS

from jedax.tasks import make
from jedax.tasks.control import simulator
from jedax.tasks.control.task import ROBOTS, AntMaze, Locomotion

KEY = jax.random.key(0)
SEED = 3
BACKENDS = (
    "spring", "mjx",
    pytest.param("generalized", marks=pytest.mark.nightly), pytest.param("positional", marks=pytest.mark.nightly),
)  # fmt: skip


@pytest.fixture(scope="module")
def cheetah():
    return Locomotion(name="halfcheetah", steps=12, hidden=(8,), start_seed=SEED, physics="brax")


@pytest.fixture(scope="module")
def genotypes(cheetah):
    return 3 * jax.vmap(cheetah.init)(jax.random.split(KEY, 3))


@pytest.fixture(scope="module")
def evaluation(cheetah, genotypes):
    evaluate = jax.jit(cheetah.evaluate_with_transitions, compiler_options=USUAL_EMITTERS)
    return jax.tree.map(np.asarray, evaluate(KEY, genotypes))


class TestAgainstBrax:
    def test_step_by_step(self, cheetah, genotypes, evaluation):
        env = brax.envs.get_environment("halfcheetah", backend="spring")
        reset, step = (jax.jit(part, compiler_options=USUAL_EMITTERS) for part in (env.reset, env.step))
        steps = evaluation.transitions
        for number in range(2):
            state = reset(jax.random.key(SEED))
            total = 0.0
            for i in range(12):
                np.testing.assert_allclose(steps.observations[number, i], state.obs, atol=2e-3)
                action = cheetah.act(genotypes[number], state.obs)
                np.testing.assert_allclose(steps.actions[number, i], action, atol=2e-3)
                state = step(state, jnp.asarray(steps.actions[number, i]))  # which rounding would part
                np.testing.assert_allclose(steps.rewards[number, i], state.reward, atol=5e-3)
                total += float(state.reward)
            assert evaluation.fitness[number] == pytest.approx(total, abs=2e-2)

    def test_a_cheetah_is_never_done(self, evaluation):
        assert evaluation.transitions.valid.all()
        assert not evaluation.transitions.terminal.any()

    def test_evaluate_batch_is_the_same(self, cheetah, genotypes, evaluation):
        plain = jax.jit(cheetah.evaluate_batch, compiler_options=USUAL_EMITTERS)(KEY, genotypes)
        np.testing.assert_allclose(plain.fitness, evaluation.fitness, atol=2e-2)
        np.testing.assert_allclose(plain.descriptor, evaluation.descriptor, atol=0.1)

    def test_policies_differ(self, evaluation):
        assert np.ptp(evaluation.fitness) > 0.1

    @pytest.mark.parametrize("name", ROBOTS)
    def test_sizes(self, name):
        env, task = simulator.load(name, "spring"), make(name)
        state = jax.eval_shape(env.reset, KEY)
        assert (task.observation_size, task.action_size) == (*state.obs.shape, env.action_size)
        assert task.num_descriptors == len(task.descriptor_names) == len(ROBOTS[name].feet)
        task = make(name, descriptor="speed-height")
        assert task.num_descriptors == len(task.descriptor_names) == 2

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_every_backend_can_be_traced(self, backend):
        env = AntMaze(backend=backend).environment
        state = jax.eval_shape(env.reset, KEY)
        after = jax.eval_shape(env.step, state, jnp.zeros(8))
        shapes = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree) for tree in (state, after)]
        assert shapes[0] == shapes[1]
        assert state.obs.shape == (29,)


@pytest.fixture(scope="module")
def walkers():
    task = Locomotion(name="walker2d", steps=110, hidden=(8,))
    genotypes = 4 * jax.vmap(task.init)(jax.random.split(KEY, 8))
    return jax.tree.map(np.asarray, jax.jit(task.evaluate_with_transitions)(KEY, genotypes))


class TestFalling:
    """A walker of which some policies fall: the end is where its own observations say that it fell."""

    def test_the_first_fall_ends_the_episode(self, walkers):
        steps = walkers.transitions
        z, angle = steps.next_observations[..., 0], steps.next_observations[..., 1]
        fallen = ~((z > 0.8) & (z < 2) & (np.abs(angle) < 1))
        length = np.where(fallen.any(axis=1), fallen.argmax(axis=1) + 1, 110)
        assert len(set(length.tolist())) > 2  # they do fall, and not all at once
        np.testing.assert_array_equal(steps.valid, np.arange(110) < length[:, None])
        np.testing.assert_array_equal(steps.terminal.sum(axis=1), fallen.any(axis=1))
        earned = np.where(steps.valid, steps.rewards, 0).sum(axis=1, dtype=float)
        np.testing.assert_allclose(walkers.fitness, earned, rtol=1e-5)
        shares = walkers.descriptor * length[:, None]
        np.testing.assert_allclose(shares, shares.round(), atol=1e-3)
        assert 0 < walkers.descriptor.max() <= 1

    def test_rewards_are_speed_and_a_point_for_standing(self, walkers):
        steps = walkers.transitions
        speed = steps.rewards - 1 + 1e-3 * (steps.actions**2).sum(axis=-1)
        # Brax observes the velocity of the torso after the step; the reward has the mean over it.
        assert np.corrcoef(speed[steps.valid], steps.next_observations[..., 8][steps.valid])[0, 1] > 0.9


def random_links(number, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 0.3, (number, 3)), Rotation.random(number, random_state=seed).as_quat(scalar_first=True)


class TestFeet:
    @pytest.mark.parametrize("name", ROBOTS)
    def test_heights_against_geometry_and_brax(self, name):
        env = simulator.load(name, "spring")
        feet = simulator.feet_of(name, "spring", ROBOTS[name].feet)
        model = env.sys.mj_model
        contacts = jax.jit(lambda pos, rot: brax.contact.get(env.sys, Transform(pos, rot)))
        for seed in range(3):
            positions, rotations = random_links(env.sys.num_links(), seed)
            heights = np.asarray(feet.heights(jnp.float32(positions), jnp.float32(rotations)))
            found = contacts(jnp.float32(positions), jnp.float32(rotations))
            for foot, height in zip(ROBOTS[name].feet, heights, strict=True):
                geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot)
                link = model.geom_bodyid[geom] - 1
                own = Rotation.from_quat(model.geom_quat[geom], scalar_first=True)
                turned = Rotation.from_quat(rotations[link], scalar_first=True)
                is_capsule = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE
                half = model.geom_size[geom][1] if is_capsule else 0
                ends = [turned.apply(model.geom_pos[geom] + own.apply([0, 0, s * half])) for s in (-1, 1)]
                lowest = min(end[2] for end in ends) + positions[link, 2] - model.geom_size[geom][0]
                assert height == pytest.approx(lowest, abs=1e-5)
                with_floor = np.asarray(found.dist)[np.asarray(found.geom2) == geom]
                assert height == pytest.approx(with_floor.min(), abs=1e-5)

    def test_margin(self):
        links = np.full((3, 7, 3), 5.0)
        links[:, 3, 2] = -0.04 + np.array([0.0, 0.004, 0.006])
        links[:, 6, 2] = [-0.1, -0.035, 0.1]
        upright = np.broadcast_to([1.0, 0, 0, 0], (3, 7, 4))
        task = Locomotion(name="walker2d", contact_margin=0.005)
        touches = task.touches(jnp.float32(links), jnp.float32(upright))
        np.testing.assert_array_equal(touches, [[True, True], [True, True], [False, False]])


@pytest.fixture(scope="module")
def pushed():
    """Ants thrown at 8 m/s in x from x = 18.3: in front of a wall, and where there is none."""
    env = AntMaze().environment

    def path(y):
        start = env.sys.init_q.at[0].set(18.3).at[1].set(y)
        physics = env.pipeline_init(start, jnp.zeros(env.sys.qd_size()).at[0].set(8.0))
        state = env._look(physics)

        def step(state, _):
            after = env.step(state, jnp.zeros(8))
            return after, (after.pipeline_state.x.pos[0], after.obs, after.reward, after.done)

        return jax.lax.scan(step, state, length=50)[1]

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(path))(jnp.float32([3.0, 25.0])))


class TestWalls:
    # x1, y1, x2, y2 of the centre line's ends with the caps; from the task's description, not from the code.
    INNER = ((20, -4.5, 20, 19.5), (10.5, 7.5, 19.5, 7.5), (10, 20.25, 10, 39.75))
    SIDES = ((-5.5, -5, 40.5, -5), (-5.5, 40, 40.5, 40), (-5, -4.5, -5, 39.5), (40, -4.5, 40, 39.5))

    def test_positions_in_the_model(self):
        model = AntMaze().environment.sys.mj_model
        found = []
        for geom in range(model.ngeom):
            if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_CAPSULE or model.geom_bodyid[geom] != 0:
                continue
            radius, half = model.geom_size[geom][:2]
            along = Rotation.from_quat(model.geom_quat[geom], scalar_first=True).apply([0, 0, half + radius])
            ends = sorted([model.geom_pos[geom] + along, model.geom_pos[geom] - along], key=sum)
            assert radius == 0.5
            assert [end[2] for end in ends] == pytest.approx([0.5, 0.5])
            found.append((*ends[0][:2], *ends[1][:2]))
        np.testing.assert_allclose(sorted(found), sorted(self.INNER + self.SIDES), atol=1e-6)

    def test_torso_and_lower_legs_collide_with_them_and_feet_with_the_floor(self):
        model = AntMaze().environment.sys.mj_model

        def collide(one, two):
            return bool(model.geom_contype[one] & model.geom_conaffinity[two]
                        | model.geom_contype[two] & model.geom_conaffinity[one])  # fmt: skip

        names = {mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, geom): geom for geom in range(model.ngeom)}
        walls = [geom for name, geom in names.items() if name.startswith("wall")]
        with_walls = {name for name, geom in names.items() if any(collide(geom, wall) for wall in walls)}
        with_floor = {name for name, geom in names.items() if collide(geom, names["floor"])}
        legs = {f"{leg}_ankle_geom" for leg in ("left", "right", "third", "fourth")}
        assert with_walls == {"torso_geom", *legs}
        assert with_floor == {f"{leg}_foot_geom" for leg in ("left", "right", "third", "fourth")}

    def test_the_walls_left_out_of_a_step_are_out_of_reach(self):
        lines = np.array(self.INNER + self.SIDES)
        x, y = np.meshgrid(*2 * [np.linspace(-6, 41, 95)])
        points = np.stack([x, y], axis=-1)[..., None, :]
        gaps = np.linalg.norm(points - np.clip(points, lines[:, :2], lines[:, 2:]), axis=-1)
        assert np.sort(gaps, axis=-1)[..., 2].min() > 6

    def test_a_step_among_the_nearest_walls_is_one_among_all_of_them(self):
        # Ants at every wall, at the corners where two meet, and in the open, pushed about.
        x, y = [19.3, 20, 15, 15, 19.2, 9.3, -4.3, 39.3, 30], [3, 20.2, 6.9, 8.2, 6.9, 30, -4.3, 39.3, 20]
        rng = np.random.default_rng(0)
        posture = rng.uniform(-0.1, 0.1, (len(x), 15)).astype(np.float32)
        posture[:, 0], posture[:, 1] = x, y
        velocities = rng.normal(0, 3, (len(x), 14)).astype(np.float32)
        env = AntMaze().environment
        everywhere = copy.copy(env)
        everywhere.sys = env.maze

        def step(posture, velocity):
            physics = env.pipeline_init(env.sys.init_q.at[2:].add(posture[2:]).at[:2].set(posture[:2]), velocity)
            contact = brax.contact.get(env.maze, physics.x)
            with_wall = [(geoms >= 1) & (geoms <= 7) for geoms in (contact.geom1, contact.geom2)]
            touching = ((with_wall[0] | with_wall[1]) & (contact.dist < 0)).sum()
            one = env.step(env._look(physics), jnp.zeros(8)).pipeline_state
            other = everywhere.pipeline_step(physics, jnp.zeros(8))
            return touching, (one.x, one.xd), (other.x, other.xd)

        touching, found, expected = jax.jit(jax.vmap(step))(posture, velocities)
        assert (touching > 0).sum() >= 3
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)

    def test_an_ant_stops_at_a_wall(self, pushed):
        x = pushed[0][..., 0]
        assert np.isfinite(x).all()
        assert x[0].max() < 19.5  # the wall's surface
        assert x[0].max() > 18.5
        assert x[1].max() > 20.5  # with no wall it gets beyond

    def test_reward_observation_and_end(self, pushed):
        torso, observed, reward, done = pushed
        np.testing.assert_allclose(reward, -np.hypot(35 - torso[..., 0], torso[..., 1]), rtol=1e-5)
        np.testing.assert_allclose(observed[..., :2], (torso[..., :2] - 17.5) / 22.5, atol=1e-6)
        np.testing.assert_array_equal(done > 0, (torso[..., 2] < 0.2) | (torso[..., 2] > 5))

    def test_the_ant_starts_at_the_origin(self):
        start = AntMaze(start_seed=1).start_state()
        np.testing.assert_allclose(start.pipeline_state.x.pos[0, :2], 0, atol=1e-6)
        other = AntMaze(start_seed=2).start_state()
        assert np.abs(start.obs - other.obs).max() > 1e-3
        assert start.reward == -35
        np.testing.assert_allclose(start.obs[:2], -17.5 / 22.5, rtol=1e-6)


def test_what_brax_says_of_itself_is_shown_once(monkeypatch):
    monkeypatch.setattr(simulator, "_shown", set())
    load = functools.partial(simulator.load.__wrapped__, "hopper", "spring")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load()
        load()
    assert ["maintained" in str(warning.message) for warning in caught] == [True]


def test_random_resets_are_braxs():
    task = Locomotion(name="halfcheetah", random_resets=True)
    keys = jax.random.split(KEY, 3)
    seen = jax.jit(jax.vmap(lambda key: task._begin(key, True).observation))(keys)
    reset = jax.jit(brax.envs.get_environment("halfcheetah", backend="spring").reset)
    expected = np.stack([reset(key).obs for key in keys])
    np.testing.assert_allclose(seen, expected, atol=1e-5)
    assert np.abs(seen[0] - seen[1]).max() > 0.01
