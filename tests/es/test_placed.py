"""Strategies between bounds: they search smooth points, and the likelier of sample and reflection of whole numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import lsq_linear

from jedax import JedaxError, Optimizer
from jedax.es import CMAES, make_strategy
from jedax.es.base import Strategy
from jedax.es.placed import placed, within
from jedax.space import Choice, Integer, Real, Space

PARAMS = 8
ABOVE_ZERO = Space.box(lows=0, num_params=3)


def strategies(es="cma-es"):
    """Return a strategy whose samples are reflected at 0, and the same one without bounds."""
    free = make_strategy(es, population=8, step_size=1.0)
    return within(free, ABOVE_ZERO), free


def score(genotypes):
    return -np.square(np.asarray(genotypes) - [0.0, 2.0, 0.5]).sum(axis=-1)


def root_of(strategy, state):
    """Return the matrix by which a strategy transforms standard normal vectors, up to the step size."""
    if hasattr(state, "root"):
        return np.asarray(state.root)
    matrix = np.eye(3)  # LM-MA-ES, Algorithm 1: d <- (1 - c_d) d + c_d m m^T d, for each direction in use
    for number, c in enumerate(strategy.learning_rates(3).c_d):
        if number < state.generation:
            m = np.asarray(state.directions[number])
            matrix = ((1 - c) * np.eye(3) + c * np.outer(m, m)) @ matrix
    return matrix


def nearer(strategy, state, told, sampled):
    """Return the nearer of each solution and its sample, in steps of the distribution, by NumPy's linear algebra."""
    root = root_of(strategy, state)
    steps = [np.linalg.solve(root, (np.asarray(x) - state.mean).T) for x in (told, sampled)]
    far, near = (np.square(each).sum(axis=0) for each in steps)
    return np.where((far > near)[:, None], sampled, told), far > near


def genotypes_of(points):
    """Return the genotypes of smooth points above a bound at 0, by NumPy; the corner is 0.03 of the scale, 1."""
    u = np.asarray(points) + 0.03
    return np.where(u > 0.06, points, np.where(u < -0.06, u + 0.03, u * np.abs(u) / 0.12))


@pytest.mark.parametrize("es", ["sep-cma-es", "cma-es", "lm-ma-es"])
def test_it_does_what_the_strategy_does_in_smooth_points(es):
    with jax.enable_x64(True):
        bounded, free = strategies(es)
        states, same = (each.init(jax.random.key(0), jnp.array([0.3, 1.0, 0.2])) for each in (bounded, free))
        num_outside = 0
        for generation in range(20):
            ask_key, tell_key = jax.random.split(jax.random.key(generation))
            samples, states = jax.jit(bounded.ask)(ask_key, states)
            points, same = jax.jit(free.ask)(ask_key, same)
            np.testing.assert_allclose(samples, genotypes_of(points), rtol=1e-7, atol=1e-12)
            num_outside += (samples < 0).sum()
            scores = jnp.asarray(score(np.abs(samples)))
            states = jax.jit(bounded.tell)(tell_key, states, samples, scores)
            same = jax.jit(free.tell)(tell_key, same, points, scores)
            mean = genotypes_of(free.mean(same))
            np.testing.assert_allclose(bounded.mean(states), mean, rtol=1e-6, atol=1e-9)
        assert num_outside > 20


@pytest.mark.parametrize("es", ["cma-es", "lm-ma-es"])
def test_of_whole_numbers_it_learns_the_likelier_of_sample_and_reflection(es):
    with jax.enable_x64(True):
        free = make_strategy(es, population=8, step_size=1.0)
        bounded, num_sampled = within(free, Space(a=Integer(0, 3), b=Integer(0, 3), c=Integer(0, 3))), 0
        for seed in range(6):
            state = bounded.init(jax.random.key(seed), jnp.array([0.3, 0.9, 0.2]))
            for generation in range(6):  # no longer the same in all directions
                ask_key, tell_key = jax.random.split(jax.random.key(100 * seed + generation))
                samples, state = bounded.ask(ask_key, state)
                origin = np.asarray(state.origin)
                period = np.abs(samples) % 2
                told, each = np.minimum(period, 2 - period) - origin, np.asarray(samples) - origin
                learnt, is_sample = nearer(free, state.inner, told, each)
                num_sampled += is_sample.sum()
                scores = jnp.asarray(score(told))
                after = bounded.tell(tell_key, state, samples, scores)
                expected = free.tell(tell_key, state.inner, jnp.asarray(learnt), scores)
                np.testing.assert_allclose(free.mean(after.inner), free.mean(expected), rtol=1e-7, atol=1e-12)
                state = after
        assert num_sampled > 0


