"""What counts of an episode, on hand-made sequences of states."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tasks.control.scripted import Script, ant, walker

from jedax.errors import JedaxError
from jedax.tasks.control.task import AntMaze, Locomotion
from jedax.types import Evaluation

KEY = jax.random.key(0)
LINKS = 7  # of the walker: torso, then thigh, leg, foot of each side
RIGHT, LEFT = 3, 6
# The walker's feet are capsules along x, 0.1 above their links, with radius 0.06: they touch the floor at z = -0.04.
DOWN, UP = -0.04, 0.2


def walk(right, left, rewards, done):
    positions = np.full((len(rewards), LINKS, 3), 5.0)
    positions[:, RIGHT, 2], positions[:, LEFT, 2] = right, left
    return walker(Script(positions, rewards, done))


def evaluations(task, genotypes=None):
    """The same episode by each of the three ways to evaluate."""
    genotypes = jnp.zeros((2, task.num_params)) if genotypes is None else genotypes
    one = jax.tree.map(lambda leaf: leaf[None], task.evaluate(KEY, genotypes[0]))
    return [one, task.evaluate_batch(KEY, genotypes), task.evaluate_with_transitions(KEY, genotypes)]


class TestWhatCounts:
    def test_steps_after_done_count_neither_for_fitness_nor_for_the_descriptor(self):
        right = [DOWN, DOWN, UP, DOWN, DOWN, DOWN, DOWN]
        left = [UP, DOWN, UP, UP, UP, UP, DOWN]
        task = walk(right, left, [1, 2, 4, 8, 16, 32, 64], [0, 0, 0, 1, 0, 1, 0])
        for evaluation in evaluations(task):
            np.testing.assert_allclose(evaluation.fitness, 15)
            np.testing.assert_allclose(evaluation.descriptor, [[3 / 4, 1 / 4]] * len(evaluation.fitness))

    def test_without_done_all_steps_count(self):
        task = walk([DOWN, UP, UP, UP], [DOWN] * 4, [1, -2, 3, 0.5], [0] * 4)
        for evaluation in evaluations(task):
            np.testing.assert_allclose(evaluation.fitness, 2.5)
            np.testing.assert_allclose(evaluation.descriptor, [[1 / 4, 1]] * len(evaluation.fitness))

    @pytest.mark.parametrize("done_at", [0, 4])
    def test_done_at_the_first_and_at_the_last_step(self, done_at):
        done = np.arange(5) == done_at
        steps = walk([DOWN] * 5, [UP] * 5, [1.0] * 5, done).evaluate_with_transitions(KEY, jnp.zeros((1, 54)))
        assert float(steps.fitness[0]) == done_at + 1
        np.testing.assert_array_equal(steps.descriptor, [[1, 0]])
        np.testing.assert_array_equal(steps.transitions.valid[0], np.arange(5) <= done_at)
        np.testing.assert_array_equal(steps.transitions.terminal[0], done)

    def test_transitions_are_the_steps(self):
        task = walk([DOWN] * 6, [DOWN] * 6, [1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 0, 0])
        steps = task.evaluate_with_transitions(KEY, jnp.zeros((1, 54))).transitions
        np.testing.assert_array_equal(steps.rewards[0], [1, 2, 3, 4, 5, 6])
        np.testing.assert_array_equal(steps.observations[0, :, 0], [0, 1, 2, 3, 4, 5])
        np.testing.assert_array_equal(steps.next_observations[0, :, 0], [1, 2, 3, 4, 5, 6])
        np.testing.assert_array_equal(steps.terminal[0], [0, 0, 1, 0, 0, 0])


class TestSpeedAndHeight:
    """A walker whose torso's speeds and heights are given."""

    def walker(self, done):
        positions = np.full((5, LINKS, 3), 5.0)
        positions[:, 0, 2] = [1.25, 1.0, 1.5, 9, 9]
        script = Script(positions, [1, 2, 4, 8, 16], done, speeds=[3, -1, 2.5, 50, 50])
        return walker(script, descriptor="speed-height")

    @pytest.mark.parametrize(("done", "expected"), [([0, 0, 1, 0, 1], [1.5, 1.25]), ([0] * 5, [20.9, 4.35])])
    def test_means_of_the_steps_that_count(self, done, expected):
        for evaluation in evaluations(self.walker(done)):
            np.testing.assert_allclose(evaluation.descriptor, [expected] * len(evaluation.fitness), rtol=1e-6)


