"""The critic: two networks that judge actions apart from each other."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jedax import networks as policy
from jedax.types import Array, Float, PRNGKeyArray


@dataclass(frozen=True)
class TwinCritic:
    """Two multilayer perceptrons from an observation and an action to a value Q; relu, linear output.

    Parameters are one array `(2, params)`, each row laid out like a policy's genotype: so Adam and soft updates
    are single operations on one array, and both networks go through each product of matrices together.

    Attributes:
        observation_size: Numbers in one observation.
        action_size: Numbers in one action.
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
        return jax.vmap(lambda key: policy.init(key, self.sizes))(jax.random.split(key))

    def values(
        self,
        params: Float[Array, "networks params"],
        observations: Float[Array, "batch observation"],
        actions: Float[Array, "batch action"],
    ) -> Float[Array, "networks batch"]:
        """Return Q of a batch, by each of the networks in `params`: both, or a part such as `params[:1]`."""
        inputs = jnp.concatenate([observations, actions], axis=-1)
        (kernel, bias), *rest = policy.layers(params, self.sizes)
        values = jnp.einsum("bi,nij->nbj", inputs, kernel) + bias[:, None]
        for kernel, bias in rest:
            values = jnp.einsum("nbi,nij->nbj", jax.nn.relu(values), kernel) + bias[:, None]
        return values[..., 0]
