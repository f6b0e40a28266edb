"""Episodes against a plain loop over the environment, one policy at a time."""

import itertools

import numpy as np
import pytest

from jedax import networks as policy
from jedax.errors import JedaxError
from jedax.tasks.gym.episodes import Actions, Evaluator, make_environment

pytest.importorskip("mujoco", reason="needs the extra [gym]")
gymnasium = pytest.importorskip("gymnasium", reason="needs the extra [gym]")


def episodes(name, sizes, **changes):
    settings = {
        "name": name, "arguments": {}, "steps": 30, "seed": 3, "sizes": sizes, "activation": "tanh",
        "actions": {"lows": (-1.0,) * sizes[-1], "highs": (1.0,) * sizes[-1], "shape": (sizes[-1],)},
        "descriptor": "feet-contact", "feet": (), "num_descriptors": None,
    }  # fmt: skip
    return Evaluator(**(settings | changes))


def drawn(number, sizes, scale=1.0):
    return scale * np.random.default_rng(1).normal(size=(number, policy.num_params(sizes))).astype(np.float32)


def act(genotype, sizes, observation):
    """The policy, written anew: row-major kernels, biases behind each, tanh everywhere."""
    values, start = np.float64(observation), 0
    for inputs, outputs in itertools.pairwise(sizes):
        kernel = np.float64(genotype[start : start + inputs * outputs]).reshape(inputs, outputs)
        start += inputs * outputs
        values = np.tanh(values @ kernel + genotype[start : start + outputs])
        start += outputs
    return values


CHEETAH = (17, 8, 6)


def test_rewards_and_contacts_of_the_cheetah():
    """Small weights and few steps: robots that thrash about soon part ways over the last bit of an action."""
    genotypes = drawn(3, CHEETAH, 0.2)
    fitness, descriptors = episodes("HalfCheetah-v5", CHEETAH, steps=20)(genotypes)
    environment = make_environment("HalfCheetah-v5", {}, 20)
    model, data = environment.unwrapped.model, environment.unwrapped.data
    for row, genotype in enumerate(genotypes):
        observation, _ = environment.reset(seed=3)
        earned, touched, over = 0.0, np.zeros((0, 2)), False
        while not over:
            action = np.float32(act(genotype, CHEETAH, observation))
            observation, reward, terminated, truncated, _ = environment.step(action)
            earned, over = earned + reward, terminated or truncated
            pairs = [{model.geom(geom).name for geom in contact.geom} for contact in data.contact]
            touched = np.vstack([touched, [{"floor", foot} in pairs for foot in ("bfoot", "ffoot")]])
        assert len(touched) == 20
        np.testing.assert_allclose(fitness[row], earned, atol=1e-3)
        np.testing.assert_allclose(descriptors[row], touched.mean(axis=0), atol=1e-6)
    assert np.ptp(descriptors) > 0.2
    assert np.ptp(fitness) > 0.1


def test_bits_do_not_depend_on_the_others():
    genotypes = drawn(5, CHEETAH, 0.5)
    evaluate = episodes("HalfCheetah-v5", CHEETAH)
    fitness, descriptors = evaluate(genotypes)
    again = evaluate(genotypes[::-1])
    np.testing.assert_array_equal(again[0][::-1], fitness)
    fresh = episodes("HalfCheetah-v5", CHEETAH)
    for row in (0, 4):
        alone = fresh(genotypes[row : row + 1])
        np.testing.assert_array_equal(alone[0], fitness[row : row + 1])
        np.testing.assert_array_equal(alone[1], descriptors[row : row + 1])
    other_seed = episodes("HalfCheetah-v5", CHEETAH, seed=4)(genotypes)
    assert (other_seed[0] != fitness).all()


def test_final_xy_is_where_the_ant_ends():
    sizes = (105, 8)
    genotypes = drawn(2, sizes, 0.1)
    evaluate = episodes("Ant-v5", sizes, descriptor="final-xy", steps=8,
                        actions={"lows": (-1.0,) * 8, "highs": (1.0,) * 8, "shape": (8,)})  # fmt: skip
    _, descriptors = evaluate(genotypes)
    environment = make_environment("Ant-v5", {}, 8)
    observation, _ = environment.reset(seed=3)
    for _ in range(8):
        observation, *_, info = environment.step(np.float32(act(genotypes[1], sizes, observation)))
    np.testing.assert_allclose(descriptors[1], [info["x_position"], info["y_position"]], atol=1e-3)


POLE = (4, 2)


def pole(**changes):
    actions, descriptor = {"options": (2,), "first": (0,)}, "tests.search.workers.work:lengths"
    settings = {"actions": actions, "steps": 100, "descriptor": descriptor}
    return episodes("CartPole-v1", POLE, **(settings | changes))


