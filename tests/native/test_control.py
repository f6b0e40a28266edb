"""The native simulator of robots against closed forms, MuJoCo's geometry, and itself. Brax only reads the MJCF here."""

import dataclasses
import functools
import math
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.conftest import assert_same_bits
from tests.watching import watch

from jedax import networks
from jedax.native import control as native
from jedax.native import core

mujoco = pytest.importorskip("mujoco")
mjcf = pytest.importorskip("brax.io.mjcf")

pytestmark = [
    pytest.mark.skipif(not native.KERNEL.available, reason=str(native.KERNEL.status)),
    pytest.mark.filterwarnings("ignore"),
]
ROOT = Path(__file__).parents[2]
LIBRARY = core.load()[0]
SETS = LIBRARY.jedax_instruction_sets().decode().split(",") if LIBRARY else []
DT, G = 0.002, 9.81
FLOOR = '<geom type="plane" size="9 9 1"/>'
NO_MOTOR = {  # a policy has at least one action; this one pulls at nothing
    "motor_dofs": np.int32([0]), "motor_lowest": [-1.0], "motor_highest": [1.0], "motor_gain": [0.0],
    "motor_gear": [0.0], "motor_weakest": [-1.0], "motor_strongest": [1.0]
}  # fmt: skip


def scene(world, more="", gravity=-G, **custom):
    numbers = "".join(f'<numeric name="{name}" data="{value}"/>' for name, value in custom.items())
    return f"""<mujoco><compiler angle="radian"/><option timestep="{DT}" gravity="0 0 {gravity}"/>
        <custom>{numbers}</custom><worldbody>{world}</worldbody>{more}</mujoco>"""


def ball(name="ball", more="", shape='type="sphere" size="0.1"'):
    return f'<body name="{name}"><freejoint/><geom {shape} mass="2" {more}/></body>'


@functools.cache
def loaded(xml):
    found = native.model(mjcf.loads(xml), 1)
    return found if len(found["motor_dofs"]) else {**found, **NO_MOTOR}


def plain(model, steps, hidden=(), **settings):
    """Return an episode whose policy sees the coordinates q."""
    seen, motors = model["coordinates"], len(model["motor_dofs"])
    return native.Episode(**{
        "steps": steps, "layers": (seen, *hidden, motors), "activation": "tanh", "observed": np.arange(seen),
        "action_scale": np.ones(motors), "action_shift": np.zeros(motors), "observed_least": np.full(seen, -np.inf),
        "observed_most": np.full(seen, np.inf), "observed_from": np.zeros(seen), "observed_scale": np.ones(seen),
        "speed_reward": 1.0
    } | settings)  # fmt: skip


def params(episode):
    return sum((a + 1) * b for a, b in zip(episode.layers, episode.layers[1:], strict=False))


def links(*states):
    """Return one row of links, each given by a place, and rotation, velocity and spin if they are not those at rest."""
    rest = ((0, 0, 0), (1, 0, 0, 0), (0, 0, 0), (0, 0, 0))
    return np.float32([np.concatenate([*state, *rest[len(state) :]]) for state in states]).ravel()


def simulate(model, starts, steps, action=0.0, **settings):
    """Return every state, with a constant action, from starts as rows of links; and the record."""
    episode = plain(model, steps, **settings)
    starts = np.atleast_2d(starts)
    rows = np.concatenate([starts, np.zeros((len(starts), episode.layers[0]))], axis=1).astype(np.float32)
    genotypes = np.zeros((len(rows), params(episode)), np.float32)
    genotypes[:, -episode.layers[-1] :] = np.arctanh(np.float64(action))
    _, record, seen = jax.jit(lambda genotypes, rows: watch(model, episode, genotypes, rows))(genotypes, rows)
    return jax.tree.map(np.asarray, seen), record


