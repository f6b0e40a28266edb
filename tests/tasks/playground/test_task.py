"""MuJoCo Playground's environments as tasks: geometry by closed forms, an episode step by step, a whole search."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jedax
from jedax.errors import JedaxError
from jedax.search.engines import LocalEngine
from jedax.search.programs import settled
from jedax.store.config import FullConfig
from jedax.tasks import drawing, make
from jedax.tasks.playground import task as playground
from jedax.tasks.playground.settings import PlaygroundConfig

mujoco = pytest.importorskip("mujoco", reason="needs the extra [mjx]")
pytest.importorskip("mujoco_playground", reason="needs the extra [mjx]")

MASS = {"descriptor": "final-xy", "steps": 6, "hidden": (3,), "descriptor_lows": (-1, -1), "descriptor_highs": (1, 1)}


@pytest.fixture(scope="module")
def mass():
    return make("playground:PointMass", **MASS)


@pytest.mark.nightly
def test_a_search_is_the_episode_step_by_step(tmp_path, mass):
    """Its best policy, acting in the environment step by step, earns what the search says, and ends there."""
    out = tmp_path / "run"
    run = jedax.run("map-elites", mass, evaluations=24, offspring=8, cells=16, out=out)
    assert run.summary["num_failed"] == 0
    assert run.repertoire.counts.sum() == 24
    best = jedax.load(out).best()
    loaded = playground._load(mass.config)
    step, state, fitness = jax.jit(loaded.environment.step), loaded.start, 0.0
    for _ in range(6):
        state = step(state, mass.act(best.genotype, state.obs))
        fitness += float(state.reward)
    assert best.fitness == pytest.approx(fitness, abs=1e-5)
    np.testing.assert_allclose(best.descriptor, state.data.qpos[:2], atol=1e-5)


def test_a_record_is_the_episode(mass):
    genotype = 3 * mass.init(jax.random.key(4))
    rewards, length, places = jax.jit(mass.record)(genotype)
    evaluation = jax.jit(mass.evaluate)(jax.random.key(0), genotype)
    assert int(length) == len(rewards) == 6
    assert float(rewards.sum()) == pytest.approx(float(evaluation.fitness), abs=1e-5)
    np.testing.assert_allclose(places[-1], evaluation.descriptor, atol=1e-5)
    assert places.shape == (6, 2)
    assert np.ptp(np.asarray(places), axis=0).max() > 0


def test_a_replay_is_the_episode(mass, monkeypatch):
    monkeypatch.setattr(drawing, "render", lambda *arguments: ([], "no OpenGL at all"))
    genotype = np.asarray(3 * mass.init(jax.random.key(4)))
    evaluation = jax.jit(mass.evaluate)(jax.random.key(0), jnp.asarray(genotype))
    shown = mass.drawing.replay(genotype, float(evaluation.fitness), 0)
    assert shown.remarks == ("no film: no OpenGL at all",)
    assert shown.fitness == pytest.approx(float(evaluation.fitness), abs=1e-5)
    numbers = shown.arrays
    assert numbers["rewards"].shape == (6,)
    np.testing.assert_allclose(numbers["q"][-1], evaluation.descriptor, atol=1e-5)
    np.testing.assert_allclose(numbers["seen"], numbers["q"], atol=1e-6)
    np.testing.assert_allclose(numbers["observations"][1:, :2], numbers["q"][:-1], atol=1e-5)
    np.testing.assert_allclose(numbers["actions"][3], mass.act(genotype, numbers["observations"][3]), atol=1e-5)
    # The point is the last body; its place in the world follows its two slides.
    moved = np.diff(numbers["positions"][:, -1, :2], axis=0)
    np.testing.assert_allclose(
        np.linalg.norm(moved, axis=1), np.linalg.norm(np.diff(numbers["q"], axis=0), axis=1), atol=1e-4
    )


def test_what_it_is(mass):
    assert mass.name == "playground:PointMass"
    assert isinstance(mass.config, PlaygroundConfig)
    assert mass.layer_sizes == (4, 3, 2)
    assert mass.num_params == 4 * 3 + 3 + 3 * 2 + 2
    assert mass.descriptor_bounds == ((-1, -1), (1, 1))
    assert mass.descriptor_names == ("root_x", "root_y")
    assert mass == make("playground:PointMass", **MASS)


def test_bounds_are_measured(mass):
    unmeasured = make("playground:PointMass", **MASS | {"descriptor_lows": (), "descriptor_highs": ()})
    descriptors = np.array([[0, 1], [2, 5], [np.nan, 0]], np.float32)
    found = unmeasured.settled(lambda genotypes: (np.zeros(3), descriptors))
    np.testing.assert_allclose(found.descriptor_bounds, ((-0.2, 0.6), (2.2, 5.4)))
    assert mass.settled(lambda genotypes: pytest.fail("nothing to measure")) is mass
    config = FullConfig(task=mass.name, task_config=mass.config)
    assert settled(config, mass, LocalEngine()) == (config, mass)  # as a search does it


@pytest.mark.slow
def test_the_cheetah_runs():
    """It begins on its feet, at rest."""
    task = make("playground:CheetahRun", steps=2, hidden=(4,))
    assert task.descriptor_names == ("share of bfoot", "share of ffoot")
    assert task.descriptor_bounds == ((0.0, 0.0), (1.0, 1.0))
    key = jax.random.key(0)
    evaluation = jax.jit(task.evaluate_batch)(key, jax.jit(jax.vmap(task.init))(jax.random.split(key, 4)))
    best = int(evaluation.fitness.argmax())
    assert np.isfinite(evaluation.fitness).all()
    np.testing.assert_array_equal(evaluation.descriptor[best], [1, 1])
    assert 0 <= evaluation.fitness[best] < 0.1


SHAPES = {
    "sphere": (mujoco.mjtGeom.mjGEOM_SPHERE, "0.2"),
    "capsule": (mujoco.mjtGeom.mjGEOM_CAPSULE, "0.1 0.3"),
    "box": (mujoco.mjtGeom.mjGEOM_BOX, "0.1 0.2 0.3"),
    "ellipsoid": (mujoco.mjtGeom.mjGEOM_ELLIPSOID, "0.1 0.2 0.3"),
    "cylinder": (mujoco.mjtGeom.mjGEOM_CYLINDER, "0.1 0.3"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_gaps_are_mujocos_distances(shape):
    """Between a tilted plane and a turned body; far above it, MuJoCo's own distance is that of the shapes."""
    kind, size = SHAPES[shape]
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><worldbody>
          <geom name="floor" type="plane" size="9 9 1" pos="0.1 0 0.2" euler="10 20 0"/>
          <body pos="0.3 0.2 1.5" euler="30 40 50"><freejoint/><geom name="foot" type="{shape}" size="{size}"/></body>
        </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert model.geom_type[1] == kind
    expected = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
    arrays = type("Arrays", (), {"geom_xpos": jnp.asarray(data.geom_xpos), "geom_xmat": jnp.asarray(data.geom_xmat)})
    assert float(playground._gap(model, arrays, 1, 0)) == pytest.approx(expected, abs=1e-4)


