import jax
import numpy as np
import pytest
import scipy.stats

import jedax.targets
from jedax._checks import JedaxError
from jedax.targets import TARGET_CHOICES, choose_uniform


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


def test_the_names_of_the_choices_and_of_their_functions():
    assert TARGET_CHOICES == ("pareto", "uniform", "gp-ucb", "gp-bucb")
    for name in jedax.targets.__all__:
        assert name == "TARGET_CHOICES" or getattr(jedax.targets, name).__name__ == name
    assert dir(jedax.targets) == sorted(jedax.targets.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = jedax.targets.no_such_name
