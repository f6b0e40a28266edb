"""A low-rank process for many data: neighbouring rows are pooled, and the process is constant in each group.

With `P` the `(n, m)` matrix of the group memberships of `n` rows and `X` the centres of `m` groups, the kernel matrix
becomes `P k(X, X) P'`, of rank `m`. Inference with this kernel is exact and costs `n + m^3`: a group enters as one row,
the mean of its rows weighted by their inverse noise variance, and the scatter of the rows around this mean only adds to
the noise term. With as many groups as rows the process is unchanged.

The groups are the leaves of a k-d tree, in which a node is halved across its longest side.

References:
    Friedman, Bentley & Finkel 1977, "An Algorithm for Finding Best Matches in Logarithmic Expected Time" (the tree).
    Wilson & Nickisch 2015, "Kernel Interpolation for Scalable Structured Gaussian Processes" (kernels of this form;
    this is interpolation by the nearest).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jedax.types import Array, Bool, Float, Int


class Pooled(NamedTuple):
    """Groups of rows, one row per group.

    Attributes:
        x: `(groups, d)`, means of the rows' descriptors, weighted like fitness.
        y: `(groups,)`, means of the rows' fitness, weighted by the inverse of their noise variance.
        weights: `(groups,)`, noise variances of the means: the inverse of the sum of the rows' inverse weights.
        mask: `(groups,)`, which groups have rows.
        num_more: Number of real rows minus number of groups with rows.
        scatter: Sum over rows of `(y - mean of the group)^2 / weight`.
        log_weights: Sum of the logs of the groups' weights minus that of the rows'.
    """

    x: Float[Array, "groups d"]
    y: Float[Array, " groups"]
    weights: Float[Array, " groups"]
    mask: Bool[Array, " groups"]
    num_more: Float[Array, ""]
    scatter: Float[Array, ""]
    log_weights: Float[Array, ""]


def pool(
    x: Float[Array, "size d"],
    y: Float[Array, " size"],
    weights: Float[Array, " size"],
    mask: Bool[Array, " size"],
    max_groups: int,
) -> Pooled:
    """Pool neighbouring rows into at most `max_groups` groups; groups with rows come first.

    Args:
        x: Descriptors.
        y: Fitness.
        weights: Noise variances, up to a common factor; above 0 in real rows.
        mask: Which rows are real.
        max_groups: At least 1. If there are more rows, the number of groups is the largest power of two up to it.
    """
    if len(y) <= max_groups:
        nothing = jnp.zeros((), y.dtype)
        return Pooled(x, y, weights, mask, nothing, nothing, nothing)
    num_groups = 2 ** int(math.log2(max_groups))
    group = tree_leaves(x, mask, num_groups)
    # Padding rows go to an additional group, which is dropped.
    group = jnp.where(mask, group, num_groups)

    def sums(rows: Array) -> Array:
        return jax.ops.segment_sum(jnp.where(mask, rows, 0.0), group, num_groups + 1)[:num_groups]

    precision = jnp.where(mask, 1.0 / jnp.where(mask, weights, 1.0), 0.0)
    total = sums(precision)
    found = total > 0
    total = jnp.where(found, total, 1.0)
    mean = sums(precision * y) / total
    centre = jnp.stack([sums(precision * coordinate) / total for coordinate in x.T], axis=1)
    away = y - mean[jnp.minimum(group, num_groups - 1)]
    pooled_weights = jnp.where(found, 1.0 / total, 0.0)
    # With few rows, leaves without rows lie between the others.
    order = jnp.argsort(~found, stable=True)
    return Pooled(
        x=centre[order],
        y=mean[order],
        weights=pooled_weights[order],
        mask=found[order],
        num_more=(jnp.sum(mask) - jnp.sum(found)).astype(y.dtype),
        scatter=jnp.sum(precision * jnp.square(jnp.where(mask, away, 0.0))),
        log_weights=-jnp.sum(jnp.log(total)) - jnp.sum(jnp.log(jnp.where(mask, weights, 1.0))),
    )


def tree_leaves(x: Float[Array, "size d"], mask: Bool[Array, " size"], num_leaves: int) -> Int[Array, " size"]:
    """Return the leaf of each row in a k-d tree over the real rows, 0 to `num_leaves - 1`.

    `num_leaves` is a power of two. The numbers of real rows in two leaves differ by at most one.
    """
    size = len(x)

    def halve(level: Array, leaf: Array) -> Array:
        ends = [jax.ops.segment_max(jnp.where(mask[:, None], side, -jnp.inf), leaf, num_leaves) for side in (x, -x)]
        longest = jnp.argmax(ends[0] + ends[1], axis=1)
        coordinate = jnp.where(mask, jnp.take_along_axis(x, longest[leaf][:, None], axis=1)[:, 0], jnp.inf)
        order = jnp.lexsort((coordinate, leaf))
        rows = jax.ops.segment_sum(jnp.ones(size, jnp.int32), leaf, num_leaves)
        real = jax.ops.segment_sum(mask.astype(jnp.int32), leaf, num_leaves)
        rank = (
            jnp.zeros(size, jnp.int32).at[order].set(jnp.arange(size, dtype=jnp.int32))
            - (jnp.cumsum(rows) - rows)[leaf]
        )
        return 2 * leaf + (2 * rank >= real[leaf])

    return lax.fori_loop(0, int(math.log2(num_leaves)), halve, jnp.zeros(size, jnp.int32))
