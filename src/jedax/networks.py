"""A multilayer perceptron whose weights are one flat genotype."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jedax.types import Array, Float, PRNGKeyArray

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
}


def num_params(sizes: Sequence[int]) -> int:
    """Return the number of weights and biases of layers of the given sizes, input and output included."""
    return sum(inputs * outputs + outputs for inputs, outputs in itertools.pairwise(sizes))


def init(key: PRNGKeyArray, sizes: Sequence[int]) -> Float[Array, " params"]:
    """Draw a genotype: kernels LeCun-uniform (bound sqrt(3 / inputs)), biases zero.

    The order is layer by layer: the kernel (inputs, outputs) row by row, then the bias.
    """
    parts = []
    layers = list(itertools.pairwise(sizes))
    for layer_key, (inputs, outputs) in zip(jax.random.split(key, len(layers)), layers, strict=True):
        bound = math.sqrt(3 / inputs)
        parts += [jax.random.uniform(layer_key, (inputs * outputs,), minval=-bound, maxval=bound)]
        parts += [jnp.zeros(outputs)]
    return jnp.concatenate(parts)


def layers(
    genotype: Float[Array, "*batch params"], sizes: Sequence[int]
) -> list[tuple[Float[Array, "*batch inputs outputs"], Float[Array, "*batch outputs"]]]:
    """Return the kernel and the bias of each layer of a flat genotype; see `init` for their order."""
    found = []
    start = 0
    for inputs, outputs in itertools.pairwise(sizes):
        bias = start + inputs * outputs
        kernel = genotype[..., start:bias].reshape(*genotype.shape[:-1], inputs, outputs)
        start = bias + outputs
        found.append((kernel, genotype[..., bias:start]))
    return found


def apply_batch(
    genotype: Float[Array, " params"],
    observations: Float[Array, "batch observation"],
    sizes: Sequence[int],
    activation: str,
) -> Float[Array, "batch action"]:
    """Return the outputs, each in [-1, 1], of ONE policy for many observations, as products of matrices.

    Up to rounding the same as `apply`; for networks of any size, and cheap to differentiate.
    """
    return forward(layers(genotype, sizes), observations, activation)


def forward(
    layers: Sequence[tuple[Float[Array, "inputs outputs"], Float[Array, " outputs"]]],
    observations: Float[Array, "batch observation"],
    activation: str,
) -> Float[Array, "batch action"]:
    """Return what `apply_batch` does, for the `layers` of a genotype."""
    values = observations
    for number, (kernel, bias) in enumerate(layers, start=1):
        sums = jnp.dot(values, kernel, precision=jax.lax.Precision.HIGHEST) + bias
        values = jnp.tanh(sums) if number == len(layers) else ACTIVATIONS[activation](sums)
    return values


def apply(
    genotype: Float[Array, " params"],
    observation: Sequence[Float[Array, ""]],
    sizes: Sequence[int],
    activation: str,
) -> list[Float[Array, ""]]:
    """Return the outputs, each in [-1, 1], of ONE policy for ONE observation.

    Inputs and outputs are lists of scalars and every product is written out, so that under `jax.vmap` all is
    elementwise along the batch; made for small networks (tens of neurons).
    """
    values = list(observation)
    start = 0
    layers = list(itertools.pairwise(sizes))
    for number, (inputs, outputs) in enumerate(layers):
        bias = start + inputs * outputs
        sums = [
            sum(
                (values[i] * genotype[start + i * outputs + j] for i in range(inputs)),
                start=genotype[bias + j],
            )
            for j in range(outputs)
        ]
        is_last = number == len(layers) - 1
        values = [jnp.tanh(s) if is_last else ACTIVATIONS[activation](s) for s in sums]
        start = bias + outputs
    return values
