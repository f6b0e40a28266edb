"""The random bits of `jax.random`: keys of type `key_type()` draw the same numbers in native code.

XLA computes the rounds of JAX's generator, Threefry, in a loop on CPUs: a generation takes a fifth to nine tenths more
time, and its program up to twice as long to compile.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.native.core import Kernel
from jedax.types import Array

KERNEL = Kernel("random", "bits", "split", "fold_in")
_THREEFRY = "threefry2x32"


@functools.cache
def key_type() -> Any:
    """Return the type of keys (`impl` of `jax.random.wrap_key_data`) whose numbers native code draws.

    None where native code cannot: without the kernel, on accelerators, or where JAX is set to count otherwise.
    """
    if not (KERNEL.available and jax.default_backend() == "cpu" and jax.config.jax_threefry_partitionable):  # type: ignore[attr-defined]
        return None
    from jax.extend.random import define_prng_impl

    return define_prng_impl(
        key_shape=(2,),
        seed=lambda seed: jax.random.key_data(seeded(seed)),
        split=_split,
        random_bits=_bits,
        fold_in=_fold_in,
        name="jedax_threefry",
        tag="jedax",
    )


def seeded(seed: Any) -> Array:
    """Return the key of a seed for Threefry, whatever `JAX_DEFAULT_PRNG_IMPL` names."""
    return jax.random.key(seed, impl=_THREEFRY)


def native_keys(keys: Array) -> Array:
    """Return the same keys as native ones, where native code can draw their numbers."""
    impl = key_type()
    return keys if impl is None else jax.random.wrap_key_data(jax.random.key_data(keys), impl=impl)


def draws(key: Array) -> bool:
    """Return whether native code draws the numbers of this key, or of these keys."""
    impl = key_type()
    return impl is not None and jax.random.key_impl(key) == impl


def jax_keys(keys: Array) -> Array:
    """Return the same keys as those that `jax.random.key` makes, for code outside jedax."""
    return jax.random.wrap_key_data(jax.random.key_data(keys), impl=_THREEFRY) if key_type() is not None else keys


def wrap_keys(data: np.ndarray, dtype: Any) -> Array:
    """Return the keys with this data whose dtype is `dtype`, that of other keys."""
    keys = jax.random.wrap_key_data(jnp.asarray(data), impl=_THREEFRY)
    return keys if keys.dtype == dtype else native_keys(keys)


def _bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    if bit_width != 32:
        return jax.random.bits(jax.random.wrap_key_data(key, impl=_THREEFRY), shape, f"uint{bit_width}")
    return _draw("bits", shape, key)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return _draw("split", (*shape, 2), key)


def _fold_in(key: Array, data: Any) -> Array:
    return _draw("fold_in", (2,), key, jnp.asarray(data).astype(jnp.uint32))


def _draw(function: str, shape: tuple[int, ...], *words: Array) -> Array:
    if math.prod(shape) == 0:
        return jnp.zeros(shape, jnp.uint32)
    return KERNEL.call(function, jax.ShapeDtypeStruct(shape, jnp.uint32), *words)
