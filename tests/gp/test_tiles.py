import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from tests.gp.reference import dense

from jedax.gp import tiles


@pytest.fixture(scope="module")
def matrix():
    """A positive definite matrix of condition 1e4, in float32 values."""
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(512, 512)))
    return ((basis * np.geomspace(1e-2, 1e2, 512)) @ basis.T).astype(np.float32)


@pytest.fixture(scope="module")
def in_tiles(matrix):
    return jnp.asarray(matrix.reshape(4, 128, 4, 128).swapaxes(1, 2))


factorise = jax.jit(tiles.factorise)


def lapack(matrix, num_tiles):
    return scipy.linalg.cholesky(matrix[: 128 * num_tiles, : 128 * num_tiles].astype(float), lower=True)


@pytest.mark.parametrize("num_tiles", [1, 3, 4])
def test_the_factor_is_that_of_lapack_for_the_tiles_in_use(matrix, in_tiles, num_tiles):
    factor = factorise(in_tiles, jnp.int32(num_tiles))
    expected, rows = lapack(matrix, num_tiles), 128 * num_tiles
    np.testing.assert_allclose(dense(factor.lower)[:rows, :rows], expected, atol=2e-4)
    assert factor.log_determinant == pytest.approx(np.log(np.diag(expected)).sum(), abs=1e-2)
    assert factor.ok


@pytest.mark.parametrize("num_tiles", [1, 4])
def test_inverse_and_solutions_are_those_of_lapack(matrix, in_tiles, num_tiles):
    factor, rows = factorise(in_tiles, jnp.int32(num_tiles)), 128 * num_tiles
    lower = lapack(matrix, num_tiles)
    inverse = scipy.linalg.solve_triangular(lower, np.eye(rows), lower=True)
    np.testing.assert_allclose(dense(jax.jit(tiles.invert)(factor))[:rows, :rows], inverse, atol=2e-3)
    right = np.random.default_rng(1).normal(size=(512, 3)).astype(np.float32)
    for solve, by in ((tiles.solve_lower, inverse), (tiles.solve_upper, inverse.T)):
        found = np.asarray(jax.jit(solve)(factor, jnp.asarray(right.reshape(4, 128, 3)))).reshape(512, 3)
        np.testing.assert_allclose(found[:rows], by @ right[:rows], atol=5e-3)
        np.testing.assert_array_equal(found[rows:], right[rows:])


@pytest.mark.parametrize("row", [5, 200, 511])
def test_a_matrix_that_is_not_positive_definite_is_noticed_in_any_tile(in_tiles, row):
    tile, inside = divmod(row, 128)
    factor = factorise(in_tiles.at[tile, tile, inside, inside].set(-1.0), jnp.int32(4))
    assert not factor.ok


def test_tiles_not_in_use_are_not_looked_at(in_tiles):
    spoilt = in_tiles.at[2:].set(jnp.nan).at[:, 2:].set(jnp.nan)
    assert factorise(spoilt, jnp.int32(2)).log_determinant == factorise(in_tiles, jnp.int32(2)).log_determinant


def test_no_tiles_make_a_determinant_of_one(in_tiles):
    factor = factorise(in_tiles, jnp.int32(0))
    assert factor.log_determinant == 0
    assert factor.ok


def test_build_fills_the_lower_triangle_in_use():
    built = tiles.build(jnp.int32(2), jnp.zeros((3, 3, 2, 2)), lambda i, j: jnp.full((2, 2), 10.0 * i + j))
    expected = np.zeros((3, 3))
    expected[0, 0], expected[1, :2] = 0, (10, 11)
    np.testing.assert_array_equal(built[:, :, 0, 1], expected)


@pytest.mark.parametrize(("rows", "shape"), [(1, (1, 1)), (100, (1, 100)), (128, (1, 128)), (129, (2, 128))])
def test_cut_fills_the_last_tile_with_zeros(rows, shape):
    cut = tiles.cut(jnp.ones((rows, 3)))
    assert cut.shape == (*shape, 3)
    assert cut.sum() == 3 * rows
    assert (cut.reshape(-1, 3)[:rows] == 1).all()


@pytest.mark.parametrize("transposed", ["nn", "nt", "tn"])
def test_products(transposed):
    a, b = np.random.default_rng(2).normal(size=(2, 5, 5)).astype(np.float32)
    sides = (m.T if t == "t" else m for m, t in zip((a, b), transposed, strict=True))
    np.testing.assert_allclose(tiles.times(jnp.asarray(a), jnp.asarray(b), transposed), np.matmul(*sides), rtol=1e-4)
