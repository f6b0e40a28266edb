"""Failures by kind: every failed evaluation is of exactly one."""

import jax.numpy as jnp
import numpy as np

from jedax.search import failures
from jedax.types import Evaluation

FITNESS = np.array([[1, np.nan, np.inf, 2], [-np.inf, 0, np.nan, 5]], np.float32)
DESCRIPTORS = np.array([[[0, 0], [0, np.inf], [0, np.nan], [np.inf, 0]], [[0, 0], [0, 0], [np.nan, 0], [1, 1]]])


def test_within_a_program():
    """Whatever holds a NaN counts as one, whatever else it holds."""
    evaluation = Evaluation(jnp.asarray(FITNESS), jnp.asarray(DESCRIPTORS, jnp.float32))
    num_nan = failures.count_nan(evaluation)
    assert num_nan.tolist() == [2, 1]
    assert failures.by_kind(num_nan, (~evaluation.valid).sum(axis=-1)).tolist() == [[2, 1], [1, 1]]


def test_on_the_host():
    failed = {1: "raised", 6: "died", 7: "timed_out"}
    found = failures.count_on_host(FITNESS.ravel(), DESCRIPTORS.reshape(-1, 2), failed, 2)
    assert failures.HOST_KINDS == ("nan", "infinite", "raised", "misshapen", "timed_out", "died")
    assert found.tolist() == [[1, 1, 1, 0, 0, 0], [0, 1, 0, 0, 1, 1]]
