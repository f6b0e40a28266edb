"""evosax's algorithms behind jedax's interface."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evosax.algorithms import SNES, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st

from jedax.errors import JedaxError
from jedax.es.evosax_adapter import WORST, EvosaxStrategy, _build, evosax_names

PARAMS = 12
CENTRE = jnp.linspace(0.5, 1.5, PARAMS)
EVEN = {
    *("ARS", "ASEBO", "CR_FM_NES", "ESMC", "GuidedES", "NoiseReuseES"),
    *("Open_ES", "PGPE", "PersistentES", "SV_CMA_ES", "SV_Open_ES"),
}
# The first samples are not spread by `step_size`; the class's docstring says how they are.
OWN_SPREAD = {"ASEBO", "GuidedES", "GradientlessDescent", "ESMC"}
WELL_BEHAVED = ["SNES", "CMA_ES", "Sep_CMA_ES", "xNES", "CR_FM_NES", "MA_ES", "LM_MA_ES", "DES", "PGPE"]

# The others take half a second each, most of it compilation: with the longest tests.
OFTEN = {*WELL_BEHAVED, "Open_ES", "HillClimbing", "MR15_GA", "PSO", "SimulatedAnnealing", "ESMC"}


def leaves(tree):
    return [(jax.tree_util.keystr(path), np.asarray(leaf)) for path, leaf in jax.tree.leaves_with_path(tree)]


def assert_equal(a, b):
    for (name, one), (_, other) in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.fixture(scope="module", params=["SNES", "CMA_ES", "ARS", "HillClimbing", "MR15_GA", "PSO"])
def asked(request, ask, tell):
    """A strategy, two generations in, that has just been asked."""
    strategy = EvosaxStrategy(name=request.param, population=8, step_size=0.3)
    state = strategy.init(jax.random.key(0), CENTRE)
    for generation in range(2):
        genotypes, state = ask(strategy, jax.random.key(generation), state)
        state = tell(strategy, state, genotypes, -jnp.sum(genotypes**2, axis=1))
    return strategy, *ask(strategy, jax.random.key(9), state)


def test_names():
    names = evosax_names()
    assert set(algorithms) < set(names)
    assert "DiscoveredES" in names  # the class of what the registry calls DES
    with pytest.raises(JedaxError, match=r"^name: unknown name 'SNE'; did you mean 'SNES'"):
        EvosaxStrategy(name="SNE", population=8)


def test_update_is_evosaxs_with_the_sign_turned(ask, tell):
    strategy = EvosaxStrategy(name="SNES", population=8, step_size=0.3)
    theirs = SNES(population_size=8, solution=jnp.zeros(PARAMS))
    params = theirs.default_params.replace(std_init=0.3)
    their_state = theirs.init(jax.random.key(0), CENTRE, params)
    state = strategy.init(jax.random.key(0), CENTRE)
    for generation in range(3):
        key = jax.random.key(generation)
        expected, their_state = theirs.ask(key, their_state, params)
        genotypes, state = ask(strategy, key, state)
        np.testing.assert_allclose(genotypes, expected, rtol=1e-5, atol=1e-6)
        losses = jnp.sum((expected - 2) ** 2, axis=1)
        their_state, _ = theirs.tell(key, expected, losses, their_state, params)
        state = tell(strategy, state, genotypes, -losses)
        np.testing.assert_allclose(state.std, their_state.std, rtol=1e-4)
        np.testing.assert_allclose(strategy.mean(state), their_state.mean, rtol=1e-4, atol=1e-5)
    assert np.ptp(state.std) > 0.05


@pytest.mark.parametrize("name", ["SNES", "CMA_ES", "Open_ES"])
def test_mean_climbs(name, run_search, problems):
    strategy = EvosaxStrategy(name=name, population=16, step_size=0.1)
    _, best, means = run_search(jax.random.key(1), strategy, problems["sphere"], CENTRE, 60)
    start, end = -float(np.sum(CENTRE**2)), float(problems["sphere"](means[-1]))
    assert best[0] < -10
    assert end > start + 0.5
    if name != "Open_ES":  # its learning rate is slow by default
        assert end > -0.5


@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("offset", [0.0, -40.0])
def test_failures_rank_last(asked, tell, failure, offset):
    """One failure is like a score below all others; whether the worst of those is zero does not matter."""
    strategy, genotypes, state = asked
    scores = np.arange(8.0)[::-1] + offset
    scores[2] = failure
    failed = tell(strategy, state, genotypes, scores)
    assert all(np.isfinite(leaf).all() for _, leaf in leaves(failed))
    if strategy.name in ("SNES", "CMA_ES", "HillClimbing"):
        scores[2] = offset - 5.0
        assert_equal(failed, tell(strategy, state, genotypes, scores))
        scores[2] = offset + 3.5
        best = tell(strategy, state, genotypes, scores)
        assert strategy.name != "SNES" or np.abs(failed.mean - best.mean).max() > 1e-3
    if strategy.name in ("MR15_GA", "PSO"):
        scores[2] = -WORST
        assert_equal(failed, tell(strategy, state, genotypes, scores))


def test_a_generation_of_failures_changes_nothing(asked, tell):
    strategy, genotypes, state = asked
    assert_equal(tell(strategy, state, genotypes, np.full(8, np.nan)), state)


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(8)))
def test_only_the_ranking_counts(tell, ask, order):
    strategy = EvosaxStrategy(name="SNES", population=8)
    genotypes, state = ask(strategy, jax.random.key(1), strategy.init(jax.random.key(0), CENTRE))
    scores = np.asarray(order, float)
    a = tell(strategy, state, genotypes, scores)
    b = tell(strategy, state, genotypes, np.exp(scores) - 3)
    assert_equal((a.mean, a.std), (b.mean, b.std))


def test_failed_start_does_not_bar_real_scores(ask, tell):
    """A first generation that failed must not look better than scores that are merely negative."""
    strategy = EvosaxStrategy(name="HillClimbing", population=4)
    state = strategy.init(jax.random.key(0), CENTRE)
    genotypes, state = ask(strategy, jax.random.key(1), state)
    state = tell(strategy, state, genotypes, np.full(4, -np.inf))
    genotypes, state = ask(strategy, jax.random.key(2), state)
    state = tell(strategy, state, genotypes, [-900.0, -250.0, -400.0, np.nan])
    np.testing.assert_array_equal(strategy.mean(state), genotypes[1])


def test_equal_strategies_share_evosaxs_object_and_its_compilation():
    traces = []

    def step(strategy, key, state):
        traces.append(strategy)
        genotypes, state = strategy.ask(key, state)
        return strategy.tell(key, state, genotypes, genotypes.sum(axis=1))

    compiled = jax.jit(step, static_argnums=0)
    first, second = (EvosaxStrategy(name="SNES", population=6, step_size=0.1) for _ in range(2))
    assert first is not second
    assert hash(first) == hash(second)
    assert _build(first, 5)[0] is _build(second, 5)[0]
    assert _build(first, 5)[0] is not _build(first, 6)[0]
    state = first.init(jax.random.key(0), jnp.zeros(5))
    state = compiled(first, jax.random.key(1), state)
    compiled(second, jax.random.key(3), compiled(second, jax.random.key(2), state))
    assert len(traces) == 1


def test_first_built_while_tracing_leaks_nothing():
    strategy = EvosaxStrategy(name="LM_MA_ES", population=4, step_size=0.123)
    generate = jax.vmap(lambda key, mean: strategy.ask(key, strategy.init(key, mean))[0])
    keys, means = jax.random.split(jax.random.key(0), 3), jnp.zeros((3, 7))
    first = jax.jit(generate)(keys, means)
    again = strategy.ask(keys[1], strategy.init(keys[1], means[1]))[0]
    np.testing.assert_allclose(first[1], again, rtol=1e-5, atol=1e-6)


def test_random_search_stays_about_the_mean_it_was_given(run_search, problems):
    strategy = EvosaxStrategy(name="RandomSearch", population=200, step_size=0.1)
    state, _, means = run_search(jax.random.key(0), strategy, problems["sphere"], CENTRE, 5)
    np.testing.assert_array_equal(means, np.tile(CENTRE, (5, 1)))
    genotypes, _ = strategy.ask(jax.random.key(3), state)
    np.testing.assert_allclose(np.mean(genotypes, axis=0), CENTRE, atol=0.04)


@pytest.mark.parametrize("name", ["SNES", "ARS", "xNES", "iAMaLGaM_Full", "iAMaLGaM_Univariate"])
def test_step_size_is_the_spread_of_the_first_samples(name, ask):
    strategy = EvosaxStrategy(name=name, population=600, step_size=0.2)
    genotypes, _ = ask(strategy, jax.random.key(2), strategy.init(jax.random.key(0), CENTRE))
    # Five standard errors, as if there were only 300 samples, since some are mirrored.
    assert np.std(np.asarray(genotypes - CENTRE)) == pytest.approx(0.2, rel=5 / (2 * 300 * PARAMS) ** 0.5)


def test_step_size_of_gradientless_descent_is_its_largest_radius(ask):
    strategy = EvosaxStrategy(name="GradientlessDescent", population=100, step_size=0.4)
    genotypes, _ = ask(strategy, jax.random.key(2), strategy.init(jax.random.key(0), jnp.zeros(2000)))
    spread = np.asarray(genotypes).std(axis=1)
    np.testing.assert_allclose(spread[[0, 5, 99]], [0.4, 0.201, 0.002], rtol=0.08)


def test_step_size_scales_diffusion(ask):
    strategy = EvosaxStrategy(name="DiffusionEvolution", population=50, step_size=0.01)
    genotypes, _ = ask(strategy, jax.random.key(2), strategy.init(jax.random.key(0), jnp.zeros(200)))
    assert 0.005 < np.std(genotypes) < 0.02


def test_elite_ratio_reaches_evosax():
    for ratio, elites in ((0.25, 4), (0.5, 8)):
        strategy = EvosaxStrategy(name="SimpleES", population=16, elite_ratio=ratio)
        weights = _build(strategy, PARAMS)[1].weights
        np.testing.assert_allclose(weights, np.repeat([1 / elites, 0], [elites, 16 - elites]), rtol=1e-6)
    assert _build(EvosaxStrategy(name="LGA", population=16), PARAMS)[0].elite_ratio == 1
    undefined = EvosaxStrategy(name="CMA_ES", population=16, elite_ratio=1.0)
    with pytest.raises(JedaxError, match=r"^elite_ratio: expected .* CMA_ES"):
        undefined.init(jax.random.key(0), CENTRE)


@pytest.mark.parametrize("name", sorted(algorithms))
@pytest.mark.parametrize("population", [7, 2, 6])
def test_populations_that_evosax_refuses(name, population):
    too_small = name in {"DifferentialEvolution", "ESMC", "SV_CMA_ES", "SV_Open_ES"} and population < 4
    refused = (name in EVEN and population % 2) or (name == "SV_Open_ES" and population % 4) or too_small
    if refused:
        with pytest.raises(JedaxError, match=f"^population: expected .* {name}, got {population}; use "):
            EvosaxStrategy(name=name, population=population)
    else:
        strategy = EvosaxStrategy(name=name, population=population)

        def first(key):
            return strategy.ask(key, strategy.init(key, jnp.zeros(5)))[0]

        assert jax.eval_shape(first, jax.random.key(0)).shape == (population, 5)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in OFTEN else pytest.mark.nightly) for name in sorted(algorithms)
])  # fmt: skip
def test_every_algorithm_runs(name, run_search, problems, ask):
    strategy = EvosaxStrategy(name=name, population=16, step_size=0.05)
    state = strategy.init(jax.random.key(0), CENTRE)
    genotypes, asked_state = ask(strategy, jax.random.key(2), state)
    assert genotypes.shape == (16, PARAMS)
    assert genotypes.dtype == jnp.float32
    assert np.isfinite(genotypes).all()
    np.testing.assert_allclose(strategy.mean(state), CENTRE, atol=0.07)
    keeps_population = hasattr(state, "population")
    np.testing.assert_allclose(np.mean(genotypes, axis=0), CENTRE, atol=0.4 if keeps_population else 0.07)
    if name not in OWN_SPREAD and not keeps_population:
        # Five standard errors of 16 x 12 samples, half of them mirrored.
        spread = np.std(np.asarray(genotypes - CENTRE))
        assert spread == pytest.approx(0.05, rel=5 / (PARAMS * 16) ** 0.5)

    types = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), state)
    asked_types = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), asked_state)
    assert asked_types == types

    state, best, means = run_search(jax.random.key(1), strategy, problems["sphere"], CENTRE, 40)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), state) == types
    assert np.isfinite(best).all()
    assert np.isfinite(means).all()
    end = float(problems["sphere"](means[-1]))
    start = -float(np.sum(CENTRE**2))
    if name == "RandomSearch":
        assert end == pytest.approx(start)
    else:
        assert end > start + 0.2
    if name in WELL_BEHAVED:
        assert end > 0.8 * start
