"""Tasks whose genotypes are policies, and those of them that are environments of other packages."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks
from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.base import ConfiguredTask, computed
from jedax.tasks.measured import MeasuredTask, in_digits
from jedax.tasks.motion import Act, Motion
from jedax.tasks.mujoco import feet_of
from jedax.tasks.settings import WithPolicy
from jedax.types import Array, Float, PRNGKeyArray

_MEASURED_ON = 64  # random policies, whose observations are normalised
_LEAST_STD = 1e-3  # of a number of an observation, in units of its mean or of 1


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
        return _actions(self, genotype, self._observation(observation)[None])[0]

    def _observation(self, observation: Any) -> Float[Array | np.ndarray, " observation"]:
        """Return an observation as a flat array; a `JedaxError` if its length is wrong."""
        given = observation if isinstance(observation, jax.Array) else np.asarray(observation, np.float32)
        values = given.ravel().astype(np.float32)
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


class NormalisingTask(PolicyTask):
    """A task with the settings `WithNormalisation`: with `normalise` the first layer of a policy normalises.

    The statistics are fixed for a run, so that a stored policy stays what it was.
    """

    def layers(self, genotype: Float[Array, " params"]) -> list[tuple[Array, Array]]:
        """Return kernel and bias of each layer of a policy, which takes observations as they are."""
        first, *rest = super().layers(genotype)
        if (statistics := self.observation_statistics) is not None:
            mean, std = statistics
            kernel = first[0] / std[:, None]
            first = kernel, first[1] - jnp.dot(mean, kernel, precision=jax.lax.Precision.HIGHEST)
        return [first, *rest]

    @property
    def observation_statistics(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean and standard deviation `(observation_size,)` of observations; None without the setting `normalise`.

        A `JedaxError` if they were neither given nor measured.
        """
        config, size = self.config, self.layer_sizes[0]
        if not config.normalise:
            return None
        if len(config.observation_mean) != size:
            raise fail(
                "observation_mean",
                expected=f"{size} numbers, which normalise needs",
                received=len(config.observation_mean),
                remedy="take those that jedax.run measures, or the task that settled() returns",
            )
        return np.array(config.observation_mean, np.float32), np.array(config.observation_std, np.float32)

    def with_statistics(self, observed: Callable[[Self, Float[Array, "n params"]], np.ndarray]) -> Self:
        """Return the task with the statistics that it needs, measured on random policies where they are not given.

        `observed` takes the task without `normalise`, and genotypes, to observations `(steps, observation)`.
        """
        if not self.config.normalise or self.config.observation_mean:
            return self
        genotypes = jax.vmap(self.init)(jax.random.split(jax.random.key(0), _MEASURED_ON))
        seen = observed(type(self)(self.config.replace(normalise=False)), genotypes).astype(np.float64)
        mean, std = seen.mean(axis=0), seen.std(axis=0)
        std = np.maximum(std, _LEAST_STD * np.maximum(1, np.abs(mean)))
        places = 3 - np.floor(np.log10(std)).astype(int)
        mean = tuple(round(float(value), int(digits)) for value, digits in zip(mean, places, strict=True))
        found = {"observation_mean": mean, "observation_std": in_digits(std)}
        return type(self)(self.config.replace(**found))


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
