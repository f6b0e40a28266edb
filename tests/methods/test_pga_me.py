"""PGA-ME: what a generation is made of, in which order, and whether its gradients are worth their while."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from tests.conftest import assert_same_bits
from tests.methods.point_mass import PointMass

from jedax.errors import JedaxError
from jedax.methods.pga_me import PGAME, PGAMEConfig
from jedax.repertoire import Repertoire
from jedax.rl import ReplayBuffer
from jedax.store import files
from jedax.tasks import Maze, Sphere
from jedax.types import Evaluation
from jedax.variation import iso_line

SMALL = PGAMEConfig(
    offspring=8, cells=16, cell_layout="grid", critic_hidden=(8,), critic_steps=4, critic_batch=16, buffer=300
)
TASK = PointMass(hidden=(8,), steps=10)
KEY = jax.random.key(0)


def built(task=TASK, **changes):
    return PGAME(SMALL.replace(**changes), task)


@functools.partial(jax.jit, static_argnums=0)
def begin(method, key):
    keys = jax.random.split(key, 3)
    genotypes = jax.vmap(method.problem.init)(jax.random.split(keys[0], method.num_initial))
    evaluation = method.problem.evaluate_with_transitions(keys[1], genotypes)
    return method.init(keys[2], genotypes, evaluation), genotypes, evaluation


def generation(method, state, key):
    keys = jax.random.split(key, 3)
    genotypes, state = method.ask(keys[0], state)
    evaluation = method.problem.evaluate_with_transitions(keys[1], genotypes)
    return method.tell(keys[2], state, genotypes, evaluation)[0]


@functools.partial(jax.jit, static_argnums=0)
def advance(method, state, root, generations):
    """Any number of generations in one program, whose keys depend on the generation alone."""

    def step(_, state):
        return generation(method, state, jax.random.fold_in(root, state.generation))

    return jax.lax.fori_loop(0, generations, step, state)


ask = jax.jit(lambda method, key, state: method.ask(key, state)[0], static_argnums=0)
tell = jax.jit(lambda method, key, *args: method.tell(key, *args), static_argnums=0)
init = jax.jit(lambda method, *args: method.init(*args), static_argnums=0)
evaluate = jax.jit(TASK.evaluate_with_transitions)
train = jax.jit(lambda td3, key, learner, buffer: td3.train(key, learner, buffer, 4), static_argnums=0)


@pytest.fixture(scope="module")
def searched():
    """A small search after some generations."""
    method = built()
    state = begin(method, KEY)[0]
    return method, advance(method, state, jax.random.key(1), 10)


def nearest_elite(state, genotypes):
    """Largest difference in any parameter to the elite where that is smallest."""
    elites = state.repertoire.genotypes[state.repertoire.filled]
    return np.asarray(jnp.abs(genotypes[:, None] - elites[None]).max(axis=-1).min(axis=1))


class TestSettings:
    def test_defaults_are_the_papers_for_mazes(self):
        config = PGAMEConfig()
        assert (config.critic_hidden, config.critic_batch, config.offspring) == ((16,), 64, 64)
        assert (config.iso_sigma, config.line_sigma, config.gradient_share) == (0.2, 0.0, 0.5)
        assert (config.gradient_steps, config.critic_steps) == (10, 300)
        assert (config.gradient_rate, config.critic_rate, config.actor_rate) == (1e-3, 3e-4, 3e-4)
        assert (config.discount, config.soft_update, config.buffer) == (0.99, 0.005, 1_000_000)
        assert (config.target_noise, config.target_noise_clip, config.policy_delay) == (0.2, 0.5, 2)
        assert (config.cells, config.batch, config.num_gradient) == (1024, 64, 32)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"gradient_share": 1.5}, "gradient_share: expected less than or equal to 1, got 1.5"),
            ({"critic_steps": 301}, "critic_steps: expected a multiple of policy_delay, 2, got 301; change one of"),
            ({"critic_hidden": (16, 0)}, r"critic_hidden\[1\]: expected greater than or equal to 1, got 0"),
            ({"offspring": 0}, "offspring: expected greater than or equal to 1, got 0"),
            ({"ga_ratio": 0.5}, "parameter: unknown name 'ga_ratio'"),
        ],
    )
    def test_values_that_do_not_fit(self, changes, message):
        with pytest.raises(JedaxError, match=message):
            PGAMEConfig.build(changes)

    def test_delay_and_steps_can_change_together(self):
        assert PGAMEConfig(critic_steps=9, policy_delay=3).critic_steps == 9


class TestAsk:
    def test_greedy_actor_then_gradients_then_iso_line(self, searched):
        state = searched[1]
        method = built(iso_sigma=0.0, line_sigma=0.0)
        offspring = ask(method, KEY, state)
        assert offspring.shape == (8, TASK.num_params)
        np.testing.assert_array_equal(offspring[0], state.learner.actor)
        away = nearest_elite(state, offspring)
        assert ((away[1:4] > 1e-4) & (away[1:4] <= 10 * 1e-3 * 1.01)).all()  # ten of Adam's steps
        assert (away[4:] == 0).all()

    def test_offspring_by_gradients_are_worth_more_to_the_critic(self, searched):
        method, state = built(gradient_share=1.0), searched[1]
        offspring = ask(method, KEY, state)
        elites = state.repertoire.genotypes[state.repertoire.filled]
        away = jnp.abs(offspring[1:, None] - elites[None]).max(axis=-1)
        parents = elites[jnp.argmin(away, axis=1)]
        seen = state.buffer.rows[: state.buffer.count, :4]
        value = jax.vmap(lambda g: -method.td3.actor_loss(g, state.learner.critic, seen))
        assert (value(offspring[1:]) > value(parents)).all()

    @pytest.mark.parametrize(("share", "number"), [(0.0, 0), (0.1, 1), (0.5, 4), (1.0, 8)])
    def test_share(self, searched, share, number):
        method = built(gradient_share=share, iso_sigma=0.0)
        assert method.config.num_gradient == number
        offspring = ask(method, KEY, searched[1])
        assert (nearest_elite(searched[1], offspring) == 0).sum() == 8 - number

    def test_parents_are_elites_each_alike(self, searched):
        method = built(gradient_share=0.0, iso_sigma=0.0)
        repertoire = searched[1].repertoire
        filled = int(repertoire.filled.sum())
        assert 3 <= filled < 16
        drawn = jax.jit(jax.vmap(lambda key: method.ask(key, searched[1])[0]))(jax.random.split(KEY, 250))
        rows, count = np.unique(np.asarray(drawn).reshape(2000, -1), axis=0, return_counts=True)
        assert len(rows) == filled
        expected = 2000 / filled
        assert ((count - expected) ** 2 / expected).sum() < scipy.stats.chi2.ppf(0.999, filled - 1)


class TestLearning:
    def test_init_learns_from_the_initial_batch(self):
        method = built()
        state, genotypes, evaluation = begin(method, KEY)
        assert int(state.generation) == 0
        assert int(method.evaluations(state)) == 8 == int(state.repertoire.counts.sum())
        assert int(state.buffer.count) == 80
        fresh = method.td3.init(jax.random.split(jax.random.split(KEY, 3)[2])[0], genotypes[0])
        assert_same_bits(fresh.actor, genotypes[0])
        assert float(jnp.abs(state.learner.critic - fresh.critic).max()) > 1e-4
        held = ReplayBuffer.empty(300, 4, 2).add(evaluation.transitions)
        np.testing.assert_allclose(state.buffer.rows, held.rows, atol=1e-6)

    def test_tell_stores_solutions_and_steps_and_then_trains(self, searched):
        method, state = searched
        genotypes = ask(method, KEY, state)
        evaluation = evaluate(KEY, genotypes)
        after, info = tell(method, jax.random.key(7), state, genotypes, evaluation)
        repertoire, insertion = state.repertoire.add(method.cells, genotypes, evaluation, jnp.int32(12 * 8))
        assert_same_bits(after.repertoire, repertoire)
        assert_same_bits(info, insertion)
        buffer = state.buffer.add(evaluation.transitions)
        assert_same_bits(after.buffer, buffer)
        learner = train(method.td3, jax.random.key(7), state.learner, buffer)
        np.testing.assert_allclose(after.learner.critic, learner.critic, atol=1e-6)
        np.testing.assert_allclose(after.learner.actor, learner.actor, atol=1e-6)
        assert int(after.learner.critic_optimizer[0].count) == 4 * 12  # init, ten generations, this one
        assert int(after.learner.actor_optimizer[0].count) == 2 * 12
        assert int(after.generation) == 11

    def test_metrics(self, searched):
        method, state = searched
        metrics = method.metrics(state)
        assert int(metrics["buffered_steps"]) == 300
        assert 0 < float(metrics["critic_loss"]) < 1e3


class TestFailures:
    def test_failed_solutions_and_their_steps_stay_out(self):
        method = built()
        genotypes = jax.vmap(TASK.init)(jax.random.split(KEY, 8)).at[2].set(jnp.nan)
        evaluation = evaluate(KEY, genotypes)
        spoilt = replace(evaluation, fitness=evaluation.fitness.at[5].set(jnp.nan))
        state = init(method, KEY, genotypes, spoilt)
        assert int(state.repertoire.num_failed) == 2
        assert int(state.buffer.count) == 60
        assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((state.learner, state.buffer)))

    def test_a_batch_that_failed_altogether(self):
        method = built()
        genotypes = jax.vmap(TASK.init)(jax.random.split(KEY, 8))
        evaluation = evaluate(KEY, genotypes)
        failed = replace(evaluation, fitness=jnp.full(8, jnp.nan))
        state = init(method, KEY, genotypes, failed)
        assert int(state.buffer.count) == 0
        assert_same_bits(state.learner.actor, genotypes[0])
        assert jnp.isfinite(ask(method, KEY, state)).all()

    def test_an_evaluation_without_steps(self):
        evaluation = Evaluation(jnp.zeros(8), jnp.zeros((8, 2)))
        with pytest.raises(JedaxError, match="evaluation: expected transitions, as of"):
            built().init(KEY, jnp.zeros((8, TASK.num_params)), evaluation)

    def test_a_task_without_policies(self):
        with pytest.raises(JedaxError, match=r"one for sphere, whose genotypes are no policies .* got pga-me"):
            PGAME(SMALL, Sphere(dimensions=4))


class TestState:
    def test_without_gradients_it_is_map_elites(self):
        method = built(gradient_share=0.0, iso_sigma=0.1, line_sigma=0.3)
        state, genotypes, evaluation = begin(method, KEY)
        repertoire = Repertoire.empty(method.cells, genotypes[0])
        repertoire, _ = repertoire.add(method.cells, genotypes, evaluation, jnp.int32(8))
        first = state.learner
        for number in range(3):
            key = jax.random.key(10 + number)
            offspring = ask(method, key, state)
            _, parent_key, partner_key, _, line_key = jax.random.split(key, 5)
            elites = repertoire.genotypes[repertoire.filled]
            pair = [elites[jax.random.randint(k, (8,), 0, len(elites))] for k in (parent_key, partner_key)]
            np.testing.assert_allclose(offspring, iso_line(line_key, *pair, 0.1, 0.3), atol=1e-6)
            evaluation = evaluate(KEY, offspring)
            repertoire, _ = repertoire.add(method.cells, offspring, evaluation, jnp.int32(16 + 8 * number))
            state, _ = tell(method, KEY, state, offspring, evaluation)
            assert_same_bits(state.repertoire, repertoire)
        assert_same_bits(state.learner, first)
        assert state.buffer.capacity == 1

    def test_cut_into_chunks(self, searched):
        method, whole = searched
        state = begin(method, KEY)[0]
        for part in (3, 0, 7):
            state = advance(method, state, jax.random.key(1), part)
        assert_same_bits(state, whole)

    def test_replicas_do_not_mix(self):
        method = built()
        keys = jax.random.split(KEY, 3)

        def search(key):
            return advance(method, begin(method, key)[0], key, 2)

        together = jax.jit(jax.vmap(search))(keys)
        for i in range(3):
            alone = search(keys[i])
            for ours, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
                np.testing.assert_allclose(ours[i], theirs, atol=1e-4)

    def test_equal_settings_are_equal_objects(self):
        one, other = built(), built()
        assert one == other
        assert hash(one) == hash(other)
        assert one != built(discount=0.9)
        begin(one, KEY)
        size = begin._cache_size()
        begin(other, jax.random.key(5))
        assert begin._cache_size() == size

    def test_saved_and_loaded(self, searched, tmp_path):
        files.save_tree(tmp_path / "state", searched[1], {})
        loaded = files.load_tree(tmp_path / "state", jax.eval_shape(lambda: searched[1]))
        assert_same_bits(loaded, searched[1])
        assert loaded.buffer.action_size == 2

    def test_a_maze(self):
        maze = Maze(hidden=(4,), steps=20)
        method = built(task=maze)
        state = advance(method, begin(method, KEY)[0], KEY, 3)
        assert int(state.repertoire.counts.sum()) == 32
        assert int(state.buffer.count) == 300
        assert (state.buffer.rows[:, 3:5] == -1).any()  # bumpers
        assert jnp.isfinite(state.learner.critic).all()


@pytest.mark.nightly
def test_gradients_are_worth_their_while():
    """Twenty seeds, 3,232 evaluations each, the default variation: the best solution with and without gradients."""
    task, seeds, generations = PointMass(), 20, 100

    def best(share):
        config = PGAMEConfig(offspring=32, cells=256, buffer=50_000, critic_hidden=(32, 32), gradient_share=share)
        method = PGAME(config, task)

        def search(key):
            state = begin(method, key)[0]
            return advance(method, state, jax.random.fold_in(key, 1), generations).repertoire.best_fitness

        return np.asarray(jax.jit(jax.vmap(search))(jax.vmap(jax.random.key)(jnp.arange(seeds))))

    with_gradients, without = best(0.5), best(0.0)
    message = f"with {np.round(with_gradients, 2)}, without {np.round(without, 2)}"
    assert scipy.stats.mannwhitneyu(with_gradients, without, alternative="greater").pvalue < 0.01, message
    assert np.median(with_gradients) > np.median(without) + 1, message
