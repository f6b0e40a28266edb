"""Episodes acted again: which come first, what stops them, and what they saw, against scripts and step by step."""

import base64
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jedax.report import episodes as module
from jedax.report.episodes import Rollout, kept, packed, rollouts, spread
from jedax.store.packing import unpack
from jedax.tasks import AntMaze, Locomotion, make
from jedax.tasks.drawing import FEET, RETURN, WAY, Episodes

BOX = ((0.0, 0.0), (1.0, 1.0))


class TestSpread:
    def test_the_best_first_then_the_best_left_of_each_quarter(self):
        descriptors = np.array([[0.1, 0.1], [0.2, 0.1], [0.3, 0.3], [0.9, 0.9], [0.8, 0.8], [0.9, 0.1], [0.5, 0.5]])
        fitness = np.array([9.0, 8.0, 7.0, 3.0, 2.0, 1.0, -np.inf])
        # 0 is the best; of the quarters 1 (lower left), 3 (upper right), 5 (lower right) are the best left.
        assert spread(descriptors, fitness, BOX).tolist() == [0, 1, 3, 5, 2, 4]

    @given(st.lists(st.tuples(st.floats(-1, 2), st.floats(-1, 2), st.sampled_from([-np.inf, np.nan, 0.0, 1.0, 2.0]))))
    def test_every_filled_cell_once(self, cells):
        table = np.array(cells, float).reshape(-1, 3)
        order = spread(table[:, :2], table[:, 2], BOX)
        filled = np.flatnonzero(np.isfinite(table[:, 2]))
        assert sorted(order.tolist()) == filled.tolist()
        if len(filled):
            assert table[order[0], 2] == table[filled, 2].max()

    def test_solutions_that_behave_alike(self):
        assert spread(np.full((5, 2), 0.5), np.arange(5.0), BOX).tolist() == [4, 3, 2, 1, 0]


def test_kinds():
    hopper = Locomotion(name="hopper").drawing.episodes()
    assert (hopper.kind, hopper.feet, hopper.batch) == (FEET, ("foot",), 32)
    hopper = Locomotion(name="hopper", descriptor="speed-height").drawing.episodes()
    assert (hopper.kind, hopper.feet) == (RETURN, ())
    assert AntMaze().drawing.episodes().kind == WAY
    assert make("maze-a").drawing.episodes() is None


