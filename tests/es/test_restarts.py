"""When ES restart, and with which populations, by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.es.restarts import Restarts

RULE = Restarts(size=2, growth=8, radius=0.01)
SPREAD = jnp.float32(2.0)


def population(middle, width, size=5, params=3):
    """A population whose largest extent along an axis is `width`."""
    offsets = np.linspace(-0.5, 0.5, size)[:, None] * np.ones(params)
    return middle + width * offsets


def observe(state, middles, widths, scores=None, best_before=9.0, has_improved=False, params=3):
    populations = [population(m, w, params=params) for m, w in zip(middles, widths, strict=True)]
    genotypes = jnp.asarray(np.stack(populations), jnp.float32)
    scores = jnp.arange(10, dtype=jnp.float32).reshape(2, 5) if scores is None else jnp.float32(scores)
    return RULE.observe(state, genotypes, scores, SPREAD, jnp.float32(best_before), jnp.bool_(has_improved))


def converge(state, middles):
    """Observe the generations in which the first ES converges and the second goes on."""
    for _ in range(10):
        state, stuck = observe(state, middles, [1e-9, 1.0])
    return state, stuck


def test_an_es_converges_after_ten_generations_in_one_place():
    state = RULE.begin(3)
    for generation in range(10):
        assert np.asarray(state.flat).tolist() == [generation, 0]
        state, stuck = observe(state, [1.0, 5.0], [1e-9, 1.0])
        assert np.asarray(stuck).tolist() == [generation == 9, False]
    assert int(state.num_optima) == 1
    np.testing.assert_allclose(state.optima[0], 1.0, rtol=1e-6)
    assert np.isinf(np.asarray(state.optima[1:])).all()


def test_equal_fitness_counts_as_convergence_and_one_difference_begins_anew():
    state, equal = RULE.begin(3), [[3.0] * 4 + [np.nan], [1, 2, 3, 4, 5]]
    for _ in range(9):
        state, stuck = observe(state, [1.0, 5.0], [1.0, 1.0], equal)
    assert not np.asarray(stuck).any()
    state, stuck = observe(state, [1.0, 5.0], [1.0, 1.0])
    assert np.asarray(state.flat).tolist() == [0, 0]


def test_the_unit_of_fitness_does_not_matter():
    """Differences of 1e-14 are none beside differences of 10, but they are many beside 1e-13."""
    small = 1e-14 * np.arange(10.0).reshape(2, 5)
    state, seen = RULE.begin(3), RULE.begin(3)
    seen, _ = observe(seen, [1.0, 5.0], [1.0, 1.0])
    for _ in range(10):
        state, stuck = observe(state, [1.0, 5.0], [1.0, 1.0], small, small.max())
        seen, now_stuck = observe(seen, [1.0, 5.0], [1.0, 1.0], small, small.max())
    assert not np.asarray(stuck).any()
    assert np.asarray(now_stuck).all()


def test_an_es_at_a_known_optimum_is_stopped_early():
    state, _ = converge(RULE.begin(3), [1.0, 5.0])
    state = dataclasses.replace(state, flat=jnp.zeros(2, jnp.int32))
    # Within 1 % of the spread, 0.02, and no wider than that.
    for middle, width, at_it in ((1.01, 0.015, True), (1.01, 0.03, False), (1.05, 0.015, False)):
        after, stuck = observe(state, [5.0, middle], [1.0, width])
        assert np.asarray(stuck).tolist() == [False, at_it]
        assert int(after.num_known) - int(state.num_known) == at_it
    assert int(after.num_optima) == int(state.num_optima)


@pytest.mark.parametrize(
    ("params", "best", "ends"),
    [
        (3, 124.5, [False, True]),
        (3, 123.5, [False, False]),
        (3, -np.inf, [False, False]),
        (10, 404.5, [False, True]),
        (10, 403.5, [False, False]),
    ],
)
def test_an_es_that_will_not_catch_up_with_the_best_solution_ends(params, best, ends):
    """The second ES has fitness 0 to 4; in ten generations it ends behind by 30 or params^2 times this range."""
    first = [best, best - 1, best - 2, best - 3, np.nan] if np.isfinite(best) else range(5)
    state, scores = RULE.begin(params), [first, [0, 4, 1, 2, np.nan]]
    for generation in range(10):
        state, stuck = observe(state, [1.0, 5.0], [1.0, 1.0], scores, best, params=params)
        assert np.asarray(stuck).tolist() == (ends if generation == 9 else [False, False])


def test_known_optima_are_forgotten_as_evidence_when_the_best_improves():
    state, _ = converge(RULE.begin(3), [1.0, 5.0])
    state, _ = observe(state, [5.0, 1.0], [1.0, 0.01])
    assert int(state.num_known) > 0
    assert int(observe(state, [5.0, 6.0], [1.0, 1.0], has_improved=True)[0].num_known) == 0


def test_populations_double_in_turn_with_small_ones():
    """The kind that has used fewer generations is next; the first start counts as small, as in pycma."""
    one = Restarts(size=1, growth=8, radius=0.0)
    state, key = one.begin(3), jax.random.key(0)
    kinds, sizes = [], []
    for number in range(12):
        state = one.restart(jax.random.fold_in(key, number), state, jnp.array([True]))
        kinds.append(bool(state.is_large[0]))
        sizes.append(int(state.growth[0]))
        for _ in range(4 if kinds[-1] else 1):
            genotypes = jnp.asarray(population(number, 1.0)[None], jnp.float32)
            state, _ = one.observe(state, genotypes, jnp.arange(5.0)[None], SPREAD, jnp.float32(4.0), jnp.bool_(False))
    # After a large one of 4 generations, 4 small ones of 1 make the same; the next is large.
    assert kinds == [True, *[False] * 4, True, *[False] * 4, True, False]
    assert [size for size, large in zip(sizes, kinds, strict=True) if large] == [2, 4, 8]
    largest = np.maximum.accumulate([size if large else 1 for size, large in zip(sizes, kinds, strict=True)])
    assert all(
        1 <= size <= max(1, most / 2) for size, large, most in zip(sizes, kinds, largest, strict=True) if not large
    )


@pytest.mark.parametrize(("first", "second_is_large"), [(2, False), (3, True), (4, True)])
def test_the_first_start_counts_as_a_small_one(first, second_is_large):
    """A large population that used no more than the first start is followed by another large one."""
    one = Restarts(size=1, growth=8, radius=0.0)
    state, key, due = one.begin(3), jax.random.key(0), jnp.array([True])

    def observed(state, number):
        for step in range(number):
            genotypes = jnp.asarray(population(step, 1.0)[None], jnp.float32)
            state, _ = one.observe(state, genotypes, jnp.arange(5.0)[None], SPREAD, jnp.float32(4.0), jnp.bool_(False))
        return state

    state = one.restart(key, observed(state, first), due)
    assert bool(state.is_large[0])
    assert bool(one.restart(key, observed(state, 3), due).is_large[0]) == second_is_large


def test_only_those_that_are_due_restart():
    state = RULE.restart(jax.random.key(0), RULE.begin(3), jnp.array([False, True]))
    assert np.asarray(state.growth).tolist() == [1, 2]
    assert np.asarray(state.is_large).tolist() == [False, True]


@pytest.mark.parametrize("which", [[True, False], [True, True]])
def test_without_growth_nothing_happens(which):
    rule = dataclasses.replace(RULE, growth=1)
    state = rule.begin(70_000)
    assert state.optima.shape == (0, 70_000)
    after = rule.restart(jax.random.key(0), state, jnp.array(which))
    jax.tree.map(np.testing.assert_array_equal, after, state)
    _, stuck = rule.observe(state, jnp.zeros((2, 5, 3)), jnp.zeros((2, 5)), SPREAD, jnp.float32(4.0), jnp.bool_(False))
    assert not np.asarray(stuck).any()