class TestMotion:
    def test_a_body_that_spins_freely(self):
        model = loaded(scene(ball(shape='type="box" size="0.1 0.2 0.3"'), gravity=0))
        spin, speed, steps = np.array([1.0, -2.0, 3.0]), (0.5, 1.0, -2.0), 1000
        seen, _ = simulate(model, links(((1, 2, 3), (1, 0, 0, 0), speed, spin)), steps)
        # Brax's engine has no gyroscopic torque: the spin stays, not the angular momentum.
        assert_same_bits(seen.spins[0, -1, 0], np.float32(spin))
        np.testing.assert_allclose(seen.velocities[0, -1, 0], speed, rtol=1e-5)
        expected = np.array([1, 2, 3]) + np.array(speed) * steps * DT
        np.testing.assert_allclose(seen.positions[0, -1, 0], expected, rtol=1e-4)
        # A step of the quaternion turns by 2 arctan(w dt / 2).
        size = np.linalg.norm(spin)
        turned = Rotation.from_rotvec(spin / size * steps * 2 * math.atan(size * DT / 2))
        found = Rotation.from_quat(np.roll(seen.rotations[0, -1, 0], -1))
        assert (found * turned.inv()).magnitude() < 1e-4
        np.testing.assert_allclose(np.linalg.norm(seen.rotations, axis=-1), 1, atol=1e-6)

    def test_free_fall_is_the_sum_of_semi_implicit_euler(self):
        seen, _ = simulate(loaded(scene(ball())), links(((0, 0, 5), (1, 0, 0, 0), (1, 0, 2))), 400)
        n = np.arange(1, 401)
        np.testing.assert_allclose(seen.positions[0, :, 0, 2], 5 + 2 * n * DT - G * DT**2 * n * (n + 1) / 2, atol=3e-5)
        np.testing.assert_allclose(seen.positions[0, :, 0, 0], n * DT, rtol=1e-5)
        np.testing.assert_allclose(seen.velocities[0, :, 0, 2], 2 - G * DT * n, atol=1e-4)

    def test_forces_within_a_robot_keep_its_momentum(self):
        legs = """<body name="a"><freejoint/><geom type="capsule" size="0.05 0.2" mass="1"/>
            <body pos="0 0 0.3"><joint name="j" axis="0 1 0"/><geom type="capsule" size="0.05 0.2" pos="0 0 0.25"
            mass="3"/></body></body>"""
        motor = '<actuator><motor joint="j" gear="3" ctrllimited="true" ctrlrange="-1 1"/></actuator>'
        model = loaded(scene(legs, motor, gravity=0, constraint_stiffness=5000))
        start = links(((0, 0, 1), (1, 0, 0, 0), (1, 2, 3), (0, 1, 0)), ((0, 0, 1.3), (1, 0, 0, 0), (1.3, 2, 3)))
        seen, _ = simulate(model, start, 300, action=0.9)
        # The second link's centre of mass is 0.25 from its origin.
        arms = Rotation.from_quat(np.roll(seen.rotations[0, :, 1], -1, axis=-1)).apply([0, 0, 0.25])
        centers = seen.velocities[0].astype(float)
        centers[:, 1] += np.cross(seen.spins[0, :, 1], arms)
        momentum = (centers * [[1], [3]]).sum(axis=1)
        assert np.ptp(seen.spins[0, :, 1, 1]) > 1
        np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=2e-3)

    def test_damping_of_velocities(self):
        model = loaded(scene(ball(), gravity=0, vel_damping=-2, ang_damping=-3))
        seen, _ = simulate(model, links(((0, 0, 0), (1, 0, 0, 0), (4, 0, 0), (0, 5, 0))), 500)
        assert seen.velocities[0, -1, 0, 0] == pytest.approx(4 * math.exp(-2 * 500 * DT), rel=1e-4)
        assert seen.spins[0, -1, 0, 1] == pytest.approx(5 * math.exp(-3 * 500 * DT), rel=1e-4)


ARM = """<body><joint name="j" type="{kind}" axis="{axis}" {more}/>
    <geom type="capsule" size="0.03 0.2" pos="0 0 -0.4" mass="1.5"/></body>"""
MOTOR = '<actuator><motor joint="j" gear="{gear}" ctrllimited="true" ctrlrange="-0.5 0.5"/></actuator>'


class TestJoints:
    @pytest.mark.parametrize("axis", ["1 0 0", "0 1 0"])
    def test_period_of_a_pendulum(self, axis):
        model = loaded(scene(ARM.format(kind="hinge", axis=axis, more=""), constraint_stiffness=20000))
        x, y, _ = map(float, axis.split())
        angle = 0.05
        start = links(((0, 0, 0), (math.cos(angle / 2), x * math.sin(angle / 2), y * math.sin(angle / 2), 0)))
        seen, _ = simulate(model, start, 4000)
        q = seen.q[0, :, 0]
        crossings = np.flatnonzero(np.diff(np.sign(q)))
        crossings = crossings + q[crossings] / (q[crossings] - q[crossings + 1])
        period = 2 * np.diff(crossings).mean() * DT
        across = 1 / model["inverse_inertia"].reshape(-1, 6)[0, 0] + 1.5 * 0.4**2
        assert len(crossings) > 8
        assert period == pytest.approx(2 * math.pi * math.sqrt(across / (1.5 * G * 0.4)), rel=0.01)
        np.testing.assert_allclose(np.abs(q).max(), angle, rtol=0.02)

    @pytest.mark.parametrize(("kind", "limit"), [("hinge", 0.4), ("slide", 0.15)])
    def test_a_motor_against_a_limit(self, kind, limit):
        more = f'limited="true" range="-0.3 {limit}"'
        xml = scene(ARM.format(kind=kind, axis="0 1 0", more=more), MOTOR.format(gear=20), gravity=0,
                    constraint_limit_stiffness=500, constraint_ang_damping=5, constraint_stiffness=5000,
                    vel_damping=-8)  # fmt: skip
        # An action beyond the motor's range is held at its end.
        pulled, _ = simulate(loaded(xml), links(((0, 0, 0),)), 6000, action=np.tanh(5.0))
        pushed, _ = simulate(loaded(xml), links(((0, 0, 0),)), 6000, action=-0.25)
        assert pulled.q[0, -1, 0] == pytest.approx(limit + 0.5 * 20 / 500, rel=2e-3)
        assert pushed.q[0, -1, 0] == pytest.approx(-0.3 - 0.25 * 20 / 500, rel=2e-3)
        assert abs(pulled.qd[0, -1, 0]) < 1e-3

    def test_a_motor_accelerates_a_slide(self):
        arm = ARM.format(kind="slide", axis="1 0 0", more="").replace('pos="0 0 -0.4"', "")
        model = loaded(scene(arm, MOTOR.format(gear=6), gravity=0))
        seen, record = simulate(model, links(((0, 0, 0),)), 500, action=0.25, speed_reward=0.0, input_cost=2.0)
        n = np.arange(1, 501)
        np.testing.assert_allclose(seen.q[0, :, 0], 0.25 * 6 / 1.5 * DT**2 * n * (n + 1) / 2, rtol=1e-3)
        np.testing.assert_allclose(record.rewards[0], -2 * 0.25**2, rtol=1e-5)


