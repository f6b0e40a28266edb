"""The ES baselines: the strategy alone, and restarts at fresh random genotypes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jedax
from jedax.methods.es import ES, ESConfig, has_converged
from jedax.types import Evaluation

SMALL = ESConfig(population=8, cells=64)


def evaluate(task, genotypes):
    return task.evaluate_batch(jax.random.key(0), genotypes)


@pytest.mark.parametrize("name", ["sep-cma-es", "lm-ma-es", "evosax:SNES"])
def test_is_the_strategy_alone(arm, name):
    method = ES(SMALL.replace(es=name), arm)
    strategy = method.strategy
    start = arm.init(jax.random.key(1))[None]
    state = method.init(jax.random.key(2), start, evaluate(arm, start))
    own = strategy.init(jax.random.key(2), start[0])
    assert int(method.evaluations(state)) == 1
    for number in range(3):
        ask_key, tell_key = jax.random.split(jax.random.key(number))
        genotypes, state = method.ask(ask_key, state)
        mine, own = strategy.ask(ask_key, own)
        np.testing.assert_array_equal(genotypes, mine)
        evaluation = evaluate(arm, genotypes)
        state, _ = method.tell(tell_key, state, genotypes, evaluation)
        own = strategy.tell(jax.random.split(tell_key, 3)[0], own, mine, evaluation.fitness)
    np.testing.assert_allclose(strategy.mean(state.strategy), strategy.mean(own), rtol=1e-6)
    assert int(method.evaluations(state)) == 25
    assert int(state.repertoire.counts.sum()) == 25


def test_restarts_afresh_where_fitness_has_converged(arm):
    method = ES(SMALL.replace(restart_tolerance=0.5), arm)
    start = arm.init(jax.random.key(1))[None]
    state = method.init(jax.random.key(2), start, evaluate(arm, start))
    key = jax.random.key(7)
    genotypes, state = method.ask(jax.random.key(3), state)
    spread = Evaluation(jnp.arange(8.0), jnp.zeros((8, 2)))
    going_on, _ = method.tell(key, state, genotypes, spread)
    assert int(going_on.num_restarts) == 0
    assert not (going_on.strategy.mean == state.strategy.mean).all()
    flat = Evaluation(jnp.full(8, 3.0) + 0.05 * jnp.arange(8), jnp.zeros((8, 2)))
    anew, _ = method.tell(key, dataclasses.replace(state, generation=jnp.int32(9)), genotypes, flat)
    assert int(anew.num_restarts) == 1
    expected = arm.init(jax.random.split(key, 3)[1])
    fresh = method.strategy.init(key, expected)
    for ours, wanted in zip(jax.tree.leaves(anew.strategy), jax.tree.leaves(fresh), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)
    assert int(anew.generation) == 10
    assert float(anew.repertoire.best_fitness) == pytest.approx(3.35)


@pytest.mark.parametrize(
    ("fitness", "expected"),
    [
        ([1, 1, 1], True),
        ([1, 1.05, 1], True),
        ([1, 1.5, 1], False),
        ([1, np.nan, 1.05], True),
        ([np.nan, np.nan, np.nan], True),
        ([-np.inf, 0, 5], False),
    ],
)
def test_convergence_looks_at_valid_members(fitness, expected):
    assert bool(has_converged(Evaluation(jnp.float32(fitness), jnp.zeros((3, 2))), 0.1)) == expected


def test_restarting_escapes_where_the_plain_one_stays():
    """On Rastrigin an ES ends in the nearest good optimum; with restarts it sees many."""
    plain, restarting = (
        jedax.run(method, jedax.tasks.make("rastrigin", None), evaluations=40_000, replicas=4, population=16)
        for method in ("es", "es-restart")
    )
    assert [row["num_restarts"] for row in plain.rows[-4:]] == [0] * 4
    assert min(row["num_restarts"] for row in restarting.rows[-4:]) >= 2
    assert np.median(restarting.repertoire.best_fitness) > np.median(plain.repertoire.best_fitness)


def test_one_evaluation_is_the_start_then_whole_generations(arm):
    run = jedax.run("es", arm, evaluations=8 * 3 + 5, population=8, cells=64)
    assert run.rows[-1]["evaluations"] == 25
    assert int(run.repertoire.counts.sum()) == 25
    assert run.targets is None
    assert run.gp_mean is None
