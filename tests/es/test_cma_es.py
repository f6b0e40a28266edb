"""CMA-ES against pycma and against the equations of Hansen's tutorial, written out in NumPy."""

import cma
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jedax.es.cma_es import CMAES, _CMAState


def ellipsoid(x):
    return (10.0 ** (6 * np.arange(x.shape[1]) / (x.shape[1] - 1)) * x**2).sum(axis=1)


def tutorial(population, x, sigma):
    """A generator of the tutorial's states, with the damping of pycma 4.5; decomposed every time.

    Send ranked steps y, get mean, sigma, covariance.
    """
    n, mu = len(x), population // 2
    raw = np.log((population + 1) / 2) - np.log(np.arange(1, population + 1))
    mu_eff = raw[:mu].sum() ** 2 / (raw[:mu] ** 2).sum()
    mu_eff_negative = raw[mu:].sum() ** 2 / (raw[mu:] ** 2).sum()
    c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)
    c_mu = min(1 - c_1, 2 * (1 / 4 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff))
    least = min(1 + c_1 / c_mu, 1 + 2 * mu_eff_negative / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu))
    w = np.where(raw >= 0, raw / raw[raw >= 0].sum(), raw * least / -raw[raw < 0].sum())
    c_sigma, c_c = min(0.5, (mu_eff + 2) / (n + mu_eff + 5)), (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
    factor = max(1, 3 - 3 / 2 ** (n / 9))
    d_sigma = 1 + 2 * max(0, factor * ((mu_eff - 1) / (n + 1)) ** 0.5 - 1) + c_sigma
    chi = n**0.5 * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    p_s = p_c = np.zeros(n)
    covariance, generation = np.eye(n), 0
    while True:
        y = yield x, sigma, covariance
        generation += 1
        values, b = np.linalg.eigh(covariance)
        inverse_root = b @ np.diag(values**-0.5) @ b.T
        y_w = w[:mu] @ y[:mu]
        x = x + sigma * y_w
        p_s = (1 - c_sigma) * p_s + (c_sigma * (2 - c_sigma) * mu_eff) ** 0.5 * inverse_root @ y_w
        sigma = sigma * np.exp(min(1, c_sigma / d_sigma * (np.linalg.norm(p_s) / chi - 1)))
        bound = (1.4 + 2 / (n + 1)) * chi * (1 - (1 - c_sigma) ** (2 * generation)) ** 0.5
        h = float(np.linalg.norm(p_s) < bound)
        p_c = (1 - c_c) * p_c + h * (c_c * (2 - c_c) * mu_eff) ** 0.5 * y_w
        lengths = (y @ inverse_root * (y @ inverse_root)).sum(axis=1)
        w_o = np.where(w >= 0, w, w * n / lengths)
        delta = (1 - h) * c_c * (2 - c_c)
        covariance = (
            (1 + c_1 * delta - c_1 - c_mu * w.sum()) * covariance
            + c_1 * np.outer(p_c, p_c)
            + c_mu * np.einsum("k,ki,kj->ij", w_o, y, y)
        )


def test_the_covariance_stays_symmetric():
    """Rounding made it asymmetric, more so in each generation in which all solutions are equally good."""
    strategy = CMAES(population=8, step_size=0.5)

    def step(state, key):
        genotypes, state = strategy.ask(key, state)
        return strategy.tell(key, state, genotypes, jnp.zeros(8)), None

    keys = jax.random.split(jax.random.key(1), 1500)
    state = jax.jit(lambda state: jax.lax.scan(step, state, keys)[0])(strategy.init(jax.random.key(0), jnp.ones(5)))
    np.testing.assert_array_equal(state.covariance, state.covariance.T)


@pytest.mark.parametrize(("n", "population"), [(4, 30), (7, 10), (2, 12)])
def test_generations_are_the_tutorials(n, population, ask, tell):
    strategy = CMAES(population=population, step_size=0.3)
    interval = 1 / (10 * n * sum(strategy.learning_rates(n)[-2:]))
    assert interval < 2  # the tutorial's own decomposition, in every generation
    with jax.enable_x64(True):
        reference = tutorial(population, np.linspace(1, 2, n), 0.3)
        state = strategy.init(jax.random.key(0), jnp.linspace(1, 2, n))
        x, sigma, covariance = next(reference)
        for generation in range(40):
            genotypes, state = ask(strategy, jax.random.key(generation), state)
            values = ellipsoid(np.asarray(genotypes))
            y = (np.asarray(genotypes)[np.argsort(values)] - x) / sigma
            state = tell(strategy, state, genotypes, -values)
            x, sigma, covariance = reference.send(y)
            np.testing.assert_allclose(state.mean, x, rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(state.sigma, sigma, rtol=1e-7)
            np.testing.assert_allclose(state.covariance, covariance, rtol=1e-6, atol=1e-9)
        assert np.linalg.cond(covariance) > 10


def test_samples_have_the_covariance(ask):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    covariance = root @ root.T
    own = scipy.linalg.sqrtm(covariance)
    one, zero = jnp.float32(1), jnp.zeros(3)
    arrays = [jnp.asarray(part, jnp.float32) for part in (covariance, own, np.linalg.inv(own))]
    state = _CMAState(jnp.arange(3.0), 2 * one, *arrays, zero, zero, jnp.int32(0))
    genotypes, _ = ask(CMAES(population=40_000), jax.random.key(1), state)
    np.testing.assert_allclose(np.cov(genotypes.T), 4 * covariance, rtol=0.05, atol=0.05)
    np.testing.assert_allclose(genotypes.mean(axis=0), [0, 1, 2], atol=0.05)


def solve(function, n, seed, target=1e-9, most=600):
    """Evaluations until a value is below the target."""
    strategy = CMAES(population=4 + int(3 * np.log(n)), step_size=0.5)

    @jax.jit
    def all_generations(keys):
        def step(state, key):
            genotypes, state = strategy.ask(key, state)
            values = function(genotypes)
            return strategy.tell(key, state, genotypes, -values), values.min()

        return jax.lax.scan(step, strategy.init(keys[0], jnp.ones(n)), keys)[1]

    found = np.asarray(all_generations(jax.random.split(jax.random.key(seed), most)))
    return strategy.population * (int(np.argmax(found < target)) + 1) if (found < target).any() else np.inf


@pytest.mark.skipif(tuple(map(int, cma.__version__.split(".")[:2])) < (4, 5), reason="another damping")
@pytest.mark.parametrize(("n", "population"), [(2, 6), (5, 64), (20, 12), (20, 48), (20, 768), (100, 200)])
def test_rates_are_those_of_pycma(n, population):
    """But for the rate of the step size's path: pycma leaves out a constant of the tutorial there."""
    peer = cma.CMAEvolutionStrategy(np.zeros(n), 1, {"popsize": population, "verbose": -9})
    peer.tell(peer.ask(), list(range(population)))
    ours, theirs = CMAES(population=population, step_size=1.0).learning_rates(n), peer.sp
    expected = [theirs.weights.mueff, theirs.c1, theirs.cmu, theirs.cc, peer.adapt_sigma.damps - peer.adapt_sigma.cs]
    found = [ours.mu_eff, ours.c_1, ours.c_mu, ours.c_c, ours.d_sigma - ours.c_sigma]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-6)
    assert ours.c_sigma == pytest.approx(min(0.5, (ours.mu_eff + 2) / (n + ours.mu_eff + 5)))


def test_as_many_evaluations_as_pycma():
    """Medians of seven seeds on a rotated ellipsoid with a condition of a million."""
    n = 8
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(n, n)))[0]
    scales = 10.0 ** (6 * np.arange(n) / (n - 1))
    with jax.enable_x64(True):
        ours = [solve(lambda x: ((x @ rotation) ** 2 * scales).sum(axis=1), n, seed) for seed in range(7)]
    theirs = []
    for seed in range(1, 8):
        es = cma.CMAEvolutionStrategy(np.ones(n), 0.5, {"seed": seed, "verbose": -9, "ftarget": 1e-9})
        while not es.stop():
            solutions = es.ask()
            es.tell(solutions, list(ellipsoid(np.array(solutions) @ rotation)))
        theirs.append(es.result.evaluations)
    assert np.median(ours) == pytest.approx(np.median(theirs), rel=0.15)


