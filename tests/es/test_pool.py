"""A pool of evolution strategies, with and without units of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits

from jedax.es import make_strategy
from jedax.es.pool import ESPool

STRATEGIES = ["sep-cma-es", "cma-es", "lm-ma-es"]
MEANS, UNITS = np.array([[1.0, -2.0, 30.0], [0.5, 0.0, 0.0]]), np.array([0.3, 20.0])


def pool_of(es, step_size=1.0):
    return ESPool(make_strategy(es, population=8, step_size=step_size), 2)


def places(units):
    """Return units with populations that do not grow."""
    return jnp.asarray(units), jnp.ones(len(units), jnp.int32)


def score(genotypes):
    return -np.square(np.asarray(genotypes) - [2.0, 5.0, 1.0]).sum(axis=-1)


def key(number):
    return jax.random.key(number)


@pytest.mark.parametrize("es", STRATEGIES)
def test_a_unit_is_a_step_size(es):
    """Ten generations of a pool with units equal those of each strategy with its own mean and step size."""
    with jax.enable_x64(True):
        pool = pool_of(es)
        states = pool.start(key(0), jnp.asarray(MEANS), places(UNITS))
        own = [pool_of(es, unit).strategy for unit in UNITS]
        alone = [strategy.init(k, jnp.asarray(mean)) for strategy, k, mean in
                 zip(own, jax.random.split(key(0), 2), MEANS, strict=True)]  # fmt: skip
        for generation in range(10):
            ask_keys, tell_keys = (jax.random.split(key(2 * generation + part), 2) for part in (1, 2))
            genotypes, states = jax.jit(pool.ask)(key(2 * generation + 1), states)
            scores = score(genotypes)
            for number in range(2):
                expected, alone[number] = own[number].ask(ask_keys[number], alone[number])
                np.testing.assert_allclose(pool.split(genotypes)[number], expected, rtol=1e-6, atol=1e-9)
                given = pool.split(jnp.asarray(scores))[number]
                alone[number] = own[number].tell(tell_keys[number], alone[number], expected, given)
            states = jax.jit(pool.tell)(key(2 * generation + 2), states, genotypes, pool.split(jnp.asarray(scores)))
        for number in range(2):
            inner = jax.tree.map(lambda leaf, n=number: leaf[n], states.inner)
            mean = states.origin[number] + states.unit[number] * pool.strategy.mean(inner)
            np.testing.assert_allclose(mean, own[number].mean(alone[number]), rtol=1e-6, atol=1e-9)
            assert not np.allclose(mean, MEANS[number])


@pytest.mark.parametrize("units", [None, UNITS], ids=["plain", "units"])
def test_only_those_that_are_due_restart(units):
    first, later = (None, None) if units is None else (places(units), places(7 * units))
    pool = pool_of("sep-cma-es")
    states = pool.start(key(0), jnp.asarray(MEANS), first)
    genotypes, asked = pool.ask(key(1), states)
    told = pool.tell(key(2), asked, genotypes, pool.split(jnp.asarray(score(genotypes))))
    fresh = pool.start(key(3), jnp.asarray(MEANS + 9), later)
    after = pool.restart(key(3), told, jnp.array([False, True]), jnp.asarray(MEANS + 9), later)
    for number, expected in ((0, told), (1, fresh)):
        first, second = (jax.tree.map(lambda leaf, n=number: leaf[n], tree) for tree in (after, expected))
        assert_same_bits(first, second)


def test_the_first_samples_have_the_spread_of_their_unit():
    pool = ESPool(make_strategy("cma-es", population=2000, step_size=1.0), 2)
    genotypes, _ = pool.ask(key(1), pool.start(key(0), jnp.asarray(MEANS), places(UNITS)))
    each = np.asarray(pool.split(genotypes))
    np.testing.assert_allclose(each.std(axis=1) / UNITS[:, None], 1, rtol=0.06)
    np.testing.assert_allclose((each.mean(axis=1) - MEANS) / UNITS[:, None], 0, atol=0.1)


def test_without_units_parameters_are_those_of_the_strategy():
    pool = pool_of("sep-cma-es", step_size=0.05)
    states = pool.start(key(0), jnp.asarray(MEANS, jnp.float32))
    np.testing.assert_array_equal(states.mean, MEANS.astype(np.float32))
    genotypes, _ = pool.ask(key(1), states)
    expected = [pool.strategy.ask(k, jax.tree.map(lambda leaf, n=n: leaf[n], states))[0]
                for n, k in enumerate(jax.random.split(key(1), 2))]  # fmt: skip
    np.testing.assert_allclose(genotypes, np.concatenate(expected), rtol=1e-6)


@pytest.mark.parametrize("es", STRATEGIES)
def test_es_learn_from_the_samples_and_not_from_their_reflections(es):
    """Solutions are reflected at 0: what is told is the reflection, what is learnt is what was sampled."""
    with jax.enable_x64(True):
        strategy = make_strategy(es, population=8, step_size=1.0)
        pool, free = ESPool(strategy, 2, jnp.abs), ESPool(strategy, 2)
        states, same = (each.start(key(0), jnp.asarray(MEANS), places(UNITS)) for each in (pool, free))
        for generation in range(5):
            samples, asked = jax.jit(pool.ask)(key(2 * generation + 1), states)
            expected, same = jax.jit(free.ask)(key(2 * generation + 1), same)
            np.testing.assert_allclose(samples, expected, rtol=1e-9)
            assert (np.asarray(samples) < 0).any()
            told = np.abs(samples)
            scores = pool.split(jnp.asarray(score(told)))
            states = jax.jit(pool.tell)(key(2 * generation + 2), asked, told, scores)
            same = jax.jit(free.tell)(key(2 * generation + 2), same, samples, scores)
        jax.tree.map(
            lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8), states.inner, same.inner
        )


def test_a_solution_that_stands_in_for_a_failed_one_is_learnt_as_it_is():
    with jax.enable_x64(True):
        strategy = make_strategy("cma-es", population=8, step_size=1.0)
        pool, free = ESPool(strategy, 2, jnp.abs), ESPool(strategy, 2)
        states = pool.start(key(0), jnp.asarray(MEANS), places(UNITS))
        samples, states = pool.ask(key(1), states)
        told, other = np.abs(samples), np.array([0.25, 0.5, 0.75])
        told[3], learnt = other, np.array(samples)
        learnt[3] = other
        scores = pool.split(jnp.asarray(score(told)))
        after = pool.tell(key(2), states, jnp.asarray(told), scores)
        alone = free.tell(key(2), states, jnp.asarray(learnt), scores)
        assert_same_bits(after.inner, alone.inner)
