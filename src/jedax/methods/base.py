"""The interface of a search method, its settings and its presets."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol

import jax
import jax.numpy as jnp
from pydantic import AfterValidator, Field, model_validator

from jedax.errors import fail
from jedax.es import Strategy, check_strategy, make_strategy
from jedax.es.placed import within
from jedax.es.pool import ESPool
from jedax.repertoire import HARD, Acceptance, Cells, Repertoire
from jedax.repertoire.cells import make_cells
from jedax.settings import MOST, Config, Count, Positive, Reference, resolve
from jedax.space import Space
from jedax.types import Array, Bool, Bounds, Evaluation, Float, Insertion, Int, PRNGKeyArray

GLOBAL_TABLE = "paper, table 'Global hyperparameters for maze and Brax tasks'"
LARGE_ES = {"population": 256, "es": "lm-ma-es"}
"""Evolution strategy of large policies in the paper's table."""
_SPREAD_SAMPLES = 64  # random genotypes from which their spread is estimated


class MethodConfig(Config):
    """Settings that every method has: the cells of its repertoire and the samples per evaluation."""

    cells: int = Field(default=1024, ge=1, le=100_000_000, description="Number of cells of the repertoire.")
    cell_layout: Literal["auto", "cvt", "grid"] = Field(
        default="auto", description="Voronoi cells (cvt) or a grid; auto: a grid above 10000 cells, else cvt."
    )
    dims: tuple[Annotated[int, Field(ge=1, le=100_000_000)], ...] | None = Field(
        default=None,
        description="Cells of a grid along each descriptor, instead of cells and cell_layout.",
    )
    cvt_samples: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        description="Points for the k-means of the CVT; default: max(5000, 10 * cells).",
    )
    cvt_iterations: int = Field(default=20, ge=0, le=1_000, description="Iterations of the k-means of the CVT.")
    repertoire_dtype: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="Type of stored genotypes: float32 (float64 where evaluations are done outside JAX), or bfloat16, "
        "which rounds them.",
    )
    acceptance: Reference = Field(
        default=None, description="Rule by which a cell accepts solutions, as module:object; default: the method's."
    )
    samples_per_evaluation: int = Field(
        default=1, ge=1, le=65_536, description="Evaluations per solution, with new random numbers; all use the budget."
    )
    sample_aggregation: Literal["mean", "median"] = Field(
        default="mean", description="How the samples of a solution are combined, for fitness and each descriptor."
    )

    @model_validator(mode="before")
    @classmethod
    def _count_cells(cls, values: Any) -> Any:
        try:
            sides = tuple(map(int, values.get("dims")))
        except (TypeError, ValueError, OverflowError):
            return values  # None, or refused for its type
        return {**values, "cells": math.prod(sides)} if min(sides, default=0) > 0 else values

    def make_cells(self, bounds: Bounds) -> Cells:
        """Return the cells of a repertoire; an error where the bounds are no box, or the number does not fit a grid."""
        return make_cells(bounds, self.cells, self.cell_layout, self.cvt_samples, self.cvt_iterations, self.dims)


class WithES(MethodConfig):
    """Settings of a method that uses evolution strategies."""

    population: int = Field(default=16, ge=2, le=MOST, description="Solutions per ES and generation (lambda).")
    es: Annotated[Reference, AfterValidator(check_strategy)] = Field(
        default="sep-cma-es",
        description="Strategy: sep-cma-es, cma-es, lm-ma-es, evosax:NAME (e.g. evosax:SNES), module:Class.",
    )
    step_size: Positive = Field(default=0.05, description="Initial step size of an ES (standard deviation).")
    elite_ratio: float = Field(default=0.5, gt=0, le=1, description="Share of the population used in recombination.")

    def make_strategy(self, population: int | None = None, step_size: float | None = None) -> Strategy:
        """Return the evolution strategy, with another population or step size where one is given."""
        population = self.population if population is None else population
        step_size = self.step_size if step_size is None else step_size
        return make_strategy(self.es, population=population, step_size=step_size, elite_ratio=self.elite_ratio)


class WithPool(WithES):
    """Settings of a method with a pool of evolution strategies."""

    pool: Count = Field(default=4, description="Number of ES, run side by side.")

    @property
    def batch(self) -> int:
        """Solutions of one generation of the whole pool."""
        return self.population * self.pool


