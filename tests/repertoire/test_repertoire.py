"""The repertoire against a plain loop that adds solutions one by one, and its invariants."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jedax.errors import JedaxError
from jedax.native import repertoire as native
from jedax.repertoire import Cells, Repertoire
from jedax.repertoire.cells import make_cells
from jedax.types import Evaluation

UNIT = ((0.0, 0.0), (1.0, 1.0))
FOUR = make_cells(UNIT, 4, "grid")  # centres at 0.25 and 0.75
CVT = make_cells(((-1.0, 0.0), (1.0, 3.0)), 12, "cvt")
BATCH, PARAMS = 24, 3
STAND_IN = np.float32([7, 8, 9])


@jax.jit(static_argnums=1)
def add(repertoire, cells, genotypes, evaluation, when):
    repertoire, insertion = repertoire.add(cells, genotypes, evaluation, when)
    return repertoire, insertion.stored


def empty(cells=CVT):
    return Repertoire.empty(cells, jnp.asarray(STAND_IN))


def insert(repertoire, cells, genotypes, fitness, descriptors, when=1):
    """Add arrays or lists; returns the new repertoire and the stored mask."""
    evaluation = Evaluation(jnp.asarray(fitness, jnp.float32), jnp.asarray(descriptors, jnp.float32))
    return add(repertoire, cells, jnp.asarray(genotypes, jnp.float32), evaluation, jnp.int32(when))


class Loop:
    """What a repertoire should be: a dictionary of cells, filled one solution at a time."""

    def __init__(self, cells):
        self.centroids = np.asarray(cells.centroids, float)
        self.bounds = np.array(cells.bounds)
        self.elites = {}  # cell: (genotype, fitness, descriptor, improved at)
        self.counts = np.zeros(len(self.centroids), int)
        self.best = (STAND_IN, -np.inf, np.zeros(self.centroids.shape[1], np.float32))
        self.num_failed = self.num_outside = 0

    def add(self, genotypes, fitness, descriptors, when):
        winners = {}
        for index, (genotype, value, descriptor) in enumerate(zip(genotypes, fitness, descriptors, strict=True)):
            if not (np.isfinite(value) and np.isfinite(descriptor).all()):
                self.num_failed += 1
                continue
            self.num_outside += bool(((descriptor < self.bounds[0]) | (descriptor > self.bounds[1])).any())
            steps = (self.centroids - descriptor) / np.ptp(self.bounds, axis=0)
            cell = int(np.argmin((steps**2).sum(axis=1)))
            self.counts[cell] += 1
            if cell not in self.elites or value > self.elites[cell][1]:
                self.elites[cell] = (genotype, value, descriptor, when)
                winners[cell] = index
            if value > self.best[1]:
                self.best = (genotype, value, descriptor)
        return np.isin(np.arange(len(fitness)), list(winners.values()))

    def check(self, repertoire):
        """Assert that a repertoire says the same, cell by cell and bit for bit."""
        filled = np.isin(np.arange(len(self.counts)), list(self.elites))
        np.testing.assert_array_equal(repertoire.filled, filled)
        np.testing.assert_array_equal(repertoire.counts, self.counts)
        for cell in range(len(self.counts)):
            stored = (
                repertoire.genotypes[cell],
                repertoire.fitness[cell],
                repertoire.descriptors[cell],
                repertoire.improved_at[cell],
            )
            expected = self.elites.get(cell, (np.zeros(PARAMS), -np.inf, np.zeros(2), -1))
            for got, wanted in zip(stored, expected, strict=True):
                np.testing.assert_array_equal(got, wanted)
        best = (repertoire.best_genotype, repertoire.best_fitness, repertoire.best_descriptor)
        for got, wanted in zip(best, self.best, strict=True):
            np.testing.assert_array_equal(got, wanted)
        assert int(repertoire.num_failed) == self.num_failed
        assert int(repertoire.num_outside) == self.num_outside


def random_batch(random, batch=BATCH):
    """Few fitness values, so that ties abound; some failures; some descriptors outside of `CVT`."""
    genotypes = random.normal(size=(batch, PARAMS)).astype(np.float32)
    fitness = random.integers(-3, 3, batch).astype(np.float32)
    descriptors = random.uniform([-1.4, -0.6], [1.4, 3.6], (batch, 2)).astype(np.float32)
    bad = random.choice([np.nan, np.inf, -np.inf], (batch, 3)).astype(np.float32)
    fitness = np.where(random.random(batch) < 0.1, bad[:, 0], fitness)
    return genotypes, fitness, np.where(random.random((batch, 2)) < 0.05, bad[:, 1:], descriptors)


class TestAgainstALoop:
    @pytest.mark.parametrize("seed", range(5))
    def test_random_batches(self, seed):
        random = np.random.default_rng(seed)
        repertoire, loop = empty(), Loop(CVT)
        for number in range(1, 7):
            batch = random_batch(random)
            repertoire, stored = insert(repertoire, CVT, *batch, when=number * BATCH)
            np.testing.assert_array_equal(stored, loop.add(*batch, number * BATCH))
            loop.check(repertoire)
        assert loop.num_failed > 0
        assert loop.num_outside > 0

    MEMBER = st.tuples(
        st.integers(0, CVT.num_cells - 1),
        st.sampled_from([-2.0, -1.0, -0.0, 0.0, 1.0, 3e38, np.nan, np.inf, -np.inf]),
        st.sampled_from([0.0, 0.0, 0.0, np.nan, np.inf]),
    )

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(MEMBER, min_size=BATCH, max_size=BATCH), min_size=1, max_size=3))
    def test_chosen_cells(self, batches):
        repertoire, loop = empty(), Loop(CVT)
        for number, members in enumerate(batches):
            cell, fitness, spoil = map(np.array, zip(*members, strict=True))
            # Every member differs from every other in its genotype, and a little in its descriptor.
            own = number * BATCH + np.arange(BATCH)
            genotypes = np.stack([own, -own, own**2], axis=1).astype(np.float32)
            descriptors = (CVT.centroids[cell] + 1e-3 * own[:, None] / BATCH + spoil[:, None]).astype(np.float32)
            batch = (genotypes, fitness.astype(np.float32), descriptors)
            repertoire, stored = insert(repertoire, CVT, *batch, when=number)
            np.testing.assert_array_equal(stored, loop.add(*batch, number))
        loop.check(repertoire)

    @pytest.mark.parametrize("batch", [1, 2, 100])
    def test_batch_sizes(self, batch):
        members = random_batch(np.random.default_rng(batch), batch)
        loop = Loop(CVT)
        repertoire, stored = insert(empty(), CVT, *members, when=batch)
        np.testing.assert_array_equal(stored, loop.add(*members, batch))
        loop.check(repertoire)

    def test_one_by_one_stores_the_same_elites(self):
        genotypes, fitness, descriptors = random_batch(np.random.default_rng(9))
        whole, _ = insert(empty(), CVT, genotypes, fitness, descriptors, when=3)
        steps = empty()
        for row in range(BATCH):
            part = slice(row, row + 1)
            steps, _ = insert(steps, CVT, genotypes[part], fitness[part], descriptors[part], when=3)
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), whole, steps))


class TestRules:
    """Four cells; all members of a batch go to the cell of (0.25, 0.25) unless another place is named."""

    def test_the_incumbent_wins_ties(self):
        repertoire, _ = insert(empty(FOUR), FOUR, [[1, 1, 1]], [5.0], [[0.2, 0.2]], when=1)
        repertoire, stored = insert(repertoire, FOUR, [[2, 2, 2]], [5.0], [[0.3, 0.3]], when=2)
        assert not stored.any()
        assert repertoire.genotypes[0].tolist() == [1, 1, 1]
        assert repertoire.counts.tolist() == [2, 0, 0, 0]
        assert repertoire.improved_at.tolist() == [1, -1, -1, -1]
        assert repertoire.best_genotype.tolist() == [1, 1, 1]

    def test_then_the_lowest_index(self):
        genotypes = [[1, 0, 0], [2, 0, 0], [3, 0, 0]]
        repertoire, stored = insert(empty(FOUR), FOUR, genotypes, [4.0, 5.0, 5.0], [[0.2, 0.2]] * 3)
        assert stored.tolist() == [False, True, False]
        assert repertoire.genotypes[0].tolist() == [2, 0, 0]
        assert repertoire.best_genotype.tolist() == [2, 0, 0]

    def test_rejected_ones_count_and_failed_ones_do_not(self):
        fitness = [1.0, 0.0, np.nan, np.inf, 2.0, -np.inf]
        descriptors = [[0.2, 0.2]] * 4 + [[0.2, np.nan], [0.2, 0.2]]
        repertoire, stored = insert(empty(FOUR), FOUR, np.ones((6, 3)), fitness, descriptors)
        assert stored.tolist() == [True, *[False] * 5]
        assert repertoire.counts.tolist() == [2, 0, 0, 0]
        assert int(repertoire.num_failed) == 4
        assert float(repertoire.best_fitness) == 1

    def test_outside_goes_to_the_nearest_cell(self):
        descriptors = [[-3, 9], [0.9, 1.0001], [0.1, 0.1], [np.nan, 5], [1, 1]]
        repertoire, _ = insert(empty(FOUR), FOUR, np.ones((5, 3)), np.arange(5), descriptors)
        assert repertoire.counts.tolist() == [1, 1, 0, 2]
        assert int(repertoire.num_outside) == 2
        np.testing.assert_array_equal(repertoire.descriptors[1], [-3, 9])  # as it was, not moved inside

    def test_all_failed_changes_only_their_number(self):
        before, _ = insert(empty(FOUR), FOUR, [[1, 1, 1]], [5.0], [[0.2, 0.2]])
        after, stored = insert(before, FOUR, np.ones((3, 3)), [np.nan] * 3, [[0.2, 0.2]] * 3)
        assert not stored.any()
        assert int(after.num_failed) == 3
        same = dataclasses.replace(after, num_failed=before.num_failed)
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), before, same))

    def test_the_best_of_many_cells(self):
        descriptors = [[0.2, 0.2], [0.8, 0.8], [0.2, 0.8]]
        repertoire, stored = insert(empty(FOUR), FOUR, np.eye(3), [1.0, 3.0, 2.0], descriptors)
        assert stored.all()
        assert repertoire.fitness.tolist() == [1, 2, -np.inf, 3]
        assert repertoire.best_genotype.tolist() == [0, 1, 0]
        np.testing.assert_array_equal(repertoire.best_descriptor, np.float32([0.8, 0.8]))

    def test_the_original_is_left_alone(self):
        before = empty(FOUR)
        insert(before, FOUR, [[1, 1, 1]], [5.0], [[0.2, 0.2]])
        assert not before.filled.any()


class TestInvariants:
    @settings(max_examples=40, deadline=None)
    @given(st.permutations(range(BATCH)), st.integers(0, 3))
    def test_permuting_a_batch_of_distinct_fitness_changes_nothing(self, order, seed):
        random = np.random.default_rng(seed)
        genotypes, _, descriptors = random_batch(random)
        batch = (genotypes, random.permutation(BATCH).astype(np.float32), descriptors)
        order = np.array(order)
        one, stored = insert(empty(), CVT, *batch)
        other, stored_too = insert(empty(), CVT, *(part[order] for part in batch))
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), one, other))
        np.testing.assert_array_equal(stored[order], stored_too)

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_an_elite_never_gets_worse(self, seed):
        random = np.random.default_rng(seed)
        repertoire = empty()
        for number in range(6):
            before = repertoire
            repertoire, _ = insert(before, CVT, *random_batch(random), when=number)
            assert (repertoire.fitness >= before.fitness).all()
            assert repertoire.best_fitness >= before.best_fitness
            assert repertoire.best_fitness == repertoire.fitness.max()
            kept = repertoire.fitness == before.fitness
            np.testing.assert_array_equal(repertoire.genotypes[kept], before.genotypes[kept])
            assert (np.asarray(repertoire.improved_at)[~kept] == number).all()
            assert int(repertoire.counts.sum() + repertoire.num_failed) == (number + 1) * BATCH

    def test_replicas_under_vmap_equal_single_ones(self):
        random = np.random.default_rng(2)
        batches = [[random_batch(random) for _ in range(3)] for _ in range(4)]  # 4 rounds of 3 replicas
        single = [empty() for _ in range(3)]
        many = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), empty())
        together = jax.jit(jax.vmap(lambda r, g, e, w: r.add(CVT, g, e, w), (0, 0, 0, None)))
        for number, replicas in enumerate(batches):
            results = [insert(r, CVT, *b, when=number) for r, b in zip(single, replicas, strict=True)]
            single = [repertoire for repertoire, _ in results]
            genotypes, fitness, descriptors = (jnp.stack(part) for part in zip(*replicas, strict=True))
            many, insertion = together(many, genotypes, Evaluation(fitness, descriptors), number)
            np.testing.assert_array_equal(insertion.stored, np.stack([s for _, s in results]))
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *single)
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), many, stacked))

    def test_equal_cells_are_traced_once(self):
        traces = []

        @jax.jit(static_argnums=1)
        def coverage(repertoire, cells):
            traces.append(cells)
            return repertoire.coverage()

        coverage(empty(FOUR), FOUR)
        coverage(empty(FOUR), Cells(FOUR.centroids.copy(), FOUR.bounds, FOUR.shape))
        assert len(traces) == 1


class TestEmpty:
    def test_contents(self):
        repertoire = empty(FOUR)
        assert repertoire.genotypes.shape == (4, 3)
        assert repertoire.descriptors.shape == (4, 2)
        assert repertoire.fitness.tolist() == [-np.inf] * 4
        assert repertoire.counts.tolist() == [0] * 4
        assert repertoire.improved_at.tolist() == [-1] * 4
        assert not repertoire.filled.any()
        assert repertoire.best_genotype.tolist() == [7, 8, 9]
        assert float(repertoire.best_fitness) == -np.inf
        assert (int(repertoire.num_failed), int(repertoire.num_outside)) == (0, 0)
        assert repertoire.counts.dtype == repertoire.improved_at.dtype == jnp.int32
        assert repertoire.genotypes.dtype == jnp.float32

    def test_scores(self):
        assert float(empty(FOUR).coverage()) == 0
        assert float(empty(FOUR).qd_score(-100.0)) == 0


class TestReading:
    def test_nearest_goes_by_the_stored_descriptor(self):
        # Both lie off their centres: (0.7, 0.7) is nearer to the second's centre, but to the first itself.
        repertoire, _ = insert(empty(FOUR), FOUR, [[1, 1, 1], [2, 2, 2]], [0.0, 9.0], [[0.49, 0.49], [0.95, 0.95]])
        assert repertoire.filled.tolist() == [True, False, False, True]
        assert repertoire.nearest(jnp.array([0.7, 0.7])).tolist() == [1, 1, 1]
        assert repertoire.nearest(jnp.array([0.73, 0.73])).tolist() == [2, 2, 2]

    def test_nearest_leaves_out_empty_cells(self):
        # An empty cell's descriptor is stored as (0, 0).
        repertoire, _ = insert(empty(FOUR), FOUR, [[1, 1, 1]], [0.0], [[0.9, 0.9]])
        assert repertoire.nearest(jnp.zeros(2)).tolist() == [1, 1, 1]

    def test_nearest_of_one_that_is_far_away(self):
        """Its squared distance overflows; it is nearer than no solution all the same."""
        repertoire, _ = insert(empty(FOUR), FOUR, [[3, 3, 3]], [1], [[1e25, 1e25]])
        assert repertoire.nearest(jnp.zeros(2)).tolist() == [3, 3, 3]

    def test_nearest_of_an_empty_one_is_the_stand_in(self):
        assert empty(FOUR).nearest(jnp.array([0.7, 0.7])).tolist() == [7, 8, 9]

    def test_nearest_against_a_loop(self):
        random = np.random.default_rng(5)
        repertoire, _ = insert(empty(), CVT, *random_batch(random))
        descriptors = np.asarray(repertoire.descriptors, float)[np.asarray(repertoire.filled)]
        genotypes = np.asarray(repertoire.genotypes)[np.asarray(repertoire.filled)]
        assert len(genotypes) > 4
        for target in random.uniform([-1, 0], [1, 3], (50, 2)).astype(np.float32):
            expected = genotypes[np.argmin(((descriptors - target) ** 2).sum(axis=1))]
            np.testing.assert_array_equal(repertoire.nearest(jnp.asarray(target)), expected)

    def test_coverage_and_qd_score(self):
        descriptors = [[0.2, 0.2], [0.2, 0.3], [0.8, 0.2]]
        repertoire, _ = insert(empty(FOUR), FOUR, np.eye(3), [-3.0, -4.0, 5.0], descriptors)
        assert float(repertoire.coverage()) == 0.5
        assert float(repertoire.qd_score(-10.0)) == 7 + 15
        assert float(repertoire.qd_score(0.0)) == 2

    def test_infeasible_solutions_do_not_count(self):
        repertoire, _ = insert(empty(FOUR), FOUR, np.eye(3)[:2], [-3.0, -2e30], [[0.2, 0.2], [0.8, 0.2]])
        assert float(repertoire.filled.sum()) == 2
        assert float(repertoire.coverage()) == 0.25
        assert float(repertoire.qd_score(-10.0)) == 7

    def test_repr_is_one_line(self):
        repertoire, _ = insert(empty(FOUR), FOUR, np.eye(3)[:1], [-3.0], [[0.2, 0.2]])
        shown = jax.tree.map(np.asarray, repertoire)
        assert repr(shown) == "<Repertoire: 1 of 4 cells filled, 3 numbers a genotype>"
        traced = []
        jax.jit(lambda repertoire: traced.append(repr(repertoire)))(repertoire)
        assert traced == ["<Repertoire: 4 cells, 3 numbers a genotype>"]
        stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), shown)
        assert repr(stacked) == "<Repertoire: 2 of 8 cells filled, 3 numbers a genotype, 2 replicas>"


class TestBfloat16:
    def test_genotypes_are_rounded_and_all_else_is_not(self):
        whole, half = empty(FOUR), Repertoire.empty(FOUR, jnp.asarray(STAND_IN), dtype="bfloat16")
        genotypes = np.float32([[1.001, 2, 3], [4, 5.007, 6]])
        arguments = genotypes, [1.0, 2.0], [[0.2, 0.2], [0.8, 0.8]]
        (whole, _), (half, _) = insert(whole, FOUR, *arguments), insert(half, FOUR, *arguments)
        assert half.genotypes.dtype == jnp.bfloat16
        for name in ("fitness", "descriptors", "counts", "best_genotype", "best_fitness"):
            np.testing.assert_array_equal(getattr(half, name), getattr(whole, name))
        rounded = genotypes.astype(jnp.bfloat16).astype(np.float32)
        assert (rounded != genotypes).any()
        near = half.nearest(jnp.float32([0.1, 0.1]))
        assert near.dtype == jnp.float32
        np.testing.assert_array_equal(near, rounded[0])
        drawn = half.sample(jax.random.key(0), 8)
        assert drawn.dtype == jnp.float32
        assert {tuple(row) for row in np.asarray(drawn).tolist()} == {tuple(row) for row in rounded.tolist()}

    def test_adding_does_not_unfold_all_that_is_stored(self):
        cells, params, batch = 256, 4096, 8
        many = make_cells(UNIT, cells, "grid")
        repertoire = Repertoire.empty(many, jnp.zeros(params), dtype="bfloat16")
        evaluation = Evaluation(jnp.zeros(batch), jnp.zeros((batch, 2)))
        add = jax.jit(lambda *batch: batch[0].add(many, *batch[1:])[0], donate_argnums=0)
        program = add.lower(repertoire, jnp.zeros((batch, params)), evaluation, jnp.int32(0)).compile()
        assert program.memory_analysis().temp_size_in_bytes < 3 * cells * params  # in float32 it would be 4


@pytest.mark.parametrize(
    ("shapes", "cells", "message"),
    [
        (((20, 3), (16,), (16, 2)), CVT, r"^fitness: expected shape \(20,\), got \(16,\); give one row per solution"),
        (((16, 3), (16, 1), (16, 2)), CVT, r"^fitness: expected shape \(16,\), got \(16, 1\)"),
        (((16, 9), (16,), (16, 2)), CVT, r"^genotypes: expected shape \(16, 3\), got \(16, 9\)"),
        (((16, 3), (16,), (16, 3)), CVT, r"^descriptor: expected shape \(16, 2\), got \(16, 3\)"),
        (((16, 3), (16,), (16, 2)), FOUR, r"^centroids of the cells: expected shape \(12, 2\), got \(4, 2\)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, cells, message):
    """Native code would read and write beyond its arrays."""
    genotypes, fitness, descriptor = map(jnp.zeros, shapes)
    with pytest.raises(JedaxError, match=message):
        empty().add(cells, genotypes, Evaluation(fitness, descriptor), jnp.int32(1))


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(Repertoire) if field.name != "descriptors"]
)
def test_fields_that_do_not_fit(name):
    repertoire = empty()
    odd = dataclasses.replace(repertoire, **{name: jnp.zeros((5, 1), getattr(repertoire, name).dtype)})
    batch = jnp.zeros((16, 3)), Evaluation(jnp.zeros(16), jnp.zeros((16, 2)))
    with pytest.raises(JedaxError, match=r"expected shape \(.*\), got \("):
        odd.add(CVT, *batch, jnp.int32(1))
    fields = vars(repertoire) | {name: jnp.zeros(7, getattr(repertoire, name).dtype)}
    if native.KERNEL.available:
        with pytest.raises(jax.errors.JaxRuntimeError, match="shapes that do not fit each other"):
            native.add(jnp.zeros(16, jnp.int32), batch[1].fitness, batch[1].descriptor, batch[0], jnp.int32(1), fields,
                       CVT.bounds)  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), [("best_genotype", "float16"), ("counts", "float32")])
def test_fields_of_other_types_are_left_to_jax(name, dtype):
    odd = dataclasses.replace(empty(), **{name: getattr(empty(), name).astype(dtype)})
    found, _ = insert(odd, CVT, np.ones((2, 3)), [1.0, 2.0], np.zeros((2, 2)))
    assert (float(found.best_fitness), float(found.counts.sum())) == (2, 2)
    np.testing.assert_array_equal(found.best_genotype, 1)
