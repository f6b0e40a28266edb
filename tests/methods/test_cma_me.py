"""CMA-ME and CMA-MAE by hand, at the ends of their settings, and against pyribs on one task."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jedax
from jedax.methods.cma_me import CMAME, CMAMEConfig
from jedax.methods.registry import method_defaults
from jedax.rankers import RANKERS, Outcome
from jedax.types import Evaluation

SMALL = CMAMEConfig(population=6, pool=3, cells=64)
BATCH = 18


def begin(method, task, seed=0):
    keys = jax.random.split(jax.random.key(seed), BATCH)
    genotypes = jax.vmap(task.init)(keys)
    return method.init(jax.random.key(seed + 1), genotypes, task.evaluate_batch(keys[0], genotypes))


@pytest.mark.parametrize("ranker", ["2imp", "obj", "rd"])
def test_one_generation_by_hand(arm, ranker):
    method = CMAME(SMALL.replace(ranker=ranker), arm)
    before = begin(method, arm)
    genotypes, state = method.ask(jax.random.key(5), before)
    evaluation = arm.evaluate_batch(jax.random.key(0), genotypes)
    key = jax.random.key(6)
    after, insertion = method.tell(key, state, genotypes, evaluation)
    strategy = method.pool.strategy
    tell_keys = jax.random.split(jax.random.split(key, 4)[0], 3)
    cell = np.asarray(method.cells.assign(evaluation.descriptor))
    num_added = 0
    for emitter in range(3):
        mine = slice(6 * emitter, 6 * emitter + 6)
        fitness, home = np.asarray(evaluation.fitness)[mine], cell[mine]
        was_filled = np.asarray(before.repertoire.filled)[home]
        held = np.asarray(before.repertoire.fitness)[home]
        if ranker == "2imp":
            # (2, fitness) fills a cell, (1, gain) beats it, (0, loss) does neither.
            gain = np.where(was_filled, fitness - held, fitness)
            status = np.where(was_filled, gain > 0, 2)
            order = sorted(range(6), key=lambda i: (status[i], gain[i]), reverse=True)
        elif ranker == "obj":
            order = np.argsort(-fitness)
        else:
            order = np.argsort(-(np.asarray(evaluation.descriptor)[mine] @ np.asarray(before.directions[emitter])))
        scores = np.zeros(6, np.float32)
        scores[np.asarray(order)] = np.arange(6, 0, -1)
        own = jax.tree.map(lambda leaf, e=emitter: leaf[e], state.pool)
        own = strategy.tell(tell_keys[emitter], own, genotypes[mine], jnp.asarray(scores))
        added = (~was_filled | (fitness > held)).any()
        assert bool((insertion.status[mine] > 0).any()) == added
        if added:  # the others start afresh, see the next test
            num_added += 1
            np.testing.assert_allclose(strategy.mean(own), after.pool.mean[emitter], rtol=1e-5, atol=1e-6)
    assert num_added > 0
    assert int(after.generation) == 1
    assert int(after.repertoire.counts.sum()) == 2 * BATCH


def test_an_emitter_without_a_gain_starts_afresh_from_an_elite(arm):
    method = CMAME(SMALL, arm)
    state = begin(method, arm)
    for number in range(3):  # let the strategies learn something
        genotypes, state = method.ask(jax.random.key(number), state)
        state, _ = method.tell(
            jax.random.key(number), state, genotypes, arm.evaluate_batch(jax.random.key(0), genotypes)
        )
    restarts = int(state.num_restarts)
    genotypes, state = method.ask(jax.random.key(9), state)
    # Emitter 0 finds better solutions, 1 and 2 nothing at all.
    home = state.repertoire.descriptors[jnp.argmax(state.repertoire.filled)]
    fitness = jnp.concatenate([100 + jnp.arange(6.0), jnp.full(12, -1e6) + jnp.arange(12.0)])
    evaluation = Evaluation(fitness, jnp.tile(home, (BATCH, 1)))
    after, insertion = method.tell(jax.random.key(10), state, genotypes, evaluation)
    assert (np.asarray(insertion.status).reshape(3, 6) > 0).any(axis=1).tolist() == [True, False, False]
    assert int(after.num_restarts) == restarts + 2
    elites = np.asarray(after.repertoire.genotypes)[np.asarray(after.repertoire.filled)]
    for emitter in (1, 2):
        assert (elites == np.asarray(after.pool.mean[emitter])).all(axis=1).any()
        assert float(after.pool.sigma[emitter]) == np.float32(0.05)
        assert float(jnp.abs(after.pool.p_sigma[emitter]).max()) == 0
        assert int(after.pool.generation[emitter]) == 0
        assert not (after.directions[emitter] == state.directions[emitter]).any()
    assert int(after.pool.generation[0]) == int(state.pool.generation[0]) + 1
    np.testing.assert_array_equal(after.directions[0], state.directions[0])


def test_an_emitter_whose_fitness_has_converged_starts_afresh(arm):
    method = CMAME(SMALL, arm)
    state = begin(method, arm)
    genotypes, state = method.ask(jax.random.key(9), state)
    home = state.repertoire.descriptors[jnp.argmax(state.repertoire.filled)]
    evaluation = Evaluation(jnp.repeat(jnp.float32([100, 101, 102]), 6), jnp.tile(home, (BATCH, 1)))
    assert int(method.tell(jax.random.key(10), state, genotypes, evaluation)[0].num_restarts) == 3
    never = dataclasses.replace(method, config=SMALL.replace(restart_tolerance=None))
    assert int(never.tell(jax.random.key(10), state, genotypes, evaluation)[0].num_restarts) == 0


def test_learning_rate_zero_ranks_by_fitness(arm):
    """CMA-MAE whose thresholds never rise sees in every cell the same threshold."""
    method = CMAME(SMALL.replace(ranker="imp", learning_rate=0.0, threshold_min="task"), arm)
    state = begin(method, arm)
    for number in range(4):
        genotypes, state = method.ask(jax.random.key(number), state)
        evaluation = arm.evaluate_batch(jax.random.key(0), genotypes)
        state, insertion = method.tell(jax.random.key(number), state, genotypes, evaluation)
        outcome = Outcome(evaluation, insertion, jnp.zeros(2))
        np.testing.assert_array_equal(
            np.argsort(-RANKERS[method.config.ranker](outcome), stable=True),
            np.argsort(-RANKERS["obj"](outcome), stable=True),
        )
    assert int(state.num_restarts) == 0


def test_a_hard_repertoire_and_its_ranker_make_cma_mae_cma_me(arm):
    settings = {"evaluations": 18 * 12, "cells": 64, "population": 6, "pool": 3}
    mae = jedax.run("cma-mae", arm, learning_rate=1.0, threshold_min="-inf", ranker="2imp", **settings)
    me = jedax.run("cma-me", arm, **settings)
    for name in ("genotypes", "fitness", "counts", "thresholds"):
        np.testing.assert_array_equal(getattr(mae.repertoire, name), getattr(me.repertoire, name))


def test_lowest_threshold_is_that_of_the_task(arm):
    method = CMAME(method_defaults("cma-mae", "arm"), arm)
    assert method.acceptance.start == arm.qd_offset
    assert method.acceptance.learning_rate == 0.1
    assert CMAME(method_defaults("cma-mae", "arm").replace(threshold_min=-7.0), arm).acceptance.start == -7


def test_a_low_learning_rate_needs_a_threshold():
    with pytest.raises(jedax.JedaxError, match="learning_rate: expected 1 where the threshold of empty cells is -inf"):
        CMAMEConfig.build({"learning_rate": 0.5})
