"""gymnasium's environments as tasks: what they are, what is refused, and a whole search."""

import sys

import jax
import numpy as np
import pytest

import jedax
from jedax.errors import JedaxError
from jedax.networks import layers
from jedax.search.engines import LocalEngine
from jedax.search.programs import evaluate_samples
from jedax.tasks import make
from jedax.tasks.gym.settings import GymConfig, parse_arguments

pytest.importorskip("mujoco", reason="needs the extra [gym]")
gymnasium = pytest.importorskip("gymnasium", reason="needs the extra [gym]")


def test_the_cheetah():
    task = make("gym:HalfCheetah-v5", hidden=(8,))
    assert task.name == "gym:HalfCheetah-v5"
    assert task.layer_sizes == (17, 8, 6)
    assert task.num_params == 17 * 8 + 8 + 8 * 6 + 6
    assert task.descriptor_bounds == ((0.0, 0.0), (1.0, 1.0))
    assert task.descriptor_names == ("share of bfoot", "share of ffoot")
    assert task == make("gym:HalfCheetah-v5", hidden=(8,))
    assert make("gym:HalfCheetah-v5").layer_sizes == (17, 64, 64, 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"descriptor_lows": (0,), "descriptor_highs": (1,)},
            "descriptor_lows: expected 2 numbers, for share of bfoot, ",
        ),
        (
            {"normalise": True, "observation_mean": (0,), "observation_std": (2,)},
            "observation_mean: expected 17 numbers",
        ),
    ],
)
def test_numbers_that_do_not_fit(settings, message):
    with pytest.raises(JedaxError, match=message):
        make("gym:HalfCheetah-v5", **settings)


@pytest.mark.parametrize(
    ("name", "settings", "bounds", "names"),
    [
        ("Hopper-v5", {}, ((0,), (1,)), ("share of foot_geom",)),
        ("Ant-v5", {"feet": ("left_ankle_geom", "right_ankle_geom")}, ((0, 0), (1, 1)),
         ("share of left_ankle_geom", "share of right_ankle_geom")),
        ("Ant-v5", {"descriptor": "final-xy", "descriptor_lows": (-9, -9), "descriptor_highs": (9, 8)},
         ((-9, -9), (9, 8)), ("x", "y")),
        ("HalfCheetah-v5", {"descriptor": "final-xy", "descriptor_lows": (-9, -9), "descriptor_highs": (9, 8)},
         ((-9, -9), (9, 8)), ("rootx", "rootz")),
    ],
)  # fmt: skip
def test_descriptors(name, settings, bounds, names):
    task = make(f"gym:{name}", **settings)
    assert task.descriptor_bounds == bounds
    assert task.descriptor_names == names


def test_what_a_policy_does_is_what_the_environment_takes():
    task = make("gym:Hopper-v5", hidden=())
    action = task.act(jax.numpy.zeros(task.num_params), np.zeros(11))
    assert action.shape == (3,)
    assert action.dtype == np.float32
    pendulum = make("gym:Pendulum-v1", hidden=(), descriptor="tests.search.workers.work:lengths")
    assert pendulum.act(np.float32([0, 0, 0, 50]), np.zeros(3)) == pytest.approx([2.0])
    pole = make("gym:CartPole-v1", hidden=(), descriptor="tests.search.workers.work:lengths")
    assert pole.act(np.float32([0] * 8 + [0, 1]), np.zeros(4)) == 1
    assert pole.descriptor_names == ("steps", "return")
    with pytest.raises(JedaxError, match="observation: expected 4 numbers, got 3"):
        pole.act(np.zeros(10, np.float32), np.zeros(3))


