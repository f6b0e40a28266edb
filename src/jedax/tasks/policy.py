"""Tasks whose genotypes are policies."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jedax import networks
from jedax.errors import fail
from jedax.tasks.base import ConfiguredTask
from jedax.types import Array, Float, PRNGKeyArray


class PolicyTask(ConfiguredTask):
    """A task whose genotypes are the weights of a multilayer perceptron, in the layout of `jedax.networks`.

    Its settings have `hidden`, the neurons of each hidden layer, and `activation`.
    """

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the policy, observation and action included."""
        return (self.observation_size, *self.config.hidden, self.action_size)  # type: ignore[return-value]

    @property
    def num_params(self) -> int:
        """Weights and biases of the policy."""
        return networks.num_params(self.layer_sizes)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype: kernels LeCun-uniform, biases zero."""
        return networks.init(key, self.layer_sizes)

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return the actions of ONE policy, each number in [-1, 1], for many observations."""
        return networks.apply_batch(genotype, observations, self.layer_sizes, self.config.activation)

    def act(self, genotype: Float[Array, " params"], observation: Any) -> Any:
        """Return the action of a policy, each number in [-1, 1], for one observation.

        Raises:
            JedaxError: An observation of another length.
        """
        return self.actions(jnp.asarray(genotype), self._observation(observation)[None])[0]

    def _observation(self, observation: Any) -> Float[Array, " observation"]:
        """Return an observation as a flat array of the right length."""
        values = jnp.ravel(jnp.asarray(observation, jnp.float32))
        if len(values) != self.layer_sizes[0]:
            raise fail(
                "observation",
                expected=f"{self.layer_sizes[0]} numbers",
                received=len(values),
                remedy=f"give one observation of {self.name}",
            )
        return values
