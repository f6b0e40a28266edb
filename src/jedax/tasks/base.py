"""The contract of a task: a genotype in, a fitness and a descriptor out."""

from __future__ import annotations

import abc
import numbers
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import numpy as np

from jedax import settings as base_settings
from jedax.errors import JedaxError, fail
from jedax.imports import load_object
from jedax.space import Space
from jedax.types import Array, Bool, Evaluation, Float, PRNGKeyArray

if TYPE_CHECKING:
    from jedax.tasks.drawing import TaskDrawing

# Errors of JAX about code that needs the values of what it traces.
_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def computed(value: Callable[[Any], Any]) -> Any:
    """Return a property that fits the type of any attribute of a task: `computed(lambda self: self.config.name)`."""
    return property(value)


class Task(abc.ABC):
    """A problem whose solutions have a fitness (maximised) and a behaviour.

    Tasks are immutable and hashable. Equal settings must be equal objects: an equal task is not compiled again. The
    methods are pure and can be jitted. A task of your own needs `init`, `evaluate` and the attributes without a
    default; a method `draw(ax, genotype)` that draws a solution on a matplotlib `Axes` is optional.

    Attributes:
        name: Name of the task in reports.
        num_params: Length of a genotype.
        descriptor_bounds: `(lows, highs)`, each with one number per descriptor dimension. Descriptors outside belong
            to the nearest cell.
        descriptor_names: One axis label per descriptor dimension; default: none.
        qd_offset: A fitness that no solution is expected to fall below; the QD score counts fitness above it, and
            CMA-MAE stores no solution below it.
        goal_fitness: A run has reached its goal once its best fitness is at least this; None: there is no goal.
        default_evaluations: Budget of a run that names none.
        space: The parameters and their bounds. Genotypes are coordinates of this space, each 0 to 1 between two bounds:
            `init` draws them with `space.draw(key)`, and `evaluate` finds the values by `space.values(genotype)`. None:
            genotypes are any numbers.
        observation_size: Length of an observation, for policies whose steps `evaluate_with_transitions` returns;
            None for all other tasks.
        action_size: Length of an action of such a policy.
        observation_statistics: Mean and standard deviation, two arrays `(observation_size,)`, by which such policies
            see observations shifted and scaled; None: as they are.
        is_noisy: Whether two evaluations of one genotype can differ by more than rounding; True if unknown.
        drawing_class: Subclass of `jedax.tasks.drawing.TaskDrawing`, or its name as `module:class`.
    """

    name: str
    num_params: int
    descriptor_bounds: tuple[tuple[float, ...], tuple[float, ...]]
    descriptor_names: tuple[str, ...] = ()
    qd_offset: float = 0.0
    goal_fitness: float | None = None
    default_evaluations: int = 100_000
    space: Space | None = None
    observation_size: int | None = None
    action_size: int | None = None
    is_noisy: bool = True
    drawing_class: ClassVar[type[TaskDrawing] | str] = "jedax.tasks.drawing:TaskDrawing"

    @property
    def observation_statistics(self) -> tuple[np.ndarray, np.ndarray] | None:
        """See the class."""
        return None

    @property
    def drawing(self) -> TaskDrawing:
        """How the behaviour space and the solutions are drawn, replayed and described."""
        kind: Any = self.drawing_class
        return (load_object(kind, "drawing_class") if isinstance(kind, str) else kind)(self)

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype, `(num_params,)`."""

    @abc.abstractmethod
    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype `(num_params,)`: return `fitness ()` and `descriptor (d,)`; `key` is for noise."""

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch, each member with its own key: `key` is one key, or `(batch,)` keys; see `member_keys`.

        The result has `fitness (batch,)` and `descriptor (batch, d)`.
        """
        self._check_batch(genotypes)
        return jax.vmap(self.evaluate)(member_keys(key, genotypes.shape[0]), genotypes)

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch as `evaluate_batch` does, and return `transitions` `(batch, steps, ...)` as well.

        Tasks whose genotypes are not policies raise a `JedaxError` here and in `actions`.
        """
        raise self._no_policy("evaluate_with_transitions")

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return the actions of ONE policy, each number in [-1, 1], for many observations; differentiable."""
        raise self._no_policy("actions")

    def _no_policy(self, method: str) -> JedaxError:
        return fail(
            f"task {self.name}",
            expected="a task whose genotypes are policies and whose evaluations give transitions",
            received=f"one without {method}",
            remedy="take a maze, or a method that learns from fitness alone",
        )

    def _check_batch(self, genotypes: Float[Array, "batch params"]) -> None:
        """Raise a `JedaxError` unless `genotypes` holds one genotype of the task's length per row."""
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


