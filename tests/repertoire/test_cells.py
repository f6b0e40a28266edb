"""Cells: the quality of the tessellation, and which cell a descriptor belongs to."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import KDTree

from jedax.errors import JedaxError
from jedax.methods.base import MethodConfig
from jedax.repertoire import Cells
from jedax.repertoire.cells import _cvt, make_cells

UNIT = ((0.0, 0.0), (1.0, 1.0))
BOX = ((-5.0, 0.0), (40.0, 2.0))


def mean_squared_distance(centroids, points):
    return (KDTree(np.asarray(centroids, float)).query(points)[0] ** 2).mean()


@pytest.fixture(scope="module")
def paper():
    """The paper's tessellation of the unit square: 1,024 cells."""
    return make_cells(UNIT, 1024)


class TestCVT:
    def test_shape(self, paper):
        assert paper.centroids.shape == (1024, 2)
        assert paper.centroids.dtype == np.float32
        assert paper.num_cells == 1024
        assert paper.bounds == UNIT
        assert paper.shape is None

    def test_deterministic(self, paper):
        _cvt.cache_clear()
        again = make_cells(UNIT, 1024)
        np.testing.assert_array_equal(again.centroids, paper.centroids)
        assert again == paper
        assert hash(again) == hash(paper)

    @pytest.mark.parametrize(
        ("bounds", "count"), [(UNIT, 1024), (BOX, 60), (((0.0,), (1.0,)), 7), (((-1.0,) * 3, (1.0,) * 3), 50)]
    )
    def test_inside_the_box_and_distinct(self, bounds, count):
        cells = make_cells(bounds, count)
        assert cells.centroids.shape == (count, len(bounds[0]))
        assert (cells.centroids > np.float32(bounds[0])).all()
        assert (cells.centroids < np.float32(bounds[1])).all()
        assert len(np.unique(cells.centroids, axis=0)) == count

    def test_quality(self, paper):
        """Times the number of cells, the mean squared distance has known values for some layouts.

        The hexagonal lattice, the best there is: 5 / (18 sqrt(3)) = 0.1604. Squares: 1 / 6. Random points:
        1 / pi = 0.318. K-means on 10 samples per cell comes to 0.19, here as in scikit-learn and in scipy.
        """
        random = np.random.default_rng(1)
        points = random.uniform(size=(40_000, 2))
        ours = 1024 * mean_squared_distance(paper.centroids, points)
        assert 5 / (18 * math.sqrt(3)) < ours < 0.2
        assert ours < 0.65 * 1024 * mean_squared_distance(random.uniform(size=(1024, 2)), points)

    def test_as_good_as_another_k_means(self):
        random = np.random.default_rng(2)
        sample, points = random.uniform(size=(5_000, 2)), random.uniform(size=(40_000, 2))
        try:
            from sklearn.cluster import KMeans

            theirs = KMeans(200, n_init=1, random_state=0).fit(sample).cluster_centers_
        except ImportError:
            from scipy.cluster.vq import kmeans2

            theirs = kmeans2(sample, 200, iter=50, minit="++", seed=0)[0]
        ours = make_cells(UNIT, 200).centroids
        assert mean_squared_distance(ours, points) < 1.06 * mean_squared_distance(theirs, points)

    def test_even_cells(self, paper):
        points = np.random.default_rng(3).uniform(size=(200_000, 2))
        sizes = np.bincount(KDTree(paper.centroids).query(points)[1], minlength=1024) * 1024 / 200_000
        assert sizes.min() > 0.1
        assert sizes.max() < 2.5

    def test_one_cell_is_the_middle(self):
        cells = make_cells(BOX, 1)
        np.testing.assert_allclose(cells.centroids, [[17.5, 1]], rtol=0.03)
        assert cells.assign(jnp.array([[0.0, 0.0], [99.0, 99.0]])).tolist() == [0, 0]

    def test_number_of_samples(self):
        fine, coarse = (make_cells(UNIT, 50, samples=samples) for samples in (20_000, 60))
        points = np.random.default_rng(4).uniform(size=(20_000, 2))
        assert fine != coarse
        assert mean_squared_distance(fine.centroids, points) < mean_squared_distance(coarse.centroids, points)
        assert make_cells(UNIT, 50) == make_cells(UNIT, 50, samples=5_000)

    def test_fewer_samples_than_cells(self):
        cells = make_cells(UNIT, 50, samples=10)
        assert len(np.unique(cells.centroids, axis=0)) == 50


