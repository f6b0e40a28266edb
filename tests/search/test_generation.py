"""One generation: which candidate is given out next, and when a place has its result."""

import numpy as np
import pytest

from jedax.search.generation import TRIALS, Generation


def begin(size=3, params=2, samples=1, d=2):
    """Return a generation whose candidate `trial` of place `p` is `[p, trial, ...]`."""
    return Generation.begin(draw(0, size, params), samples, d, 1)


def draw(trial, size=3, params=2):
    return np.stack([np.arange(size), *[np.full(size, trial)] * (params - 1)], axis=1).astype(float)


def fill(generation, place, fitness=1.0):
    generation.fill(place, np.array([9.0, 9.0]), np.array([fitness]), np.array([[0.1, 0.2]]), np.array([0.5]))


def give_next(generation):
    return generation.give(generation.next_place(), draw).tolist()


def test_places_in_turn_and_then_further_candidates():
    generation = begin()
    assert [give_next(generation) for _ in range(7)] == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [0, 2]]
    assert generation.candidates.shape == (3, 3, 2)
    assert generation.num_waiting.tolist() == [3, 2, 2]


def test_further_candidates_are_drawn_once():
    generation, drawn = begin(), []

    def counted(trial):
        drawn.append(trial)
        return draw(trial)

    for place in (0, 0, 1, 1, 2, 2, 0):
        generation.give(place, counted)
    assert drawn == [1, 2]


def test_filled_places_get_no_candidates():
    generation = begin()
    fill(generation, 1)
    assert generation.open_places == [0, 2]
    assert [give_next(generation) for _ in range(4)] == [[0, 0], [2, 0], [0, 1], [2, 1]]
    assert not generation.is_complete
    fill(generation, 0)
    fill(generation, 2)
    assert generation.is_complete
    assert generation.open_places == []


def test_a_place_whose_candidate_failed_is_next():
    generation = begin()
    for _ in range(3):
        give_next(generation)
    assert generation.fail(2) is False
    assert generation.num_waiting.tolist() == [1, 1, 0]
    assert give_next(generation) == [2, 1]


def test_a_place_fails_with_its_third_candidate():
    generation = begin()
    assert [generation.fail(1) for _ in range(TRIALS)] == [False, False, True]
    assert generation.filled.tolist() == [False, True, False]
    assert np.isnan(generation.fitness[1]).all()
    assert np.isnan(generation.descriptors[1]).all()
    assert np.isnan(generation.constraints[1])


def test_results():
    generation = begin()
    fill(generation, 2, fitness=7)
    np.testing.assert_array_equal(generation.genotypes, [[0, 0], [1, 0], [9, 9]])
    np.testing.assert_array_equal(generation.fitness, [[np.nan], [np.nan], [7]])
    np.testing.assert_array_equal(generation.descriptors[2], [[0.1, 0.2]])
    np.testing.assert_array_equal(generation.constraints, [[np.nan], [np.nan], [0.5]])
    np.testing.assert_array_equal(generation.candidates[0], draw(0))  # what was asked for stays


def test_the_genotypes_are_a_copy():
    asked = draw(0)
    generation = Generation.begin(asked, 1, 2, 0)
    fill(generation, 0)
    np.testing.assert_array_equal(asked, draw(0))


def test_check_accepts_what_fits():
    generation = begin(samples=3, d=1)
    generation.give(0, draw)
    generation.give(0, draw)
    generation.check(samples=3, num_params=2, num_descriptors=1, num_constraints=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("candidates", np.zeros((2, 3, 3))),
        ("candidates", np.zeros((2, 4, 2))),
        ("genotypes", np.zeros((3, 3))),
        ("genotypes", np.zeros((3, 2), int)),
        ("given", np.zeros(3)),
        ("failed", np.zeros(2, int)),
        ("filled", np.zeros(3, int)),
        ("fitness", np.zeros((3, 2))),
        ("descriptors", np.zeros((3, 1, 3))),
        ("constraints", np.zeros((3, 2))),
    ],
)
def test_check_names_what_does_not_fit(name, value):
    generation = begin()
    setattr(generation, name, value)
    with pytest.raises(ValueError, match=name if name != "filled" else "filled"):
        generation.check(samples=1, num_params=2, num_descriptors=2, num_constraints=1)
