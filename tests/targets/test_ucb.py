from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from tests.gp.reference import KINDS, ReferenceGP, cells, standardised, to_data

from jedax.errors import JedaxError
from jedax.gp import GPSettings, Hyperparameters, condition, posterior
from jedax.targets import choose_bucb, choose_ucb

KEY = jax.random.key(0)
BETA = 6.0  # exploration enough for different cells to be chosen
MEAN, VARIANCE = jnp.array([0.0, 1.0, 2.0, 3.0]), jnp.array([16.0, 1.0, 4.0, 0.0])


@dataclass
class Prediction:
    mean: jax.Array
    matrix: jax.Array

    @property
    def variance(self):
        return jnp.diagonal(self.matrix)

    def covariance(self, index):
        return self.matrix[index]


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (0.0, [3, 2, 1, 0]),
        (0.6, [2, 3, 0, 1]),
        (1.1, [0, 2, 3, 1]),
        (10.0, [0, 2, 1, 3]),
    ],
)
@pytest.mark.parametrize("num_targets", [1, 3, 4])
def test_ucb_orders_cells_by_mean_and_weighted_deviation(num_targets, beta, expected):
    assert choose_ucb(KEY, MEAN, VARIANCE, num_targets, beta).tolist() == expected[:num_targets]


def test_ucb_draws_among_equal_bounds():
    keys = jax.random.split(KEY, 2000)
    first = jax.vmap(lambda key: choose_ucb(key, MEAN, VARIANCE, 1, 1.0)[0])(keys)
    assert np.bincount(first, minlength=4).tolist()[1:] == [0, np.sum(first == 2), 0]
    assert scipy.stats.binomtest(int(np.sum(first == 0)), 2000).pvalue > 0.01


def test_nan_comes_last():
    mean = MEAN.at[3].set(jnp.nan)
    assert choose_ucb(KEY, mean, VARIANCE, 4, 0.0).tolist() == [2, 1, 0, 3]
    assert 3 not in choose_bucb(KEY, Prediction(mean, jnp.diag(VARIANCE)), 0.1, 4, 0.0).tolist()


def hallucinated(x, y, weights, values, query, num_targets, evaluations):
    """GP-BUCB by the book: add what is predicted to the data, with its noise, and refit."""
    mean = ReferenceGP(x, y, weights, *values).mean(query)
    chosen = []
    for _ in range(num_targets):
        gp = ReferenceGP(x, y, weights, *values, floor=np.where(np.arange(len(x)) < 30, 1e-6, 0.0))
        np.testing.assert_allclose(gp.mean(query), mean, atol=1e-3)
        chosen.append(int(np.argmax(mean + BETA * np.sqrt(np.diag(gp.covariance(query))))))
        x, y = np.vstack([x, query[chosen[-1]]]), np.append(y, mean[chosen[-1]])
        weights = np.append(weights, 1 / evaluations)
    return chosen


@pytest.mark.parametrize(("weighted", "evaluations"), [(True, 500), (False, 1)])
@pytest.mark.parametrize("values", [(1.0, 0.2, 0.3), (0.8, 0.1, 0.5)])
def test_bucb_chooses_what_refitting_with_hallucinated_observations_chooses(values, weighted, evaluations):
    x, _, counts = cells(5, 30)
    fitness = np.sin(4 * x[:, 0]) + np.cos(3 * x[:, 1])
    weights = 1 / counts if weighted else np.ones(30)
    query = np.random.default_rng(5).random((25, 2)).astype(np.float32).astype(float)
    expected = hallucinated(x, standardised(fitness), weights, values, query, 10, evaluations)
    settings = GPSettings(gp=KINDS[weighted])
    gp = condition(settings, Hyperparameters.of(*values), to_data(x, fitness, counts, size=32))
    at = posterior(gp, jnp.asarray(query, jnp.float32))
    assert choose_bucb(KEY, at, gp.noise_variance / evaluations, 10, BETA).tolist() == expected
    assert len(set(expected)) > 3
    assert choose_ucb(KEY, at.mean, at.variance, 10, BETA).tolist() != expected


def test_bucb_of_independent_cells_shrinks_only_the_chosen_ones():
    # Bounds at first 4, 3, 1; an observation with noise 1 turns variance v into v / (v + 1).
    at = Prediction(jnp.array([0.0, 2.5, 1.0]), jnp.diag(jnp.array([16.0, 0.25, 0.0])))
    assert choose_bucb(KEY, at, 1.0, 3, 1.0).tolist() == [0, 1, 1]
    # Without noise what was observed is known: bounds 0, then 2.5.
    assert choose_bucb(KEY, at, 0.0, 3, 1.0).tolist() == [0, 1, 1]
    assert choose_bucb(KEY, at, 0.0, 3, 4.0).tolist() == [0, 1, 1]
    # With much noise nothing is learnt: the same cell again and again.
    assert choose_bucb(KEY, at, 1e6, 3, 1.0).tolist() == [0, 0, 0]


def test_bucb_learns_about_correlated_cells():
    # Cell 1 is cell 0 with another name: once one is known, so is the other.
    matrix = jnp.array([[4.0, 4.0, 0.0], [4.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    at = Prediction(jnp.array([0.1, 0.0, 0.0]), matrix)
    assert choose_bucb(KEY, at, 1e-4, 2, 1.0).tolist() == [0, 2]


def test_bucb_of_one_target_is_ucb():
    at = Prediction(MEAN, jnp.diag(VARIANCE))
    assert choose_bucb(KEY, at, 1.0, 1, 10.0).tolist() == choose_ucb(KEY, MEAN, VARIANCE, 1, 10.0).tolist()


def test_bucb_under_vmap_chooses_for_each_as_if_alone():
    x = jnp.asarray(np.random.default_rng(0).random((10, 2)), jnp.float32)
    values = Hyperparameters.of(1.0, 0.3, 0.5)
    gps = [condition(GPSettings(), values, to_data(*cells(seed, 20))) for seed in (0, 1)]
    choose = jax.jit(lambda key, gp: choose_bucb(key, posterior(gp, x), gp.noise_variance, 4))
    keys = jax.random.split(KEY, 2)
    together = jax.vmap(choose)(keys, jax.tree.map(lambda *a: jnp.stack(a), *gps))
    assert together.tolist() == [choose(key, gp).tolist() for key, gp in zip(keys, gps, strict=True)]


@pytest.mark.parametrize("num_targets", [0, 5])
def test_more_targets_than_cells_are_refused(num_targets):
    with pytest.raises(JedaxError, match="num_targets: expected 1 to 4"):
        choose_ucb(KEY, MEAN, VARIANCE, num_targets)
    with pytest.raises(JedaxError, match="num_targets: expected 1 to 4"):
        choose_bucb(KEY, Prediction(MEAN, jnp.diag(VARIANCE)), 1.0, num_targets)
