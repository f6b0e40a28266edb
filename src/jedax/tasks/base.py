"""What a task is: something that turns a genotype into a fitness and a descriptor."""

from __future__ import annotations

import abc
import traceback
from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from jedax.errors import JedaxError, fail
from jedax.settings import Config
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

# Errors of JAX about code that needs to know the values of what it traces.
_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class Task(abc.ABC):
    """A problem whose solutions have a fitness (maximised) and a behaviour.

    A task is immutable and hashable: equal settings are equal objects, so a second one does not compile anew.
    Its methods are pure and can be jitted. A task of one's own needs `init`, `evaluate` and the attributes; a method
    `draw(ax, genotype)`, which draws what a solution does on a matplotlib `Axes`, is used where there is one.

    Attributes:
        name: What reports call it.
        num_params: Length of a genotype.
        descriptor_bounds: `(lows, highs)`, each with one number per descriptor dimension. Descriptors outside
            go to the nearest cell.
        descriptor_names: One axis label per descriptor dimension; none by default.
        qd_offset: A fitness that no solution falls below, 0 by default; the QD score counts fitness above it.
        goal_fitness: A run has reached its goal once its best fitness is at least this; None: there is none.
        default_evaluations: Budget of a run that names none.
        observation_size: Numbers in one observation, where genotypes are policies whose steps can be told apart
            (see `evaluate_with_transitions`); None: they are not.
        action_size: Numbers in one action of such a policy.
        is_noisy: Whether two evaluations of one genotype can differ by more than rounding; True where nobody knows.
    """

    name: str
    num_params: int
    descriptor_bounds: tuple[tuple[float, ...], tuple[float, ...]]
    descriptor_names: tuple[str, ...] = ()
    qd_offset: float = 0.0
    goal_fitness: float | None = None
    default_evaluations: int = 100_000
    observation_size: int | None = None
    action_size: int | None = None
    is_noisy: bool = True

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype."""

    @abc.abstractmethod
    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype; `key` is for noise."""

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch, each member with a key of its own.

        Args:
            key: One, to be split for the members, or `(batch,)` keys, one for each: see `member_keys`.
            genotypes: The batch.

        Returns:
            An `Evaluation` with `fitness (batch,)` and `descriptor (batch, d)`.
        """
        self._check_batch(genotypes)
        return jax.vmap(self.evaluate)(member_keys(key, genotypes.shape[0]), genotypes)

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch like `evaluate_batch`, and return every step of it as well.

        Args:
            key: One, or one per member.
            genotypes: The batch.

        Returns:
            The same fitness and descriptors, and `transitions` of shape `(batch, steps, ...)`.

        Raises:
            JedaxError: The task gives no transitions.
        """
        raise self._no_policy("evaluate_with_transitions")

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return what ONE policy does, each number in [-1, 1], for many observations; differentiable.

        Raises:
            JedaxError: The task's genotypes are no policies.
        """
        raise self._no_policy("actions")

    def _no_policy(self, method: str) -> JedaxError:
        return fail(
            f"task {self.name}",
            expected="a task whose genotypes are policies and whose evaluations give transitions",
            received=f"one without {method}",
            remedy="take a maze, or a method that learns from fitness alone",
        )

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


def member_keys(key: PRNGKeyArray, batch: int) -> PRNGKeyArray:
    """Return one key for each member of a batch: `key` split, or `key` itself if it is one for each already.

    So a part of a batch can be evaluated apart, on another device, with the random numbers that it has in the whole.
    """
    return key if key.ndim else jax.random.split(key, batch)


def check_task(task: Task) -> Task:
    """Return a task of the user's own if its attributes and methods fit together.

    Raises:
        JedaxError: Something is missing, cannot be hashed, or has another shape than it should.
    """
    kind = type(task).__name__
    for attribute in ("name", "num_params", "descriptor_bounds"):
        if not hasattr(task, attribute):
            raise fail(f"{kind}.{attribute}", expected="a value", received="none", remedy="set it in the class")
    try:
        hash(task)
    except TypeError:
        raise fail(
            kind,
            expected="a hashable object",
            received="one that cannot be hashed",
            remedy="make its dataclass frozen=True",
        ) from None
    key = jax.eval_shape(lambda: jax.random.key(0))
    genotype = _traced(task, "init", key)
    if getattr(genotype, "shape", None) != (task.num_params,):
        raise fail(
            f"{kind}.init",
            expected=f"a genotype of shape ({task.num_params},)",
            received=getattr(genotype, "shape", type(genotype).__name__),
            remedy="see num_params",
        )
    found = _traced(task, "evaluate", key, genotype)
    if not isinstance(found, Evaluation):
        raise fail(
            f"{kind}.evaluate",
            expected="an Evaluation",
            received=type(found).__name__,
            remedy="return jedax.Evaluation(fitness, descriptor)",
        )
    shapes = jax.numpy.shape(found.fitness), jax.numpy.shape(found.descriptor)
    if shapes != ((), (task.num_descriptors,)):
        raise fail(
            f"{kind}.evaluate",
            expected=f"fitness of shape () and a descriptor of ({task.num_descriptors},)",
            received=" and ".join(map(str, shapes)),
            remedy="see descriptor_bounds",
        )
    return task


def _traced(task: Task, method: str, *arguments: Any) -> Any:
    """Return what a method of the user's gives, as shapes.

    Raises:
        JedaxError: It raised an error, which is the cause; the first line of that and where it was raised are named.
    """
    try:
        return jax.eval_shape(getattr(task, method), *arguments)
    except JedaxError:
        raise
    except Exception as error:
        name = f"{type(task).__name__}.{method}"
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == method]
        line = f" in line {own[-1].lineno}" if own else ""
        if isinstance(error, _NEEDS_VALUES):
            raise fail(
                name,
                expected="what JAX can trace: it is called once, with tracers, which have no values",
                received=f"{type(error).__name__}{line}, which asks for a value",
                remedy="take jnp.where for `if`, jax.numpy for numpy, and no float() or bool() of what comes from the "
                "arguments; or let Python evaluate it, as a plain function: jedax run module:function",
            ) from error
        says = str(error).partition("\n")[0]
        received = f"{type(error).__name__}{line}: {says}"
        raise fail(name, expected="no error", received=received, remedy="mend it") from error


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