@dataclass(frozen=True)
class Preset:
    """A named set of changes to the settings of a method.

    Attributes:
        summary: What it is and where its numbers come from, in one line.
        changes: Settings that differ from the method's defaults.
        by_task: Further changes by task; where there are any, the preset is refused for other tasks.
        small_budget: Whether the run gets the task's small budget; the preset is then refused for tasks without one.
    """

    summary: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    small_budget: bool = False


def cpu_preset(**changes: Any) -> Preset:
    """Return the preset `cpu`: large policies in a few minutes on two CPU cores."""
    summary = "control tasks in a few minutes on two CPU cores: small population and budget, not the paper's"
    return Preset(summary, changes, small_budget=True)


@dataclass(frozen=True)
class Variant:
    """A method under another name with other default settings.

    Attributes:
        summary: What it is, in one line.
        changes: Settings that differ from those of the method.
        presets: Its presets by name; the first is the default.
    """

    summary: str
    changes: Mapping[str, Any]
    presets: Mapping[str, Preset] = field(default_factory=dict)


class Problem(Protocol):
    """What a method may know about a task; hashable."""

    @property
    def descriptor_bounds(self) -> Bounds:
        """`(lows, highs)` of the descriptors."""
        ...

    @property
    def qd_offset(self) -> float:
        """A lower bound of the fitness."""
        ...

    @property
    def space(self) -> Space | None:
        """The parameters and their bounds, at which genotypes are reflected; None: genotypes are any numbers."""
        ...

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype."""
        ...


def spread_of(key: PRNGKeyArray, problem: Problem) -> Float[Array, ""]:
    """Return the standard deviation of random genotypes over all parameters, estimated; 1 where they are all equal."""
    genotypes = jax.vmap(problem.init)(jax.random.split(key, _SPREAD_SAMPLES))
    spread = jnp.sqrt(genotypes.var(axis=0).mean())
    return jnp.where(spread > 0, spread, 1.0)


class _Immutable:
    """Refuses new attributes, also of a subclass that is no frozen dataclass itself."""

    def __setattr__(self, name: str, value: Any) -> None:
        expected = "no new attribute, because methods are traced once"
        remedy = "keep what changes in the state that init returns"
        raise fail(f"{type(self).__name__}.{name}", expected=expected, received=repr(value), remedy=remedy)


@dataclass(frozen=True)
class Method(_Immutable, abc.ABC):
    """A search method as pure functions of a state; a subclass is one method.

    `init`, `ask` and `tell` can be jitted, scanned and vmapped. A state is a frozen dataclass of arrays, registered as
    a pytree, with at least the fields `repertoire` and `generation` (generations done; the initial batch is not one).
    Methods with equal settings are equal objects, so that they share compiled programs.

    Attributes:
        config: Settings, an instance of the class attribute `Config`.
        problem: What is known about the task.
        Config: Class of the settings. A setting or property `batch` gives the solutions of one generation.
        name: Name of a method of this package on the command line and in tables; others have that of their entry point
            or `module:Class`.
        summary: What the method is, in one line.
        presets: Named settings; the first is the default.
        variants: The same method under other names with other defaults; for registered methods.
        large_policies: Settings that differ on tasks with large policies (column "Brax" of the paper's tables); they
            are those of the preset `large-policies` on any task.
        by_task: Settings that differ on single tasks; they apply to tasks with large policies only.
        is_reference: Whether comparisons test other methods against this one.
        needs_transitions: Whether evaluations must bring `Evaluation.transitions`.
        has_model: Whether the method has a model of fitness over descriptors, see `fit_model`.
        has_branches: Whether `ask` and `tell` do one of several things (`jax.lax.switch`, `jax.lax.cond`). On a CPU the
            replicas then run one after the other, because side by side they would compute everything each time.
    """

    config: Any
    problem: Problem

    Config: ClassVar[type[MethodConfig]]
    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    presets: ClassVar[Mapping[str, Preset]] = {}
    variants: ClassVar[Mapping[str, Variant]] = {}
    large_policies: ClassVar[Mapping[str, Any]] = {}
    by_task: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    is_reference: ClassVar[bool] = False
    needs_transitions: ClassVar[bool] = False
    has_model: ClassVar[bool] = False
    has_branches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _ = self.cells  # bounds and numbers of cells that do not fit are refused here
        batch = getattr(self, "batch", None)
        if not (isinstance(batch, int) and batch >= 1):
            name, remedy = f"{type(self).__name__}.Config", "give it a field or a property batch"
            raise fail(name, expected="a batch of at least 1", received=batch, remedy=remedy)

    @functools.cached_property
    def cells(self) -> Cells:
        """The cells of the repertoire."""
        return self.config.make_cells(self.problem.descriptor_bounds)

    @functools.cached_property
    def acceptance(self) -> Acceptance:
        """The rule by which a cell accepts solutions."""
        rule = resolve("acceptance", self.config.acceptance)
        if rule is None:
            return self.default_acceptance
        if not isinstance(rule, Acceptance):
            expected = "an object of a class derived from jedax.repertoire.Acceptance"
            raise fail("acceptance", expected=expected, received=repr(rule), remedy="give one, or leave it out")
        return rule

    @property
    def default_acceptance(self) -> Acceptance:
        """The rule where the settings name none: a cell keeps its best solution."""
        return HARD

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        return self.config.batch

    @property
    def num_initial(self) -> int:
        """Random genotypes that are evaluated first; they count towards the budget."""
        return self.batch

    @property
    def samples(self) -> int:
        """Evaluations of each solution, see `jedax.sampling`."""
        return self.config.samples_per_evaluation

    @property
    def initial_evaluations(self) -> int:
        """Evaluations of the initial batch."""
        return self.samples * self.num_initial

    @property
    def evaluations_per_generation(self) -> int:
        """Evaluations of one generation."""
        return self.samples * self.batch

    @property
    def generations_per_loop(self) -> int | None:
        """Generations between two calls of `start_loop`; None: it is never called."""
        return None

    @property
    def follows_budget(self) -> bool:
        """Whether settings change over the budget of a run, so that one must be given."""
        return False

    def climbs(self, state: Any) -> Bool[Array, ""] | bool:
        """Return whether the last generation asked for is one of the ES that maximise fitness.

        Penalties of violated constraints adapt to these generations alone, because others, such as varied elites, lie
        anywhere.
        """
        return True

    @classmethod
    def few_evaluations(
        cls,
        num_params: int,
        batch: int | None,
        *,
        in_box: bool = False,
        has_descriptors: bool = True,
        is_categorical: bool = False,
        gathered: float = 1.0,
    ) -> Mapping[str, Any]:
        """Return the settings that differ where evaluations are done elsewhere, and so are few.

        Args:
            num_params: Length of a genotype.
            batch: Solutions that are evaluated at once; None: any number.
            in_box: Whether the spread of random genotypes follows from bounds.
            has_descriptors: Whether solutions have descriptors; else the repertoire has one cell.
            is_categorical: Whether there are options and no real numbers.
            gathered: Spread of the best solutions that are known before the search, in units of that of random
                genotypes, at most 1; 1: few are known.
        """
        return {}

    @property
    def model_guides(self) -> bool:
        """Whether `fit_model` is called before each `start_loop`."""
        return False

    def evaluations(self, state: Any) -> Int[Array, ""]:
        """Return the evaluations done so far, the initial batch included."""
        return self.initial_evaluations + state.generation * self.evaluations_per_generation

    def is_loop_start(self, generation: int) -> bool:
        """Return whether `start_loop` is due before generation number `generation`, counted from 0."""
        return self.generations_per_loop is not None and generation % self.generations_per_loop == 0

    def begin_repertoire(self, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> Repertoire:
        """Return a repertoire that holds the evaluated initial batch."""
        dtype = "bfloat16" if self.config.repertoire_dtype == "bfloat16" else None
        empty = Repertoire.empty(self.cells, genotypes[0], self.acceptance, dtype)
        when = jnp.int32(self.initial_evaluations)
        return empty.add(self.cells, genotypes, evaluation, when, self.acceptance, self.samples)[0]

    def store(
        self, state: Any, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[Repertoire, Insertion]:
        """Return the repertoire with a generation added, and the outcome for each of its solutions."""
        when = self.evaluations(state) + self.evaluations_per_generation
        return state.repertoire.add(self.cells, genotypes, evaluation, when, self.acceptance, self.samples)

    def insert(self, state: Any, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> Any:
        """Return the state with solutions in its repertoire that no generation asked for."""
        before, when = state.repertoire, self.evaluations(state)
        after = before.add(self.cells, genotypes, evaluation, when, self.acceptance, self.samples)[0]
        return replace(state, repertoire=replace(after, num_failed=before.num_failed))

    def again(self, key: PRNGKeyArray, asked: Any) -> Float[Array, "batch params"]:
        """Return further solutions for the places of the generation that `ask` returned with the state `asked`.

        They stand in for solutions that failed or whose results are late. By default they are those of another `ask`.
        """
        return self.ask(key, asked)[0]

    def could_ask(self, asked: Any, genotypes: Float[Array, "batch params"]) -> Bool[Array, " batch"]:
        """Return which solutions may replace those in the same rows of the generation that `ask` returned with `asked`.

        They are solutions of earlier generations whose results are late. By default none may.
        """
        return jnp.zeros(len(genotypes), bool)

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> Any:
        """Return the state after the evaluated initial batch."""

    @abc.abstractmethod
    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Return one generation to evaluate, and the state that `tell` expects."""

    @abc.abstractmethod
    def tell(
        self, key: PRNGKeyArray, state: Any, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[Any, Insertion]:
        """Return the state after the evaluated generation of the last `ask`, and the outcome of each solution.

        `genotypes` are within the bounds of the parameters; `evaluation.sampled(genotypes)` are as `ask` returned them.
        """

    def fit_model(self, state: Any) -> tuple[Any, Any]:
        """Fit the model of fitness over descriptors, where the method has one (`has_model`).

        Returns:
            The state, and a prediction whose `mean` and `variance` are `(cells,)`, at the centroids.
        """
        raise NotImplementedError

    def start_loop(self, key: PRNGKeyArray, state: Any, progress: Float[Array, ""], prediction: Any = None) -> Any:
        """Begin a loop of generations, see `generations_per_loop`.

        Args:
            key: Random key.
            state: The state so far.
            progress: Evaluations done / budget, 0 to 1.
            prediction: The prediction of `fit_model` where the model guides, else None.
        """
        return state

    def loop_record(self, state: Any) -> dict[str, Array]:
        """Return the targets of a loop that has just begun, for the history; by default the loop is not recorded.

        Returns:
            "targets" `(pool, d)`, the descriptors that the ES are sent to, and scalars by name, such as "alpha". A loop
            without "targets" is not recorded.
        """
        return {}

    def loop_results(self, state: Any, last: Evaluation) -> dict[str, Array]:
        """Return where each ES with a target has arrived, for the history: nothing by default.

        Args:
            state: The state after a generation.
            last: The evaluation of that generation.

        Returns:
            "descriptor" `(pool, d)` and "fitness" `(pool,)` of the member of each ES with the best score.
        """
        return {}

    def metrics(self, state: Any) -> dict[str, Array]:
        """Return the method's own columns of metrics.csv by name, each `(replicas,)` as `state` has all replicas."""
        return {}

    def hints(self, generations: int) -> list[str]:
        """Return advice on settings that do not suit a budget of so many generations, one sentence each."""
        return []

    def lead(self) -> str:
        """Return one sentence on the idea of the search for the top of a run's page; empty by default."""
        return ""

    def describe_search(self, solution: str, place: str) -> str:
        """Return a paragraph on how the method searches, for a run's page.

        Args:
            solution: The task's word for a solution, such as "robot".
            place: The task's words for behaviours, such as "places in the maze".
        """
        return "How the cells filled."

    def glossary(self) -> list[tuple[str, str]]:
        """Return the method's terms and their meaning, for a run's page."""
        return []


class PoolMethod(Method):
    """A method with a pool of evolution strategies, whose states are the field `pool` of its own state."""

    config: WithPool
    large_policies = LARGE_ES

    @functools.cached_property
    def pool(self) -> ESPool:
        """The evolution strategies."""
        return ESPool(within(self.config.make_strategy(), self.problem.space), self.config.pool)

    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Sample one generation of every ES; the batch holds them one after the other."""
        genotypes, pool = self.pool.ask(key, state.pool)
        return genotypes, replace(state, pool=pool)

    def could_ask(self, asked: Any, genotypes: Float[Array, "batch params"]) -> Bool[Array, " batch"]:
        """Return which solutions the ES of their places could have sampled."""
        return self.pool.could_sample(asked.pool, genotypes)
