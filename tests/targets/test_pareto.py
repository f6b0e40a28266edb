import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jedax.errors import JedaxError
from jedax.targets import choose_pareto, pareto_rank

SIZE = 12
KEY = jax.random.key(0)

# Few values, so that ties and duplicates abound.
few_values = st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), min_size=SIZE, max_size=SIZE)
any_values = st.lists(st.floats(-1e6, 1e6, width=32, allow_subnormal=False), min_size=SIZE, max_size=SIZE)
rank_all = jax.jit(lambda mean, variance: pareto_rank(mean, variance, SIZE))


def fronts(mean, variance):
    """Number the fronts by the definition, comparing every pair."""
    points = np.stack([mean, variance], axis=1)
    rank = np.full(len(points), -1)
    front = 0
    while (rank < 0).any():
        left = np.flatnonzero(rank < 0)
        dominated = [any((points[j] >= points[i]).all() and (points[j] > points[i]).any() for j in left) for i in left]
        rank[left[~np.array(dominated)]] = front
        front += 1
    return rank


def arrays(*values):
    return [jnp.asarray(v, jnp.float32) for v in values]


# First front: 1, 3, 4 and its duplicate 5; second: 0 and 2; third: 6.
MEAN, VARIANCE = arrays([0.0, 1.0, 2.0, 5.0, 3.0, 3.0, -1.0], [3.0, 4.0, 1.0, 0.5, 2.0, 2.0, 0.1])


@settings(max_examples=200, deadline=None)
@given(few_values | any_values, few_values | any_values)
def test_fronts_are_those_of_the_definition(mean, variance):
    np.testing.assert_array_equal(rank_all(*arrays(mean, variance)), fronts(mean, variance))


def test_fronts_of_many_points_are_those_of_the_definition():
    mean, variance = np.random.default_rng(0).integers(0, 12, (2, 150)).astype(np.float32)
    np.testing.assert_array_equal(pareto_rank(*arrays(mean, variance), 150), fronts(mean, variance))


def test_a_worked_example():
    assert pareto_rank(MEAN, VARIANCE, 7).tolist() == [1, 0, 1, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("num_needed", "expected"),
    [
        (0, [7, 7, 7, 7, 7, 7, 7]),
        (1, [7, 0, 7, 0, 0, 0, 7]),
        (4, [7, 0, 7, 0, 0, 0, 7]),
        (5, [1, 0, 1, 0, 0, 0, 7]),
        (7, [1, 0, 1, 0, 0, 0, 2]),
    ],
)
def test_only_as_many_fronts_are_numbered_as_are_needed(num_needed, expected):
    assert pareto_rank(MEAN, VARIANCE, num_needed).tolist() == expected


def test_a_cell_that_is_nan_comes_after_all_others():
    mean, variance = arrays([0.0, np.nan, 2.0, -np.inf, 9.0], [1.0, 5.0, 0.5, 0.2, np.nan])
    assert pareto_rank(mean, variance, 5).tolist() == [0, 2, 0, 1, 2]
    assert sorted(choose_pareto(KEY, mean, variance, 3).tolist()) == [0, 2, 3]


def test_predictions_of_numpy_are_ranked():
    """In float64, whose lowest number is -inf in float32, and in whole numbers."""
    assert pareto_rank(np.array([0.0, np.nan, 2.0]), np.array([1.0, 5.0, 0.5]), 3).tolist() == [0, 1, 0]
    assert pareto_rank(np.array([0, 1, 2]), np.array([1, 1, 0]), 3).tolist() == [1, 0, 0]


def drawn(num_targets, num_draws=3000):
    keys = jax.random.split(jax.random.key(1), num_draws)
    return np.asarray(jax.vmap(lambda key: choose_pareto(key, MEAN, VARIANCE, num_targets))(keys))


@pytest.mark.parametrize("num_targets", [1, 2])
def test_targets_are_uniform_on_the_first_front(num_targets):
    targets = drawn(num_targets)
    cells, times = np.unique(targets, return_counts=True)
    assert cells.tolist() == [1, 3, 4, 5]
    assert scipy.stats.chisquare(times).pvalue > 0.01
    for position in range(num_targets):
        assert scipy.stats.chisquare(np.bincount(targets[:, position])[cells]).pvalue > 0.01


@pytest.mark.parametrize("num_targets", range(1, 8))
def test_no_target_is_drawn_twice(num_targets):
    assert all(len(set(row)) == num_targets for row in drawn(num_targets, 50).tolist())


def test_a_front_that_is_too_small_is_taken_whole_and_the_draw_goes_on_with_the_next():
    targets = drawn(5)
    assert (np.sort(targets[:, :4], axis=1) == [1, 3, 4, 5]).all()
    cells, times = np.unique(targets[:, 4], return_counts=True)
    assert cells.tolist() == [0, 2]
    assert scipy.stats.chisquare(times).pvalue > 0.01
    targets = drawn(7, 50)
    assert (np.sort(targets[:, 4:6], axis=1) == [0, 2]).all()
    assert (targets[:, 6] == 6).all()


def test_equal_predictions_make_all_cells_one_front():
    keys = jax.random.split(jax.random.key(2), 2000)
    targets = jax.vmap(lambda key: choose_pareto(key, jnp.zeros(8), jnp.ones(8), 1)[0])(keys)
    assert scipy.stats.chisquare(np.bincount(targets, minlength=8)).pvalue > 0.01


def test_the_same_key_draws_the_same_targets():
    assert drawn(3, 5).tolist() == drawn(3, 5).tolist()


def test_vmap_over_replicas_ranks_each_as_if_alone():
    mean, variance = arrays(*np.random.default_rng(1).integers(0, 5, (2, 6, 30)))
    together = jax.vmap(lambda m, v: pareto_rank(m, v, 10))(mean, variance)
    for i in range(6):
        np.testing.assert_array_equal(together[i], pareto_rank(mean[i], variance[i], 10))


@pytest.mark.parametrize("num_targets", [0, 8])
def test_more_targets_than_cells_are_refused(num_targets):
    with pytest.raises(JedaxError, match="num_targets: expected 1 to 7"):
        choose_pareto(KEY, MEAN, VARIANCE, num_targets)