class TestAntMaze:
    def script(self, rewards, done):
        positions = np.zeros((len(rewards), 9, 3))
        positions[:, 0, :2] = [[number, -number] for number in range(len(rewards))]
        return Script(positions, rewards, done)

    def test_an_ant_that_lives(self):
        task = ant(self.script([-35.0, -34, -33], [0, 0, 0]))
        for evaluation in evaluations(task):
            np.testing.assert_allclose(evaluation.fitness, -102)
            np.testing.assert_array_equal(evaluation.descriptor, [[2, -2]] * len(evaluation.fitness))

    @pytest.mark.parametrize(("rule", "fitness"), [("charge", -10 - 20 - 4 * 30), ("paper", -10 - 20 - 30)])
    def test_an_ant_that_dies_early(self, rule, fitness):
        task = ant(self.script([-10.0, -20, -30, -40, -50, -60], [0, 0, 1, 0, 1, 0]), early_death=rule)
        found = evaluations(task)
        for evaluation in found:
            np.testing.assert_allclose(evaluation.fitness, fitness)
            np.testing.assert_array_equal(evaluation.descriptor, [[2, -2]] * len(evaluation.fitness))
        steps = found[-1].transitions
        np.testing.assert_allclose(np.where(steps.valid, steps.rewards, 0).sum(axis=1), fitness)
        np.testing.assert_array_equal(steps.terminal[0], [0, 0, 1, 0, 0, 0])

    def test_dying_at_the_last_step_costs_nothing_more(self):
        found = [ant(self.script([-1.0, -2], [0, 1]), early_death=rule) for rule in ("charge", "paper")]
        assert [float(task.evaluate(KEY, jnp.zeros(task.num_params)).fitness) for task in found] == [-3, -3]


class TestFailures:
    def test_weights_that_are_not_finite_fail(self):
        task = walk([DOWN] * 3, [UP] * 3, [1.0] * 3, [0] * 3)
        genotypes = jnp.zeros((4, task.num_params)).at[1, 5].set(jnp.nan).at[2, 0].set(jnp.inf)
        for evaluation in evaluations(task, genotypes)[1:]:
            assert evaluation.valid.tolist() == [True, False, False, True]
        assert evaluation.transitions.valid.any(axis=1).tolist() == [True, False, False, True]

    def test_a_simulation_that_breaks_fails(self):
        task = walk([DOWN] * 3, [UP] * 3, [1.0, np.nan, 1], [0] * 3)
        for evaluation in evaluations(task):
            assert not evaluation.valid.any()

    def test_what_breaks_after_the_end_does_not_matter(self):
        task = walk([DOWN, np.nan], [UP] * 2, [1.0, np.nan], [1, 0])
        for evaluation in evaluations(task):
            assert evaluation.fitness.tolist() == [1.0] * len(evaluation.fitness)

    def test_wrong_shapes(self):
        task = Locomotion(hidden=(2,))
        with pytest.raises(JedaxError, match=r"^genotype: expected shape \(54,\), got \(3,\)"):
            task.evaluate(KEY, jnp.zeros(3))
        for method in ("evaluate_batch", "evaluate_with_transitions", "rollout_batch"):
            with pytest.raises(JedaxError, match=r"^genotypes: expected shape \(batch, 54\), got \(54,\)"):
                getattr(task, method)(KEY, jnp.zeros(54))
        with pytest.raises(
            JedaxError, match=r"^observation: expected 17 numbers, got 5; give one observation of halfcheetah\.$"
        ):
            task.act(jnp.zeros(54), [0.0] * 5)


class TestParts:
    @pytest.mark.parametrize("batch", [1, 64, 128, 150])
    def test_a_batch_in_parts_is_the_batch(self, batch):
        genotypes = jax.random.normal(KEY, (batch, 5))

        def evaluate(key, genotype):
            return Evaluation(genotype.sum(), genotype[:2])

        found = jax.jit(lambda g: Locomotion()._in_parts(evaluate, None, g))(genotypes)
        np.testing.assert_allclose(found.fitness, genotypes.sum(axis=1), atol=1e-5)
        np.testing.assert_array_equal(found.descriptor, genotypes[:, :2])


