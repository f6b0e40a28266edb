"""The weighted target fitness score by hand, and what it must not depend on; the other rankers against pyribs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ribs.emitters import rankers as ribs_rankers

from jedax.errors import JedaxError
from jedax.rankers import (
    RANKERS,
    Outcome,
    check_ranker,
    ranker_named,
    weighted_target_fitness_score,
)
from jedax.types import Evaluation, Insertion

score_of = jax.jit(weighted_target_fitness_score)
# Distances to (1, 1): 5, 0, 10, 2.5.
DESCRIPTORS = [[4, 5], [1, 1], [7, 9], [1, 3.5]]
FITNESS = [10, -10, 30, 0]
TARGET = [1, 1]


def score(fitness, descriptors, target=TARGET, alpha=0.5):
    evaluation = Evaluation(jnp.asarray(fitness, jnp.float32), jnp.asarray(descriptors, jnp.float32))
    return np.asarray(score_of(evaluation, jnp.asarray(target, jnp.float32), jnp.float32(alpha)))


class TestByHand:
    NEARNESS = (0.5, 1, 0, 0.75)
    FITTEST = (0.5, 0, 1, 0.25)

    @pytest.mark.parametrize("alpha", [0, 0.25, 0.5, 0.8, 1])
    def test_four_members(self, alpha):
        expected = alpha * np.array(self.NEARNESS) + (1 - alpha) * np.array(self.FITTEST)
        np.testing.assert_allclose(score(FITNESS, DESCRIPTORS, alpha=alpha), expected, atol=1e-6)

    def test_alpha_one_ranks_by_nearness_and_alpha_zero_by_fitness(self):
        assert score(FITNESS, DESCRIPTORS, alpha=1).argsort().tolist() == [2, 0, 3, 1]
        assert score(FITNESS, DESCRIPTORS, alpha=0).argsort().tolist() == [1, 3, 0, 2]

    def test_one_descriptor_dimension(self):
        np.testing.assert_allclose(score([0, 0, 0], [[3], [-1], [0]], target=[0], alpha=1), [0, 2 / 3, 1], atol=1e-6)


class TestFlat:
    def test_fitness(self):
        np.testing.assert_array_equal(score([7] * 4, DESCRIPTORS, alpha=0), np.zeros(4))
        expected = 0.5 * np.array(TestByHand.NEARNESS)
        np.testing.assert_allclose(score([7] * 4, DESCRIPTORS, alpha=0.5), expected, atol=1e-6)

    def test_distances(self):
        around = [[2, 1], [0, 1], [1, 2], [1, 0]]
        np.testing.assert_array_equal(score(FITNESS, around, alpha=1), np.zeros(4))
        expected = 0.5 * np.array(TestByHand.FITTEST)
        np.testing.assert_allclose(score(FITNESS, around, alpha=0.5), expected, atol=1e-6)

    def test_both(self):
        np.testing.assert_array_equal(score([7] * 3, [[2, 1]] * 3), np.zeros(3))

    def test_one_member(self):
        np.testing.assert_array_equal(score([7], [[2, 1]]), [0])


class TestFailures:
    BAD = (
        (np.nan, [1, 1]), (np.nan, [99, 99]), (np.inf, [1, 1]), (-np.inf, [1, 1]),
        (99, [np.nan, 1]), (-99, [1, np.inf]), (99, [-np.inf, np.nan]),
    )  # fmt: skip

    @pytest.mark.parametrize("bad", BAD, ids=str)
    @pytest.mark.parametrize("alpha", [0, 0.5, 1])
    def test_they_rank_last_and_do_not_count(self, bad, alpha):
        expected = score(FITNESS, DESCRIPTORS, alpha=alpha)
        got = score([*FITNESS, bad[0]], [*DESCRIPTORS, bad[1]], alpha=alpha)
        np.testing.assert_array_equal(got[:4], expected)
        assert got[4] == -np.inf

    @pytest.mark.parametrize("alpha", [0, 0.5, 1])
    def test_all_of_them(self, alpha):
        fitness, descriptors = zip(*self.BAD, strict=True)
        assert score(fitness, descriptors, alpha=alpha).tolist() == [-np.inf] * len(self.BAD)

    @pytest.mark.parametrize("alpha", [0, 0.5, 1])
    def test_all_but_one(self, alpha):
        fitness, descriptors = zip(*self.BAD, (3, [4, 4]), strict=True)
        assert score(fitness, descriptors, alpha=alpha).tolist() == [*[-np.inf] * len(self.BAD), 0]


class TestRange:
    """Nothing overflows or vanishes as long as the numbers themselves are finite."""

    BIG = float(np.finfo(np.float32).max)

    def test_fitness(self):
        got = score([self.BIG, -self.BIG, 0], [[1, 1]] * 3, alpha=0)
        np.testing.assert_allclose(got, [1, 0, 0.5], atol=1e-6)

    @pytest.mark.parametrize("size", [1e20, 1e37, 1e-30, 1e-36])
    def test_descriptors(self, size):
        got = score([0] * 4, np.float32(DESCRIPTORS) * size, target=np.float32(TARGET) * size, alpha=1)
        np.testing.assert_allclose(got, TestByHand.NEARNESS, atol=1e-5)

    def test_opposite_corners(self):
        got = score([0] * 3, [[self.BIG] * 2, [0, 0], [-self.BIG] * 2], target=[self.BIG] * 2, alpha=1)
        np.testing.assert_allclose(got, [1, 0.5, 0], atol=1e-6)


WHOLE = st.lists(st.integers(-50, 50), min_size=6, max_size=6)
PAIRS = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=6, max_size=6)
ALPHA = st.sampled_from([0, 0.25, 0.5, 1])


class TestInvariants:
    # Powers of two and whole numbers: float32 is exact.
    @settings(max_examples=60, deadline=None)
    @given(WHOLE, PAIRS, ALPHA, st.integers(-8, 8), st.integers(-100, 100))
    def test_affine_in_fitness(self, fitness, descriptors, alpha, power, shift):
        moved = [value * 2.0**power + shift for value in fitness]
        np.testing.assert_array_equal(score(moved, descriptors, alpha=alpha), score(fitness, descriptors, alpha=alpha))

    @settings(max_examples=60, deadline=None)
    @given(WHOLE, PAIRS, ALPHA, st.sampled_from([2.0**-6, 0.5, 16.0]), st.integers(-20, 20))
    def test_scale_and_place_of_the_descriptors(self, fitness, descriptors, alpha, scale, shift):
        moved = np.array(descriptors) * scale + shift
        target = np.array(TARGET) * scale + shift
        np.testing.assert_allclose(
            score(fitness, moved, target, alpha=alpha), score(fitness, descriptors, alpha=alpha), atol=1e-5
        )

    @settings(max_examples=60, deadline=None)
    @given(WHOLE, PAIRS, ALPHA, st.permutations(range(6)))
    def test_order_of_the_members(self, fitness, descriptors, alpha, order):
        whole = score(fitness, descriptors, alpha=alpha)
        permuted = score(np.array(fitness)[order], np.array(descriptors)[order], alpha=alpha)
        np.testing.assert_array_equal(permuted, whole[order])

    @settings(max_examples=60, deadline=None)
    @given(WHOLE, PAIRS, ALPHA)
    def test_range(self, fitness, descriptors, alpha):
        got = score(fitness, descriptors, alpha=alpha)
        assert (got >= 0).all()
        assert (got <= 1 + 1e-6).all()
        if alpha == 0 and len(set(fitness)) > 1:
            assert (got.min(), got.max()) == (0, pytest.approx(1, abs=1e-6))

    def test_populations_of_a_pool_do_not_mix(self):
        fitness = jnp.array([[10.0, -10, 30, 0], [1, 2, 3, 4]])
        descriptors = jnp.array([DESCRIPTORS, [[0.0, 0], [1, 0], [2, 0], [9, 0]]], jnp.float32)
        targets = jnp.array([[1.0, 1], [2, 0]])
        pool = jax.vmap(weighted_target_fitness_score, (0, 0, None))(
            Evaluation(fitness, descriptors), targets, jnp.float32(0.5)
        )
        for row in range(2):
            np.testing.assert_allclose(pool[row], score(fitness[row], descriptors[row], targets[row]), atol=1e-6)


def test_a_penalised_score_that_is_not_finite_ranks_last_and_does_not_change_the_others():
    penalised = jnp.array([3.0, -jnp.inf, 1.0, 2.0])
    evaluation = Evaluation(jnp.zeros(4), jnp.asarray(DESCRIPTORS, jnp.float32), score=penalised)
    found = score_of(evaluation, jnp.asarray(TARGET, jnp.float32), jnp.float32(0.0))
    assert found.tolist() == [1.0, -np.inf, 0.0, 0.5]


def closest(outcome):
    """A ranker of a user's."""
    return -jnp.abs(outcome.evaluation.descriptor - outcome.direction).sum(axis=1)


