"""Sep-CMA-ES against pycma, pyribs, and the formulas of Hansen's tutorial."""

import cma
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cma.more_algorithms.purecma import CMAESParameters
from ribs.emitters.opt import SeparableCMAEvolutionStrategy

from jedax.errors import JedaxError
from jedax.es.base import recombination_weights
from jedax.es.sep_cma_es import SepCMAES, SepCMARates


def tutorial_rates(n, population):
    """Table 1 of the tutorial, written out, with (n + 2) / 3 on c_1 and c_mu."""
    mu = population // 2
    w = np.log((population + 1) / 2) - np.log(np.arange(1, mu + 1))
    mu_eff = w.sum() ** 2 / (w**2).sum()
    c_sigma = (mu_eff + 2) / (n + mu_eff + 5)
    c_1 = min(1, 2 / ((n + 1.3) ** 2 + mu_eff) * (n + 2) / 3)
    c_mu = 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff) * (n + 2) / 3
    return {
        "c_sigma": c_sigma,
        "d_sigma": 1 + 2 * max(0, ((mu_eff - 1) / (n + 1)) ** 0.5 - 1) + c_sigma,
        "c_c": (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n),
        "c_1": c_1,
        "c_mu": max(0, min(1 - c_1, c_mu)),
    }


@pytest.mark.parametrize("n", [1, 2, 10, 66, 1000, 82_000])
@pytest.mark.parametrize("population", [2, 6, 16, 64, 256])
def test_rates_are_the_tutorials_times_the_factor(n, population):
    rates = SepCMAES(population=population).learning_rates(n)
    for name, value in tutorial_rates(n, population).items():
        assert getattr(rates, name) == pytest.approx(value, rel=1e-12, abs=1e-15), name
    assert rates.c_1 + rates.c_mu <= 1


@pytest.mark.parametrize(("n", "population"), [(66, 16), (10, 8), (500, 64)])
def test_rates_against_purecma(n, population):
    rates, theirs = SepCMAES(population=population).learning_rates(n), CMAESParameters(n, population)
    assert rates.c_sigma == pytest.approx(theirs.cs)
    assert rates.c_c == pytest.approx(theirs.cc)
    assert rates.c_1 == pytest.approx(theirs.c1 * (n + 2) / 3)
    assert rates.c_mu == pytest.approx(theirs.cmu * (n + 2) / 3)


def test_rates_of_the_mazes():
    """66 parameters, population 16: numbers worked out by hand to six digits."""
    rates = SepCMAES(population=16).learning_rates(66)
    _, mu_eff = recombination_weights(8)
    assert mu_eff == pytest.approx(4.840915, rel=1e-6)
    assert rates.c_sigma == pytest.approx(0.09020084, rel=1e-6)
    assert rates.d_sigma == pytest.approx(1.09020084, rel=1e-6)
    assert rates.c_c == pytest.approx(0.05806898, rel=1e-6)
    assert rates.c_1 == pytest.approx(0.009998241, rel=1e-5)
    assert rates.c_mu == pytest.approx(0.02984608, rel=1e-5)


def test_rates_are_capped():
    rates = SepCMAES(population=4000).learning_rates(2)
    assert rates.c_mu == 1 - rates.c_1
    assert 0 < rates.c_1 < 0.01


@pytest.mark.parametrize(
    "wrong", [{"c_1": 0.6, "c_mu": 0.6}, {"c_sigma": 0.0}, {"c_c": 1.1}, {"d_sigma": 0.0}, {"c_mu": -0.1}]
)
def test_bad_rates(wrong):
    good = {"c_sigma": 0.3, "d_sigma": 1.3, "c_c": 0.3, "c_1": 0.1, "c_mu": 0.2}
    with pytest.raises(JedaxError, match=r"^rates: expected"):
        SepCMARates(**(good | wrong))


def linear(x):
    return x.sum(axis=1)


def ellipsoid(x):
    return (10.0 ** np.linspace(0, 4, x.shape[1]) * x**2).sum(axis=1)


