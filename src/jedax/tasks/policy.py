"""Tasks whose genotypes are policies, and those of them that are environments of other packages."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks
from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.base import ConfiguredTask, computed
from jedax.tasks.measured import MeasuredTask
from jedax.tasks.motion import Act, Motion
from jedax.tasks.mujoco import feet_of
from jedax.tasks.settings import WithPolicy
from jedax.types import Array, Float, PRNGKeyArray


class PolicyTask(ConfiguredTask):
    """A task whose genotypes are the weights of a multilayer perceptron, in the layout of `jedax.networks`.

    Its settings have `hidden`, the neurons of each hidden layer, and `activation`.
    """

    num_params = computed(lambda self: networks.num_params(self.layer_sizes))

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the policy, observation and action included."""
        return (self.observation_size, *self.config.hidden, self.action_size)  # type: ignore[return-value]

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype: kernels LeCun-uniform, biases zero."""
        return networks.init(key, self.layer_sizes)

    def layers(self, genotype: Float[Array, " params"]) -> list[tuple[Array, Array]]:
        """Return kernel `(inputs, outputs)` and bias `(outputs,)` of each layer of a policy, as it acts."""
        return networks.layers(genotype, self.layer_sizes)

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return the actions of ONE policy, each number in [-1, 1], for many observations."""
        return networks.forward(self.layers(genotype), observations, self.config.activation)

    def act(self, genotype: Float[Array, " params"], observation: Any) -> Any:
        """Return the action of a policy, each number in [-1, 1], for one observation."""
        return _actions(self, jnp.asarray(genotype), self._observation(observation)[None])[0]

    def _observation(self, observation: Any) -> Float[Array, " observation"]:
        """Return an observation as a flat array; a `JedaxError` if its length is wrong."""
        values = jnp.ravel(jnp.asarray(observation, jnp.float32))
        if len(values) != self.layer_sizes[0]:
            raise fail(
                "observation",
                expected=f"{self.layer_sizes[0]} numbers",
                received=len(values),
                remedy=f"give one observation of {self.name}",
            )
        return values


@functools.partial(jax.jit, static_argnums=0)
def _actions(task: PolicyTask, genotype: Any, observations: Any) -> Any:
    return task.actions(genotype, observations)


class EnvironmentTask(PolicyTask, MeasuredTask):
    """An environment of another package: what gymnasium and Playground share."""

    config: WithPolicy
    drawing_class = "jedax.tasks.drawing:EnvironmentDrawing"

    @property
    def natural_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """0 and 1 for shares of steps; None for other descriptors."""
        if self.config.descriptor != "feet-contact":
            return None
        number = len(self.descriptor_names)
        return (0.0,) * number, (1.0,) * number

    @abc.abstractmethod
    def actor(self) -> tuple[int, Act]:
        """Return `batch` and `act` of `jedax.tasks.drawing.Episodes`."""

    @abc.abstractmethod
    def replay(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of ONE genotype, for drawing."""


def axis_names(descriptor: str, feet: Sequence[str], model: Any) -> tuple[str, ...]:
    """Return the axis labels of a descriptor; `model` is MuJoCo's, None where the environment has none."""
    if descriptor == "feet-contact":
        return tuple(f"share of {model.geom(geom).name}" for geom in feet_of(model, feet))
    if descriptor == "final-xy":
        if model is None or int(model.jnt_type[0]) == 0:  # the root moves freely
            return ("x", "y")
        return (model.joint(0).name, model.joint(1).name)
    return tuple(getattr(load_object(descriptor, "descriptor"), "descriptor_names", ()))
