"""Replays of policies, beside the environment stepped by hand."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

import jedax
from jedax.report.pictures import write_film
from jedax.report.replay import replay
from jedax.tasks import drawing, make, mujoco
from jedax.tasks.gym import task as gym

pytest.importorskip("mujoco", reason="needs the extra [gym]")
gymnasium = pytest.importorskip("gymnasium", reason="needs the extra [gym]")


@pytest.fixture
def no_opengl(monkeypatch):
    monkeypatch.setattr(drawing, "render", lambda *arguments: ([], "no OpenGL at all"))


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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    task = make("gym:Hopper-v5", steps=9, hidden=(4,), episode_seed=3)
    out = tmp_path_factory.mktemp("hopper") / "run"
    return jedax.run("map-elites", task, evaluations=8, offspring=4, cells=16, workers=1, out=out)


def test_numbers_and_a_picture_without_opengl(run, no_opengl):
    shown = replay(run)
    assert [path.name for path in shown.files] == ["best.png", "best.npz"]
    assert shown.remarks == ("no film: no OpenGL at all",)
    assert shown.fitness == pytest.approx(run.best().fitness, abs=1e-4)
    numbers = np.load(shown.files[1])
    rewards, q = by_hand(run.task, run.best().genotype)
    np.testing.assert_allclose(numbers["rewards"], rewards, atol=1e-4)
    np.testing.assert_allclose(numbers["q"], q, atol=1e-4)
    assert numbers["actions"].shape == (9, 3)
    assert numbers["observations"].shape == (9, 11)
    assert numbers["seen"].mean(axis=0) == pytest.approx(run.best().descriptor)
    np.testing.assert_allclose(numbers["positions"][:, 0, 2], q[:, 1], atol=1e-2)  # torso and its slide upwards
    assert numbers["dt"] == pytest.approx(0.008)
    assert Image.open(shown.files[0]).width > 600


def test_a_film_by_mujoco(run):
    shown = replay(run)
    if shown.remarks:
        pytest.skip(shown.remarks[0])
    film = Image.open(next(path for path in shown.files if path.suffix == ".gif"))
    assert film.size == (480, 360)
    assert film.n_frames == 9
    assert np.asarray(film.convert("RGB")).std() > 20  # neither one colour nor empty


def test_a_robot_that_runs_off_the_floor_is_filmed_on_squares_of_the_same_size():
    model = gymnasium.make("HalfCheetah-v5").unwrapped.model
    q = np.zeros((2, model.nq))
    q[1, 0] = 2 * model.geom_size[0, 0]  # a whole floor away: beyond its edge, over the same place of a square
    frames, reason = mujoco.render(model, q)
    if reason:
        pytest.skip(reason)
    start, beyond = (frame[-60:].astype(float) for frame in frames)
    assert start.std() > 50
    assert np.abs(start - beyond).mean() < 10


def test_files_of_the_current_directory_do_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mujoco.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    model = gymnasium.make("Hopper-v5").unwrapped.model
    mujoco.render(model, np.zeros((1, model.nq)))
    assert not (tmp_path / "mark").exists()


def test_an_opengl_that_is_not_there(run, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setenv("PYOPENGL_PLATFORM", "nothing")
    model = gymnasium.make("Hopper-v5").unwrapped.model
    frames, reason = mujoco.render(model, np.zeros((1, model.nq)))
    assert frames == []
    assert reason.startswith("MuJoCo finds no OpenGL here (MUJOCO_GL=osmesa)")


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
    monkeypatch.setattr(gym, "MOST_FRAMES", 60)
    try:
        task = make("gym:Drawn-v0", steps=steps, hidden=(), descriptor="tests.search.workers.work:lengths")
        always_right = np.float32([0, 0, 0, 1])
        fitness = steps * (steps + 1) / 2
        shown = task.drawing.replay(always_right, fitness, 0)
    finally:
        del gymnasium.registry["Drawn-v0"]
    assert shown.fitness == fitness
    numbers = shown.arrays
    np.testing.assert_array_equal(numbers["rewards"], np.arange(1, steps + 1))
    np.testing.assert_array_equal(numbers["observations"], np.arange(steps)[:, None])
    np.testing.assert_array_equal(numbers["actions"], 1)
    assert numbers["dt"] == pytest.approx(0.1)
    assert "q" not in numbers
    if not frames:
        assert shown.remarks == ("no film: DependencyNotInstalled: paint is not installed.",)
        assert not shown.frames
        return
    assert shown.remarks == ()
    film = Image.open(write_film(tmp_path / "best.gif", shown.frames, shown.seconds))
    assert film.n_frames == frames
    for number, place in ((0, 1), (frames - 1, steps)):
        film.seek(number)
        np.testing.assert_array_equal(np.asarray(film.convert("RGB")), 100 + place)
    # The film lasts as long as the episode.
    assert film.info["duration"] * frames == pytest.approx(100 * steps, rel=0.1)


def test_another_fitness_than_the_run_recorded_is_said(run, no_opengl):
    best = dataclasses.replace(run.repertoire, best_fitness=np.float32([77]))
    shown = replay(dataclasses.replace(run, repertoire=best))
    assert shown.remarks[1].startswith("the run recorded fitness 77.00: a mean over several episodes, or ")
    assert shown.fitness == pytest.approx(run.best().fitness, abs=0.01)