class TestContacts:
    @pytest.mark.parametrize(
        ("shape", "size", "lever", "axis"),
        [("sphere", "0.1", 0, 0), ("capsule", "0.1 0.2", 0.2**2, 5)],
    )
    def test_at_rest(self, shape, size, lever, axis):
        turned = Rotation.from_euler("y", 90 if shape == "capsule" else 0, degrees=True).as_quat()
        model = loaded(scene(FLOOR + ball(shape=f'type="{shape}" size="{size}"'), baumgarte_erp=0.1))
        seen, _ = simulate(model, links(((0.3, -0.2, 0.1), np.roll(turned, 1))), 2000)
        depth = 0.1 - seen.positions[0, :, 0, 2]
        # erp takes a tenth of the depth back in each step, divided by what an impulse off the centre loses to turning
        # (with the element xx of the inverse inertia, which is what Brax takes for the first link).
        lost = 2 * lever * model["inverse_inertia"].ravel()[axis]
        np.testing.assert_allclose(depth[-1], G * DT**2 / 0.1 * lost, rtol=0.02, atol=2 * G * DT**2)
        assert -1e-6 <= depth.min() <= depth.max() <= 1.3 * depth[-1] + 4 * G * DT**2
        np.testing.assert_allclose(seen.positions[0, -1, 0, :2], [0.3, -0.2], atol=3e-3)
        assert np.abs(seen.velocities[0, -100:]).max() < 2 * G * DT

    def test_a_sliding_block_stops(self):
        mu, speed = 0.6, 2.0
        # It cannot turn: only then the friction is that of a point.
        model = loaded(scene(FLOOR + ball(more=f'friction="{mu}"')))
        model = {**model, "inverse_inertia": np.zeros_like(model["inverse_inertia"])}
        seen, _ = simulate(model, links(((0, 0, 0.1), (1, 0, 0, 0), (speed, 0, 0))), 600)
        velocity = seen.velocities[0, :, 0, 0]
        stop = int(speed / (model["pair_friction"][0] * G * DT))
        n = np.arange(10, stop - 5)
        assert model["pair_friction"][0] == 1.0  # MuJoCo takes the larger one, which is the floor's
        np.testing.assert_allclose(velocity[n], velocity[10] - G * DT * (n - 10), atol=0.03)
        assert np.abs(velocity[stop + 10 :]).max() < 2e-3

    @pytest.mark.parametrize("mu", [0.3, 1.5])
    def test_friction_of_shapes_decides(self, mu):
        model = loaded(scene(f'<geom type="plane" size="9 9 1" friction="{mu}"/>' + ball(more='friction="0.2"')))
        model = {**model, "inverse_inertia": np.zeros_like(model["inverse_inertia"])}
        seen, _ = simulate(model, links(((0, 0, 0.1), (1, 0, 0, 0), (5, 0, 0))), 150)
        lost = 5 - seen.velocities[0, -1, 0, 0]
        assert lost == pytest.approx(mu * G * 150 * DT, rel=0.03)

    @pytest.mark.parametrize("bounce", [0.0, 0.5, 0.9])
    def test_a_ball_returns_with_its_elasticity(self, bounce):
        model = loaded(scene(FLOOR + ball(), elasticity=bounce))
        assert model["pair_bounce"][0] == pytest.approx(bounce)
        seen, _ = simulate(model, links(((0, 0, 0.6),)), 250)
        velocity, height = seen.velocities[0, :, 0, 2].astype(float), seen.positions[0, :, 0, 2].astype(float)
        hit = int(np.argmax(np.diff(velocity) > 0)) + 1
        depth = 0.1 - height[hit - 1]
        fell = velocity[hit - 1] - G * DT
        assert depth > 0
        assert velocity[hit] == pytest.approx(-bounce * fell + 0.1 / DT * depth, rel=1e-3, abs=1e-4)

    def test_two_balls_share_their_momentum(self):
        model = loaded(scene(ball("a") + ball("b"), gravity=0, elasticity=1, baumgarte_erp=0))
        start = links(((0, 0, 0), (1, 0, 0, 0), (3, 0, 0)), ((0.5, 0, 0), (1, 0, 0, 0), (-1, 0, 0)))
        seen, _ = simulate(model, start, 100)
        np.testing.assert_allclose(seen.velocities[0, -1, :, 0], [-1, 3], atol=1e-3)
        np.testing.assert_allclose(seen.velocities[0, -1, :, 1:], 0, atol=1e-6)

    @pytest.mark.parametrize("walls", [5, 64])
    def test_walls_hold_at_speed_from_every_side(self, walls):
        """Balls at 8 m/s in every direction stay inside a square of capsules; more walls far away change no bit."""
        square = [(-2, -2, 2, -2), (-2, 2, 2, 2), (-2, -2, -2, 2), (2, -2, 2, 2)]
        far = [(20 + 3 * i, 0, 20 + 3 * i, 9) for i in range(walls - 4)]
        fences = [f'<geom type="capsule" size="0.5" fromto="{a} {b} 0.5 {c} {d} 0.5"/>' for a, b, c, d in square + far]
        model = loaded(scene(FLOOR + "".join(fences) + ball(), elasticity=0.5))
        assert len(model["pair_shapes"]) == walls + 1
        angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        starts = [links(((0, 0, 0.3), (1, 0, 0, 0), (8 * np.cos(a), 8 * np.sin(a), 0))) for a in angles]
        seen, _ = simulate(model, starts, 600)
        reached = np.abs(seen.positions[:, :, 0, :2]).max(axis=(1, 2))
        assert reached.min() > 1.3  # all the way to the wall,
        assert reached.max() < 1.7  # and not through it: impulses of two walls at once are averaged
        few = loaded(scene(FLOOR + "".join(fences[:4]) + ball(), elasticity=0.5))
        assert_same_bits(seen.positions, simulate(few, starts, 600)[0].positions)

    def test_no_shapes_that_touch(self):
        model = loaded(scene(ball()))
        assert len(model["pair_shapes"]) == len(model["shape_kinds"]) == 0
        assert simulate(model, links(((0, 0, 1),)), 3)[0].positions.shape == (1, 3, 1, 3)