BAD = [
    ("gym:HalfChetah-v5", {}, r"task: unknown name 'gym:HalfChetah-v5'; did you mean 'gym:HalfCheetah-v5'"),
    ("CartPole-v1", {}, r"task: expected the name of a task, got CartPole-v1; try gym:CartPole-v1"),
    ("ALE/Pong-v5", {}, r"task: expected the name of a task, got ALE/Pong-v5; try gym:ALE/Pong-v5"),
    ("gym:HalfCheetah-v99", {}, r"task: unknown name 'gym:HalfCheetah-v99'; did you mean 'gym:HalfCheetah-v5'"),
    ("gym:HalfCheetah-v3", {}, r"task: expected an environment .* makes, got gym:HalfCheetah-v3 with "),
    ("gym:nosuch:Env-v0", {}, r"task: expected an environment .* got gym:nosuch:Env-v0 with ModuleNotFoundError"),
    ("gym:HalfCheetah-v5", {"arguments": ("wings=2",)}, r"task: expected an environment .*'wings'.*; correct the arg"),
    ("gym:HalfCheetah-v5", {"arguments": ("wings",)}, r"arguments: expected name=value, got 'wings'"),
    ("gym:Letters-v0", {"steps": 9}, r"gym:Letters-v0: expected observations that gymnasium can flatten to a fixed"),
    ("gym:Blackjack-v1", {}, r"steps: expected the longest episode of gym:Blackjack-v1, .* give steps"),
    ("gym:Pairs-v0", {}, r"gym:Pairs-v0: expected actions of kind Discrete or MultiDiscrete, or Box with "),
    ("gym:HalfCheetah-v5", {"descriptor": "feet"}, r"descriptor: expected feet-contact, final-xy or module:function"),
    ("gym:HalfCheetah-v5", {"descriptor": "tests.search.workers.work:nobody"}, r"descriptor: expected 'nobody' in "),
    ("gym:HalfCheetah-v5", {"descriptor": "tests.search.workers.work:not_callable"}, "descriptor: expected a function"),
    ("gym:CartPole-v1", {}, r"descriptor: expected a MuJoCo environment for 'feet-contact', got CartPoleEnv"),
    ("gym:CartPole-v1", {"descriptor": "final-xy"}, r"descriptor: expected an environment with two coordinates"),
    ("gym:Ant-v5", {}, r"feet: expected geoms with 'foot' in their name, got none; choose among floor, torso_geom"),
    ("gym:Ant-v5", {"feet": ("hand",)}, r"feet: expected names of geoms, got 'hand'; choose among floor, torso_geom"),
    ("gym:HalfCheetah-v5", {"descriptor_lows": (1,), "descriptor_highs": (0,)}, r"descriptor_lows: expected as many"),
    ("gym:HalfCheetah-v5", {"wings": 2}, r"parameter: unknown name 'wings'"),
]  # fmt: skip


spaces = gymnasium.spaces


class TwoHands(gymnasium.Env):
    """The reward tells the place, the tool and both hands apart."""

    observation_space = spaces.Dict(place=spaces.Box(-1, 1, (2,), np.float64), tool=spaces.Discrete(3))
    action_space = spaces.MultiDiscrete([2, 3], start=[5, -1])
    open = 0

    def __init__(self):
        TwoHands.open += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place = self.np_random.uniform(-1, 1, 2)
        return {"place": self._place, "tool": 2}, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self._place = np.clip(self._place + 0.1 * action, -1, 1)
        tool = int(action[0] + action[1]) % 3
        return {"place": self._place, "tool": tool}, float(self._place @ (1, 10) + 100 * tool), False, False, {}

    def close(self):
        TwoHands.open -= 1


class Letters(TwoHands):
    observation_space = spaces.Sequence(spaces.Discrete(26))


class Pairs(TwoHands):
    action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])


@pytest.fixture(scope="module", autouse=True)
def _registered():
    for environment in (TwoHands, Letters, Pairs):
        gymnasium.register(f"{environment.__name__}-v0", environment, max_episode_steps=3)
    yield
    for environment in (TwoHands, Letters, Pairs):
        del gymnasium.registry[f"{environment.__name__}-v0"]


def test_normalised_observations(tmp_path):
    """A policy is one whose first layer has the statistics of random policies, which a run keeps."""
    name, settings = "gym:Pendulum-v1", {"hidden": (4,), "steps": 20, "episode_seed": 1}
    settings |= {"descriptor": "tests.search.workers.work:lengths", "descriptor_lows": (0, -400)}
    settings["descriptor_highs"] = (40, 0)
    small = {"evaluations": 16, "offspring": 8, "cells": 16, "workers": 1}
    run = jedax.run("map-elites", make(name, normalise=True, **settings), out=tmp_path / "run", draw=None, **small)
    task = jedax.load(tmp_path / "run", trust=True).task
    mean, std = task.observation_statistics
    plain = make(name, **settings)
    policies = np.asarray(jax.vmap(plain.init)(jax.random.split(jax.random.key(0), 64)))
    seen = np.concatenate([np.array(plain.replay(policy).observations) for policy in policies])
    np.testing.assert_allclose(mean, seen.mean(axis=0), atol=1e-3 * seen.std(axis=0).max())
    np.testing.assert_allclose(std, seen.std(axis=0), rtol=1e-3)
    best = run.best()
    (kernel, bias), *rest = layers(best.genotype, task.layer_sizes)
    folded = [kernel / std[:, None], bias - (mean / std) @ kernel, *(part for layer in rest for part in layer)]
    same = plain.evaluate(jax.random.key(0), np.concatenate([part.ravel() for part in folded]).astype(np.float32))
    assert same.fitness == pytest.approx(best.fitness, rel=1e-4)
    assert plain.evaluate(jax.random.key(0), best.genotype).fitness != pytest.approx(best.fitness, rel=1e-2)
    observation = seen[5].astype(np.float32)
    np.testing.assert_allclose(run.policy()(observation), task.act(best.genotype, observation), rtol=1e-6)
    with pytest.raises(JedaxError, match=r"observation_mean: expected 3 numbers, .*got 0; take those"):
        make(name, normalise=True, **settings).act(best.genotype, observation)