class TestNames:
    def test_names_modules_and_functions(self):
        assert [ranker_named(name) for name in RANKERS] == list(RANKERS.values())
        assert ranker_named(closest) is ranker_named(f"{__name__}:closest") is closest
        for ranker in ("2imp", closest, f"{__name__}:closest", "custom:gone"):
            assert check_ranker(ranker) is ranker

    @pytest.mark.parametrize(
        ("ranker", "message"),
        [
            ("2im", r"^ranker: unknown name '2im'; did you mean '2imp'"),
            ("threshold", r"^ranker: unknown name 'threshold'; choose one of 2imp, imp, obj, rd"),
            (f"{__name__}:far", r"^ranker: expected 'far' in .*test_rankers, got none"),
            (
                f"{__name__}:TARGET",
                r"^ranker: expected one of 2imp, imp, obj, rd, or a function of an Outcome, got",
            ),
            (3, r"^ranker: expected one of 2imp, .*, got 3"),
        ],
    )
    def test_what_is_no_ranker(self, ranker, message):
        with pytest.raises(JedaxError, match=message):
            check_ranker(ranker)

    def test_an_object_of_an_earlier_run_is_missed_when_it_is_needed(self):
        with pytest.raises(JedaxError, match=r"^ranker: expected an object that can be imported .*, got custom:gone"):
            ranker_named("custom:gone")