def test_under_vmap_each_strategy_goes_its_own_way(ask, tell):
    strategy = CMAES(population=8)
    means = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5)), jnp.float32)
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(strategy.init)(keys, means)

    @jax.jit
    def generation(keys, states):
        genotypes, states = jax.vmap(strategy.ask)(keys, states)
        return jax.vmap(strategy.tell)(keys, states, genotypes, -jnp.square(genotypes).sum(axis=2))

    alone = strategy.init(keys[1], means[1])
    for _ in range(5):
        states = generation(keys, states)
        genotypes, alone = ask(strategy, keys[1], alone)
        alone = tell(strategy, alone, genotypes, -jnp.square(genotypes).sum(axis=1))
    np.testing.assert_allclose(states.mean[1], alone.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(states.covariance[1], alone.covariance, rtol=1e-3, atol=1e-5)


def test_a_population_over_several_generations_is_one_population():
    with jax.enable_x64(True):
        small, whole = CMAES(6, 0.5).growing(8), CMAES(24, 0.5)
        collected, state = (
            small.start(jax.random.key(0), jnp.ones(5), jnp.int32(4)),
            whole.init(jax.random.key(0), jnp.ones(5)),
        )
        tell_part, tell = jax.jit(small.tell), jax.jit(whole.tell)
        for number in range(25):
            genotypes, _ = whole.ask(jax.random.key(number), state)
            scores = -(genotypes**2 * jnp.arange(1, 6) ** 3).sum(axis=1)
            scores = scores.at[number % 24].set(jnp.nan if number % 3 == 0 else 0.5)
            for part in range(4):
                place = slice(6 * part, 6 * part + 6)
                assert collected.inner.generation == number
                collected = tell_part(jax.random.key(0), collected, genotypes[place], scores[place])
            state = tell(jax.random.key(0), state, genotypes, scores)
            for name, expected in vars(state).items():
                np.testing.assert_allclose(
                    getattr(collected.inner, name), expected, rtol=1e-8, atol=1e-11, err_msg=name
                )
        assert small.start(jax.random.key(0), jnp.ones(5), jnp.int32(99)).growth == 8
