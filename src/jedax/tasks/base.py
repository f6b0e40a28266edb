"""What a task is: something that turns a genotype into a fitness and a descriptor."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from jedax._checks import fail
from jedax.config.base import Config
from jedax.types import Array, Evaluation, Float, PRNGKeyArray


class Task(abc.ABC):
    """A problem whose solutions have a fitness (maximised) and a behaviour.

    A task is immutable and hashable: equal settings are equal objects, so a second one does not compile anew.
    Its methods are pure and can be jitted. A task of one's own needs `init`, `evaluate` and the attributes.

    Attributes:
        name: What reports call it.
        num_params: Length of a genotype.
        descriptor_bounds: `(lows, highs)`, each with one number per descriptor dimension. Descriptors outside
            go to the nearest cell.
        descriptor_names: One axis label per descriptor dimension.
        qd_offset: A fitness that no solution falls below; the QD score counts fitness above it.
        goal_fitness: A run has reached its goal once its best fitness is at least this; None: there is none.
        default_evaluations: Budget of a run that names none.
    """

    name: str
    num_params: int
    descriptor_bounds: tuple[tuple[float, ...], tuple[float, ...]]
    descriptor_names: tuple[str, ...]
    qd_offset: float
    goal_fitness: float | None = None
    default_evaluations: int = 100_000

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype."""

    @abc.abstractmethod
    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype; `key` is for noise."""

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch, each member with a key of its own.

        Returns:
            An `Evaluation` with `fitness (batch,)` and `descriptor (batch, d)`.
        """
        self._check_batch(genotypes)
        return jax.vmap(self.evaluate)(jax.random.split(key, genotypes.shape[0]), genotypes)

    def _check_batch(self, genotypes: Float[Array, "batch params"]) -> None:
        """Raise a `JedaxError` unless `genotypes` holds genotypes of the task's length, one per row."""
        if genotypes.ndim != 2 or genotypes.shape[1] != self.num_params:
            raise fail(
                "genotypes",
                expected=f"shape (batch, {self.num_params})",
                received=genotypes.shape,
                remedy="pass one genotype of this length per row",
            )

    @property
    def num_descriptors(self) -> int:
        """Number of descriptor dimensions."""
        return len(self.descriptor_bounds[0])


@dataclass(frozen=True, init=False)
class ConfiguredTask(Task):
    """A task described by its settings alone: tasks of one class with equal settings are equal.

    Attributes:
        config: The settings.
    """

    config: Any

    config_class: ClassVar[type[Config]]

    def __init__(self, config: Config | None = None, /, **settings: Any):
        """Take a whole config, single settings by name, or a config with some settings changed.

        Raises:
            JedaxError: An unknown setting, a value that does not fit, or a config that is another task's.
        """
        kind = self.config_class
        if config is None:
            config = kind.build(settings)
        elif not isinstance(config, kind):
            name = type(self).__name__
            raise fail(
                f"config of {name}",
                expected=f"a {kind.__name__}",
                received=repr(config),
                remedy=f"give single settings by name, as in {name}({next(iter(kind.model_fields))}=...)",
            )
        elif settings:
            config = config.replace(**settings)
        object.__setattr__(self, "config", config)

    @property
    def default_evaluations(self) -> int:
        """The budget in the settings."""
        return self.config.evaluations

    def _check(self, genotype: Float[Array, " params"]) -> None:
        """Raise a `JedaxError` unless `genotype` has the task's length."""
        if genotype.shape != (self.num_params,):
            raise fail(
                "genotype",
                expected=f"shape ({self.num_params},)",
                received=genotype.shape,
                remedy="pass ONE genotype of this length; evaluate_batch takes many",
            )
