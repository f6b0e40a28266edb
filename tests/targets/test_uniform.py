import jax
import numpy as np
import pytest
import scipy.stats

from jedax.errors import JedaxError
from jedax.targets import choose_uniform


def test_all_cells_are_alike_and_none_is_drawn_twice():
    keys = jax.random.split(jax.random.key(0), 3000)
    targets = np.asarray(jax.vmap(lambda key: choose_uniform(key, 10, 3))(keys))
    assert all(len(set(row)) == 3 for row in targets.tolist())
    for position in range(3):
        times = np.bincount(targets[:, position], minlength=10)
        assert len(times) == 10
        assert scipy.stats.chisquare(times).pvalue > 0.01


def test_all_cells_can_be_drawn_at_once():
    assert sorted(choose_uniform(jax.random.key(0), 6, 6).tolist()) == list(range(6))


@pytest.mark.parametrize("num_targets", [0, 7])
def test_more_targets_than_cells_are_refused(num_targets):
    with pytest.raises(JedaxError, match="num_targets: expected 1 to 6"):
        choose_uniform(jax.random.key(0), 6, num_targets)
