"""Dominated novelty search: against a plain transcription of arXiv:2502.00593, and one generation by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jedax
from jedax.methods.dns import DNS, DNSConfig, dominated_novelty
from jedax.types import Evaluation

SMALL = DNSConfig(offspring=6, population=8, cells=16)
novelty_of = jax.jit(dominated_novelty, static_argnums=2)


def transcription(fitness, descriptors, k):
    found = []
    everyone = list(zip(fitness, -np.arange(len(fitness)), descriptors, strict=True))
    for mine, rank, place in everyone:
        fitter = sorted(np.linalg.norm(place - at) for value, other, at in everyone if (value, other) > (mine, rank))
        found.append(-np.inf if mine == -np.inf else np.mean(fitter[:k]) if fitter else np.inf)
    return found


@pytest.mark.parametrize("k", [1, 3, 40])
def test_novelty_is_that_of_a_transcription(k):
    rng = np.random.default_rng(0)
    fitness = rng.integers(0, 12, 30).astype(np.float32)  # with ties
    fitness[[3, 17]] = -np.inf
    descriptors = rng.random((30, 3)).astype(np.float32)
    found = novelty_of(fitness, descriptors, k)
    np.testing.assert_allclose(found, transcription(fitness, descriptors, k), rtol=1e-5)


def test_solutions_in_one_place_have_no_novelty_but_the_fittest():
    found = novelty_of(jnp.array([1.0, 3.0, 2.0]), jnp.zeros((3, 2)), 3)
    np.testing.assert_array_equal(found, [0, np.inf, 0])


@pytest.fixture(scope="module")
def method(arm):
    return DNS(SMALL, arm)


@pytest.fixture(scope="module")
def state(method, arm):
    genotypes = jax.vmap(arm.init)(jax.random.split(jax.random.key(1), 6))
    places = jnp.linspace(-0.9, 0.9, 12).reshape(6, 2)
    return jax.jit(method.init)(jax.random.key(0), genotypes, Evaluation(jnp.arange(6.0), places))


class TestGenerations:
    def test_the_novel_survive_where_all_are_equally_fit(self, method, state, arm):
        """The population is full, and its members lie closer together than the offspring."""
        full = dataclasses.replace(
            state,
            fitness=jnp.ones(8),
            descriptors=0.5 + 1e-3 * jnp.arange(16.0).reshape(8, 2),
            genotypes=jnp.zeros((8, arm.num_params)),
        )
        places = jnp.array([[-1, -1], [1, 1], [-1, 1], [1, -1], [0, 0.9], [0, -0.9]])
        after, _ = jax.jit(method.tell)(
            jax.random.key(2), full, jnp.ones((6, arm.num_params)), Evaluation(jnp.ones(6), places)
        )
        assert int((np.asarray(after.genotypes) == 1).all(axis=1).sum()) == 6

    def test_solutions_that_nobody_asked_for_compete_too(self, method, state, arm):
        given = Evaluation(jnp.array([99.0]), jnp.zeros((1, 2)))
        after = jax.jit(method.insert)(state, jnp.full((1, arm.num_params), 5.0), given)
        assert float(after.fitness.max()) == 99
        assert float(after.repertoire.best_fitness) == 99
        assert int(after.generation) == 0

    def test_the_population_fills_first(self, state):
        np.testing.assert_array_equal(np.sort(state.fitness), [-np.inf, -np.inf, 0, 1, 2, 3, 4, 5])

    def test_the_most_novel_survive(self, method, state, arm):
        offspring = jnp.ones((6, arm.num_params))
        fitness = jnp.array([9.0, np.nan, 4.5, -7.0, 5.5, 1.5])
        places = jnp.array([[0.9, 0.9], [0, 0], [-0.9, -0.9], [0.8, -0.9], [0.5, 0.5], [-0.9, -0.8]])
        after, _ = jax.jit(method.tell)(jax.random.key(2), state, offspring, Evaluation(fitness, places))
        known = np.isfinite(state.fitness)
        everyone = np.concatenate([state.fitness[known], np.delete(fitness, 1)])
        units = np.concatenate([state.descriptors[known], method.cells.to_unit_box(np.delete(places, 1, axis=0))])
        novelty = np.array(transcription(everyone, units, SMALL.neighbours))
        expected = np.sort(everyone[np.argsort(-novelty)[:8]])
        np.testing.assert_array_equal(np.sort(after.fitness), expected)
        assert 9.0 in after.fitness  # the best always survives
        assert -7.0 in after.fitness  # and so does the worst where it is alone
        assert int(after.repertoire.num_failed) == 1
        assert int(after.generation) == 1

    def test_offspring_are_those_of_members(self, method, state):
        alive = np.isfinite(state.fitness)
        marked = dataclasses.replace(state, genotypes=jnp.where(alive[:, None], state.genotypes, jnp.nan))
        varied, _ = jax.jit(DNS(SMALL.replace(iso_sigma=0.0), method.problem).ask)(jax.random.key(3), marked)
        members = np.asarray(state.genotypes)[alive]
        assert all((members == row).all(axis=1).any() for row in np.asarray(varied))


def test_fills_the_map_as_map_elites_does(arm):
    settings = {"evaluations": 4_000, "offspring": 16, "cells": 64, "seed": 0}
    run, peer = jedax.run("dns", arm, population=64, **settings), jedax.run("map-elites", arm, **settings)
    assert run.repertoire.filled.sum() > 0.8 * peer.repertoire.filled.sum()
    assert run.best().fitness > peer.best().fitness - 0.1