def test_names_that_are_not_there():
    with pytest.raises(
        JedaxError, match="task: unknown name 'playground:CheetaRun'; did you mean 'playground:CheetahRun'"
    ):
        make("playground:CheetaRun")


def test_a_missing_extra_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco_playground", None)
    with pytest.raises(JedaxError, match=r"playground:Never: expected the package .*'jedax\[mjx\]'"):
        make("playground:Never")


def test_a_download_that_does_not_work_is_said(tmp_path, monkeypatch, capfd):
    """git refuses every protocol here, as it fails without a network."""
    from mujoco_playground._src import mjx_env

    monkeypatch.setattr(mjx_env, "EXTERNAL_DEPS_PATH", tmp_path / "deps")
    monkeypatch.setattr(mjx_env, "MENAGERIE_PATH", tmp_path / "deps" / "menagerie")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")
    with pytest.raises(
        JedaxError, match=r"Go1JoystickFlatTerrain: expected the robot models .*download that failed .*; try"
    ):
        make("playground:Go1JoystickFlatTerrain")


def test_feet_that_cannot_be_seen_are_said(monkeypatch):
    config = PlaygroundConfig(name="playground:Fake")
    floor = '<geom name="floor" type="plane" size="9 9 1"/>'
    xml = "<mujoco><worldbody>{}<body><freejoint/><geom name='foot' size='0.1'/></body></worldbody></mujoco>"
    playground._check_feet(config, mujoco.MjModel.from_xml_string(xml.format(floor)))
    with pytest.raises(
        JedaxError, match=r"descriptor: expected feet that are spheres.*got playground:Fake with no plane"
    ):
        playground._check_feet(config, mujoco.MjModel.from_xml_string(xml.format("")))
    with pytest.raises(JedaxError, match="feet: expected names of geoms, got 'hand'; choose among floor, foot"):
        playground._check_feet(config.replace(feet=("hand",)), mujoco.MjModel.from_xml_string(xml.format(floor)))