def test_without_bounds_it_is_the_strategy_itself():
    strategy = make_strategy("cma-es", population=8)
    assert within(strategy, None) is strategy


class InFloat32(CMAES):
    """A strategy that samples in float32."""

    def ask(self, key, state):
        genotypes, state = super().ask(key, state)
        return genotypes.astype(np.float32), state


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_types_of_the_state_stay_where_a_strategy_samples_in_float32(kind):
    """`jax.lax.scan` needs this."""
    with jax.enable_x64(True):
        bounded = within(
            make_strategy(InFloat32, population=8, step_size=1.0), Space(a=Integer(0, 9), b=(0, 1), c=Real())
        )
        first = bounded.init(jax.random.key(0), jnp.zeros(3, kind))
        asked, after = bounded.ask(jax.random.key(1), first)
        told = bounded.tell(jax.random.key(2), after, asked, jnp.arange(8.0))
        for state in (after, told):
            assert [leaf.dtype for leaf in jax.tree.leaves(state)] == [leaf.dtype for leaf in jax.tree.leaves(first)]


class WithoutDistances(CMAES):
    """A strategy that does not tell how far solutions are from its mean."""

    distances = Strategy.distances


def test_a_strategy_without_distances_learns_from_reflections():
    bounded, free = strategies(WithoutDistances)
    samples = jax.random.normal(jax.random.key(1), (8, 3))
    states = [each.init(jax.random.key(0), jnp.array([0.3, 1.0, 0.2])) for each in (bounded, free)]
    scores = jnp.asarray(score(np.abs(samples)))
    after = bounded.tell(jax.random.key(2), states[0], samples, scores)
    expected = free.tell(jax.random.key(2), states[1], jnp.abs(samples), scores)
    np.testing.assert_allclose(bounded.mean(after), free.mean(expected), rtol=1e-6)
    assert not bounded.has_distances
    whole = placed(bounded.strategy, Space(a=Integer(0, 3), b=Integer(0, 3), c=Integer(0, 3)))
    told = whole.tell(jax.random.key(2), whole.init(jax.random.key(0), jnp.full(3, 0.4)), samples, scores)
    np.testing.assert_array_equal(told.origin, np.zeros(3))
    assert not bounded.could_sample(after, jnp.tile(bounded.mean(after), (8, 1))).any()


@pytest.mark.parametrize("es", ["sep-cma-es", "cma-es", "lm-ma-es"])
def test_which_solutions_a_strategy_could_have_sampled(es):
    """Most of its own samples, and none ten steps away; the share is that of a chi-squared distribution."""
    with jax.enable_x64(True):
        strategy = placed(make_strategy(es, population=2000, step_size=1.0), Space.box(lows=0, num_params=5))
        state = strategy.place(jax.random.key(0), jnp.arange(5.0), jnp.float64(0.1), jnp.int32(1))
        for generation in range(3):  # no longer the same in all directions
            samples, state = jax.jit(strategy.ask)(jax.random.key(2 * generation), state)
            state = jax.jit(strategy.tell)(
                jax.random.key(1), state, samples, -jnp.square(samples[:, 0] + samples[:, 1])
            )
        samples, state = strategy.ask(jax.random.key(9), state)
        found = strategy.could_sample(state, samples)
        assert np.mean(found) == pytest.approx(stats.chi2(5).cdf(5 + 3 * np.sqrt(10)), abs=0.01)
        np.testing.assert_array_equal(found, np.square(strategy.distances(state, samples)) <= 5 + 3 * np.sqrt(10))
        far = strategy.mean(state) + 10 * (samples - strategy.mean(state))
        assert np.mean(strategy.could_sample(state, far)) < 0.05