@pytest.mark.parametrize(("function", "stalls"), [(linear, range(8, 25)), (ellipsoid, range(4))])
def test_updates_equal_pycmas(function, stalls, tell):
    """pycma's CMA-ES with its covariance cut down to the diagonal after each generation is Sep-CMA-ES.

    (Its own option `CMA_diagonal` is another algorithm by now: it multiplies variances by exponentials.)
    """
    n, population, sigma = 10, 12, 0.5
    options = {"popsize": population, "CMA_active": False, "seed": 3, "verbose": -9}
    theirs = cma.CMAEvolutionStrategy(np.linspace(1, 2, n), sigma, options)
    learnt = theirs.sm.parameters(mueff=theirs.sp.weights.mueff, lam=population)
    csa = theirs.adapt_sigma
    rates = SepCMARates(csa.cs, csa.damps, theirs.sp.cc, learnt["c1"], learnt["cmu"])
    ours = SepCMAES(population=population, step_size=sigma, rates=rates)
    state = ours.init(jax.random.key(0), jnp.linspace(1, 2, n))
    scaled, stalled, sigmas = 1.0, 0, []
    for generation in range(25):
        genotypes = np.array(theirs.ask())
        values = function(genotypes)
        before = np.array(theirs.pc)
        theirs.tell(genotypes, values)
        stalled += np.allclose(theirs.pc, (1 - rates.c_c) * before)
        theirs.sm.C = np.diag(np.diag(theirs.sm.C))
        theirs.sm.update_now(-1)
        theirs._updateBDfromSM(theirs.sm)
        state = tell(ours, state, jnp.asarray(genotypes, jnp.float32), -values)
        sigmas.append(theirs.sigma)
        scaled = max(scaled, np.abs(csa.ps).max())
        np.testing.assert_allclose(state.mean, theirs.mean, rtol=1e-4, atol=1e-4 * theirs.sigma)
        np.testing.assert_allclose(state.sigma, theirs.sigma, rtol=1e-3)
        np.testing.assert_allclose(state.p_sigma, csa.ps, rtol=1e-3, atol=1e-3 * scaled)
        np.testing.assert_allclose(state.p_c, theirs.pc, rtol=1e-3, atol=1e-3 * scaled)
        np.testing.assert_allclose(state.variances, np.diag(theirs.sm.C), rtol=1e-3)
        assert state.generation == generation + 1
    assert stalled in stalls
    assert len(set(sigmas)) == 25
    assert np.ptp(np.log(sigmas)) > 0.1
    assert np.ptp(np.log(state.variances)) > 0.3


def rosenbrock(x):
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