def reaches(fitness: Any, goal: float) -> Bool[np.ndarray, " n"]:
    """Return which fitness values `(n,)` are at least a goal, which is rounded to float32 if they are.

    Searches on tasks in JAX compare so. Their fitness may be the goal up to this rounding.
    """
    values = np.asarray(fitness, np.float64)
    with np.errstate(over="ignore"):
        in_float32 = values.astype(np.float32)
    return np.where(in_float32 == values, in_float32 >= np.float32(goal), values >= goal)


def member_keys(key: PRNGKeyArray, batch: int) -> PRNGKeyArray:
    """Return one key for each member of a batch: `key` split, or `key` itself if it is an array of keys already.

    Several devices that share a batch thus evaluate each member with the key that it has in the whole batch. Raw keys,
    of `jax.random.PRNGKey`, are taken, too. Raises a `JedaxError` if there are more or fewer keys than members.
    """
    if not jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    if key.ndim and key.shape != (batch,):
        raise fail("key", expected=f"one key or {batch}", received=f"shape {key.shape}", remedy="give one key")
    return key if key.ndim else jax.random.split(key, batch)


def check_task(task: Task) -> Task:
    """Return a task of the user's if its attributes, its methods and the shapes of their results fit together."""
    kind = type(task).__name__

    def wrong(part: str, expected: str, received: object, remedy: str) -> JedaxError:
        return fail(kind + part, expected=expected, received=received, remedy=remedy)

    for attribute in ("name", "num_params", "descriptor_bounds"):
        if not hasattr(task, attribute):
            raise wrong(f".{attribute}", "a value", "none", "set it in the class")
    try:
        hash(task)
    except TypeError:
        remedy = "make its dataclass frozen=True"
        raise wrong("", "a hashable object", "one that cannot be hashed", remedy) from None
    bounds: Any = task.descriptor_bounds
    if not isinstance(bounds, tuple | list) or [np.ndim(bound) for bound in bounds] != [1, 1]:
        remedy = "write ((-1.0,), (1.0,)) for one descriptor"
        raise wrong(".descriptor_bounds", "(lows, highs), a tuple each", repr(bounds), remedy)
    kinds = (
        ("name", str, "a text"),
        ("num_params", numbers.Integral, "a whole number"),
        ("qd_offset", numbers.Real, "a number"),
        ("goal_fitness", numbers.Real | None, "a number or None"),
        ("space", Space | None, "a jedax.Space or None"),
    )
    for attribute, kind_of, expected in kinds:
        if not isinstance(value := getattr(task, attribute), kind_of):
            raise wrong(f".{attribute}", expected, repr(value), "change it")
    for attribute, fits in (("qd_offset", np.isfinite), ("goal_fitness", lambda goal: goal is None or goal == goal)):
        if not fits(value := getattr(task, attribute)):
            raise wrong(f".{attribute}", "a number", repr(value), "change it")
    if task.space is not None and task.space.num_params != task.num_params:
        expected = f"{task.space.num_params}, the length of the genotypes of its space"
        raise wrong(".num_params", expected, task.num_params, "write num_params = space.num_params")
    key = jax.eval_shape(lambda: jax.random.key(0))
    genotype = in_words(task, "init", lambda: jax.eval_shape(task.init, key))
    if getattr(genotype, "shape", None) != (task.num_params,):
        received = getattr(genotype, "shape", type(genotype).__name__)
        raise wrong(".init", f"a genotype of shape ({task.num_params},)", received, "see num_params")
    found = in_words(task, "evaluate", lambda: jax.eval_shape(task.evaluate, key, genotype))
    check_evaluation(task, "evaluate", (), found)
    return task


