"""The search among candidates finds what the search among all centroids finds, wherever the point and the centroids."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import KDTree

from jedax.repertoire import Cells
from jedax.repertoire.cells import make_cells, make_tiles, nearest_of_all

UNIT = ((0.0, 0.0), (1.0, 1.0))


def clustered(count):
    """Centroids that crowd towards one corner, some of them twice."""
    points = np.random.default_rng(0).uniform(size=(count, 2)) ** 3
    return Cells(np.concatenate([points, points[: count // 4]]).astype(np.float32), UNIT)


LAYOUTS = {
    "paper": make_cells(UNIT, 1024),
    "flat": make_cells(((-50.0, 3.0), (50.0, 3.5)), 300),
    "line": make_cells(((-2.0,), (5.0,)), 100),
    "space": make_cells(((-1.0,) * 3, (1.0, 2.0, 9.0)), 2_000),
    "clustered": clustered(200),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("margin", [0.0, 0.5, 30.0])
def test_as_among_all(name, margin):
    cells = LAYOUTS[name]
    assert cells._tiles is not None, "a search among all would be compared with itself"
    lows, highs = map(np.array, cells.bounds)
    spread = margin * (highs - lows)
    random = np.random.default_rng(1)
    points = random.uniform(lows - spread, highs + spread, (4_000, len(lows)))
    midway = (cells.centroids[random.integers(cells.num_cells, size=(2, 2_000))]).mean(axis=0)
    corners = np.stack(np.meshgrid(*np.transpose(cells.bounds), indexing="ij"), axis=-1).reshape(-1, len(lows))
    edges = lows + random.integers(0, np.array(cells._tiles.shape) + 1, (2_000, len(lows))) * (highs - lows) / np.array(
        cells._tiles.shape
    )
    points = jnp.asarray(np.concatenate([points, midway, corners, edges, cells.centroids]), jnp.float32)
    got = np.asarray(jax.jit(cells.assign)(points))
    unit = cells.to_unit_box(points)
    np.testing.assert_array_equal(got, jax.jit(lambda d: nearest_of_all(cells._unit_centroids, d))(unit))
    # The distances are those in the unit box, up to rounding.
    scaled = (cells.centroids.astype(float) - lows) / (highs - lows)
    exact = (np.clip(np.asarray(points, float), lows - 10 * (highs - lows), highs + 10 * (highs - lows)) - lows) / (
        highs - lows
    )
    least = KDTree(scaled).query(exact)[0]
    np.testing.assert_allclose(np.linalg.norm(scaled[got] - exact, axis=1), least, rtol=1e-4, atol=1e-4)


def test_candidates_hold_the_nearest_of_every_point():
    cells = LAYOUTS["paper"]
    tiles = cells._tiles
    points = np.random.default_rng(2).uniform(size=(20_000, 2))
    tile = np.ravel_multi_index(tuple((points * tiles.shape).astype(int).T), tiles.shape)
    nearest = KDTree(cells.centroids).query(points)[1]
    assert (tiles.candidates[tile] == nearest[:, None]).any(axis=1).all()
    assert (np.diff(tiles.candidates, axis=1) >= 0).all()
    assert tiles.candidates.shape[1] <= 12


def test_replicas_search_for_themselves():
    """Under vmap too, where one replica has points outside and the other has none."""
    cells = LAYOUTS["paper"]
    points = jnp.asarray(np.random.default_rng(3).uniform(size=(2, 50, 2)), jnp.float32).at[1].multiply(3.0)
    got = jax.vmap(cells.assign)(points)
    np.testing.assert_array_equal(got[0], cells.assign(points[0]))
    np.testing.assert_array_equal(got[1], KDTree(cells.centroids).query(np.asarray(points[1]))[1])


@pytest.mark.parametrize(
    "centroids",
    [
        np.random.default_rng(4).uniform(size=(500, 4)),
        np.random.default_rng(4).uniform(size=(8, 2)),
        np.full((500, 2), 0.5),
    ],
    ids=["many dimensions", "few cells", "all alike"],
)
def test_no_tiles_where_they_do_not_pay(centroids):
    assert make_tiles(centroids) is None


def test_descriptors_with_other_units_count_as_much():
    """Milliseconds beside newtons: cells are divided along both."""
    cells = make_cells(((0.0, 0.0), (5000.0, 2.0)), 100)
    points = np.random.default_rng(0).uniform(size=(2000, 2))
    found = [
        np.asarray(cells.assign(jnp.asarray(points * [5000, 2]))),
        np.asarray(make_cells(UNIT, 100).assign(points)),
    ]
    assert (found[0] == found[1]).mean() > 0.999


def test_far_from_the_origin():
    lows, highs = (1e6, -1e6), (1e6 + 1, -1e6 + 8)
    cells = make_cells((lows, highs), 64)
    with jax.enable_x64(True):
        points = np.random.default_rng(0).uniform(lows, highs, (2000, 2))
        got = np.asarray(cells.assign(jnp.asarray(points)))
    assert len(np.unique(got)) > 50
