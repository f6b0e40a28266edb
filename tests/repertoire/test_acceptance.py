"""Hard and soft acceptance against pyribs' CVTArchive: statuses, improvements, elites, thresholds, cell by cell."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import CVTArchive

from jedax import JedaxError
from jedax.repertoire import HARD, Acceptance, Repertoire
from jedax.repertoire.cells import Cells, make_cells
from jedax.types import Evaluation

BOUNDS = ((-1.0, 0.0), (1.0, 2.0))
CELLS = make_cells(BOUNDS, 12)
ONE_CELL = Cells(np.zeros((1, 2), np.float32), BOUNDS)
LOWEST = -10.0


@jax.jit(static_argnums=4)
def add(repertoire, genotypes, fitness, descriptors, acceptance):
    return repertoire.add(CELLS, genotypes, Evaluation(fitness, descriptors), jnp.int32(1), acceptance)


@pytest.mark.parametrize(
    "acceptance",
    [HARD, *(Acceptance(rate, LOWEST) for rate in (0.0, 0.01, 0.1, 0.5, 1.0))],
    ids=lambda a: "hard" if a.is_hard else f"rate {a.learning_rate}",
)
def test_equals_pyribs(acceptance):
    random = np.random.default_rng(3)
    archive = CVTArchive(
        solution_dim=3, centroids=CELLS.centroids.astype(np.float64), ranges=list(zip(*BOUNDS, strict=True)),
        learning_rate=acceptance.learning_rate, threshold_min=acceptance.start, dtype=np.float32,
    )  # fmt: skip
    repertoire = Repertoire.empty(CELLS, jnp.zeros(3), acceptance)
    seen = set()
    for number in range(15):
        genotypes = random.normal(size=(20, 3)).astype(np.float32)
        fitness = random.normal(number / 5, 3, size=20).astype(np.float32)
        descriptors = random.uniform(*BOUNDS, size=(20, 2)).astype(np.float32)
        theirs = archive.add(genotypes, fitness, descriptors)
        repertoire, ours = add(repertoire, genotypes, fitness, descriptors, acceptance)
        np.testing.assert_array_equal(ours.status, theirs["status"])
        np.testing.assert_allclose(ours.improvement, theirs["value"], rtol=1e-5, atol=1e-5)
        seen |= set(ours.status.tolist())
        held = archive.data()
        place = held["index"]
        np.testing.assert_array_equal(np.flatnonzero(repertoire.filled), np.sort(place))
        np.testing.assert_array_equal(repertoire.genotypes[place], held["solution"])
        np.testing.assert_array_equal(repertoire.fitness[place], held["objective"])
        np.testing.assert_allclose(repertoire.thresholds[place], held["threshold"], rtol=1e-5, atol=1e-5)
    assert seen == ({1, 2} if acceptance.learning_rate <= 0.01 else {0, 1, 2})


def soft_cell(rate, *batches):
    """Thresholds of one cell after each batch of fitness values."""
    acceptance = Acceptance(rate, LOWEST)
    repertoire = Repertoire.empty(ONE_CELL, jnp.zeros(1), acceptance)
    thresholds = []
    for fitness in batches:
        evaluation = Evaluation(jnp.float32(fitness), jnp.zeros((len(fitness), 2)))
        repertoire, _ = repertoire.add(ONE_CELL, jnp.zeros((len(fitness), 1)), evaluation, jnp.int32(1), acceptance)
        thresholds.append(float(repertoire.thresholds[0]))
    return thresholds, repertoire


def test_threshold_by_hand():
    # -10 -> -10 + .1 (0 + 10) = -9; then two accepted with mean 6: .81 (-9) + .19 * 6; -20 is below, nothing moves.
    thresholds, _ = soft_cell(0.1, [0.0], [2.0, 10.0, -9.5], [-20.0])
    np.testing.assert_allclose(thresholds, [-9, 0.81 * -9 + 0.19 * 6, 0.81 * -9 + 0.19 * 6], rtol=1e-6)


def test_a_soft_cell_takes_a_worse_solution_and_the_best_is_remembered():
    _, repertoire = soft_cell(0.1, [5.0], [-3.0])
    assert float(repertoire.fitness[0]) == -3
    assert float(repertoire.best_fitness) == 5
    assert int(repertoire.counts[0]) == 2


def test_learning_rate_zero_never_moves():
    thresholds, _ = soft_cell(0.0, [5.0], [7.0, 8.0])
    assert thresholds == [LOWEST, LOWEST]


def test_failed_members_move_no_threshold():
    thresholds, repertoire = soft_cell(0.5, [math.nan], [2.0, math.inf])
    assert thresholds == [LOWEST, -4]
    assert int(repertoire.num_failed) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5,), "learning_rate: expected a number from 0 to 1, got 1.5"),
        ((math.nan, 0.0), "learning_rate: expected a number from 0 to 1"),
        ((0.5,), "start: expected a finite threshold .* got -inf"),
        ((1.0, math.nan), "start: expected a finite threshold"),
        ((1.0, math.inf), "start: expected a finite threshold"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(JedaxError, match=message):
        Acceptance(*arguments)


def test_samples_are_uniform_over_filled_cells():
    genotypes = jnp.arange(4.0)[:, None]
    cells = Cells(np.array([[-0.5, 0.5], [0.5, 0.5], [-0.5, 1.5], [0.5, 1.5]], np.float32), BOUNDS)
    evaluation = Evaluation(jnp.float32([1, 2, 3]), jnp.float32([[-0.5, 0.5], [-0.5, 1.5], [0.5, 1.5]]))
    repertoire, _ = Repertoire.empty(cells, jnp.full(1, 9.0)).add(cells, genotypes[1:], evaluation, jnp.int32(1))
    drawn = np.asarray(repertoire.sample(jax.random.key(0), 3000))[:, 0]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    # A binomial of 3000 draws with share 1/3 has standard deviation 26.
    assert (np.abs(counts - 1000) < 5 * 26).all()


def test_samples_of_an_empty_repertoire_are_its_stand_in():
    repertoire = Repertoire.empty(CELLS, jnp.full(3, 9.0))
    np.testing.assert_array_equal(repertoire.sample(jax.random.key(0), 2), np.full((2, 3), 9.0))


@dataclass(frozen=True)
class Best(Acceptance):
    """A rule of a user's: the threshold is a share of the best fitness ever accepted."""

    share: float = 0.5

    def move(self, thresholds, number, total, best):
        return jnp.maximum(thresholds, self.share * best)


def test_another_rule_moves_thresholds_its_own_way():
    rule = Best(start=LOWEST)
    assert not rule.is_hard
    assert not Best().is_hard  # its thresholds are not the fitness of what is stored
    repertoire = Repertoire.empty(CELLS, jnp.zeros(3), rule)
    descriptors = jnp.zeros((2, 2)) + CELLS.centroids[4]
    for fitness, threshold, stored in (([8.0, 2.0], 4.0, 8.0), ([3.0, 5.0], 4.0, 5.0), ([-1.0, 20.0], 10.0, 20.0)):
        repertoire, insertion = add(repertoire, jnp.zeros((2, 3)), jnp.float32(fitness), descriptors, rule)
        assert float(repertoire.thresholds[4]) == threshold
        assert float(repertoire.fitness[4]) == stored
    assert insertion.status.tolist() == [0, 1]
    assert insertion.improvement.tolist() == [-5.0, 16.0]
    assert set(np.delete(np.asarray(repertoire.thresholds), 4).tolist()) == {LOWEST}
