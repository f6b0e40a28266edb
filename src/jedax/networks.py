"""The multilayer perceptron whose weights are one flat genotype: layout, initialisation and forward pass.

The layout is layer by layer: the kernel `(inputs, outputs)` row by row, then the bias. Importing this module does not
import JAX, because worker processes evaluate policies with NumPy alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jedax.types import Array, Float, PRNGKeyArray


def num_params(sizes: Sequence[int]) -> int:
    """Return the number of weights and biases of layers of these sizes, input and output included."""
    return sum(inputs * outputs + outputs for inputs, outputs in itertools.pairwise(sizes))


def layers(genotype: Any, sizes: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return the kernel `(*batch, inputs, outputs)` and the bias `(*batch, outputs)` of each layer.

    `genotype` is `(*batch, params)`, of JAX or NumPy; `sizes` are the neurons of each layer, input and output included.
    """
    found = []
    start = 0
    for inputs, outputs in itertools.pairwise(sizes):
        bias = start + inputs * outputs
        kernel = genotype[..., start:bias].reshape(*genotype.shape[:-1], inputs, outputs)
        start = bias + outputs
        found.append((kernel, genotype[..., bias:start]))
    return found


def propagate(layers: Sequence[tuple[Any, Any]], values: Any, multiply: Callable, hidden: Callable, last: Callable):
    """Return the outputs of a network for inputs `values`, in any array library.

    `multiply` takes values and a kernel; `hidden` and `last` are the activations of the hidden layers and of the last.
    """
    for number, (kernel, bias) in enumerate(layers, start=1):
        sums = multiply(values, kernel) + bias
        values = last(sums) if number == len(layers) else hidden(sums)
    return values


def init(key: PRNGKeyArray, sizes: Sequence[int]) -> Float[Array, " params"]:
    """Draw a genotype: kernels LeCun-uniform (bound sqrt(3 / inputs)), biases zero."""
    import jax

    parts = []
    shapes = list(itertools.pairwise(sizes))
    for layer_key, (inputs, outputs) in zip(jax.random.split(key, len(shapes)), shapes, strict=True):
        bound = math.sqrt(3 / inputs)
        parts += [jax.random.uniform(layer_key, (inputs * outputs,), minval=-bound, maxval=bound)]
        parts += [jax.numpy.zeros(outputs)]
    return jax.numpy.concatenate(parts)


def forward(
    layers: Sequence[tuple[Float[Array, "inputs outputs"], Float[Array, " outputs"]]],
    observations: Float[Array, "batch observation"],
    activation: str,
) -> Float[Array, "batch action"]:
    """Return the outputs, each in [-1, 1], of ONE policy for many observations, as matrix products.

    `layers` are those of a genotype (`layers`). Equal to `apply` up to rounding; for networks of any size, and cheap to
    differentiate.
    """
    import jax

    multiply = partial(jax.numpy.dot, precision=jax.lax.Precision.HIGHEST)
    return propagate(layers, observations, multiply, getattr(jax.nn, activation), jax.numpy.tanh)


def apply(
    genotype: Float[Array, " params"], observation: Sequence[Float[Array, ""]], sizes: Sequence[int], activation: str
) -> list[Float[Array, ""]]:
    """Return the outputs, each in [-1, 1], of ONE policy for ONE observation.

    Inputs and outputs are lists of scalars and every product is written out, so that `jax.vmap` makes every operation
    elementwise along the batch. For small networks (tens of neurons).
    """
    import jax

    values, hidden = list(observation), getattr(jax.nn, activation)
    places = layers(np.arange(num_params(sizes)), sizes)
    for number, (kernel, bias) in enumerate(places, start=1):
        sums = [
            sum((value * genotype[i] for value, i in zip(values, column, strict=True)), start=genotype[j])
            for column, j in zip(kernel.T.tolist(), bias.tolist(), strict=True)
        ]
        values = [jax.numpy.tanh(s) if number == len(places) else hidden(s) for s in sums]
    return values


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


_IN_NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + np.float32(0.044715) * x**3))),
    "silu": lambda x: x * _sigmoid(x),
}

ACTIVATIONS = tuple(_IN_NUMPY)
"""Names of the activations of hidden layers."""


class Policies:
    """Policies in NumPy, each with an observation of its own, evaluated together.

    The output of a policy has the same bits whatever the other policies are: each product is one matrix with one
    vector.

    Genotypes are `(n, params)`; `activation` is that of the hidden layers, the output is tanh.
    """

    def __init__(self, genotypes: np.ndarray, sizes: Sequence[int], activation: str):
        self._sizes, self._activation = tuple(sizes), activation
        self._genotypes = np.asarray(genotypes, np.float32)
        self._layers = [
            (np.ascontiguousarray(kernel), bias[:, None]) for kernel, bias in layers(self._genotypes, self._sizes)
        ]

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Return the outputs `(n, actions)`, each in [-1, 1], for observations `(n, inputs)`."""
        values = np.asarray(observations, np.float32)[:, None, :]
        return propagate(self._layers, values, np.matmul, _IN_NUMPY[self._activation], np.tanh)[:, 0]

    def keep(self, which: np.ndarray) -> Policies:
        """Return the policies for which `which (n,)` is true."""
        return Policies(self._genotypes[which], self._sizes, self._activation)
