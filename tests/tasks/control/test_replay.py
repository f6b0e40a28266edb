"""Replays of control tasks."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from jedax.tasks import drawing
from jedax.tasks.control.task import Locomotion
from jedax.tasks.motion import Motion


@pytest.fixture(scope="module")
def task():
    return Locomotion(name="hopper", steps=9, hidden=(4,))


class TestHopper:
    @pytest.fixture
    def genotype(self, task):
        return np.asarray(3 * task.init(jax.random.key(1)))

    def test_all_of_it(self, task, genotype, monkeypatch):
        monkeypatch.setattr(drawing, "render", lambda *arguments: ([], "no OpenGL at all"))
        evaluation = jax.jit(task.evaluate_batch)(jax.random.key(0), jnp.stack([genotype] * 4))
        shown = task.drawing.replay(genotype, 0.0, 0)
        assert (shown.remarks, shown.frames) == (("no film: no OpenGL at all",), [])
        assert shown.fitness == pytest.approx(float(evaluation.fitness[0]), abs=0.05)
        numbers = shown.arrays
        assert numbers["rewards"].sum() == pytest.approx(shown.fitness, abs=1e-3)
        assert numbers["seen"].mean(axis=0) == pytest.approx(np.asarray(evaluation.descriptor[0]), abs=1e-6)
        np.testing.assert_allclose(numbers["q"][:, 1] + 1.25, numbers["positions"][:, 0, 2], atol=0.02)
        speed = np.diff(numbers["positions"][:, 0, 0]) / numbers["dt"]
        control = 1e-3 * (numbers["actions"] ** 2).sum(axis=1)
        np.testing.assert_allclose(numbers["rewards"][1:], speed + 1 - control[1:], atol=2e-3)
        np.testing.assert_array_equal(numbers["next_observations"][:-1], numbers["observations"][1:])
        assert numbers["done"].shape == numbers["rewards"].shape
        assert shown.seconds == pytest.approx(len(numbers["rewards"]) * numbers["dt"])
        above, below = shown.figure.axes
        assert above.get_title() == f"hopper: fitness {shown.fitness:.5g} in {len(numbers['rewards'])} steps"
        assert [label.get_text().split()[0] for label in below.get_yticklabels()] == ["foot"]

    def test_speed_and_height(self, task, genotype, monkeypatch):
        monkeypatch.setattr(drawing, "render", lambda *arguments: ([], "no OpenGL at all"))
        task = type(task)(task.config, descriptor="speed-height")
        evaluation = jax.jit(task.evaluate_batch)(jax.random.key(0), jnp.stack([genotype] * 4))
        shown = task.drawing.replay(genotype, 0.0, 0)
        height = shown.arrays["positions"][:, 0, 2].mean()
        assert height == pytest.approx(float(evaluation.descriptor[0, 1]), abs=1e-3)
        assert shown.arrays["seen"].shape == (len(shown.arrays["rewards"]), 0)
        assert shown.figure.axes[1].get_ylabel() == "return"  # and no feet


def test_an_ant_is_drawn_as_its_path():
    from tests.tasks.control.scripted import Script, ant

    places = np.array([[1, 0], [4, 1], [8, 2], [9, 3]], float)
    positions = np.concatenate([places, np.full((4, 1), 0.5)], axis=1)[:, None]
    task = ant(Script(positions, [-9, -8, -7, -6], [0, 0, 0, 0]))
    motion = Motion(np.float32([-9, -8]), places, np.zeros((4, 1)), np.zeros((4, 1)), 0.05)
    figure = task.drawing.draw_episode(motion, [])
    path = next(line for line in figure.axes[0].lines if line.get_label() == "path")
    np.testing.assert_allclose(path.get_xydata(), [[0, 0], *places])
    plt.close(figure)