class TestAgainstPyribs:
    PEERS = {
        "2imp": ribs_rankers.TwoStageImprovementRanker,
        "imp": ribs_rankers.ImprovementRanker,
        "obj": ribs_rankers.ObjectiveRanker,
        "rd": ribs_rankers.RandomDirectionRanker,
    }

    @pytest.mark.parametrize("name", RANKERS)
    @pytest.mark.parametrize("seed", range(5))
    def test_order(self, name, seed):
        random = np.random.default_rng(seed)
        fitness, improvement = random.normal(size=(2, 16)).astype(np.float32)
        status = random.integers(0, 3, size=16)
        descriptors = random.normal(size=(16, 2)).astype(np.float32)
        direction = random.normal(size=2).astype(np.float32)
        peer = self.PEERS[name]()
        if name == "rd":
            peer.target_measure_dir = direction
        wanted, _ = peer.rank(
            None, None, {"objective": fitness, "measures": descriptors}, {"status": status, "value": improvement}
        )
        outcome = Outcome(
            Evaluation(jnp.asarray(fitness), jnp.asarray(descriptors)),
            Insertion(jnp.asarray(status > 0), jnp.asarray(status), jnp.asarray(improvement)),
            jnp.asarray(direction),
        )
        np.testing.assert_array_equal(np.argsort(-RANKERS[name](outcome)), wanted)

    @pytest.mark.parametrize("name", RANKERS)
    def test_failed_members_rank_last(self, name):
        evaluation = Evaluation(jnp.float32([np.nan, -9, 5]), jnp.float32([[9, 9], [-9, -9], [np.nan, 0]]))
        insertion = Insertion(jnp.array([0, 1, 0], bool), jnp.int32([0, 2, 0]), jnp.float32([-np.inf, -9, -np.inf]))
        scores = RANKERS[name](Outcome(evaluation, insertion, jnp.float32([1, 1])))
        assert np.isfinite(scores).tolist() == [False, True, False]


def test_a_penalised_score_takes_the_place_of_the_fitness():
    """That of infeasible members is so low that the fitness of all others would look equal."""
    fitness, descriptors = jnp.asarray([5.0, 3.0, -1.0, -1.5e30]), jnp.zeros((4, 2))
    evaluation = Evaluation(fitness, descriptors, score=jnp.asarray([4.0, 3.0, 0.0, 2.0]))
    np.testing.assert_allclose(score_of(evaluation, jnp.ones(2), jnp.float32(0)), [1, 0.75, 0, 0.5], atol=1e-6)