MIXED = Space(a=Integer(0, 1), b=Integer(0, 9), c=Choice("p", "q", "r"), x=(0, 1))


@pytest.mark.parametrize("es", ["sep-cma-es", "cma-es", "lm-ma-es"])
def test_a_converged_strategy_still_finds_other_whole_numbers_and_options(es):
    """Without the margin no sample would have them: they are at least 0.05 away, and the first steps are 0.001."""
    with jax.enable_x64(True):
        strategy = placed(make_strategy(es, population=12, step_size=1.0), MIXED)

        def score(genotypes):
            a, b, c, x = MIXED.values(genotypes).T
            return -(jnp.square(a - 1) + jnp.square(b - 6) + jnp.square(c - 2) + 100 * jnp.square(x - 0.3))

        @jax.jit
        def generation(key, state):
            samples, state = strategy.ask(key, state)
            scores = score(samples)
            return strategy.tell(key, state, samples, scores), scores

        start = jnp.array([0.25, 0.45, 0.8, 0.4, 0.4, 0.29])
        state = strategy.place(jax.random.key(0), start, jnp.float64(1e-3), jnp.int32(1))
        best = -np.inf
        for key in jax.random.split(jax.random.key(1), 400):
            state, scores = generation(key, state)
            best = max(best, scores.max())
        assert best > -1e-6


def test_a_mean_stays_while_generations_are_collected():
    """A population of four generations is of one distribution."""
    strategy = placed(make_strategy("cma-es", population=8, step_size=1.0).growing(4), MIXED)
    state = strategy.place(jax.random.key(0), jnp.full(6, 0.25), jnp.float32(1e-3), jnp.int32(4))
    means = [strategy.mean(state)]
    for key in jax.random.split(jax.random.key(1), 4):
        samples, state = strategy.ask(key, state)
        state = strategy.tell(key, state, samples, samples[:, -1])
        means.append(strategy.mean(state))
    for mean in means[1:4]:
        np.testing.assert_array_equal(mean, means[0])
    step = np.asarray(means[4] - means[0])
    assert (np.abs(step[:2]) > 0.02).all()  # a step of its own is about 0.001


def test_samples_of_a_wrong_shape_name_the_strategy(monkeypatch):
    bounded, free = strategies()
    state = bounded.init(jax.random.key(0), jnp.zeros(3))
    monkeypatch.setattr(type(free), "ask", lambda self, key, state: (jnp.zeros((3, 3)), state))
    with pytest.raises(JedaxError, match=r"^CMAES\.ask: expected 8 rows of parameters"):
        bounded.ask(jax.random.key(0), state)


@pytest.mark.parametrize("method", ["es", "jedi"])
@pytest.mark.parametrize("half", [1.0, 1.1])
def test_a_narrow_valley_that_ends_at_a_bound_is_followed(method, half):
    """An ellipsoid turned about its best point, half of whose coordinates are on a bound, or beyond it.

    With CMA-ES that learned from the reflections, fitness ended above 100 in the first case, because the step size grew
    to the width of the box.
    """
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(PARAMS, PARAMS)))[0]
    best, axes = np.where(np.arange(PARAMS) < PARAMS // 2, half, 0.4), 10.0 ** (6 * np.arange(PARAMS) / (PARAMS - 1))
    matrix = (10 * turn * np.sqrt(axes)).T
    lowest = 2 * lsq_linear(matrix, matrix @ best, bounds=(0, 1), method="bvls").cost
    own = {"es": {}, "jedi": {"pool": 1, "alpha": 0.0, "generations": 1000, "targets": "uniform"}}[method]
    settings = {"es": "cma-es", "population": 16, "step_size": 0.2, "dims": (4, 4), **own}
    optimizer = Optimizer(
        PARAMS, ([0, 0], [1, 1]), evaluations=6_000, method=method, minimise=True, bounds=(0.0, 1.0), **settings
    )
    while not optimizer.done:
        solutions = np.asarray(optimizer.ask())
        assert ((solutions >= 0) & (solutions <= 1)).all()
        optimizer.tell(solutions, np.square((10 * (solutions - best)) @ turn) @ axes, solutions[:, [0, -1]])
    assert lowest - 1e-6 <= optimizer.best.fitness < lowest + 1