@pytest.mark.parametrize("length", [1, 2, 119, 120, 121, 1000])
def test_kept_steps_are_even_and_end_with_the_last(length):
    steps = kept(length)
    assert len(steps) <= module.MOST_POINTS
    assert steps[-1] == length - 1
    every = -(-length // module.MOST_POINTS)
    assert np.diff(np.append(-1, steps))[:-1].tolist() == [every] * (len(steps) - 1)


class TestRobots:
    """Scripted robots: what is seen can be said by hand."""

    @pytest.fixture
    def walker(self):
        pytest.importorskip("brax")
        from tests.tasks.control.test_base import DOWN, UP, walk

        return walk([DOWN, UP, DOWN, DOWN, UP], [UP, DOWN, DOWN, UP, UP], [1, 2, 4, 8, 16], [0, 0, 0, 1, 0])

    def test_feet(self, walker):
        genotypes = np.zeros((1, 7, walker.num_params), np.float32)
        acting = walker.drawing.episodes()
        (found,) = rollouts(acting, genotypes, [np.array([6, 2])], seconds=1e9, most_bytes=1e9)
        assert [one.cell for one in found] == [6, 2]
        for one in found:
            assert one.rewards.tolist() == [1, 2, 4, 8]  # the fourth step ends it
            assert one.seen.astype(int).tolist() == [[1, 0], [0, 1], [1, 1], [1, 0]]
        fitness = np.full(7, 15.0)
        fitness[2] = 15.5
        shown = packed(acting, found, fitness)["episodes"]
        assert shown["cells"] == [6, 2]
        assert shown["lengths"] == [4, 4]
        assert shown["departs"] == [2]
        np.testing.assert_allclose(unpack(shown["returns"]), [1, 3, 7, 15] * 2, atol=1e-3)
        assert base64.b64decode(shown["contacts"]) == bytes([0b01111001] * 2)

    def test_ways(self):
        pytest.importorskip("brax")
        from tests.tasks.control.scripted import Script, ant

        places = np.array([[1, 0], [2, 1], [3, 1], [30, 30]], float)
        positions = np.concatenate([places, np.full((4, 1), 0.5)], axis=1)[:, None]
        task = ant(Script(positions, [-9, -8, -7, -6], [0, 0, 1, 0]), early_death="paper")
        genotypes = np.zeros((1, 1, task.num_params), np.float32)
        acting = task.drawing.episodes()
        (found,) = rollouts(acting, genotypes, [np.array([0])], seconds=1e9, most_bytes=1e9)
        assert found[0].rewards.tolist() == [-9, -8, -7]
        np.testing.assert_allclose(found[0].seen, places[:3])
        way = packed(acting, found, np.zeros(1))["traces"]
        assert way["sizes"] == [4]
        np.testing.assert_allclose(unpack(way["x"]), [0, 1, 2, 3], atol=1e-4)
        np.testing.assert_allclose(unpack(way["y"]), [0, 0, 1, 1], atol=1e-4)

    def test_replicas_take_turns_until_time_or_room_is_over(self, walker):
        acting = dataclasses.replace(walker.drawing.episodes(), batch=2)
        genotypes = np.zeros((2, 5, walker.num_params), np.float32)
        orders = [np.array([4, 3, 2, 1, 0]), np.array([1])]

        def cells(**limits):
            said = []
            found = rollouts(
                acting, genotypes, orders, **{"seconds": 1e9, "most_bytes": 1e9, **limits}, say=said.append
            )
            return [[one.cell for one in mine] for mine in found], said[-1]

        found, said = cells()
        assert found == [[4, 3, 2, 1, 0], [1]]
        assert said.startswith("episodes of 6 of 6 solutions acted again in ")
        found, said = cells(seconds=1e-9)
        assert found == [[4, 3], []]  # one batch, whatever it takes
        assert said.startswith("episodes of 2 of 6 ")
        assert said.endswith("; more with a higher --trace-seconds")
        each = 8 / 3 * 5 + 8 / 6  # 4 returns and one for the start; 4 steps of 2 feet
        assert cells(most_bytes=3.5 * each)[0] == [[4, 3], [1]]
        assert cells(most_bytes=0)[0] == [[4], []]


@pytest.mark.slow
def test_a_hopper_of_brax_acts_as_in_the_search():
    pytest.importorskip("brax")
    task = make("hopper", steps=9, hidden=(4,))
    acting = task.drawing.episodes()
    genotypes = np.array(3 * jax.vmap(task.init)(jax.random.split(jax.random.key(1), acting.batch)))
    expected = jax.jit(task.evaluate_batch)(jax.random.key(0), jnp.asarray(genotypes))
    (found,) = rollouts(acting, genotypes[None], [np.arange(acting.batch)], seconds=0, most_bytes=1e9)
    sums = [one.rewards.sum(dtype=np.float64) for one in found]
    np.testing.assert_allclose(sums, expected.fitness, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose([one.seen.mean(axis=0) for one in found], expected.descriptor, atol=1e-6)


class TestGym:
    """The episode step by step, by gymnasium itself."""

    def played(self, task, genotype):
        gymnasium = pytest.importorskip("gymnasium")
        pytest.importorskip("mujoco")
        environment = gymnasium.make(task.name.removeprefix("gym:"), max_episode_steps=task.config.steps)
        observation, _ = environment.reset(seed=0)
        rewards, places, over = [], [], False
        while not over:
            observation, reward, terminated, truncated, _ = environment.step(task.act(genotype, observation))
            rewards.append(reward)
            places.append(environment.unwrapped.data.qpos[:2].copy())
            over = terminated or truncated
        return rewards, places

    @pytest.mark.parametrize(("name", "settings", "kind"), [
        ("gym:HalfCheetah-v5", {"descriptor": "final-xy"}, WAY),
        ("gym:Hopper-v5", {"descriptor": "feet-contact", "steps": 60}, FEET),
        ("gym:HalfCheetah-v5", {"descriptor": "tests.search.workers.work:lengths"}, RETURN),
    ])  # fmt: skip
    def test_step_by_step(self, name, settings, kind):
        pytest.importorskip("gymnasium")
        bounds = {} if kind == FEET else {"descriptor_lows": (-9, -9), "descriptor_highs": (9, 9)}
        task = make(name, **{"steps": 9, "hidden": (3,), "chunk": 2, **bounds, **settings})
        acting = task.drawing.episodes()
        assert (acting.kind, acting.batch) == (kind, 2)
        genotypes = np.array(jax.vmap(task.init)(jax.random.split(jax.random.key(3), 3)))
        (found,) = rollouts(acting, genotypes[None], [np.arange(3)], seconds=1e9, most_bytes=1e9)
        for one, genotype in zip(found, genotypes, strict=True):
            rewards, places = self.played(task, genotype)
            np.testing.assert_allclose(one.rewards, rewards, rtol=1e-4, atol=1e-5)
            if kind == WAY:
                np.testing.assert_allclose(one.seen, places, atol=1e-5)
        if kind == FEET:
            shares = task.evaluate_batch(jax.random.key(0), jnp.asarray(genotypes)).descriptor
            np.testing.assert_allclose([one.seen.mean(axis=0) for one in found], shares, atol=1e-6)
            assert 0 < shares.mean() < 1
            assert len({len(one.rewards) for one in found}) > 1  # hoppers fall
        if kind == RETURN:
            assert [one.seen.shape for one in found] == [(9, 0)] * 3


def test_nothing_to_act():
    feet, way, plain = (Episodes(kind, 4, lambda genotypes: []) for kind in (FEET, WAY, RETURN))
    assert rollouts(way, np.zeros((1, 0, 3)), [np.zeros(0, int)], seconds=1, most_bytes=1) == [[]]
    shown = packed(feet, [], np.zeros(0))["episodes"]
    assert shown["cells"] == shown["departs"] == []
    assert shown["contacts"] == ""
    assert packed(way, [], np.zeros(0))["traces"]["sizes"] == []
    shown = packed(plain, [Rollout(0, np.ones(3), np.zeros((3, 0)))], np.array([3.0]))
    assert "traces" not in shown
    assert shown["episodes"].keys() == {"cells", "lengths", "returns", "departs"}
