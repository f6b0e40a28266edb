"""Native random bits are those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.native import random as native

pytestmark = pytest.mark.skipif(not native.KERNEL.available, reason=str(native.KERNEL.status))


def assert_same(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), one, other)


KEYS = jax.random.key(7), native.native_keys(jax.random.key(7))


@pytest.mark.parametrize("shape", [(), (1,), (33,), (5, 7), (3, 1000), (0, 4)])
def test_bits(shape):
    one, other = (jax.random.bits(key, shape) for key in KEYS)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_other_widths(dtype):
    one, other = (jax.random.bits(key, (9,), dtype) for key in KEYS)
    np.testing.assert_array_equal(one, other)


def test_streams():
    """Keys made of keys, one by one and many at once, and what is drawn with them."""

    def draw(key):
        key = jax.random.fold_in(jax.random.fold_in(key, 3), jnp.int32(2**31 - 1))
        rows = jax.vmap(lambda k: jax.random.normal(k, (5,)))(jax.random.split(key, (4,)))
        folded = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i)))(jnp.arange(6))
        choice = jax.random.choice(key, 50, (8,), replace=False)
        return rows, folded, choice, jax.random.permutation(key, 20), jax.random.randint(key, (9,), 0, 1000)

    one, other = (jax.jit(draw)(key) for key in KEYS)
    assert_same(one, other)


def test_there_and_back():
    key, natively = KEYS
    assert natively.dtype != key.dtype
    assert native.jax_keys(natively).dtype == key.dtype
    assert_same(jax.random.key_data(native.jax_keys(natively)), jax.random.key_data(key))
    assert_same(jax.random.key_data(jax.random.key(5)), jax.random.key_data(jax.random.key(5, impl=native.key_type())))


def test_stored_keys_are_drawn_from_as_before():
    for key in KEYS:
        again = native.wrap_keys(np.asarray(jax.random.key_data(key)), key.dtype)
        assert again.dtype == key.dtype
        assert_same(jax.random.bits(again, (4,)), jax.random.bits(key, (4,)))
