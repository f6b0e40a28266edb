"""What every one of jedax's own strategies owes to the interface."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jedax.errors import JedaxError
from jedax.es.base import STEP_SIZE_LIMITS, Strategy, rank_best_first, recombination_weights
from jedax.es.cma_es import CMAES
from jedax.es.lm_ma_es import LMMAES
from jedax.es.sep_cma_es import VARIANCE_LIMITS, SepCMAES
from jedax.imports import subclasses_in

OWN = list(subclasses_in("jedax.es", Strategy).values())
POPULATION, PARAMS = 12, 20
TRANSFORMS = {
    "affine": lambda s: 3 * s - 70,
    "cubic": lambda s: s**3 / 8,
    "exponential": lambda s: np.exp(s / 12),
    "sigmoid": lambda s: 1 / (1 + np.exp(-s / 20)),
}


def equal_trees(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(_numbers(one), _numbers(other))


def _numbers(leaf):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


@pytest.fixture(scope="module", params=OWN, ids=lambda cls: cls.__name__)
def asked(request, ask, tell):
    """A strategy, three generations in, that has just been asked."""
    strategy = request.param(population=POPULATION, step_size=0.3)
    state = strategy.init(jax.random.key(0), jnp.linspace(-1, 1, PARAMS))
    for generation in range(3):
        genotypes, state = ask(strategy, jax.random.key(generation), state)
        state = tell(strategy, state, genotypes, -jnp.sum(genotypes**2, axis=1))
    return strategy, *ask(strategy, jax.random.key(9), state)


def test_rank_best_first():
    scores = jnp.asarray([1.0, jnp.nan, 3.0, jnp.inf, 1.0, -2.0, -jnp.inf, 3.0])
    assert rank_best_first(scores).tolist() == [2, 7, 0, 4, 5, 1, 3, 6]


def test_recombination_weights():
    weights, mu_eff = recombination_weights(2)
    raw = np.array([np.log(2.5), np.log(1.25)])
    np.testing.assert_allclose(weights, raw / raw.sum())
    assert mu_eff == pytest.approx(raw.sum() ** 2 / (raw**2).sum())
    weights, mu_eff = recombination_weights(1)
    assert weights.tolist() == [1.0]
    assert mu_eff == 1.0
    assert 1 < recombination_weights(9)[1] < 9


@pytest.mark.parametrize("cls", OWN)
@pytest.mark.parametrize(
    "wrong",
    [
        {"population": 1},
        {"population": 0},
        {"population": 8, "step_size": 0.0},
        {"population": 8, "step_size": float("nan")},
        {"population": 8, "elite_ratio": 0.0},
        {"population": 8, "elite_ratio": 1.5},
    ],
)
def test_bad_settings(cls, wrong):
    field = list(wrong)[-1]
    with pytest.raises(JedaxError, match=f"^{field}: expected"):
        cls(**wrong)


@pytest.mark.parametrize(
    ("population", "ratio", "elites"), [(16, 0.5, 8), (5, 0.5, 2), (4, 0.1, 1), (7, 1.0, 7), (100, 0.29, 29)]
)
def test_num_elites(population, ratio, elites):
    assert SepCMAES(population=population, elite_ratio=ratio).num_elites == elites


@pytest.mark.parametrize("cls", OWN)
def test_first_samples_have_the_step_size(cls, ask):
    strategy = cls(population=2000, step_size=0.2)
    centre = jnp.linspace(-3, 5, 6)
    genotypes, _ = ask(strategy, jax.random.key(3), strategy.init(jax.random.key(0), centre))
    deviations = np.asarray(genotypes - centre)
    # Five standard errors of 2000 samples.
    np.testing.assert_allclose(deviations.mean(axis=0), 0, atol=5 * 0.2 / 2000**0.5)
    np.testing.assert_allclose(deviations.std(axis=0), 0.2, rtol=5 / 4000**0.5)
    correlations = np.corrcoef(deviations.T) - np.eye(6)
    np.testing.assert_allclose(correlations, 0, atol=5 / 2000**0.5)


def test_mean_is_the_centre(asked):
    strategy, _, state = asked
    assert strategy.mean(state) is state.mean
    fresh = strategy.init(jax.random.key(5), jnp.arange(4.0))
    assert strategy.mean(fresh).tolist() == [0, 1, 2, 3]


@settings(max_examples=25, deadline=None)
@given(
    order=st.permutations(range(POPULATION)),
    transform=st.sampled_from(sorted(TRANSFORMS)),
)
def test_only_the_ranking_counts(asked, tell, order, transform):
    strategy, genotypes, state = asked
    scores = 3.0 * np.asarray(order) - 15
    transformed = TRANSFORMS[transform](scores)
    assert len(set(np.float32(transformed))) == POPULATION
    equal_trees(tell(strategy, state, genotypes, scores), tell(strategy, state, genotypes, transformed))


def test_the_ranking_counts(asked, tell):
    strategy, genotypes, state = asked
    scores = np.arange(POPULATION, dtype=float)
    up, down = tell(strategy, state, genotypes, scores), tell(strategy, state, genotypes, -scores)
    assert np.abs(up.mean - down.mean).max() > 0.05
    # Maximised: the mean is the weighted mean of the last half, best (last) first.
    weights, _ = recombination_weights(POPULATION // 2)
    expected = weights @ np.asarray(genotypes, float)[::-1][: POPULATION // 2]
    np.testing.assert_allclose(up.mean, expected, rtol=1e-5, atol=1e-6)


def test_the_order_of_those_who_are_not_elites_does_not_count(asked, tell):
    strategy, genotypes, state = asked
    scores = np.arange(POPULATION, dtype=float)
    swapped = scores.copy()
    swapped[:6] = scores[:6][::-1]
    found, other = tell(strategy, state, genotypes, scores), tell(strategy, state, genotypes, swapped)
    if isinstance(strategy, CMAES):  # its covariance learns from them as well
        assert np.abs(found.covariance - other.covariance).max() > 1e-6
        found, other = ((state.mean, state.sigma, state.p_sigma, state.p_c) for state in (found, other))
    equal_trees(found, other)


@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("failed", [[2, 5], [0, 1, 3, 4, 6, 8, 9, 11]])
def test_failures_rank_last(asked, tell, failure, failed):
    strategy, genotypes, state = asked
    scores = np.linspace(-4, 9, POPULATION)[np.random.default_rng(0).permutation(POPULATION)]
    with_failures, worst_finite = scores.copy(), scores.copy()
    with_failures[failed] = failure
    worst_finite[failed] = -100.0 - np.arange(len(failed))
    equal_trees(tell(strategy, state, genotypes, with_failures), tell(strategy, state, genotypes, worst_finite))


def test_sep_cma_es_does_not_see_the_order_of_the_batch(tell):
    strategy = SepCMAES(population=POPULATION)
    state = strategy.init(jax.random.key(0), jnp.ones(PARAMS))
    genotypes, state = strategy.ask(jax.random.key(1), state)
    scores = np.linspace(-4, 9, POPULATION)
    order = np.random.default_rng(1).permutation(POPULATION)
    equal_trees(tell(strategy, state, genotypes, scores), tell(strategy, state, genotypes[order], scores[order]))


@pytest.mark.parametrize("cls", OWN)
def test_sphere(cls, run_search, problems):
    strategy = cls(population=12, step_size=0.5)
    _, best, means = run_search(jax.random.key(0), strategy, problems["sphere"], jnp.full(PARAMS, 2.0), 350)
    assert best[0] < -40
    assert best[-1] > -1e-8
    assert np.abs(means[-1]).max() < 1e-4


@pytest.mark.parametrize(
    ("cls", "problem", "generations"), [(SepCMAES, "ellipsoid", 500), (LMMAES, "mild_ellipsoid", 1800)]
)
def test_ill_conditioned(cls, problem, generations, run_search, problems):
    strategy = cls(population=12, step_size=0.5)
    start = jnp.linspace(1, 3, PARAMS)
    _, best, _ = run_search(jax.random.key(0), strategy, problems[problem], start, generations)
    assert best[0] < -1e4
    assert best[-1] > -1e-8


@pytest.mark.parametrize("cls", OWN)
def test_optimum_away_from_zero(cls, run_search):
    target = jnp.linspace(-2, 2, PARAMS)
    strategy = cls(population=12, step_size=0.5)
    _, _, means = run_search(jax.random.key(2), strategy, _Near(), jnp.ones(PARAMS), 300)
    np.testing.assert_allclose(means[-1], target, atol=2e-3)


class _Near:
    """Minus the squared distance to (-2, ..., 2); hashable, as a static argument has to be."""

    def __call__(self, x):
        return -jnp.sum((x - jnp.linspace(-2, 2, x.shape[-1])) ** 2, axis=-1)


@pytest.mark.parametrize("cls", OWN)
@pytest.mark.parametrize("problem", ["flat", "failing", "slope", "sphere"])
def test_nothing_overflows_or_vanishes(cls, problem, run_search, problems):
    strategy = cls(population=12, step_size=0.5)
    state, _, means = run_search(jax.random.key(1), strategy, problems[problem], jnp.ones(PARAMS), 1500)
    assert np.isfinite(means).all()
    for leaf in jax.tree.leaves(state):
        assert np.isfinite(_numbers(leaf)).all()
    assert STEP_SIZE_LIMITS[0] <= state.sigma <= STEP_SIZE_LIMITS[1]
    if cls is SepCMAES:
        assert VARIANCE_LIMITS[0] <= state.variances.min()
        assert state.variances.max() <= VARIANCE_LIMITS[1]
    genotypes, _ = strategy.ask(jax.random.key(7), state)
    assert np.isfinite(genotypes).all()


@pytest.mark.parametrize("cls", [CMAES, SepCMAES])
@pytest.mark.parametrize(("size", "population"), [(1, 16), (2, 64), (10, 256)])
def test_populations_that_are_large_for_few_parameters_stay_finite(cls, size, population):
    """Their covariance forgets in a few generations, and shrinks to nothing once all samples equal the mean."""
    strategy = cls(population=population, step_size=0.5)

    def step(state, key):
        genotypes, state = strategy.ask(key, state)
        return strategy.tell(key, state, genotypes, -jnp.square(genotypes - 1).sum(axis=1)), None

    first = strategy.init(jax.random.key(0), jnp.zeros(size))
    state, _ = jax.jit(lambda state, keys: jax.lax.scan(step, state, keys))(
        first, jax.random.split(jax.random.key(1), 700)
    )
    np.testing.assert_allclose(strategy.mean(state), 1, atol=1e-5)
    for leaf in jax.tree.leaves(state):
        assert np.isfinite(_numbers(leaf)).all()
    assert np.isfinite(strategy.ask(jax.random.key(2), state)[0]).all()


@pytest.mark.parametrize("cls", OWN)
def test_an_equal_strategy_does_not_compile_again(cls):
    traces = []

    def step(strategy, key, state):
        traces.append(strategy)
        genotypes, state = strategy.ask(key, state)
        return strategy.tell(key, state, genotypes, genotypes.sum(axis=1))

    compiled = jax.jit(step, static_argnums=0)
    first, second = cls(population=8, step_size=0.1), cls(population=8, step_size=0.1)
    assert first is not second
    assert first == second
    assert hash(first) == hash(second)
    state = first.init(jax.random.key(0), jnp.zeros(5))
    state = compiled(first, jax.random.key(1), state)
    compiled(second, jax.random.key(2), compiled(second, jax.random.key(1), state))
    assert len(traces) == 1
    compiled(cls(population=8, step_size=0.2), jax.random.key(1), state)
    assert len(traces) == 2


@pytest.mark.parametrize("cls", OWN)
def test_many_emitters_are_each_like_one(cls):
    strategy = cls(population=6)
    means = jnp.arange(9.0).reshape(3, 3)
    keys = jax.random.split(jax.random.key(4), 3)

    def generation(key, mean):
        state = strategy.init(key, mean)
        for _ in range(2):
            genotypes, state = strategy.ask(key, state)
            state = strategy.tell(key, state, genotypes, -jnp.sum(genotypes**2, axis=1))
        return genotypes, strategy.mean(state)

    together = jax.jit(jax.vmap(generation))(keys, means)
    alone = jax.jit(generation)
    for emitter in range(3):
        for many, one in zip(together, alone(keys[emitter], means[emitter]), strict=True):
            np.testing.assert_allclose(many[emitter], one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", OWN)
def test_a_state_can_be_replaced_under_a_condition(cls):
    strategy = cls(population=4)
    old = strategy.init(jax.random.key(0), jnp.zeros(3))
    new = strategy.init(jax.random.key(1), jnp.ones(3))
    chosen = jax.tree.map(lambda a, b: jnp.where(jnp.asarray([True, False])[0], a, b), new, old)
    equal_trees(chosen, new)
