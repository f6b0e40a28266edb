"""The policies of `jedax.networks` in NumPy: many networks, each with an observation of its own, at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np


def _gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + np.float32(0.044715) * x**3)))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": _gelu,
    "silu": lambda x: x * _sigmoid(x),
}
"""Those of `jedax.networks.ACTIVATIONS`."""


class Networks:
    """Policies side by side.

    A policy's output has the same bits whatever the others are: every product is one matrix with one vector.

    Args:
        genotypes: `(n, params)`, laid out as `jedax.networks.init` says.
        sizes: Neurons of each layer, input and output included.
        activation: Of the hidden layers; the output is tanh.
    """

    def __init__(self, genotypes: np.ndarray, sizes: Sequence[int], activation: str):
        self._sizes, self._activation = tuple(sizes), activation
        self._genotypes = np.asarray(genotypes, np.float32)
        self._layers = []
        start = 0
        for inputs, outputs in itertools.pairwise(self._sizes):
            bias = start + inputs * outputs
            kernel = np.ascontiguousarray(self._genotypes[:, start:bias]).reshape(-1, inputs, outputs)
            start = bias + outputs
            self._layers.append((kernel, self._genotypes[:, None, bias:start]))

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Return the outputs `(n, actions)`, each in [-1, 1], for observations `(n, inputs)`."""
        values = np.asarray(observations, np.float32)[:, None, :]
        for number, (kernel, bias) in enumerate(self._layers, start=1):
            sums = np.matmul(values, kernel) + bias
            values = np.tanh(sums) if number == len(self._layers) else ACTIVATIONS[self._activation](sums)
        return values[:, 0]

    def keep(self, which: np.ndarray) -> Networks:
        """Return those for which `which (n,)` is true."""
        return Networks(self._genotypes[which], self._sizes, self._activation)
