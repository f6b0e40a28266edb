"""Replays in environments of others, beside the environment stepped by hand."""

import numpy as np
import pytest
from PIL import Image

import jedax
from jedax.report import replay_control, replay_environment
from jedax.report.replay import replay
from jedax.store.run import Solution
from jedax.tasks import make

pytest.importorskip("mujoco", reason="needs the extra [gym]")
gymnasium = pytest.importorskip("gymnasium", reason="needs the extra [gym]")


@pytest.fixture
def no_opengl(monkeypatch):
    monkeypatch.setattr(replay_control, "render", lambda *arguments: "no OpenGL at all")


def by_hand(task, genotype):
    """Return the rewards of an episode, and MuJoCo's coordinates after each step, in a fresh environment."""
    environment = gymnasium.make(task.name.removeprefix("gym:"), max_episode_steps=task.config.steps)
    observation, _ = environment.reset(seed=task.config.episode_seed)
    rewards, q, ended = [], [], False
    while not ended:
        observation, reward, terminated, truncated, _ = environment.step(task.act(genotype, observation))
        rewards.append(reward)
        q.append(environment.unwrapped.data.qpos.copy())
        ended = terminated or truncated
    return np.array(rewards), np.array(q)


def test_a_run_in_mujoco(tmp_path, no_opengl):
    task = make("gym:Hopper-v5", steps=9, hidden=(4,), episode_seed=3)
    run = jedax.run("map-elites", task, evaluations=8, offspring=4, cells=16, workers=1, out=tmp_path / "run")
    shown = replay(run)
    assert [path.name for path in shown.files] == ["best.png", "best.gif", "best.npz"]
    assert shown.remarks == ("drawn by matplotlib, for MuJoCo cannot render here (no OpenGL at all)",)
    assert shown.fitness == pytest.approx(run.best().fitness, abs=1e-4)
    numbers = np.load(shown.files[2])
    rewards, q = by_hand(task, run.best().genotype)
    np.testing.assert_allclose(numbers["rewards"], rewards, atol=1e-4)
    np.testing.assert_allclose(numbers["q"], q, atol=1e-4)
    assert numbers["actions"].shape == (9, 3)
    assert numbers["observations"].shape == (9, 11)
    assert numbers["seen"].mean(axis=0) == pytest.approx(run.best().descriptor)
    np.testing.assert_allclose(numbers["positions"][:, 0, 2], q[:, 1], atol=1e-2)  # torso and its slide upwards
    assert numbers["dt"] == pytest.approx(0.008)
    film = Image.open(shown.files[1])
    assert film.n_frames == 9
    frame = np.asarray(film.convert("RGB")).astype(int)
    assert 0.01 < (frame[..., 2] - frame[..., 0] > 100).mean() < 0.2  # the robot
    assert Image.open(shown.files[0]).width > 600


class Drawing(gymnasium.Env):
    """A point that each action moves by one to either side; the picture's brightness is where it is."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(-99, 99, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    draws = True

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        self.place = 0
        return np.float32([self.place]), {}

    def step(self, action):
        self.place += 1 if action else -1
        return np.float32([self.place]), float(self.place), False, False, {}

    def render(self):
        if not self.draws:
            raise gymnasium.error.DependencyNotInstalled("paint is not installed.")
        return np.full((20, 30, 3), 100 + self.place, np.uint8)


class Blind(Drawing):
    draws = False


@pytest.mark.parametrize(("kind", "steps", "frames"), [(Drawing, 7, 7), (Drawing, 100, 60), (Blind, 7, 0)])
def test_environments_that_draw_themselves_or_not(kind, steps, frames, tmp_path, monkeypatch):
    gymnasium.register("Drawn-v0", kind)
    monkeypatch.setattr(replay_environment, "_MOST_FRAMES", 60)
    try:
        task = make("gym:Drawn-v0", steps=steps, hidden=(), descriptor="tests.search.workers.work:lengths")
        always_right = np.float32([0, 0, 0, 1])
        fitness = steps * (steps + 1) / 2
        shown = replay_environment.show(task, Solution(always_right, fitness, np.float32([0, 0])), tmp_path, "best")
    finally:
        del gymnasium.registry["Drawn-v0"]
    assert shown.fitness == fitness
    numbers = np.load(tmp_path / "best.npz")
    np.testing.assert_array_equal(numbers["rewards"], np.arange(1, steps + 1))
    np.testing.assert_array_equal(numbers["observations"], np.arange(steps)[:, None])
    np.testing.assert_array_equal(numbers["actions"], 1)
    assert numbers["dt"] == pytest.approx(0.1)
    assert "q" not in numbers
    if not frames:
        assert shown.remarks == (
            "no film, for the environment draws nothing here (DependencyNotInstalled: paint is not installed)",
        )
        assert [path.name for path in shown.files] == ["best.png", "best.npz"]
        return
    assert shown.remarks == ()
    film = Image.open(tmp_path / "best.gif")
    assert film.n_frames == frames
    for number, place in ((0, 1), (frames - 1, steps)):
        film.seek(number)
        np.testing.assert_array_equal(np.asarray(film.convert("RGB")), 100 + place)
    # The film lasts as long as the episode.
    assert film.info["duration"] * frames == pytest.approx(100 * steps, rel=0.1)


def test_another_fitness_than_the_run_recorded_is_said(tmp_path, no_opengl):
    task = make("gym:Hopper-v5", steps=3, hidden=())
    stand = Solution(np.zeros(task.num_params, np.float32), 77.0, np.float32([1]))
    shown = replay_environment.show(task, stand, tmp_path, "best")
    assert shown.remarks[1].startswith("the run recorded fitness 77.0: a mean over several episodes, or ")
    assert shown.fitness == pytest.approx(3, abs=0.1)