class TestAssignCVT:
    def test_against_brute_force(self, paper):
        random = np.random.default_rng(5)
        points = random.uniform(-0.5, 1.5, (5_000, 2)).astype(np.float32)
        distances = np.linalg.norm(np.asarray(paper.centroids, float) - points[:, None], axis=-1)
        nearest, second = np.partition(distances, 1, axis=1)[:, :2].T
        clear = second**2 - nearest**2 > 1e-6
        assert clear.mean() > 0.99
        got = np.asarray(paper.assign(jnp.asarray(points)))
        np.testing.assert_array_equal(got[clear], np.argmin(distances, axis=1)[clear])

    def test_ties_go_to_the_lowest_index(self):
        cells = Cells(np.float32([[3, 0], [1, 0], [-1, 0], [1, 0]]), ((-4.0, -4.0), (4.0, 4.0)))
        assert cells.assign(jnp.array([[0.0, 0.5], [2.0, 0.0], [1.0, 0.0]])).tolist() == [1, 0, 1]


@pytest.mark.parametrize("layout", ["cvt", "grid"])
@pytest.mark.parametrize(("bounds", "count"), [(BOX, 64), (((2.0,), (3.0,)), 64), (((-1.0,) * 3, (1.0, 2.0, 9.0)), 64)])
class TestBothLayouts:
    def test_centroids_belong_to_their_own_cell(self, layout, bounds, count):
        cells = make_cells(bounds, count, layout)
        assert cells.assign(jnp.asarray(cells.centroids)).tolist() == list(range(count))

    def test_batch_shapes(self, layout, bounds, count):
        cells = make_cells(bounds, count, layout)
        some = cells.centroids[:6]
        assert cells.assign(jnp.asarray(some[3])).shape == ()
        assert int(cells.assign(jnp.asarray(some[3]))) == 3
        assert cells.assign(jnp.asarray(some).reshape(2, 3, -1)).tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_not_finite_gets_some_cell(self, layout, bounds, count):
        cells = make_cells(bounds, count, layout)
        bad = jnp.full((3, len(bounds[0])), jnp.array([[jnp.nan], [jnp.inf], [-jnp.inf]]))
        index = np.asarray(cells.assign(bad))
        assert ((index >= 0) & (index < count)).all()


@pytest.mark.parametrize("layout", ["cvt", "grid"])
class TestFarOutside:
    def test_the_cell_of_the_side_it_lies_on(self, layout):
        """Far away float32 cannot tell centroids apart by their distance."""
        cells = make_cells(UNIT, 64, layout)
        columns = cells.centroids[np.asarray(cells.assign(jnp.array([[1e5, 0.9], [1e30, 0.9], [np.inf, 0.9]])))]
        assert (columns[:, 0] > 0.85).all()
        assert (columns == columns[0]).all()

    def test_moderately_far_it_is_the_nearest_centroid(self, layout):
        cells = make_cells(UNIT, 64, layout)
        points = np.random.default_rng(8).uniform(-8, 9, (2_000, 2)).astype(np.float32)
        clipped = np.clip(points, 0, 1) if layout == "grid" else points
        distances = np.linalg.norm(cells.centroids.astype(float) - clipped[:, None], axis=-1)
        nearest, second = np.partition(distances, 1, axis=1)[:, :2].T
        clear = second**2 - nearest**2 > 1e-3
        assert clear.mean() > 0.9
        got = np.asarray(cells.assign(jnp.asarray(points)))
        np.testing.assert_array_equal(got[clear], np.argmin(distances, axis=1)[clear])