def check_evaluation(task: Any, method: str, batch: tuple[int, ...], found: Any) -> None:
    """Raise a `JedaxError` unless a task's method has returned the evaluation of a batch of this shape."""

    def wrong(expected: str, received: object, remedy: str) -> JedaxError:
        return fail(f"{type(task).__name__}.{method}", expected=expected, received=received, remedy=remedy)

    if not isinstance(found, Evaluation):
        raise wrong("an Evaluation", type(found).__name__, "return jedax.Evaluation(fitness, descriptor)")
    if lists := [part for part in (found.fitness, found.descriptor) if isinstance(part, list | tuple)]:
        raise wrong("arrays", type(lists[0]).__name__, "use jnp.stack([...])")
    shapes = jax.numpy.shape(found.fitness), jax.numpy.shape(found.descriptor)
    wanted = batch, (*batch, task.num_descriptors)
    if shapes != wanted:
        expected = f"fitness of shape {wanted[0]} and a descriptor of {wanted[1]}"
        raise wrong(expected, " and ".join(map(str, shapes)), "see descriptor_bounds")
    if (steps := found.transitions) is not None:
        number = jax.numpy.shape(steps.rewards)[-1:]
        scalars = dict.fromkeys(("rewards", "terminal", "valid"), (*batch, *number))
        seen = dict.fromkeys(("observations", "next_observations"), (*batch, *number, task.observation_size))
        for part, shape in (scalars | seen | {"actions": (*batch, *number, task.action_size)}).items():
            if (received := jax.numpy.shape(getattr(steps, part))) != shape:
                raise wrong(f"transitions.{part} of shape {shape}", received, "see jedax.types.Transitions")
    if any(jax.numpy.iscomplexobj(part) for part in (found.fitness, found.descriptor)):
        raise wrong("real numbers", "complex numbers", "return their real part or their modulus")


def in_words(task: Any, method: str, call: Callable[[], Any]) -> Any:
    """Return what a call of a task's method returns, or raise a `JedaxError` with its error and the line of code."""
    try:
        return call()
    except JedaxError:
        raise
    except Exception as error:
        name = f"{type(task).__name__}.{method}"
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == method]
        line = f" in line {own[-1].lineno}" if own else ""
        if isinstance(error, _NEEDS_VALUES):
            raise fail(
                name,
                expected="code that JAX can trace: it is called once, with tracers, which have no values",
                received=f"{type(error).__name__}{line}, which asks for a value",
                remedy="use jnp.where instead of `if`, jax.numpy instead of numpy, and neither float() nor bool() of "
                "values that depend on the arguments; or let Python evaluate it, as a plain function: "
                "jedax run module:function",
            ) from error
        says = str(error).partition("\n")[0]
        received = f"{type(error).__name__}{line}: {says}"
        raise fail(name, expected="no error", received=received, remedy="correct it") from error


@dataclass(frozen=True, init=False)
class ConfiguredTask(Task):
    """A task that its settings describe completely: tasks of one class with equal settings are equal.

    A subclass names the class of its settings as `Config`, derived from `jedax.tasks.TaskConfig`. The settings, its
    `config`, become options of the command and parameters of the class, and are stored with each run.
    """

    config: Any

    Config: ClassVar[type[base_settings.Config]]
    default_evaluations = computed(lambda self: self.config.evaluations)

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "Config") and "evaluations" not in cls.Config.model_fields:
            raise fail(
                f"{cls.__name__}.Config",
                expected="settings with the field evaluations",
                received=cls.Config.__name__,
                remedy="derive them from jedax.tasks.TaskConfig",
            )

    def __init__(self, config: base_settings.Config | None = None, /, **settings: Any):
        """Take a whole config, single settings by name, or a config with some settings changed."""
        kind = self.Config
        if config is None:
            config = kind.build(settings)
        elif not isinstance(config, kind):
            name = type(self).__name__
            remedy = f"give single settings by name, as in {name}({next(iter(kind.model_fields))}=...)"
            raise fail(f"config of {name}", expected=f"a {kind.__name__}", received=repr(config), remedy=remedy)
        elif settings:
            config = config.replace(**settings)
        object.__setattr__(self, "config", config)

    def settled(self, evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Self:
        """Return the task with all settings that are measured at the start of a run.

        `evaluate` takes genotypes `(n, params)` to fitness `(n,)` and descriptors `(n, d)`.
        """
        return self

    def _check(self, genotype: Float[Array, " params"]) -> None:
        """Raise a `JedaxError` unless `genotype` has the task's length."""
        if genotype.shape != (self.num_params,):
            raise fail(
                "genotype",
                expected=f"shape ({self.num_params},)",
                received=genotype.shape,
                remedy="pass ONE genotype of this length; evaluate_batch takes many",
            )
