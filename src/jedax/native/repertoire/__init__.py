"""Adding a batch to a repertoire, and the nearest centroid: one native call each, with the bits of JAX.

JAX takes denormal numbers for 0, and native code does not.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jedax.native.core import Kernel
from jedax.types import Array, Bounds, Float, Int

KERNEL = Kernel("repertoire", "add", "nearest")

# The fields of `Repertoire` and `Insertion` in the order of repertoire.cc.
_STORED = (
    "genotypes", "fitness", "thresholds", "descriptors", "counts", "improved_at",
    "best_genotype", "best_fitness", "best_descriptor", "num_failed", "num_outside",
)  # fmt: skip
_INSERTION = {"stored": jnp.bool_, "status": jnp.int32, "improvement": jnp.float32}


def nearest(
    points: Float[Array, "*batch d"],
    centroids: Float[np.ndarray, "cells d"],
    candidates: Int[np.ndarray, "tiles slots"],
    shape: tuple[int, ...],
) -> Int[Array, "*batch"]:
    """Return the index of the nearest centroid of each point, in the unit box, see `jedax.repertoire.Cells.assign`."""
    return KERNEL.call(
        "nearest", jax.ShapeDtypeStruct(points.shape[:-1], jnp.int32),
        points, jnp.asarray(centroids), jnp.asarray(candidates),
        vmap_method="expand_dims", shape=shape,
    )  # fmt: skip


def add(
    cell: Int[Array, " batch"],
    fitness: Float[Array, " batch"],
    descriptor: Float[Array, "batch d"],
    genotypes: Float[Array, "batch params"],
    when: Int[Array, ""],
    stored: dict[str, Array],
    bounds: Bounds,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Add a batch to a hard repertoire, whose fields are `stored`; their memory is reused where possible.

    A failed member may have any cell. Returns the new fields of the repertoire, and those of an `Insertion`.
    """
    inputs = [cell, fitness, descriptor, genotypes, when, *(stored[name] for name in _STORED)]
    outputs = [jax.ShapeDtypeStruct(stored[name].shape, stored[name].dtype) for name in _STORED]
    outputs += [jax.ShapeDtypeStruct(fitness.shape, dtype) for dtype in _INSERTION.values()]
    aliases = {5 + i: i for i in range(len(_STORED))}
    lows, highs = (np.array(bound, np.float32) for bound in bounds)
    found = KERNEL.call("add", outputs, *inputs, aliases=aliases, lows=lows, highs=highs)
    return dict(zip(_STORED, found, strict=False)), dict(zip(_INSERTION, found[len(_STORED) :], strict=True))
