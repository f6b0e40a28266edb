"""TD3 as a method: what a generation is made of, what it learns from, and whether it climbs."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.methods.point_mass import PointMass

from jedax.errors import JedaxError
from jedax.methods.base import spread_of
from jedax.methods.td3 import TD3Config, TD3Search
from jedax.tasks import Sphere

TASK = PointMass(hidden=(8,), steps=10)
SMALL = TD3Config(
    population=8, cells=16, cell_layout="grid", critic_hidden=(16,), critic_steps=100, critic_batch=32, buffer=2000,
    critic_rate=3e-3, actor_rate=3e-3, discount=0.9,
)  # fmt: skip
METHOD = TD3Search(SMALL, TASK)


@jax.jit
def begin(key):
    genotypes = jax.vmap(TASK.init)(jax.random.split(key, 8))
    evaluation = TASK.evaluate_with_transitions(key, genotypes)
    return METHOD.init(key, genotypes, evaluation), evaluation


@functools.partial(jax.jit, static_argnums=1)
def advance(state, generations):
    def generation(_, state):
        ask_key, evaluate_key, tell_key = jax.random.split(jax.random.fold_in(jax.random.key(1), state.generation), 3)
        genotypes, state = METHOD.ask(ask_key, state)
        evaluation = TASK.evaluate_with_transitions(evaluate_key, genotypes)
        return METHOD.tell(tell_key, state, genotypes, evaluation)[0]

    return jax.lax.fori_loop(0, generations, generation, state)


@pytest.fixture(scope="module")
def begun():
    return begin(jax.random.key(0))


def test_the_best_of_the_first_is_the_actor():
    genotypes = jax.vmap(TASK.init)(jax.random.split(jax.random.key(2), 8))
    evaluation = jax.jit(TASK.evaluate_with_transitions)(jax.random.key(0), genotypes)
    ranked = dataclasses.replace(evaluation, fitness=jnp.array([0.0, 3, 1, 7, 2, 5, 4, 6]))
    state = jax.jit(METHOD.init)(jax.random.key(0), genotypes, ranked)
    # Random policies have no biases and leave the mass where it is, so that there is nothing to learn from yet.
    np.testing.assert_array_equal(state.learner.actor, genotypes[3])


def test_the_actor_learns(begun):
    state, evaluation = begun
    assert state.buffer.count == evaluation.transitions.valid.sum()
    assert not np.array_equal(advance(state, 1).learner.actor, state.learner.actor)


def test_a_generation_is_the_actor_and_copies_with_noise_at_all_scales(begun):
    state, _ = begun
    method = TD3Search(SMALL.replace(population=512), TASK)
    genotypes, after = jax.jit(method.ask)(jax.random.key(3), state)
    assert after.generation == state.generation
    np.testing.assert_array_equal(genotypes[0], state.learner.actor)
    scale = np.asarray(jnp.std(genotypes[1:] - state.learner.actor, axis=1)) / float(state.spread)
    low, high = SMALL.actor_noise
    assert low / 2 < scale.min() < 2 * low
    assert high / 2 < scale.max() < 2 * high
    assert np.median(scale) == pytest.approx(np.sqrt(low * high), rel=0.25)  # log-uniform


def test_the_actor_climbs(begun):
    state = advance(begun[0], 60)
    evaluate = jax.jit(lambda genotype: TASK.evaluate_batch(jax.random.key(0), genotype[None]).fitness[0])
    assert evaluate(state.learner.actor) > evaluate(begun[0].learner.actor)
    assert state.repertoire.best_fitness > begun[0].repertoire.best_fitness
    assert state.generation == 60
    assert METHOD.metrics(state)["buffered_steps"] == min(2000, 61 * 8 * 10)


def test_the_spread_is_the_standard_deviation_of_random_genotypes():
    genotypes = jax.vmap(TASK.init)(jax.random.split(jax.random.key(9), 2000))
    assert float(spread_of(jax.random.key(0), TASK)) == pytest.approx(
        float(np.sqrt(genotypes.var(axis=0).mean())), rel=0.1
    )


def test_a_task_without_policies_is_refused():
    with pytest.raises(JedaxError, match=r"one for sphere, whose genotypes are no policies .* got td3"):
        TD3Search(SMALL, Sphere())