SHAPES = {
    "sphere": 'type="sphere" size="0.3"',
    "capsule": 'type="capsule" size="0.2 0.4"',
}


def impulses(first, second, places, rotations, contacts):
    """The normals, depths and levers of contacts, read from what one substep does to two bodies without gravity.

    The first body comes with 10 m/s along `contacts`' normals. Levers are those from the centre of the first body.
    """
    world = (FLOOR if first == "plane" else ball("a", shape=SHAPES[first])) + ball("b", shape=SHAPES[second])
    model = loaded(scene(world, gravity=0, baumgarte_erp=0.1))
    rate, number = model["push_rate"], len(model["mass"])
    model = {**model, "pair_friction": np.zeros(1)}
    speeds = np.zeros((len(places), number, 3))
    speeds[:, 0] = 10 * contacts * (-1 if first == "plane" else 1)
    found = []
    for inertia in (0.0, 1e-4):
        diagonal = np.tile(np.float32([1, 0, 0, 1, 0, 1]) * inertia, number)
        rows = np.concatenate([places, rotations, speeds, np.zeros_like(places)], axis=-1).reshape(len(places), -1)
        seen, _ = simulate({**model, "inverse_inertia": diagonal}, rows, 1)
        found.append((seen.velocities[:, 0, 0] - speeds[:, 0], seen.spins[:, 0, 0]))
    (change, _), (_, spins) = found
    size = np.linalg.norm(change, axis=1)
    normal = -change / np.maximum(size, 1e-9)[:, None]
    impulse = size * 2.0  # the mass
    distance = (10 - impulse * number / 2.0) / rate
    lever = np.cross(spins / 1e-4, normal) / np.maximum(impulse, 1e-9)[:, None]  # its part across the normal
    return normal, distance, lever, size > 1e-6


class TestShapes:
    """Two bodies in random places: where native code and MuJoCo see them touch."""

    @pytest.mark.parametrize(
        ("first", "second", "reach"),
        [("sphere", "sphere", 0.7), ("sphere", "capsule", 0.7), ("capsule", "capsule", 0.7)],
    )
    def test_pairs(self, first, second, reach):
        random, count = np.random.default_rng(0), 400
        places = np.zeros((count, 2, 3))
        places[:, 1] = random.uniform(-reach, reach, (count, 3))
        turns = Rotation.random(2 * count, random_state=1).as_quat()[:, [3, 0, 1, 2]].reshape(count, 2, 4)
        world = mujoco.MjModel.from_xml_string(
            scene(ball("a", shape=SHAPES[first]) + ball("b", shape=SHAPES[second]), gravity=0)
        )
        data = mujoco.MjData(world)
        expected = np.full((count, 7), np.nan)
        kept = np.zeros(count, bool)
        for i in range(count):
            data.qpos[:] = np.concatenate([places[i], turns[i]], axis=1).ravel()
            mujoco.mj_forward(world, data)
            kept[i] = data.ncon <= 1  # capsules that lie side by side touch MuJoCo's twice
            if data.ncon:
                expected[i] = [*data.contact[0].frame[:3], data.contact[0].dist, *data.contact[0].pos]
        normals = np.where(np.isnan(expected[:, :3]), [1, 0, 0], expected[:, :3])
        normal, distance, lever, touching = impulses(first, second, places, turns, normals)
        deep = expected[:, 3]
        np.testing.assert_array_equal(touching[kept], ~np.isnan(deep[kept]))
        assert kept.mean() > 0.9
        both = touching & kept
        assert 0.2 < both.mean() < 0.95
        np.testing.assert_allclose(normal[both], expected[both, :3], atol=2e-3)
        np.testing.assert_allclose(distance[both], deep[both], atol=2e-3)
        arms = expected[both, 4:] - places[both, 0]
        across = arms - (arms * normal[both]).sum(axis=1)[:, None] * normal[both]
        np.testing.assert_allclose(lever[both], across, atol=5e-3)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_a_plane(self, shape):
        random, count = np.random.default_rng(0), 400
        turns = Rotation.random(count, random_state=2)
        places = np.zeros((count, 1, 3))
        places[:, 0, 2] = random.uniform(0.1, 0.7, count)
        # Points whose spheres touch the plane, and their radius
        points, radius = {
            "sphere": (np.zeros((1, 3)), 0.3),
            "capsule": (np.array([[0, 0, 0.4], [0, 0, -0.4]]), 0.2),
        }[shape]
        heights = np.stack([turns.apply(point)[:, 2] for point in points], axis=1) + places[:, 0, 2:] - radius
        counts = heights < 0
        expected = np.where(counts.any(axis=1), (heights * counts).sum(axis=1) / np.maximum(counts.sum(axis=1), 1), 0)
        quaternions = turns.as_quat()[:, None, [3, 0, 1, 2]]
        normal, distance, _, touching = impulses("plane", shape, places, quaternions, np.array([[0, 0, 1.0]]))
        np.testing.assert_array_equal(touching, counts.any(axis=1))
        assert 0.25 < touching.mean() < 0.95
        np.testing.assert_allclose(normal[touching], [[0, 0, -1]] * touching.sum(), atol=1e-5)
        np.testing.assert_allclose(distance[touching], expected[touching], atol=1e-3)

    def test_the_same_place(self):
        """Two spheres whose centres coincide part along x, and give no NaN."""
        model = loaded(scene(ball("a") + ball("b"), gravity=0))
        seen, _ = simulate(model, links(((0, 0, 0), (1, 0, 0, 0), (1, 0, 0)), ((0, 0, 0),)), 50)
        assert np.isfinite(seen.positions).all()
        assert seen.positions[0, -1, 1, 0] > seen.positions[0, -1, 0, 0]


