"""LM-MA-ES against pyribs, and the formulas of its paper."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.emitters.opt import LMMAEvolutionStrategy

from jedax.es.lm_ma_es import LMMAES, _normals


class Replay:
    """A generator for pyribs that repeats the normals drawn by jedax."""

    def standard_normal(self, shape):
        assert self.normals.shape == shape
        return self.normals


def ellipsoid(x):
    return (10.0 ** np.linspace(0, 3, x.shape[1]) * x**2).sum(axis=1)


@pytest.mark.parametrize(("n", "population", "generations"), [(24, 10, 30), (40, 16, 12)])
def test_generations_equal_pyribs(n, population, generations, ask, tell):
    """Samples and updates, from the first generation to far more of them than there are directions."""
    ours = LMMAES(population=population, step_size=0.3)
    num_directions = 4 + int(3 * np.log(n))
    theirs = LMMAEvolutionStrategy(0.3, n, population, n_vectors=num_directions)
    theirs.reset(np.linspace(1, 2, n))
    theirs._rng = Replay()
    state = ours.init(jax.random.key(0), jnp.linspace(1, 2, n))
    assert state.directions.shape == (num_directions, n)
    for generation in range(generations):
        key = jax.random.key(100 + generation)
        theirs._rng.normals = np.asarray(_normals(key, population, jnp.zeros(n)), float)
        solutions = np.array(theirs.ask())
        genotypes, state = ask(ours, key, state)
        np.testing.assert_allclose(genotypes, solutions, rtol=1e-3, atol=1e-3 * theirs.sigma)

        values = ellipsoid(solutions)
        theirs.tell(np.argsort(values), values, population // 2)
        state = tell(ours, state, genotypes, -values)
        np.testing.assert_allclose(state.mean, theirs.mean, rtol=1e-4, atol=1e-3 * theirs.sigma)
        np.testing.assert_allclose(state.p_sigma, theirs.ps, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(state.directions, theirs.m, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(state.sigma, theirs.sigma, rtol=1e-3)
    assert abs(np.log(theirs.sigma / 0.3)) > 0.1


def test_directions_stretch_one_by_one(ask):
    """In generation t the first min(t, m) directions are used, whatever the others hold."""
    n, population = 30, 6
    strategy = LMMAES(population=population, step_size=1.0)
    state = strategy.init(jax.random.key(0), jnp.zeros(n))
    m = state.directions.shape[0]
    directions = 2 * np.random.default_rng(0).normal(size=(m, n))
    z = np.asarray(_normals(jax.random.key(5), population, jnp.zeros(n)), float)
    seen = []
    for generation in (0, 1, 2, m - 1, m, m + 40):
        expected = z.copy()
        for i in range(min(generation, m)):
            c = 1 / (1.5**i * n)
            expected = (1 - c) * expected + c * np.outer(expected @ directions[i], directions[i])
        state = type(state)(
            state.mean,
            state.sigma,
            state.p_sigma,
            jnp.asarray(directions, jnp.float32),
            jnp.asarray(generation, jnp.int32),
            state.gram,
        )
        genotypes, _ = ask(strategy, jax.random.key(5), state)
        np.testing.assert_allclose(genotypes, expected, rtol=1e-4, atol=1e-4)
        seen.append(np.asarray(genotypes))
    assert np.abs(seen[1] - seen[0]).max() > 0.1
    assert np.abs(seen[4] - seen[3]).max() > 1e-4
    np.testing.assert_array_equal(seen[5], seen[4])


@pytest.mark.parametrize(("n", "population"), [(66, 16), (1000, 24), (82_000, 256)])
def test_rates_are_the_papers(n, population):
    rates = LMMAES(population=population).learning_rates(n)
    m = 4 + int(np.floor(3 * np.log(n)))
    i = np.arange(1, m + 1)
    assert rates.c_sigma == pytest.approx(2 * population / n)
    np.testing.assert_allclose(rates.c_d, 1 / (1.5 ** (i - 1) * n))
    np.testing.assert_allclose(rates.c_c, population / (4.0 ** (i - 1) * n))


def test_rates_of_the_mazes():
    """66 parameters, population 16: numbers worked out by hand."""
    rates = LMMAES(population=16).learning_rates(66)
    assert len(rates.c_d) == len(rates.c_c) == 16
    assert rates.c_sigma == pytest.approx(0.484848, rel=1e-5)
    assert rates.c_d[:3] == pytest.approx([0.0151515, 0.0101010, 0.00673401], rel=1e-5)
    assert rates.c_c[:3] == pytest.approx([0.242424, 0.0606061, 0.0151515], rel=1e-5)


def test_rates_are_capped_for_large_populations():
    rates = LMMAES(population=256).learning_rates(10)
    assert rates.c_sigma == 1
    assert rates.c_c[:4] == (1, 1, 1, 0.4)
    assert max(rates.c_d) == 0.1
    assert LMMAES(population=2).learning_rates(1).c_c[0] == 1


def test_capped_rates_still_find_the_optimum(run_search, problems):
    strategy = LMMAES(population=64, step_size=0.5)
    assert strategy.learning_rates(6).c_sigma == 1
    _, best, _ = run_search(jax.random.key(0), strategy, problems["sphere"], jnp.full(6, 3.0), 150)
    assert best[-1] > -1e-8


def test_only_the_scores_of_the_sorted_samples_get_the_weights(tell, ask):
    """The weights go to the samples in the order of their scores, not of the batch."""
    strategy = LMMAES(population=4, step_size=0.1, elite_ratio=0.5)
    state = strategy.init(jax.random.key(0), jnp.zeros(5))
    genotypes, state = ask(strategy, jax.random.key(1), state)
    state = tell(strategy, state, genotypes, [1.0, 7.0, -2.0, 3.0])
    z = np.asarray(genotypes, float) / 0.1
    raw = np.log(2.5) - np.log([1, 2])
    w = raw / raw.sum()
    z_w = w[0] * z[1] + w[1] * z[3]
    np.testing.assert_allclose(state.mean, 0.1 * z_w, rtol=1e-5)
    c, mu_eff = 1.0, 1 / (w**2).sum()  # 2 * 4 / 5, capped
    np.testing.assert_allclose(state.p_sigma, np.sqrt(mu_eff * c * (2 - c)) * z_w, rtol=1e-5)
    length = mu_eff * (z_w**2).sum()
    np.testing.assert_allclose(state.sigma, 0.1 * np.exp(0.5 * (length / 5 - 1)), rtol=1e-5)


def test_other_genotypes_than_those_of_ask(ask, tell):
    """Such as folded ones: the paths follow what was told, by the inverse of the matrix that transforms normals."""
    n, population, generation = 12, 6, 4
    strategy = LMMAES(population=population, step_size=0.1)
    random = np.random.default_rng(0)
    directions, told = random.normal(size=(11, n)), random.normal(size=(population, n))
    state = dataclasses.replace(
        strategy.init(jax.random.key(0), jnp.ones(n)),
        directions=jnp.asarray(directions, jnp.float32),
        generation=jnp.int32(generation),
    )
    state = tell(strategy, ask(strategy, jax.random.key(1), state)[1], told, -np.arange(population))
    transform = np.eye(n)
    for i in range(generation):
        c = 1 / (1.5**i * n)
        transform = ((1 - c) * np.eye(n) + c * np.outer(directions[i], directions[i])) @ transform
    raw = np.log(3.5) - np.log([1, 2, 3])
    w = raw / raw.sum()
    step = w @ (told[:3] - 1)
    z_w = np.linalg.solve(transform, step / 0.1)
    np.testing.assert_allclose(state.mean, 1 + step, rtol=1e-5)
    np.testing.assert_allclose(state.p_sigma, z_w / np.sqrt((w**2).sum()), rtol=1e-4)  # c_sigma is 1


def test_state_holds_directions_but_no_samples():
    n = 20_000
    strategy = LMMAES(population=256)
    state = strategy.init(jax.random.key(0), jnp.zeros(n))
    m = 4 + int(3 * np.log(n))
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) == (m + 2) * n + m**2 + 2
