"""A pool of evolution strategies, with and without units of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits

from jedax.es import make_strategy
from jedax.es.placed import placed, within
from jedax.es.pool import ESPool, PlacedPool
from jedax.space import Space

STRATEGIES = ["sep-cma-es", "cma-es", "lm-ma-es"]
MEANS, UNITS = np.array([[1.0, -2.0, 30.0], [0.5, 0.0, 0.0]]), np.array([0.3, 20.0])


def strategy_of(es, step_size=1.0):
    return make_strategy(es, population=8, step_size=step_size)


def score(genotypes):
    return -np.square(np.asarray(genotypes) - [2.0, 5.0, 1.0]).sum(axis=-1)


def key(number):
    return jax.random.key(number)


@pytest.mark.parametrize("space", [None, Space.box(lows=0, num_params=3)], ids=["free", "bounded"])
@pytest.mark.parametrize("es", STRATEGIES)
def test_a_unit_is_a_step_size(es, space):
    """Ten generations of a pool with units equal those of each strategy with its own mean and step size."""
    with jax.enable_x64(True):
        pool = PlacedPool(placed(strategy_of(es), space), 2)
        means = MEANS if space is None else np.abs(MEANS)
        states = pool.place(key(0), jnp.asarray(means), jnp.asarray(UNITS))
        own = [within(strategy_of(es, unit), space) for unit in UNITS]
        alone = [strategy.init(k, jnp.asarray(mean)) for strategy, k, mean in
                 zip(own, jax.random.split(key(0), 2), means, strict=True)]  # fmt: skip
        num_reflected = 0
        for generation in range(10):
            ask_keys, tell_keys = (jax.random.split(key(2 * generation + part), 2) for part in (1, 2))
            genotypes, states = jax.jit(pool.ask)(key(2 * generation + 1), states)
            told = genotypes if space is None else jnp.abs(genotypes)
            num_reflected += (np.asarray(told) != np.asarray(genotypes)).sum()
            scores = score(told)
            for number in range(2):
                expected, alone[number] = own[number].ask(ask_keys[number], alone[number])
                np.testing.assert_allclose(pool.split(genotypes)[number], expected, rtol=1e-6, atol=1e-9)
                given = pool.split(jnp.asarray(scores))[number]
                alone[number] = own[number].tell(tell_keys[number], alone[number], expected, given)
            states = jax.jit(pool.tell)(key(2 * generation + 2), states, genotypes, pool.split(jnp.asarray(scores)))
        for number in range(2):
            mean = pool.means(states)[number]
            np.testing.assert_allclose(mean, own[number].mean(alone[number]), rtol=1e-6, atol=1e-9)
            assert not np.allclose(mean, means[number])
        assert (num_reflected > 0) == (space is not None)


@pytest.mark.parametrize("units", [None, UNITS], ids=["plain", "units"])
def test_only_those_that_are_due_restart(units):
    strategy = strategy_of("sep-cma-es")
    pool = ESPool(strategy, 2) if units is None else PlacedPool(placed(strategy, None), 2)

    def started(number, means, longer):
        begin = pool.start if units is None else lambda k, m: pool.place(k, m, longer * jnp.asarray(units))
        return begin(key(number), jnp.asarray(means))

    states = started(0, MEANS, 1)
    genotypes, asked = pool.ask(key(1), states)
    told = pool.tell(key(2), asked, genotypes, pool.split(jnp.asarray(score(genotypes))))
    fresh = started(3, MEANS + 9, 7)
    after = pool.replace(told, jnp.array([False, True]), fresh)
    for number, expected in ((0, told), (1, fresh)):
        first, second = (jax.tree.map(lambda leaf, n=number: leaf[n], tree) for tree in (after, expected))
        assert_same_bits(first, second)


def test_the_first_samples_have_the_spread_of_their_unit():
    pool = PlacedPool(placed(make_strategy("cma-es", population=2000, step_size=1.0), None), 2)
    genotypes, _ = pool.ask(key(1), pool.place(key(0), jnp.asarray(MEANS), jnp.asarray(UNITS)))
    each = np.asarray(pool.split(genotypes))
    np.testing.assert_allclose(each.std(axis=1) / UNITS[:, None], 1, rtol=0.06)
    np.testing.assert_allclose((each.mean(axis=1) - MEANS) / UNITS[:, None], 0, atol=0.1)


def test_without_units_parameters_are_those_of_the_strategy():
    pool = ESPool(strategy_of("sep-cma-es", step_size=0.05), 2)
    states = pool.start(key(0), jnp.asarray(MEANS, jnp.float32))
    np.testing.assert_array_equal(states.mean, MEANS.astype(np.float32))
    genotypes, _ = pool.ask(key(1), states)
    expected = [pool.strategy.ask(k, jax.tree.map(lambda leaf, n=n: leaf[n], states))[0]
                for n, k in enumerate(jax.random.split(key(1), 2))]  # fmt: skip
    np.testing.assert_allclose(genotypes, np.concatenate(expected), rtol=1e-6)