class TestGrid:
    def test_centroids_by_hand(self):
        cells = make_cells(((0.0, -1.0), (2.0, 1.0)), 4, "grid")
        assert cells.shape == (2, 2)
        np.testing.assert_array_equal(cells.centroids, [[0.5, -0.5], [0.5, 0.5], [1.5, -0.5], [1.5, 0.5]])
        assert cells.centroids.dtype == np.float32

    @pytest.mark.parametrize(
        ("descriptor", "cell"),
        [
            ((0, -1), 0),  # the lower corner
            ((0.49, -0.51), 0),
            ((0.5, -0.5), 5),  # a border belongs to the upper cell
            ((0.5, -0.51), 4),
            ((0.49, -0.5), 1),
            ((1.99, 0.99), 15),
            ((2, 1), 15),  # the upper corner belongs to the last cell
            ((2, -1), 12),
            ((0, 1), 3),
            ((-5, 7), 3),  # outside
            ((3, -2), 12),
            ((1.2, 3e38), 11),
            ((-3e38, 0.1), 2),
        ],
    )
    def test_assign_by_hand(self, descriptor, cell):
        cells = make_cells(((0.0, -1.0), (2.0, 1.0)), 16, "grid")
        assert int(cells.assign(jnp.array(descriptor, jnp.float32))) == cell

    def test_other_numbers_along_each_dimension(self):
        centroids = np.stack(np.meshgrid(np.arange(3) + 0.5, np.arange(5) + 0.5, indexing="ij"), axis=-1)
        cells = Cells(np.float32(centroids.reshape(-1, 2)), ((0.0, 0.0), (3.0, 5.0)), (3, 5))
        assert cells.assign(jnp.asarray(cells.centroids)).tolist() == list(range(15))
        points = np.random.default_rng(6).uniform(-1, 6, (500, 2)).astype(np.float32)
        x, y = np.clip(np.floor(points), 0, [2, 4]).astype(int).T
        np.testing.assert_array_equal(cells.assign(jnp.asarray(points)), 5 * x + y)

    def test_three_and_one_dimensions(self):
        cells = make_cells(((0.0,) * 3, (3.0,) * 3), 27, "grid")
        assert cells.shape == (3, 3, 3)
        assert int(cells.assign(jnp.array([2.5, 0.5, 1.5]))) == 2 * 9 + 0 * 3 + 1
        line = make_cells(((0.0,), (5.0,)), 5, "grid")
        assert line.shape == (5,)
        assert line.assign(jnp.array([[-1.0], [0.5], [3.0], [9.0]])).tolist() == [0, 0, 3, 4]

    def test_inside_it_is_the_nearest_centroid(self):
        cells = make_cells(BOX, 100, "grid")
        points = np.random.default_rng(7).uniform(*BOX, (1000, 2)).astype(np.float32)
        scale = np.array(BOX[1]) - BOX[0]
        offsets = np.abs(points / scale - cells.centroids[np.asarray(cells.assign(jnp.asarray(points)))] / scale)
        assert (offsets <= 0.05 + 1e-6).all()

    def test_auto(self):
        assert make_cells(UNIT, 16).shape is None
        big = make_cells(UNIT, 101**2)
        assert big.shape == (101, 101)
        assert big.num_cells == 10_201

    @pytest.mark.parametrize(
        ("bounds", "count", "remedy"),
        [
            (UNIT, 10, "use 9 or 16"),
            (UNIT, 15, "use 9 or 16"),
            (((0.0,) * 3, (1.0,) * 3), 9, "use 8 or 27"),
            (UNIT, 1025, "use 1024 or 1089"),
        ],
    )
    def test_no_whole_root(self, bounds, count, remedy):
        message = rf"^cells: expected k\^{len(bounds[0])} with a whole number k, for a grid, got {count}; "
        with pytest.raises(JedaxError, match=message + remedy):
            make_cells(bounds, count, "grid")