def test_dicts_are_flattened_and_each_number_of_an_action_has_outputs_of_its_own():
    """As in a loop without jedax; environments are closed."""
    task = make("gym:TwoHands-v0", hidden=(4,), descriptor="tests.search.workers.work:lengths", episode_seed=3)
    assert task.layer_sizes == (5, 4, 5)
    genotype = np.asarray(task.init(jax.random.key(1)))
    before = TwoHands.open
    found = task.evaluate(jax.random.key(0), genotype)
    assert TwoHands.open == before
    environment, total, steps = gymnasium.make("TwoHands-v0"), 0.0, 0
    observation, _ = environment.reset(seed=3)
    done = False
    while not done:
        observation, reward, _, done, _ = environment.step(task.act(genotype, observation))
        total, steps = total + reward, steps + 1
    assert (found.fitness, found.descriptor[0]) == (pytest.approx(total, rel=1e-6), steps)


@pytest.mark.parametrize(("name", "settings", "message"), BAD)
def test_what_is_refused(name, settings, message):
    with pytest.raises(JedaxError, match=message):
        make(name, **settings)


def test_arguments_are_texts_or_a_dict():
    given = {"a": 1e-5, "b": "yes", "c": [1, None], "d": {"e": True}, "f": "1.5"}
    config = GymConfig(name="gym:X-v0", arguments=given)
    assert parse_arguments(config.arguments) == given
    assert GymConfig.build(config.model_dump(mode="json")) == config
    texts = ("a=1e-3", "b=yes", "c=text", "d=[1, x]", "e=.5")
    assert parse_arguments(texts) == {"a": 0.001, "b": True, "c": "text", "d": [1, "x"], "e": 0.5}


def test_a_missing_extra_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(JedaxError, match=r"gym:Hopper-v5: expected the package gymnasium, .*'jedax\[gym\]'"):
        make("gym:Hopper-v5", steps=1)


def test_bounds_must_be_known():
    task = make("gym:Ant-v5", descriptor="final-xy")
    with pytest.raises(JedaxError, match="descriptor_lows: expected bounds of the descriptors, got none; give"):
        _ = task.descriptor_bounds


def test_a_search_with_measured_bounds_leaves_what_it_takes_to_go_on(tmp_path):
    name = "gym:Ant-v5"
    task = make(name, descriptor="final-xy", steps=5, hidden=(2,), measured_on=4, chunk=3)
    run = jedax.run("map-elites", task, evaluations=24, offspring=8, cells=16, seed=2, workers=2, out=tmp_path / "run")
    assert run.config.task == name
    assert isinstance(run.config.task_config, GymConfig)
    lows, highs = run.task.descriptor_bounds
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 4))
    seen = task.evaluate_batch(jax.random.key(0), genotypes).descriptor
    np.testing.assert_allclose(lows, seen.min(axis=0) - 0.1 * np.ptp(seen, axis=0), rtol=1e-3)
    np.testing.assert_allclose(highs, seen.max(axis=0) + 0.1 * np.ptp(seen, axis=0), rtol=1e-3)
    again = jedax.load(tmp_path / "run")
    assert again.task == run.task
    best = again.best()
    assert float(again.task.evaluate(jax.random.key(0), best.genotype).fitness) == best.fitness
    assert again.repertoire.counts.sum() == 24
    assert (tmp_path / "run" / "figures" / "best.png").exists()


def test_pga_me_is_refused():
    with pytest.raises(JedaxError, match=r"one for gym:Hopper-v5, whose genotypes are no policies .* got pga-me"):
        jedax.run("pga-me", "gym:Hopper-v5", evaluations=64)


def test_samples_start_from_seeds_that_follow_each_other():
    task = make("gym:CartPole-v1", hidden=(), descriptor="tests.search.workers.work:lengths", descriptor_lows=(0, 0),
                descriptor_highs=(500, 500), episode_seed=2**31 - 2)  # fmt: skip
    assert [task.sample_seed(sample) for sample in range(3)] == [2**31 - 2, 2**31 - 1, 0]
    # A policy that pushes one way falls after about ten steps; where it starts makes a difference of some.
    genotype = np.float32([0] * 8 + [0, 1])
    pool = LocalEngine().open_pool(task.work, 1, 60.0)
    try:
        found = evaluate_samples(task, pool, genotype[None], range(40))
        alone, _ = pool.evaluate(genotype[None])
    finally:
        pool.close()
    lengths = np.asarray(found.fitness[:, 0])
    assert lengths[0] == alone[0]
    assert len(set(lengths)) > 1
    environment = gymnasium.make("CartPole-v1")
    for sample in (0, 1, 2, 39):
        environment.reset(seed=(2**31 - 2 + sample) % 2**31)
        steps, over = 0, False
        while not over:
            _, _, over, _, _ = environment.step(1)
            steps += 1
        assert lengths[sample] == steps
