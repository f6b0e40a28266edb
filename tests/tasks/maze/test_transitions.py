"""Steps that mazes hand out, against the stored Kheperax trajectories (see data/README.md) and against the rules."""

import math
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.errors import JedaxError
from jedax.tasks import Maze, Sphere, make
from jedax.types import Evaluation, Transitions

KEY = jax.random.key(0)
evaluate_batch = jax.jit(lambda maze, key, genotypes: maze.evaluate_batch(key, genotypes), static_argnums=0)
evaluate = jax.jit(lambda maze, key, genotypes: maze.evaluate_with_transitions(key, genotypes), static_argnums=0)


def forward(wheels=20.0):
    """A controller that drives both wheels at full speed."""
    return jnp.zeros((1, 66)).at[0, -2:].set(wheels)


@pytest.fixture(scope="module", params=["a", "b", "c", "quad_b"])
def stored(request):
    """A maze, 256 controllers and what Kheperax made of them, and their steps in jedax."""
    data = dict(np.load(Path(__file__).parent / "data" / f"maze_{request.param}.npz"))
    maze = make("maze-" + request.param.replace("_", "-"))
    layers = ("hidden_kernel", "hidden_bias", "output_kernel", "output_bias")
    genotypes = jnp.asarray(np.concatenate([data[name].reshape(256, -1) for name in layers], axis=1))
    evaluation = jax.tree.map(np.asarray, evaluate(maze, KEY, genotypes))
    return SimpleNamespace(
        maze=maze, data=data, genotypes=genotypes, evaluation=evaluation, steps=evaluation.transitions
    )


class TestStoredControllers:
    def test_the_evaluation_is_that_of_evaluate_batch(self, stored):
        plain = evaluate_batch(stored.maze, KEY, stored.genotypes)
        assert plain.transitions is None
        np.testing.assert_array_equal(stored.evaluation.fitness, plain.fitness)
        np.testing.assert_array_equal(stored.evaluation.descriptor, plain.descriptor)

    def test_rewards_sum_to_the_fitness(self, stored):
        earned = np.where(stored.steps.valid, stored.steps.rewards, 0).sum(axis=1, dtype=float)
        np.testing.assert_allclose(earned, stored.evaluation.fitness, rtol=1e-6)
        fitness = stored.data["fitness"]  # as Kheperax has it
        close = np.abs(earned - fitness) <= 0.5
        assert close.mean() >= 0.97

    def test_every_step_but_the_last_earns_minus_one(self, stored):
        length = stored.steps.valid.sum(axis=1)
        before_the_last = np.arange(250) < length[:, None] - 1
        assert (stored.steps.rewards[before_the_last] == -1).all()

    def test_only_arriving_is_terminal(self, stored):
        steps, fitness = stored.steps, stored.evaluation.fitness
        arrived = fitness >= -250
        assert 5 <= arrived.sum() < 128
        np.testing.assert_array_equal(steps.terminal.sum(axis=1), arrived)
        length = np.where(arrived, -fitness, 250)
        np.testing.assert_array_equal(steps.valid.sum(axis=1), length)
        np.testing.assert_array_equal(steps.valid, np.arange(250) < length[:, None])
        np.testing.assert_array_equal(np.argmax(steps.terminal[arrived], axis=1), length[arrived] - 1)

    # The tolerances, and the two of 16 that may part ways, are those of the trajectories in test_maze.py.
    @pytest.mark.parametrize(("what", "early", "late"), [("observations", 2e-4, 3e-2), ("actions", 1e-3, 1e-1)])
    def test_steps_are_those_of_kheperax(self, stored, what, early, late):
        difference = np.abs(getattr(stored.steps, what)[:16] - stored.data[what]).max(axis=-1)
        difference = np.where(stored.steps.valid[:16], difference, 0)
        assert difference[:, :60].max() <= early
        assert (difference.max(axis=1) <= late).sum() >= 14

    def test_steps_follow_each_other(self, stored):
        np.testing.assert_array_equal(stored.steps.next_observations[:, :-1], stored.steps.observations[:, 1:])
        maze = stored.maze
        shorter = Maze(maze.config.replace(steps=60))
        steps = evaluate(shorter, KEY, stored.genotypes[:16]).transitions
        np.testing.assert_allclose(steps.next_observations[:, -1], stored.steps.observations[:16, 60], atol=1e-4)

    def test_actions_are_those_of_the_policy(self, stored):
        got = jax.vmap(stored.maze.actions)(stored.genotypes[:64], jnp.asarray(stored.steps.observations[:64]))
        np.testing.assert_allclose(got, stored.steps.actions[:64], atol=5e-6)

    def test_sizes(self, stored):
        sizes = stored.maze.observation_size, stored.maze.action_size
        assert sizes == (5, 2) == (stored.steps.observations.shape[-1], stored.steps.actions.shape[-1])