BODY = f"""{FLOOR}<geom type="capsule" size="0.5" fromto="2 -2 0.5 2 2 0.5"/>
    <body name="torso" pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.2" mass="2"/>
    <body pos="0.2 0 0"><joint name="a" axis="0 1 0" limited="true" range="-1 1"/><joint name="b" axis="0 0 1"
    limited="true" range="-1 1"/><geom type="capsule" fromto="0 0 0 0.3 0 -0.4" size="0.08" mass="0.5"/></body>
    <body pos="-0.2 0 0"><joint name="c" axis="0 1 0" limited="true" range="-1 1"/>
    <geom type="capsule" fromto="0 0 0 -0.3 0 -0.4" size="0.08" mass="0.5"/></body></body>"""
ROBOT = scene(
    BODY, "<actuator>" + "".join(f'<motor joint="{j}" gear="3" ctrllimited="true" ctrlrange="-1 1"/>' for j in "abc")
    + "</actuator>", constraint_stiffness=300, constraint_limit_stiffness=50, constraint_ang_damping=0.2,
    constraint_vel_damping=3,
)  # fmt: skip
START = links(((0, 0, 0.5),), ((0.2, 0, 0.5),), ((-0.2, 0, 0.5),))
STEPS = 30


@functools.cache
def robot(**settings):
    """A robot with two legs; its policy sees q, and the episode ends when the torso turns over or rises."""
    model = {**loaded(ROBOT), "substeps": 4}
    place = model["coordinates"] + len(model["turns"])
    ends = {"bounded": np.array([place + 2]), "bounded_least": np.array([0.26]), "bounded_most": np.array([3.0])}
    return model, plain(model, STEPS, hidden=(6,), **(ends | settings))


def policies(episode, count, scale=2.0, seed=0):
    return np.random.default_rng(seed).normal(size=(count, params(episode))).astype(np.float32) * np.float32(scale)


def starts_of(episode, rows=START):
    rows = np.atleast_2d(rows)
    return np.concatenate([rows, np.zeros((len(rows), episode.layers[0]))], axis=1).astype(np.float32)


def outcomes(genotypes, starts=None, group=0, changes=(), **settings):
    model, episode = robot(**settings)
    model = {**model, **dict(changes)}
    starts = starts_of(episode) if starts is None else starts
    run = jax.jit(lambda genotypes, starts: native.evaluate(model, episode, genotypes, starts, group))
    return jax.tree.map(np.asarray, run(genotypes, starts))


def outcomes_with(name, genotypes):
    """Outcomes computed with an instruction set."""
    LIBRARY.jedax_use_instruction_set(name.encode())
    try:
        return outcomes(genotypes)
    finally:
        LIBRARY.jedax_use_instruction_set(native.KERNEL.status.instruction_set.encode())


