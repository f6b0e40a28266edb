"""What stands at the top of a run's page."""

import dataclasses

import numpy as np
import pytest

import jedax
from jedax.report.run_data import head_of
from jedax.search.failures import ALL_FAILED


@pytest.fixture(scope="module")
def found(maze_run):
    """Two seeds; the goal is -250."""
    return jedax.load(maze_run, partial=True)


def with_best(found, *best):
    repertoire = dataclasses.replace(found.repertoire, best_fitness=np.array(best))
    return dataclasses.replace(found, repertoire=repertoire)


@pytest.mark.parametrize(("best", "badge", "kind"), [
    ((-120.0, -300.0), "1 of 2 seeds reached the goal", ""),
    ((-120.0, -250.0), "2 of 2 seeds reached the goal", "good"),
    ((-260.0, -300.0), "did not reach the goal", "warn"),
    ((-np.inf, -np.inf), "no solution", "warn"),
    ((-np.inf, -120.0), "1 of 2 seeds reached the goal", ""),
])  # fmt: skip
def test_the_badge_counts_seeds(found, best, badge, kind):
    head = head_of(with_best(found, *best))
    assert (head["badge"], head["badge_kind"]) == (badge, kind)


def test_a_single_seed_is_not_counted(found):
    assert head_of(with_best(found, -120.0))["badge"] == "reached the goal"


def test_a_run_without_a_solution_says_what_to_do(found):
    head = head_of(with_best(found, -np.inf, -np.inf))
    assert ALL_FAILED in head["lead"]
    values = {name: value for name, value, _ in head["facts"]}
    assert (values["best fitness"], values["median of the seeds"]) == ("none", "none")
