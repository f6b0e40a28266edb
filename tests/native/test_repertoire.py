"""Native code for repertoires returns the bits of JAX."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.native.repertoire import KERNEL
from jedax.repertoire import Acceptance, Repertoire
from jedax.repertoire.cells import make_cells
from jedax.types import Evaluation

pytestmark = pytest.mark.skipif(not KERNEL.available, reason=str(KERNEL.status))

CELLS = {
    "cvt": make_cells(((0.0, 0.0), (1.0, 1.0)), 200),
    "line": make_cells(((-1.0,), (3.0,)), 40),
    "space": make_cells(((-1.0,) * 3, (1.0, 2.0, 9.0)), 500),
    "grid": make_cells(((-3.0, 2.0), (50.0, 3.0)), 900, "grid"),
    "many dimensions": make_cells(((0.0,) * 5, (1.0,) * 5), 60),
}
PARAMS = 7


def batches(cells, number, size=101):
    """Some fitness values are equal, some fail; some descriptors lie outside, some fail."""
    random = np.random.default_rng(0)
    lows, highs = map(np.array, cells.bounds)
    for turn in range(number):
        genotypes = random.standard_normal((size, PARAMS), np.float32)
        fitness = random.integers(0, 12, size) + turn / 7
        fitness[random.uniform(size=size) < 0.05] = np.nan
        fitness[random.uniform(size=size) < 0.05] = np.inf
        descriptors = random.uniform(lows - 0.2 * (highs - lows), highs + 0.2 * (highs - lows), (size, len(lows)))
        descriptors[random.uniform(size=descriptors.shape) < 0.02] = np.nan
        yield jnp.asarray(genotypes), Evaluation(jnp.float32(fitness), jnp.float32(descriptors)), jnp.int32(turn)


def assert_same(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), one, other)


@pytest.mark.parametrize("name", CELLS)
def test_adding(name):
    cells = CELLS[name]
    natively, in_jax = (
        jax.jit(lambda held, *batch, add=add: add(held, cells, *batch))
        for add in (Repertoire.add, Repertoire.add_in_jax)
    )
    assert (
        "jedax_repertoire_add"
        in natively.lower(Repertoire.empty(cells, jnp.zeros(PARAMS)), *next(batches(cells, 1))).as_text()
    )
    ours = theirs = Repertoire.empty(cells, jnp.zeros(PARAMS))
    for batch in batches(cells, 8):
        (ours, became), (theirs, expected) = natively(ours, *batch), in_jax(theirs, *batch)
        assert_same((ours, became), (theirs, expected))
    assert ours.filled.sum() > 0.3 * cells.num_cells
    assert ours.num_failed > 0


def test_adding_under_vmap():
    """Each replica its own, and one repertoire to which two batches are added apart."""
    cells = CELLS["cvt"]
    (genotypes, evaluation, when), second = batches(cells, 2)
    start = Repertoire.empty(cells, jnp.zeros(PARAMS)).add_in_jax(cells, *second)[0]
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf[::-1]]), evaluation)
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), start)
    for axes in ((0, 0), (None, 0)):
        given = (states, both) if axes[0] == 0 else (start, both)
        ours, theirs = (
            jax.jit(jax.vmap(lambda held, e, add=add: add(held, cells, genotypes, e, when), in_axes=axes))(*given)
            for add in (Repertoire.add, Repertoire.add_in_jax)
        )
        assert_same(ours, theirs)


def test_what_is_given_stays_unless_donated():
    cells = CELLS["cvt"]
    start = Repertoire.empty(cells, jnp.zeros(PARAMS))
    new, _ = start.add(cells, *next(batches(cells, 1)))
    assert new.filled.any()
    assert not start.filled.any()
    assert not np.asarray(start.genotypes).any()


def test_a_soft_repertoire_is_left_to_jax():
    cells = CELLS["cvt"]
    soft = Acceptance(0.5, -10.0)
    empty = Repertoire.empty(cells, jnp.zeros(PARAMS), soft)
    program = jax.jit(lambda held, *batch: held.add(cells, *batch, soft))
    batch = next(batches(cells, 1))
    assert "jedax_repertoire_add" not in program.lower(empty, *batch).as_text()
    assert_same(program(empty, *batch), empty.add_in_jax(cells, *batch, soft))


@pytest.mark.parametrize("name", ["cvt", "line", "space"])
def test_nearest(name):
    cells = CELLS[name]
    lows, highs = map(np.array, cells.bounds)
    points = np.random.default_rng(1).uniform(lows - 0.1, highs + 0.1, (20_003, len(lows))).astype(np.float32)
    points[:50] = np.array(cells.bounds, np.float32)[np.random.default_rng(2).integers(2, size=(50, 1))[:, 0]]
    ours, theirs = (jax.jit(partial(f, cells._tiles))(points) for f in (cells._assign_natively, cells._assign_by_tiles))
    np.testing.assert_array_equal(ours, theirs)
    natively = jax.vmap(partial(cells._assign_natively, cells._tiles))
    np.testing.assert_array_equal(natively(points[:20_000].reshape(8, 2_500, -1)).ravel(), theirs[:20_000])