class TestEnds:
    """From (0.5, 0.11) to the north at 0.025 a step, the target at (0.5, 0.5) is near after step 14."""

    def outcome(self, steps=250, genotypes=None, **settings):
        maze = Maze(start=(0.5, 0.11, math.pi / 2), target=(0.5, 0.5), steps=steps, **settings)
        return evaluate(maze, KEY, forward() if genotypes is None else genotypes)

    def test_arriving(self):
        evaluation = self.outcome()
        steps = evaluation.transitions
        assert evaluation.fitness[0] == -14
        assert np.flatnonzero(steps.terminal[0]).tolist() == [13]
        assert int(steps.valid.sum()) == 14
        assert (steps.rewards[0, :14] == -1).all()

    @pytest.mark.parametrize("distance_weight", [100.0, 0.0])
    def test_arriving_at_the_very_last_step_is_terminal(self, distance_weight):
        steps = self.outcome(steps=14, distance_weight=distance_weight).transitions
        assert np.flatnonzero(steps.terminal[0]).tolist() == [13]
        assert (steps.rewards == -1).all()

    @pytest.mark.parametrize("distance_weight", [100.0, 0.0])
    def test_running_out_of_time_is_not(self, distance_weight):
        evaluation = self.outcome(steps=13, distance_weight=distance_weight)
        steps = evaluation.transitions
        assert not steps.terminal.any()
        assert steps.valid.all()
        assert (steps.rewards[0, :-1] == -1).all()
        left = 0.5 - 0.11 - 13 * 0.025
        assert float(steps.rewards[0, -1]) == pytest.approx(-1 - distance_weight * left, abs=1e-3)

    def test_a_controller_that_failed_has_no_steps(self):
        genotypes = jnp.concatenate([forward(), forward().at[0, 3].set(jnp.nan), forward().at[0, 7].set(jnp.inf)])
        evaluation = self.outcome(genotypes=genotypes)
        assert evaluation.valid.tolist() == [True, False, False]
        assert evaluation.transitions.valid.any(axis=1).tolist() == [True, False, False]

    def test_noise_is_that_of_the_evaluation(self):
        maze = Maze(start=(0.5, 0.5, 1.0), target=(0.1, 0.1), wheel_noise=0.01, laser_noise=0.02, steps=40)
        genotypes = 2 * jax.vmap(maze.init)(jax.random.split(KEY, 32))
        evaluation = evaluate(maze, KEY, genotypes)
        rollouts = jax.vmap(maze.rollout)(jax.random.split(KEY, 32), genotypes)
        distance = jnp.linalg.norm(rollouts.positions[:, -1] - jnp.array([0.1, 0.1]), axis=-1)
        np.testing.assert_allclose(evaluation.fitness, -40 - 100 * distance, atol=1e-2)
        np.testing.assert_allclose(evaluation.transitions.actions, rollouts.actions, atol=1e-4)


class TestContract:
    def test_a_task_without_policies_says_so(self):
        task = Sphere(dimensions=4)
        assert task.observation_size is None
        assert task.action_size is None
        with pytest.raises(JedaxError, match="task sphere: expected a task whose genotypes are policies"):
            task.evaluate_with_transitions(KEY, jnp.zeros((2, 4)))
        with pytest.raises(JedaxError, match="got one without actions; take a maze"):
            task.actions(jnp.zeros(4), jnp.zeros((2, 3)))

    def test_wrong_shapes(self):
        with pytest.raises(JedaxError, match=r"genotypes: expected shape \(batch, 66\)"):
            make("maze-a").evaluate_with_transitions(KEY, jnp.zeros((2, 65)))

    def test_an_evaluation_without_transitions_is_two_arrays(self):
        evaluation = Evaluation(jnp.array([1.0, jnp.nan]), jnp.zeros((2, 2)))
        assert len(jax.tree.leaves(evaluation)) == 2
        assert evaluation.valid.tolist() == [True, False]

    def test_an_evaluation_with_transitions_can_be_cut(self):
        steps = Transitions(*[jnp.zeros((3, 4, n)) for n in (2, 1)], jnp.zeros((3, 4)), jnp.zeros((3, 4, 2)),
                            jnp.zeros((3, 4), bool), jnp.ones((3, 4), bool))  # fmt: skip
        evaluation = Evaluation(jnp.zeros(3), jnp.zeros((3, 2)), steps)
        half = jax.tree.map(lambda leaf: leaf[:2], evaluation)
        assert half.valid.tolist() == [True, True]
        assert half.transitions.observations.shape == (2, 4, 2)
