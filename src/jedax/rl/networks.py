"""The critic of TD3: two networks that value actions."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jedax import networks
from jedax.types import Array, Float, PRNGKeyArray


@dataclass(frozen=True)
class TwinCritic:
    """Two multilayer perceptrons from an observation and an action to a value Q; relu, linear output.

    The parameters are one array `(2, params)`, each row in the layout of `jedax.networks`: Adam and soft updates are
    single operations on one array, and each matrix product evaluates both networks.

    Attributes:
        observation_size: Length of an observation.
        action_size: Length of an action.
        hidden: Neurons in each hidden layer.
    """

    observation_size: int
    action_size: int
    hidden: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of one network, input and output included."""
        return (self.observation_size + self.action_size, *self.hidden, 1)

    def init(self, key: PRNGKeyArray) -> Float[Array, "2 params"]:
        """Draw both networks: kernels LeCun-uniform, biases zero."""
        return jax.vmap(lambda key: networks.init(key, self.sizes))(jax.random.split(key))

    def values(
        self,
        params: Float[Array, "networks params"],
        observations: Float[Array, "batch observation"],
        actions: Float[Array, "batch action"],
    ) -> Float[Array, "networks batch"]:
        """Return Q of a batch by each network in `params`: both, or a part such as `params[:1]`."""

        def multiply(values: Array, kernel: Array) -> Array:
            return jnp.einsum("bi,nij->nbj" if values.ndim == 2 else "nbi,nij->nbj", values, kernel)

        inputs = jnp.concatenate([observations, actions], axis=-1)
        layers = [(kernel, bias[:, None]) for kernel, bias in networks.layers(params, self.sizes)]
        return networks.propagate(layers, inputs, multiply, jax.nn.relu, lambda q: q)[..., 0]