class TestBox:
    def test_is_outside(self):
        cells = make_cells(BOX, 4, "grid")
        points = [[-5, 0], [40, 2], [0, 1], [-5.01, 1], [40.01, 1], [0, -0.01], [0, 2.01], [99, 99]]
        assert cells.is_outside(jnp.array(points)).tolist() == [False] * 3 + [True] * 5

    def test_to_unit_box(self):
        unit = make_cells(BOX, 4, "grid").to_unit_box(jnp.array([[-5.0, 0], [40, 2], [17.5, 0.5], [85, -2]]))
        np.testing.assert_allclose(unit, [[0, 0], [1, 1], [0.5, 0.25], [2, -1]], atol=1e-6)

    def test_bounds_that_float32_does_not_tell_apart(self):
        make_cells(((1e4,), (1e4 + 10,)), 4).check_float32()
        with pytest.raises(
            JedaxError, match=r"^descriptor_bounds: expected bounds between which float32 has more than"
        ):
            make_cells(((1.7e9, 0.0), (1.7e9 + 60, 1.0)), 4, "grid").check_float32()

    @pytest.mark.parametrize(
        "bounds",
        [
            ((1.0, 0.0), (0.0, 1.0)),
            ((0.0, 0.0), (1.0, 0.0)),
            ((0.0,), (1.0, 1.0)),
            ((0.0, 0.0), (1.0, math.inf)),
            ((math.nan, 0.0), (1.0, 1.0)),
            (0.0, 1.0),
            ((0.0, 0.0),),
            ((0.0,), (1.0,), (2.0,)),
            ((), ()),
            None,
            (("a",), ("b",)),
        ],
    )
    @pytest.mark.parametrize("layout", ["cvt", "grid"])
    def test_bad_bounds(self, bounds, layout):
        with pytest.raises(JedaxError, match=r"^descriptor_bounds: expected \(lows, highs\), finite.* got .*; change"):
            make_cells(bounds, 16, layout)


class TestDims:
    """Grids of given sides."""

    def test_by_hand(self):
        cells = make_cells(((0.0, -1.0), (3.0, 1.0)), 1, dims=[3, 2])
        assert (cells.shape, cells.num_cells) == ((3, 2), 6)
        expected = [[0.5, -0.5], [0.5, 0.5], [1.5, -0.5], [1.5, 0.5], [2.5, -0.5], [2.5, 0.5]]
        np.testing.assert_array_equal(cells.centroids, expected)
        assert cells.assign(jnp.array([[0.1, 0.9], [2.9, -0.9], [-4, 4], [1, 0]])).tolist() == [1, 4, 1, 3]

    def test_equal_sides_are_the_grid_of_that_many_cells(self):
        assert make_cells(BOX, 1, dims=(7, 7)) == make_cells(BOX, 49, "grid")
        assert make_cells(BOX, 1, "cvt", dims=(7, 7)) == make_cells(BOX, 49, "grid")

    def test_a_setting(self):
        config = MethodConfig(dims=(4, 5))
        assert config.cells == 20
        assert config.make_cells(BOX).shape == (4, 5)
        assert config.replace(dims=[2, 3]).cells == 6
        for sides in (np.array([3, 2]), (np.int64(3), 2), (3.0, 2.0)):
            assert MethodConfig(dims=sides).cells == 6
        again = config.replace(dims=None)
        assert (again.dims, again.cells) == (None, 20)

    @pytest.mark.parametrize("dims", [(4,), (4, 5, 6), ()])
    def test_another_number_of_descriptors(self, dims):
        message = rf"^dims: expected 2 numbers, one per descriptor, got \[{', '.join(map(str, dims))}\]; change them"
        with pytest.raises(JedaxError, match=message):
            make_cells(BOX, 1, dims=dims)

    @pytest.mark.parametrize(
        ("dims", "message"),
        [
            ((0, 5), r"dims.*: expected greater than or equal to 1"),
            ((2.5, 5), r"dims.*: expected"),
            ("ab", r"dims.*: expected"),
            (5, r"dims.*: expected"),
            ((10_000, 100_000), r"cells: expected less than or equal to 100000000"),
        ],
    )
    def test_settings_that_are_refused(self, dims, message):
        with pytest.raises(JedaxError, match=message):
            MethodConfig.build({"dims": dims})


