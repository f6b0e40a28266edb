"""What a search method is: pure functions of a state that holds a repertoire."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import jax.numpy as jnp

from jedax.es import Strategy, make_strategy
from jedax.methods.settings import MethodConfig, WithES
from jedax.repertoire import HARD, Acceptance, Cells, Repertoire
from jedax.repertoire.cells import Bounds, make_cells
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray


class Problem(Protocol):
    """What a method may know of a task beside the evaluations it is told; hashable."""

    @property
    def descriptor_bounds(self) -> Bounds:
        """`(lows, highs)` of the descriptors."""
        ...

    @property
    def qd_offset(self) -> float:
        """A fitness that no solution falls below."""
        ...

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype."""
        ...


@dataclass(frozen=True)
class Algorithm(abc.ABC):
    """A search method; equal settings are equal objects, so that a second one does not compile anew.

    All methods are pure and can be jitted, scanned and vmapped. A state is a frozen dataclass of arrays with at
    least `repertoire` and `generation`, the generations done (the initial batch is none).

    Attributes:
        config: Its parameters.
        cells: How the descriptor space is cut.
        needs_transitions: Whether evaluations must bring `Evaluation.transitions`.
    """

    config: Any
    cells: Cells

    needs_transitions: ClassVar[bool] = False

    @classmethod
    def build(cls, config: MethodConfig, problem: Problem) -> Self:
        """Return the method with these parameters for a task.

        Raises:
            JedaxError: Descriptor bounds that are no box, or cells that do not fit it.
        """
        return cls(config, cells_for(config, problem.descriptor_bounds))

    @property
    def num_initial(self) -> int:
        """Random genotypes that are evaluated first; they count towards the budget."""
        return self.config.batch

    @property
    def samples(self) -> int:
        """Evaluations of one solution: see `jedax.sampling`."""
        return self.config.samples_per_evaluation

    @property
    def initial_evaluations(self) -> int:
        """Evaluations of the initial batch: all samples of all its genotypes."""
        return self.samples * self.num_initial

    @property
    def evaluations_per_generation(self) -> int:
        """Evaluations of one generation: all samples of all its solutions."""
        return self.config.evaluations_per_generation

    @property
    def generations_per_loop(self) -> int | None:
        """Generations between two calls of `start_loop`; None: it is never called."""
        return None

    def evaluations(self, state: Any) -> Int[Array, ""]:
        """Return the evaluations done so far, the initial batch included."""
        return self.initial_evaluations + state.generation * self.evaluations_per_generation

    def is_loop_start(self, generation: int) -> bool:
        """Whether `start_loop` is due before generation number `generation`, counted from 0."""
        return self.generations_per_loop is not None and generation % self.generations_per_loop == 0

    def begin_repertoire(
        self, genotypes: Float[Array, "batch params"], evaluation: Evaluation, acceptance: Acceptance = HARD
    ) -> Repertoire:
        """Return a repertoire that holds the evaluated initial batch; `acceptance` says what its cells take."""
        empty = Repertoire.empty(self.cells, genotypes[0], acceptance, dtype=self.config.repertoire_dtype)
        when = jnp.int32(self.initial_evaluations)
        return empty.add(self.cells, genotypes, evaluation, when, acceptance, self.samples)[0]

    def store(
        self,
        state: Any,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
        acceptance: Acceptance = HARD,
    ) -> tuple[Repertoire, Insertion]:
        """Return the repertoire of a state with the generation that follows it, and what became of that."""
        when = self.evaluations(state) + self.evaluations_per_generation
        return state.repertoire.add(self.cells, genotypes, evaluation, when, acceptance, self.samples)

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> Any:
        """Return the state after the evaluated initial batch."""

    def start_loop(self, key: PRNGKeyArray, state: Any, progress: Float[Array, ""]) -> Any:
        """Begin a loop of generations; see `generations_per_loop`.

        Args:
            key: Drawn from for what the loop starts with.
            state: The search so far.
            progress: Evaluations done / budget, 0 to 1.
        """
        return state

    def ends(self, state: Any, last: Evaluation) -> dict[str, Array]:
        """Return where a method with targets got to, for the history: nothing by default.

        Args:
            state: The search after a generation.
            last: What that generation brought.

        Returns:
            "descriptor" `(pool, d)` and "fitness" `(pool,)` of the member of each ES that scored best.
        """
        return {}

    @abc.abstractmethod
    def ask(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Return one generation to evaluate, and the state that `tell` wants back."""

    @abc.abstractmethod
    def tell(
        self, key: PRNGKeyArray, state: Any, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[Any, Insertion]:
        """Return the state after learning what the last `ask` gave, and what the repertoire made of it."""

    def numbers(self, state: Any) -> dict[str, Array]:
        """Return what the metrics record of this method, scalars by the names of their columns."""
        return {}


@dataclass(frozen=True)
class DrawingAlgorithm(Algorithm):
    """A method that draws random genotypes beside those of the initial batch.

    Attributes:
        problem: Where they come from.
    """

    problem: Problem

    @classmethod
    def build(cls, config: MethodConfig, problem: Problem) -> Self:
        """Return the method with these parameters for a task; errors as for every method."""
        return cls(config, cells_for(config, problem.descriptor_bounds), problem)


def cells_for(config: MethodConfig, descriptor_bounds: Bounds) -> Cells:
    """Return the cells that a method's settings ask for.

    Raises:
        JedaxError: Bounds that are no box, or cells that do not fit it.
    """
    return make_cells(descriptor_bounds, config.cells, config.cell_layout, config.cvt_samples, config.cvt_iterations)


def strategy_of(config: WithES, population: int | None = None) -> Strategy:
    """Return the evolution strategy that a method's settings ask for, or one like it of another population."""
    return make_strategy(
        config.es,
        population=config.population if population is None else population,
        step_size=config.step_size,
        elite_ratio=config.elite_ratio,
    )