def test_episodes_end_one_by_one_with_discrete_actions():
    """The pole falls after a number of steps that depends on the policy; each step earns 1."""
    genotypes = drawn(20, POLE)
    fitness, descriptors = pole()(genotypes)
    environment = make_environment("CartPole-v1", {}, 100)
    lengths = []
    for genotype in genotypes:
        observation, _ = environment.reset(seed=3)
        lengths.append(0)
        over = False
        while not over:
            action = int(act(genotype, POLE, observation).argmax())
            observation, _, terminated, truncated, _ = environment.step(action)
            lengths[-1], over = lengths[-1] + 1, terminated or truncated
    np.testing.assert_array_equal(fitness, lengths)
    np.testing.assert_array_equal(descriptors, np.stack([lengths, lengths], axis=1))
    assert len(set(lengths)) > 2


def test_weights_that_are_not_finite_fail():
    genotypes = drawn(3, POLE)
    expected = pole()(genotypes)
    genotypes[1, 2] = np.nan
    fitness, descriptors = pole()(genotypes)
    assert np.isnan(fitness[1])
    assert np.isnan(descriptors[1]).all()
    np.testing.assert_array_equal(fitness[[0, 2]], expected[0][[0, 2]])
    fitness, descriptors = pole(num_descriptors=2)(genotypes[1:2])
    assert np.isnan(fitness).all()
    assert descriptors.shape == (1, 2)


def test_a_descriptor_of_another_length_is_said():
    evaluate = pole(descriptor="tests.search.workers.work:three_numbers", num_descriptors=2)
    with pytest.raises(
        JedaxError, match=r"three_numbers: descriptor: expected shape \(2,\), got \(3,\); return a list"
    ):
        evaluate(drawn(1, POLE))


class Walk(gymnasium.Env):
    """A walk to the right, whose observation is one array that changes in place."""

    observation_space = gymnasium.spaces.Box(-100, 100, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self):
        self.place, self.number = np.zeros(2, np.float32), 0

    def reset(self, *, seed=None, options=None):
        self.place[:], self.number = 0, 0
        return self.place, {}

    def step(self, action):
        self.place[0] += 1
        self.number += 1
        return self.place, 0.0, self.number == 5, False, {}


def ends(episode):
    return np.array([episode.observations[0][0], episode.observations[-1][0]])


def test_an_episode_keeps_what_was_observed():
    gymnasium.register("Walk-v0", Walk)
    evaluate = episodes("Walk-v0", (2, 1), descriptor=f"{__name__}:ends", num_descriptors=2)
    np.testing.assert_array_equal(evaluate(drawn(1, (2, 1)))[1], [[0, 5]])


def uneven(episode):
    return np.zeros(1 + len(episode.actions) % 2)


def test_descriptors_of_different_lengths_are_no_results():
    evaluate, genotypes = pole(descriptor=f"{__name__}:uneven"), drawn(20, POLE)
    assert evaluate(genotypes[:1])[1].shape != evaluate(genotypes[2:3])[1].shape
    with pytest.raises(ValueError, match="cannot reshape"):
        evaluate(genotypes)


def test_actions_reach_both_bounds():
    actions = Actions((-2.0, 0.0), (2.0, 3.0), (2,))
    np.testing.assert_array_equal(actions(np.float32([[-1, 1], [0, 0]])), [[-2, 3], [0, 1.5]])
    assert actions(np.zeros((1, 2)))[0].dtype == np.float32
    whole = Actions((0.0, -1.0), (1.0, 1.0), (2,), "int8")
    np.testing.assert_array_equal(whole(np.float32([[0.9, -0.9], [-0.9, 0.9], [0.1, 0.1]])), [[1, -1], [0, 1], [1, 0]])
    assert Actions(options=(3,), first=(5,))(np.float32([[0, 1, 0], [2, 1, 0]])) == [6, 5]
    several = Actions(options=(3, 2), first=(5, 0), shape=(2,), dtype="int64")
    np.testing.assert_array_equal(several(np.float32([[0, 1, 0, 7, 8], [2, 1, 0, 8, 7]])), [[6, 1], [5, 0]])


def test_each_episode_starts_from_its_own_seed():
    genotypes, seeds = np.repeat(drawn(1, CHEETAH, 0.2), 3, axis=0), [3, 8, 5]
    kept = episodes("HalfCheetah-v5", CHEETAH, steps=5)
    fitness, _ = kept(genotypes, np.array(seeds))
    alone = [episodes("HalfCheetah-v5", CHEETAH, steps=5, seed=seed)(genotypes[:1])[0][0] for seed in seeds]
    np.testing.assert_array_equal(fitness, alone)
    assert len(set(alone)) == 3
    np.testing.assert_array_equal(kept(genotypes)[0], [alone[0]] * 3)
