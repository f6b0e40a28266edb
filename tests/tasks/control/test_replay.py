"""Replays of control tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from jedax.report import replay_control, sticks
from jedax.store.run import Solution
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.control.locomotion import Locomotion


@pytest.fixture(scope="module")
def task():
    return Locomotion(name="hopper", steps=9, hidden=(4,))


@pytest.fixture(scope="module")
def solution(task):
    genotype = 3 * task.init(jax.random.key(1))
    evaluation = jax.jit(task.evaluate_batch)(jax.random.key(0), jnp.stack([genotype] * 4))
    return Solution(np.asarray(genotype), float(evaluation.fitness[0]), np.asarray(evaluation.descriptor[0]))


class TestHopper:
    @pytest.fixture
    def shown(self, task, solution, tmp_path, monkeypatch):
        monkeypatch.setattr(replay_control, "render", lambda *arguments: "no OpenGL at all")
        return replay_control.show(task, solution, tmp_path, "best")

    def test_all_of_it(self, task, solution, shown):
        assert [path.name for path in shown.files] == ["best.png", "best.gif", "best.npz"]
        assert shown.remarks[0] == "drawn by matplotlib, for MuJoCo cannot render here (no OpenGL at all)"
        numbers = np.load(shown.files[2])
        assert shown.fitness == pytest.approx(solution.fitness, abs=0.05)
        assert numbers["rewards"].sum() == pytest.approx(shown.fitness, abs=1e-3)
        np.testing.assert_allclose(numbers["q"][:, 1] + 1.25, numbers["positions"][:, 0, 2], atol=0.02)
        speed = np.diff(numbers["positions"][:, 0, 0]) / numbers["dt"]
        control = 1e-3 * (numbers["actions"] ** 2).sum(axis=1)
        np.testing.assert_allclose(numbers["rewards"][1:], speed + 1 - control[1:], atol=2e-3)
        film = Image.open(shown.files[1])
        assert film.n_frames == len(numbers["rewards"])
        frame = np.asarray(film.convert("RGB")).astype(int)
        blue = (frame[..., 2] - frame[..., 0]) > 100
        assert 0.01 < blue.mean() < 0.2  # the robot


class TestSticks:
    @pytest.mark.parametrize(
        ("name", "planar"),
        [("halfcheetah", True), ("walker2d", True), ("hopper", True), ("ant", False), ("humanoid", False)],
    )
    def test_robots_in_the_plane(self, name, planar):
        assert sticks.body_of(Locomotion(name=name).environment.sys.mj_model).planar == planar

    def test_capsules_are_where_they_are(self):
        model = AntMaze().environment.sys.mj_model
        body = sticks.body_of(model)
        assert not body.planar
        assert (body.links == -1).sum() == 7  # the walls
        positions = np.random.default_rng(0).normal(size=(9, 3))
        rotations = Rotation.random(9, random_state=1)
        ends = body.placed(positions, rotations.as_quat(scalar_first=True))
        for (one, two), link, own in zip(ends, body.links, body.ends, strict=True):
            expected = own if link == -1 else rotations[link].apply(own) + positions[link]
            np.testing.assert_allclose([one, two], expected, atol=1e-6)
        walls = np.sort(ends[body.links == -1][..., 2].ravel())
        np.testing.assert_allclose(walls, 0.5, atol=1e-6)
        torso = body.ends[(body.links == 0) & (body.radii == 0.25)][0]
        np.testing.assert_allclose(torso.mean(axis=0), 0, atol=1e-9)