@pytest.mark.parametrize("population", [10, 16])
def test_a_long_run_follows_the_published_equations_in_float64(population, tell):
    """Rosenbrock in 10 dimensions: sigma and C drift apart by 27 orders of magnitude in 4,000 generations."""
    n, ours = 10, SepCMAES(population=population, step_size=0.5)
    rates, (weights, mu_eff) = ours.learning_rates(n), recombination_weights(population // 2)
    chi_n = n**0.5 * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    random = np.random.default_rng(0)
    mean, sigma, c, p_sigma, p_c = np.zeros(n), 0.5, np.ones(n), np.zeros(n), np.zeros(n)
    state = ours.init(jax.random.key(0), jnp.zeros(n))
    for generation in range(1, 4001):
        x = mean + sigma * np.sqrt(c) * random.standard_normal((population, n))
        values = rosenbrock(x)
        state = tell(ours, state, jnp.asarray(x, jnp.float32), -values)
        y = (x[np.argsort(values)[: population // 2]] - mean) / sigma
        y_w = weights @ y
        mean = mean + sigma * y_w
        p_sigma = (1 - rates.c_sigma) * p_sigma + (rates.c_sigma * (2 - rates.c_sigma) * mu_eff / c) ** 0.5 * y_w
        length = np.linalg.norm(p_sigma)
        h = length / (1 - (1 - rates.c_sigma) ** (2 * generation)) ** 0.5 < (1.4 + 2 / (n + 1)) * chi_n
        p_c = (1 - rates.c_c) * p_c + h * (rates.c_c * (2 - rates.c_c) * mu_eff) ** 0.5 * y_w
        kept = 1 - rates.c_1 - rates.c_mu + (1 - h) * rates.c_1 * rates.c_c * (2 - rates.c_c)
        c = kept * c + rates.c_1 * p_c**2 + rates.c_mu * weights @ y**2
        sigma *= np.exp(min(1, rates.c_sigma / rates.d_sigma * (length / chi_n - 1)))
        if generation % 100 == 0:
            np.testing.assert_allclose(state.sigma * np.sqrt(state.variances), sigma * np.sqrt(c), rtol=0.03)
            assert 1 / 256 < np.exp(np.log(state.variances).mean()) < 256
    assert values.min() < 1e-3


def test_updates_equal_pyribs(tell, monkeypatch):
    """Paths, mean and rank-mu update with pyribs' rates; its rank-one update lacks a division by sigma."""
    n, population = 8, 10
    theirs = SeparableCMAEvolutionStrategy(0.4, n, population, seed=1)
    theirs.reset(np.linspace(-1, 1, n))
    weights, mu_eff, c_c, c_s, _, c_mu = theirs._calc_strat_params(n, population // 2)
    parameters = (weights, mu_eff, c_c, c_s, 0.0, c_mu)
    monkeypatch.setattr(theirs, "_calc_strat_params", lambda *_: parameters)
    rates = SepCMARates(c_sigma=c_s, d_sigma=1.0, c_c=c_c, c_1=0.0, c_mu=c_mu)
    ours = SepCMAES(population=population, step_size=0.4, rates=rates)
    state = ours.init(jax.random.key(0), jnp.linspace(-1, 1, n))
    for _ in range(6):
        genotypes = np.array(theirs.ask())
        values = ellipsoid(genotypes)
        theirs.tell(np.argsort(values), values, population // 2)
        state = tell(ours, state, jnp.asarray(genotypes, jnp.float32), -values)
        theirs.sigma = float(state.sigma)  # pyribs adapts it by the squared length of the path
        np.testing.assert_allclose(state.mean, theirs.mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.p_sigma, theirs.ps, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(state.variances, theirs.cov.cov, rtol=1e-4)
    assert np.ptp(state.variances) > 0.3


def test_step_size_grows_by_e_at_most(tell):
    strategy = SepCMAES(population=8, step_size=1e-3)
    state = strategy.init(jax.random.key(0), jnp.zeros(4))
    far = 0.02 + jnp.zeros((8, 4))
    state = tell(strategy, state, far, np.arange(8))
    assert state.sigma == pytest.approx(1e-3 * np.e, rel=1e-5)


@pytest.mark.parametrize(("reach", "stalled"), [(0.99, False), (1.01, True)])
def test_a_long_path_stalls_the_rank_one_update(reach, stalled, tell):
    """In the first generation sqrt(mu_eff) |y_w| is what the tutorial compares with the expected length."""
    n, strategy = 10, SepCMAES(population=8, step_size=0.5)
    rates = strategy.learning_rates(n)
    _, mu_eff = recombination_weights(4)
    chi_n = n**0.5 * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    y = np.zeros(n)
    y[3] = reach * (1.4 + 2 / (n + 1)) * chi_n / mu_eff**0.5
    genotypes = jnp.asarray(np.tile(1 + 0.5 * y, (8, 1)), jnp.float32)
    state = tell(strategy, strategy.init(jax.random.key(0), jnp.ones(n)), genotypes, np.zeros(8))
    pull = rates.c_c * (2 - rates.c_c)
    p_c = 0 * y if stalled else (pull * mu_eff) ** 0.5 * y
    kept = 1 - rates.c_1 - rates.c_mu + stalled * rates.c_1 * pull
    np.testing.assert_allclose(state.p_c, p_c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.variances, kept + rates.c_1 * p_c**2 + rates.c_mu * y**2, rtol=1e-4)


def test_samples_follow_the_variances(ask):
    strategy = SepCMAES(population=4000, step_size=0.5)
    state = strategy.init(jax.random.key(0), jnp.asarray([1.0, -2.0, 0.0]))
    variances = jnp.asarray([4.0, 0.25, 1.0])
    state = type(state)(state.mean, state.sigma, variances, state.p_sigma, state.p_c, state.generation)
    genotypes, _ = ask(strategy, jax.random.key(1), state)
    np.testing.assert_allclose(np.std(genotypes, axis=0), [1.0, 0.25, 0.5], rtol=0.06)
    np.testing.assert_allclose(np.mean(genotypes, axis=0), [1.0, -2.0, 0.0], atol=0.08)


def test_state_is_linear_in_the_parameters():
    strategy = SepCMAES(population=256)
    state = strategy.init(jax.random.key(0), jnp.zeros(82_000))
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) == 4 * 82_000 + 2
