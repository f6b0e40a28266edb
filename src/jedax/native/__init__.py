"""Native code for the CPU beside the maze simulator: random bits, the nearest centroid, and adding to a repertoire.

It is in the same library as `jedax.native.maze`, and does in one call each what takes JAX a dozen kernels: a
generation takes less time, and its program a third of the time to compile. All of it returns the bits that JAX alone
would, so results do not depend on whether it is there.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.types import Array, Float, Int

_HANDLERS = (
    "jedax_nearest",
    "jedax_repertoire_add",
    "jedax_random_bits",
    "jedax_random_split",
    "jedax_random_fold_in",
)

_THREEFRY = "threefry2x32"


@functools.cache
def available() -> bool:
    """Return whether the library is there and in use (see `jedax.native.maze.status`); registers its handlers."""
    from jedax.native import maze

    if maze.status().instruction_set is None:
        return False
    library = ctypes.CDLL(str(maze.find_library()))
    if not all(hasattr(library, name) for name in _HANDLERS):  # built from older sources
        return False
    for name in _HANDLERS:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
    return True


def choose(*args: Any, on_cpu: Callable, elsewhere: Callable) -> Any:
    """Return `on_cpu(*args)` on a CPU and `elsewhere(*args)` on accelerators.

    Where JAX knows no accelerator, `elsewhere` is not even traced: for a simulator that takes most of a second.
    """
    if jax.default_backend() == "cpu":
        return on_cpu(*args)
    return jax.lax.platform_dependent(*args, cpu=on_cpu, default=elsewhere)


def nearest(
    points: Float[Array, "*batch d"],
    centroids: Float[np.ndarray, "cells d"],
    candidates: Int[np.ndarray, "tiles slots"],
    shape: tuple[int, ...],
    bounds: tuple[tuple[float, ...], tuple[float, ...]],
) -> Int[Array, "*batch"]:
    """Return what `jedax.repertoire.nearest.nearest_of_tile` does."""
    call = jax.ffi.ffi_call(
        "jedax_nearest", jax.ShapeDtypeStruct(points.shape[:-1], jnp.int32), vmap_method="expand_dims"
    )
    lows, highs = (np.array(bound, np.float32) for bound in bounds)
    tables = jnp.asarray(centroids), jnp.asarray(candidates)
    return call(points.astype(jnp.float32), *tables, shape=np.array(shape, np.int32), lows=lows, highs=highs)


def add(
    cell: Int[Array, " batch"],
    fitness: Float[Array, " batch"],
    descriptor: Float[Array, "batch d"],
    genotypes: Float[Array, "batch params"],
    when: Int[Array, ""],
    stored: list[Array],
    bounds: tuple[tuple[float, ...], tuple[float, ...]],
) -> list[Array]:
    """Add a batch to a hard repertoire.

    Args:
        cell: Of each member; of one that failed, any.
        fitness: Of each member.
        descriptor: Of each member.
        genotypes: The batch.
        when: What `improved_at` becomes.
        stored: The fields of a `Repertoire`, in their order; their memory is used up where it can be.
        bounds: Of the descriptors.

    Returns:
        The new fields of the repertoire, and those of an `Insertion`.
    """
    batch = fitness.shape
    outcome = [jax.ShapeDtypeStruct(batch, dtype) for dtype in (jnp.bool_, jnp.int32, jnp.float32)]
    outputs = [*(jax.ShapeDtypeStruct(field.shape, field.dtype) for field in stored), *outcome]
    inputs = [cell, fitness, descriptor, genotypes, when, *stored]
    aliases = {5 + i: i for i in range(len(stored))}
    call = jax.ffi.ffi_call("jedax_repertoire_add", outputs, vmap_method="broadcast_all", input_output_aliases=aliases)
    lows, highs = (np.array(bound, np.float32) for bound in bounds)
    return list(call(*inputs, lows=lows, highs=highs))


@functools.cache
def key_type() -> Any:
    """Return what to wrap keys as (`impl` of `jax.random.wrap_key_data`) so that native code draws their numbers.

    None where it cannot: without the library, on accelerators, or where JAX is told to number its bits otherwise.
    """
    if not (available() and jax.default_backend() == "cpu" and jax.config.jax_threefry_partitionable):  # type: ignore[attr-defined]
        return None
    from jax.extend.random import define_prng_impl

    return define_prng_impl(
        key_shape=(2,),
        seed=lambda seed: jax.random.key_data(jax.random.key(seed, impl=_THREEFRY)),
        split=random_split,
        random_bits=random_bits,
        fold_in=random_fold_in,
        name="jedax_threefry",
        tag="jedax",
    )


def drawn_natively(keys: Array) -> Array:
    """Return the same keys such that native code draws their numbers, where it can."""
    impl = key_type()
    return keys if impl is None else jax.random.wrap_key_data(jax.random.key_data(keys), impl=impl)


def drawn_by_jax(keys: Array) -> Array:
    """Return the same keys as the ones that `jax.random.key` makes: for code that is not jedax's own."""
    return jax.random.wrap_key_data(jax.random.key_data(keys), impl=_THREEFRY) if key_type() is not None else keys


def wrap_as(dtype: Any, words: np.ndarray) -> Array:
    """Return keys of these words whose numbers are drawn by whom the dtype of other keys says."""
    keys = jax.random.wrap_key_data(jnp.asarray(words), impl=_THREEFRY)
    return keys if keys.dtype == dtype else drawn_natively(keys)


def random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Return what `jax.random.bits` does; `key` are the two words of a key."""
    if bit_width != 32:
        return jax.random.bits(jax.random.wrap_key_data(key, impl=_THREEFRY), shape, f"uint{bit_width}")
    return _random("jedax_random_bits", shape, key)


def random_split(key: Array, shape: tuple[int, ...]) -> Array:
    """Return the words of what `jax.random.split` does."""
    return _random("jedax_random_split", (*shape, 2), key)


def random_fold_in(key: Array, data: Any) -> Array:
    """Return the words of what `jax.random.fold_in` does."""
    return _random("jedax_random_fold_in", (2,), key, jnp.asarray(data).astype(jnp.uint32))


def _random(name: str, shape: tuple[int, ...], *words: Array) -> Array:
    if math.prod(shape) == 0:
        return jnp.zeros(shape, jnp.uint32)
    call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(shape, jnp.uint32), vmap_method="broadcast_all")
    return call(*words)