class TestSameBits:
    """An outcome depends on nothing but the genotype and the start."""

    @pytest.fixture(scope="class")
    @classmethod
    def whole(cls):
        genotypes = policies(robot()[1], 300)
        found = outcomes(genotypes)
        assert 10 < (found.length < STEPS).sum() < 290
        return genotypes, found

    @pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33, 299])
    def test_size_of_the_batch(self, whole, count):
        genotypes, found = whole
        assert_same_bits(outcomes(genotypes[:count]), jax.tree.map(lambda leaf: leaf[:count], found))

    def test_many(self, whole):
        genotypes, found = whole
        many = outcomes(np.resize(genotypes, (4096, genotypes.shape[1])))
        assert_same_bits(many, jax.tree.map(lambda leaf: np.resize(leaf, (4096, *leaf.shape[1:])), found))

    @pytest.mark.parametrize("group", [1, 2, 5, 16, 99])
    def test_group(self, whole, group):
        genotypes, found = whole
        assert_same_bits(outcomes(genotypes, group=group), found)

    def test_neighbours(self, whole):
        genotypes, found = whole
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(300)
            assert_same_bits(outcomes(genotypes[order]), jax.tree.map(lambda leaf, order=order: leaf[order], found))

    @pytest.mark.parametrize("threads", [1, 7])
    def test_threads(self, whole, threads, tmp_path):
        genotypes, _ = whole
        np.save(tmp_path / "genotypes.npy", genotypes)
        code = (
            "import tests.conftest; from tests.native.test_control import SETS, np, outcomes_with, sys; "
            "genotypes = np.load(sys.argv[1] + '/genotypes.npy'); found = {f'{name}_{i}': "
            "np.column_stack(outcomes_with(name, genotypes)) for name in SETS for i in range(2)}; "
            "np.savez(sys.argv[1] + '/found.npz', **found)"
        )
        variables = os.environ | {"NPROC": str(threads)}
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, env=variables, check=True)
        found = np.load(tmp_path / "found.npz")
        for name in SETS:
            expected = np.column_stack(outcomes_with(name, genotypes))
            for i in range(2):
                assert_same_bits(found[f"{name}_{i}"], expected)

    @pytest.mark.parametrize("name", SETS)
    def test_instruction_sets(self, whole, name):
        genotypes, found = whole
        other = outcomes_with(name, genotypes)
        alike = np.isclose(other.fitness, found.fitness, atol=0.02) & (other.length == found.length)
        assert alike.mean() > 0.9

    def test_own_starts(self, whole):
        genotypes, _ = whole
        _, episode = robot()
        rows = np.repeat(START[None], 6, axis=0)
        rows.reshape(6, 3, 13)[:, :, 7] += np.linspace(-2, 2, 6)[:, None]
        starts = starts_of(episode, rows)
        one = [outcomes(genotypes[10 * i : 10 * i + 10], starts[i : i + 1]) for i in range(6)]
        expected = jax.tree.map(lambda *leaves: np.concatenate(leaves), *one)
        assert_same_bits(outcomes(genotypes[:60], starts), expected)
        assert_same_bits(outcomes(genotypes[:60], np.repeat(starts, 10, axis=0)), expected)

    def test_a_record_is_the_evaluation(self, whole):
        genotypes, found = whole
        model, episode = robot()
        outcome, record = jax.jit(lambda g: native.record(model, episode, g, starts_of(episode)))(genotypes)
        assert_same_bits(outcome, found)
        brief = functools.partial(native.record, model, episode, postures=False)
        short, without = jax.jit(lambda g: brief(g, starts_of(episode)))(genotypes)
        assert_same_bits(short, found)
        assert_same_bits(without[:4], record[:4])
        assert without.q.shape == (300, 0, model["coordinates"])
        last = np.asarray(record.positions)[np.arange(300), found.length - 1, 0]
        assert_same_bits(found.descriptor, last[:, :2])

    def test_nobody(self):
        found = outcomes(np.zeros((0, params(robot()[1])), np.float32))
        assert [leaf.shape for leaf in found] == [(0,), (0, 2), (0,)]


class TestMeans:
    """A descriptor of means over the steps of an episode; lanes are taken again, and begin anew."""

    @pytest.mark.parametrize("feet", [0, 2])
    def test_of_values(self, feet):
        model, episode = robot()
        place = model["coordinates"] + len(model["turns"])
        ends = np.tile([0, 0, 0, 0.3, 0, -0.4], feet)
        changes = {"foot_links": np.arange(feet) + 1, "foot_ends": ends, "foot_radii": np.full(feet, 0.08)}
        values = np.array([model["coordinates"], place + 2])
        genotypes, several = policies(episode, 100), dataclasses.replace(episode, averaged=values, **changes)
        found, _, seen = jax.jit(lambda genotypes: watch(model, several, genotypes, starts_of(several)))(genotypes)
        length = np.asarray(found.length)
        assert 10 < (length < STEPS).sum() < 90
        counts = np.arange(STEPS) < length[:, None]
        expected = [np.where(counts, value, 0).sum(axis=1, dtype=float) / length
                    for value in (seen.qd[..., 0], seen.positions[..., 0, 2])]  # fmt: skip
        np.testing.assert_allclose(found.descriptor[:, feet:], np.stack(expected, axis=1), rtol=1e-5, atol=1e-5)
        if feet:  # those come first, and are what they are alone
            alone = dataclasses.replace(episode, **changes)
            one, other = (jax.jit(functools.partial(native.evaluate, model, each, starts=starts_of(each)))(genotypes)
                          for each in (alone, several))  # fmt: skip
            assert np.ptp(one.descriptor) > 0.1
            assert_same_bits(other.descriptor[:, :feet], one.descriptor)