class TestPolicy:
    """The policy of a task against one written out in NumPy."""

    def test_actions(self):
        task = Locomotion(name="hopper", hidden=(4, 3))
        genotype = np.asarray(task.init(KEY))
        observations = np.random.default_rng(0).normal(size=(5, 11))
        values, rest = observations, genotype
        for inputs, outputs in ((11, 4), (4, 3), (3, 3)):
            kernel, rest = rest[: inputs * outputs].reshape(inputs, outputs), rest[inputs * outputs :]
            bias, rest = rest[:outputs], rest[outputs:]
            values = np.tanh(values @ kernel + bias)
        assert rest.size == 0
        np.testing.assert_allclose(task.actions(genotype, jnp.float32(observations)), values, atol=1e-6)
        np.testing.assert_allclose(task.act(genotype, observations[2]), values[2], atol=1e-6)

    @pytest.mark.parametrize(
        ("task", "params"), [(Locomotion(), 71942), (Locomotion(name="walker2d"), 71942), (AntMaze(), 75528)]
    )
    def test_sizes_are_the_papers(self, task, params):
        assert task.layer_sizes[1:-1] == (256, 256)
        assert task.config.activation == "tanh"
        assert task.num_params == params


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


class TestMissingExtra:
    def test_one_sentence_says_what_to_install(self, tmp_path):
        code = "import sys\nsys.modules['brax'] = None\nfrom jedax import cli\n"
        done = run_python(
            f"{code}cli.main(['run', 'halfcheetah', '--preset', 'cpu', '--out', {str(tmp_path / 'r')!r}])"
        )
        assert done.returncode == 2
        assert done.stderr.startswith("jedax: task halfcheetah: expected the package brax.envs, got ")
        assert done.stderr.endswith("install it with: pip install 'jedax[brax]'.\n")
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "r").exists()


class RandomStart(Script):
    """Begins at a random row of its table."""

    def reset(self, key):
        row = jax.random.randint(key, (), 0, 3)
        return self.state(row, row, jnp.float32(0), jnp.float32(0))


class TestRandomResets:
    """A robot that takes three steps from the row where it starts."""

    REWARDS = (1.0, 10, 100, 1000, 10_000)

    def task(self):
        script = RandomStart(np.zeros((5, LINKS, 3)), self.REWARDS, np.zeros(5))
        return type(walker(script))(name="walker2d", steps=3, hidden=(2,), random_resets=True, physics="brax")

    def expected(self, keys):
        rows = [int(jax.random.randint(key, (), 0, 3)) for key in keys]
        return [sum(self.REWARDS[row : row + 3]) for row in rows]

    def test_every_member_of_a_batch_begins_elsewhere(self):
        task, batch = self.task(), Locomotion.part + 6
        keys = jax.random.split(KEY, batch)
        genotypes = jnp.zeros((batch, task.num_params))
        plain = jax.jit(task.evaluate_batch)(KEY, genotypes)
        np.testing.assert_allclose(plain.fitness, self.expected(keys))
        assert len(set(plain.fitness.tolist())) == 3
        full = jax.jit(task.evaluate_with_transitions)(KEY, genotypes)
        np.testing.assert_allclose(full.fitness, plain.fitness)
        np.testing.assert_allclose(full.transitions.rewards.sum(axis=1), plain.fitness)

    def test_devices_that_share_a_batch_take_the_keys_of_the_whole(self):
        task = self.task()
        keys, genotypes = jax.random.split(KEY, 5), jnp.zeros((5, task.num_params))
        for evaluate in (task.evaluate_batch, task.evaluate_with_transitions):
            whole = jax.jit(evaluate)(KEY, genotypes)
            parts = [jax.jit(evaluate)(keys[rows], genotypes[rows]) for rows in (slice(0, 2), slice(2, 5))]
            np.testing.assert_allclose(np.concatenate([part.fitness for part in parts]), whole.fitness)
            np.testing.assert_allclose(whole.fitness, self.expected(keys))

    def test_one_genotype(self):
        task = self.task()
        keys = jax.random.split(jax.random.key(9), 4)
        found = [float(task.evaluate(key, jnp.zeros(task.num_params)).fitness) for key in keys]
        assert found == self.expected(keys)
        assert task.is_noisy

    def test_by_default_all_episodes_begin_alike(self):
        task = walk([DOWN] * 3, [UP] * 3, [1.0] * 3, [0] * 3)
        assert not task.is_noisy
        assert task._keys(KEY, 5) is None