class TestUnits:
    """Cells are made, and distances measured, in the unit box."""

    LOWS, WIDTHS = np.array([-5.0, 1e6]), np.array([1e-3, 1e4])

    def test_of_another_unit_they_are_the_same(self):
        bounds = tuple(self.LOWS), tuple(self.LOWS + self.WIDTHS)
        unit, scaled = make_cells(UNIT, 100), make_cells(bounds, 100)
        np.testing.assert_allclose((scaled.centroids - self.LOWS) / self.WIDTHS, unit.centroids, atol=1e-6)
        points = np.random.default_rng(0).uniform(size=(500, 2))
        distances = np.linalg.norm(points[:, None] - unit.centroids, axis=-1)
        nearest, second = np.partition(distances, 1, axis=1)[:, :2].T
        clear = second - nearest > 1e-5
        assert clear.mean() > 0.99
        with jax.enable_x64(True):
            got = np.asarray(scaled.assign(jnp.asarray(self.LOWS + points * self.WIDTHS)))
        np.testing.assert_array_equal(got[clear], np.argmin(distances, axis=1)[clear])

    def test_a_narrow_descriptor_is_divided_as_finely_as_a_wide_one(self):
        cells = make_cells(((0.0, 0.0), (1.0, 1000.0)), 100)
        spread = cells.centroids.std(axis=0) / [1, 1000]
        np.testing.assert_allclose(spread, 1 / np.sqrt(12), rtol=0.1)

    @pytest.mark.parametrize("layout", ["cvt", "grid"])
    def test_a_box_far_from_zero_has_all_its_cells(self, layout):
        """Steps of float32 are 128 s there, so only float64 tells the seconds of a minute apart."""
        cells = make_cells(((1.7e9,), (1.7e9 + 60,)), 64, layout)
        with jax.enable_x64(True):
            assert sorted(np.asarray(cells.assign(jnp.asarray(cells.centroids)))) == list(range(64))

    @pytest.mark.parametrize("layout", ["cvt", "grid"])
    def test_float64_and_float32_agree(self, layout):
        cells = make_cells(BOX, 64, layout)
        points = np.random.default_rng(1).uniform(*BOX, (200, 2)).astype(np.float32)
        with jax.enable_x64(True):
            double = np.asarray(cells.assign(jnp.asarray(points, jnp.float64)))
        assert (double == np.asarray(cells.assign(jnp.asarray(points)))).mean() > 0.99


def test_descriptors_as_lists_and_of_a_wrong_size():
    cells = make_cells(UNIT, 16)
    assert int(cells.assign([0.5, 0.25])) == int(cells.assign(jnp.array([0.5, 0.25])))
    with pytest.raises(JedaxError, match=r"^descriptors: expected 2 numbers in each row, got shape \(4, 3\)"):
        cells.assign(np.zeros((4, 3)))


@pytest.mark.parametrize("count", [0, -3])
def test_no_cells(count):
    with pytest.raises(JedaxError, match=rf"^cells: expected at least 1, got {count}; raise it"):
        make_cells(UNIT, count)


def test_unknown_layout():
    with pytest.raises(JedaxError, match=r"^cell_layout: unknown name 'voronoi'; choose one of auto, cvt, grid"):
        make_cells(UNIT, 4, "voronoi")


class TestEquality:
    def test_by_contents(self):
        one = make_cells(UNIT, 9, "grid")
        other = Cells(one.centroids.copy(), UNIT, (3, 3))
        assert one == other
        assert hash(one) == hash(other)
        assert len({one, other}) == 1

    def test_anything_else_differs(self):
        one = make_cells(UNIT, 9, "grid")
        moved = one.centroids.copy()
        moved[4, 0] += 1e-3
        others = [
            Cells(moved, UNIT, (3, 3)),
            Cells(one.centroids, UNIT),
            Cells(one.centroids, ((0.0, 0.0), (1.0, 2.0)), (3, 3)),
            make_cells(UNIT, 9, "cvt"),
            "cells",
        ]
        assert all(one != other for other in others)


def test_a_shape_that_does_not_fit_the_centroids():
    """Solutions would be stored in cells that do not exist."""
    with pytest.raises(JedaxError, match=r"^shape: expected a product of 4, the number of centroids, got \(100, 100\)"):
        Cells(np.zeros((4, 2)), ((0.0, 0.0), (1.0, 1.0)), (100, 100))