class TestWhatBreaks:
    """Episodes that go wrong end by the rules, and nobody else notices."""

    def test_weights_that_are_not_finite(self):
        _, episode = robot()
        genotypes = policies(episode, 200)
        expected = outcomes(genotypes)
        bad = np.arange(0, 200, 3)
        broken = genotypes.copy()
        broken[bad, bad % params(episode)] = np.resize([np.nan, np.inf, -np.inf], len(bad))
        found = outcomes(broken)
        assert np.isnan(found.fitness[bad]).all()
        assert not found.descriptor[bad].any()
        assert not found.length[bad].any()
        rest = np.setdiff1d(np.arange(200), bad)
        assert_same_bits(*(jax.tree.map(lambda leaf: leaf[rest], one) for one in (found, expected)))
        model, _ = robot()
        _, record = jax.jit(lambda g: native.record(model, episode, g, starts_of(episode)))(broken)
        assert not any(np.asarray(leaf)[bad].any() for leaf in record)

    @pytest.mark.parametrize("nan_ends", [True, False])
    def test_states_that_explode(self, nan_ends):
        _, episode = robot()
        genotypes = policies(episode, 96)
        rows = np.repeat(START[None], 96, axis=0).reshape(96, 3, 13)
        # Places, rotations, velocities and spins of single links: huge, infinite, or no numbers
        values = np.float32([1e3, 1e8, 1e18, 1e25, 3e38, np.inf, -np.inf, np.nan])
        for i in range(0, 96, 2):
            rows[i, i // 2 % 3, (0, 4, 7, 12)[i // 6 % 4]] = values[i // 2 % 8]
        starts = starts_of(episode, rows.reshape(96, -1))
        found = outcomes(genotypes, starts, nan_ends=nan_ends)
        calm = outcomes(genotypes[1::2], starts_of(episode), nan_ends=nan_ends)
        assert_same_bits(jax.tree.map(lambda leaf: leaf[1::2], found), calm)
        for i in range(0, 96, 2):
            alone = outcomes(genotypes[i : i + 1], starts[i : i + 1], nan_ends=nan_ends)
            assert_same_bits(jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], found), alone)
        lost = np.isnan(rows[..., :7]).any(axis=(1, 2))
        assert np.isnan(found.fitness[lost]).all()
        # Brax: a hopper that is nowhere has fallen, an ant that is nowhere has not.
        torso = np.isnan(rows[:, 0, 2]) | np.isnan(rows[:, 0, 7])
        assert (found.length[torso] == (1 if nan_ends else STEPS)).all()
        assert (found.length >= 1).all()

    def test_a_link_that_shoots_back(self):
        """Joints torn apart pull links through walls within a step; which walls the others are near must not matter."""
        _, episode = robot()
        genotypes = policies(episode, 64)
        rows = np.repeat(START[None], 64, axis=0).reshape(64, 3, 13)
        rows[:, :, :2] += np.random.default_rng(0).uniform([-4, -1], [6, 1], (64, 3, 2))
        starts, changes = starts_of(episode, rows.reshape(64, -1)), {"stiffness": np.full(3, 2e4)}
        found = outcomes(genotypes, starts, changes=changes)
        assert np.isfinite(found.fitness).sum() > 10
        for i in range(64):
            alone = outcomes(genotypes[i : i + 1], starts[i : i + 1], changes=changes)
            assert_same_bits(jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], found), alone)

    def test_a_ball_that_is_nowhere(self):
        """Without joints, numbers that are not finite stay where they are, in company as well."""
        model = loaded(scene(FLOOR + ball()))
        rows = np.repeat(links(((0, 0, 0.099),))[None], 32, axis=0)
        rows[:, 9] = -1  # all but one in four touch the floor
        for i, value in enumerate((np.inf, -np.inf, np.nan, 3e38, 1e20, 3e38, np.inf, np.nan)):
            rows[4 * i, i % 4 % 2 * 7 + i % 2] = value
        seen = simulate(model, rows, 5)[0]
        for i in range(0, 32, 4):
            alone = simulate(model, rows[i], 5)[0]
            assert_same_bits(jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], seen), alone)

    def test_huge_weights(self):
        found = outcomes(policies(robot()[1], 64, scale=1e30))
        assert found.fitness.shape == (64,)
        assert (np.isfinite(found.fitness) | np.isnan(found.fitness)).all()


class TestPolicies:
    @pytest.mark.parametrize(
        ("hidden", "activation"),
        [*(((3, 17), name) for name in networks.ACTIVATIONS), ((), "tanh"), ((1,), "relu"), ((130, 257), "tanh"),
         ((16, 32, 1), "tanh")],
    )  # fmt: skip
    def test_actions(self, hidden, activation):
        model, _ = robot()
        episode = plain(model, 5, hidden=hidden, activation=activation)
        genotypes = policies(episode, 5, scale=0.7)
        _, record = jax.jit(lambda g: native.record(model, episode, g, starts_of(episode)))(genotypes)
        for genotype, seen, actions in zip(genotypes, record.observations, record.actions, strict=True):
            expected = networks.forward(networks.layers(genotype, episode.layers), seen[:-1], activation)
            np.testing.assert_allclose(actions, expected, atol=2e-5)
        assert np.ptp(record.actions) > 0.1

    def test_weights_in_half_precision(self):
        model, _ = robot()
        episode = plain(model, 5, hidden=(130, 17), half_weights=True)
        genotypes = policies(episode, 5, scale=0.7)
        _, record = jax.jit(lambda g: native.record(model, episode, g, starts_of(episode)))(genotypes)
        off = {}
        for kind in (jnp.bfloat16, jnp.float32):
            rounded = genotypes.astype(kind).astype(np.float32)
            expected = [networks.forward(networks.layers(g, episode.layers), seen[:-1], "tanh")
                        for g, seen in zip(rounded, record.observations, strict=True)]  # fmt: skip
            off[kind] = np.abs(record.actions - np.stack(expected)).max()
        assert off[jnp.bfloat16] < 2e-5 < 1e-3 < off[jnp.float32]

    def test_what_is_seen_is_clipped_shifted_and_scaled(self):
        model, _ = robot()
        q = model["coordinates"]
        episode = plain(model, 30, observed=np.array([q + len(model["turns"]) + 2, q, 0]), layers=(3, 3),
                        observed_least=np.array([-1, -0.2, -9]), observed_most=np.array([0.48, 0.2, 9]),
                        observed_from=np.array([0, 0.1, 1]), observed_scale=np.array([2.0, 10, -1]))  # fmt: skip
        genotypes = policies(episode, 20, scale=3)
        _, record = jax.jit(lambda g: native.record(model, episode, g, starts_of(episode)))(genotypes)
        place = np.asarray(record.positions)[:, :, 0]
        seen = np.asarray(record.observations)[:, 1:]
        np.testing.assert_allclose(seen[..., 0], 2 * np.minimum(place[..., 2], 0.48), atol=1e-6)
        np.testing.assert_allclose(seen[..., 2], 1 - np.asarray(record.q)[..., 0], atol=1e-6)
        assert (seen[..., 1] >= -3 - 1e-5).all()
        assert (seen[..., 1] <= 1 + 1e-5).all()


class TestMistakes:
    """Settings are read by name, and what does not fit together is refused in words."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"layers": (4, 3)}, "layers: they do not fit what is observed"),
            ({"layers": (11, 3)}, "layers: they do not fit what is observed"),
            ({"layers": (10, 2)}, "layers: they do not fit what is observed or the motors"),
            ({"layers": (10,)}, "layers: they do not fit what is observed or the motors"),
            ({"layers": (10, 0, 3)}, "layers"),
            ({"layers": (10, -4, 3)}, "layers"),
            ({"activation": "step"}, "layers: .* or an unknown activation"),
            ({"steps": 0}, "a wrong episode"),
            ({"observed": np.full(10, 999)}, "a wrong episode"),
            ({"bounded": np.array([-1])}, "a wrong episode"),
            ({"averaged": np.array([0, 999])}, "a wrong episode"),
            ({"action_scale": np.ones(2)}, "action_scale: a wrong number of values"),
            ({"foot_links": np.array([7]), "foot_ends": np.zeros(6), "foot_radii": np.zeros(1)}, "a wrong episode"),
            ({"foot_links": np.array([0]), "foot_ends": np.zeros(5), "foot_radii": np.zeros(1)}, "foot_ends"),
        ],
    )
    def test_episode(self, changes, message):
        model, episode = robot()
        changed = dataclasses.replace(episode, **changes)
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            native.evaluate(model, changed, jnp.zeros((2, params(episode))), jnp.asarray(starts_of(episode)))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"parents": np.int32([0, 0, 0])}, "a wrong tree of links"),
            ({"parents": np.int32([-1, 2, 0])}, "a wrong tree of links"),
            ({"freedom": np.int32([0, 2, 4])}, "a wrong tree of links"),
            ({"freedom": np.int32([0, 2, 2])}, "a wrong tree of links"),
            ({"coordinates": 12}, "a wrong tree of links"),
            ({"mass": np.ones(4)}, "mass: a wrong number of values"),
            ({"pair_shapes": np.int32([[1, 0]])}, "a wrong number of values|a wrong pair of shapes"),
            ({"motor_dofs": np.int32([0, 1, 99])}, "a wrong motor"),
            ({"shape_kinds": np.int32([9, 9, 9, 9, 9])}, "a wrong (number|pair)"),
            ({"substeps": 0}, "a wrong episode"),
            ({"timestep": 1}, "timestep: Wrong scalar data type"),
        ],
    )
    def test_model(self, changes, message):
        model, episode = robot()
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            native.evaluate(
                model | changes, episode, jnp.zeros((2, params(episode))), jnp.asarray(starts_of(episode))
            )  # fmt: skip

    def test_shapes(self):
        model, episode = robot()
        genotypes, starts = jnp.zeros((3, params(episode))), jnp.asarray(starts_of(episode))
        for bad in ((genotypes[:, :-1], starts), (genotypes, starts[:, :-1])):
            with pytest.raises(jax.errors.JaxRuntimeError, match="genotypes or starts: they do not fit"):
                native.evaluate(model, episode, *bad)
        with pytest.raises(jax.errors.JaxRuntimeError, match="starts: they do not fit the genotypes"):
            native.evaluate(model, episode, genotypes, jnp.concatenate([starts, starts]))
        with pytest.raises(jax.errors.JaxRuntimeError, match="starts: they do not fit the genotypes"):
            native.evaluate(model, episode, genotypes, starts[:0])

    def test_no_motor(self):
        """A policy without actions has no parameters; the process must survive it."""
        found = native.model(mjcf.loads(scene(ball())), 1)
        episode = plain(found, 3)
        with pytest.raises(jax.errors.JaxRuntimeError, match="layers"):
            native.evaluate(found, episode, jnp.zeros((2, 0)), jnp.zeros((1, 13 + episode.layers[0])))

    def test_names(self):
        model, episode = robot()
        settings = native._settings(model, episode)
        outputs = [jax.ShapeDtypeStruct(shape, kind)
                   for shape, kind in (((2,), jnp.float32), ((2, 2), jnp.float32), ((2,), jnp.int32))]  # fmt: skip
        arrays = jnp.zeros((2, params(episode))), jnp.asarray(starts_of(episode))
        with pytest.raises(jax.errors.JaxRuntimeError, match="a setting of unknown name"):
            native.KERNEL.call("evaluate", outputs, *arrays, group=0, **settings, wind=0.1)
        del settings["gravity"]
        with pytest.raises(jax.errors.JaxRuntimeError, match="gravity: Unexpected attribute"):
            native.KERNEL.call("evaluate", outputs, *arrays, group=0, **settings)
