"""`Stepwise`: a search one generation at a time, whose results come from elsewhere in any order."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jedax.gp.threads import one_blas_thread
from jedax.methods.base import Method
from jedax.search.compiled import StepPrograms, checked_genotypes
from jedax.search.constraints import Penalty, stored, total_violation
from jedax.search.generation import Generation
from jedax.search.outside import OutsideTask
from jedax.search.programs import step_programs_for
from jedax.search.told import Result, few_sizes, padded
from jedax.types import Evaluation, Float

_DRAWN = 128  # random genotypes beside which the spread of known solutions is measured


class Stepwise:
    """The state of a method, and the generation whose results are awaited.

    Attributes:
        roots: Roots of the random keys, of one replica.
        given: `(given, genotype)`, the first members of the initial batch.
        method: The method; it may change until the first generation is complete, and so may the task.
        task: What is known about the problem.
        programs: The compiled steps of the method.
        state: The state that the method expects results in while a generation is open; None before the first one is
            complete.
        generation: The open generation; None: there is none.
        number: Number of generations begun.
        known: Results that were told or added before the first generation is complete, and belong to no place in it.
        penalty: Of violated constraints; it has none until the first is told of.
    """

    def __init__(self, roots: Any, method: Method, task: OutsideTask):
        self.use(method, task)
        self.roots, self.given = roots, np.zeros((0, task.num_params))
        self.state: Any = None
        self.generation: Generation | None = None
        self.number = 0
        self.known: list[Result] = []
        self.penalty = Penalty.begin(0)

    def use(self, method: Method, task: OutsideTask) -> None:
        """Go on with another method and task."""
        self.method, self.task = method, task
        self.programs: StepPrograms = step_programs_for(method, task)

    @property
    def has_results(self) -> bool:
        """Whether there are results that are not in the method's state yet."""
        return bool(self.known) or (self.generation is not None and bool(self.generation.usable.any()))

    def begin(self, progress: float) -> Generation:
        """Begin a generation; `progress` is the share of the budget that is spent."""
        if self.state is None:
            genotypes = self.programs.draw(self.roots, self.given)
        else:
            if self.method.generations_per_loop and self.method.is_loop_start(int(self.state.generation[0])):
                with one_blas_thread():
                    self.state, _ = self.programs.begin_loop(self.roots, self.state, progress)
            genotypes, self.state = self.programs.ask(self.roots, self.state)
        samples, num_descriptors = self.method.samples, self.task.num_descriptors
        self.generation = Generation.begin(np.asarray(genotypes)[0], samples, num_descriptors, self.penalty.number)
        self.number += 1
        if self.state is None:
            self._fill_with_known(self.generation)
        return self.generation

    def _fill_with_known(self, generation: Generation) -> None:
        """Fill the last places of the initial batch with the best solutions that are known."""
        self._sort_known()
        for place in range(generation.size - 1, len(self.given) - 1, -1):
            if self.known:
                best = self.known.pop()
                generation.fill(place, best.genotype, best.fitness, best.descriptor, best.constraints)

    def _sort_known(self) -> None:
        """Sort the results that are known, the best last."""
        self.known.sort(key=lambda one: stored(one.fitness, total_violation(one.constraints[None])).mean())

    def gathered(self) -> float:
        """Return the spread of the best tenth of the solutions that are known, in units of that of random genotypes.

        It is the geometric mean over the coordinates in which they differ, and a power of two from 2^-14 to 1, so that
        searches share their programs. At least as many solutions count as the initial batch has. A coordinate counts as
        1 if one of the best is the last that is known in a direction, and random genotypes lie beyond.
        """
        self._sort_known()
        known = self.programs.fold(np.array([one.genotype for one in self.known]))
        best = known[-max(self.method.num_initial, len(known) // 10) :]
        drawn = np.asarray(jax.vmap(self.task.init)(jax.random.split(jax.random.key(0), _DRAWN)))
        is_last = (best.min(axis=0) == known.min(axis=0)) & (drawn.min(axis=0) < known.min(axis=0))
        is_last |= (best.max(axis=0) == known.max(axis=0)) & (drawn.max(axis=0) > known.max(axis=0))
        spread, random = best.std(axis=0), drawn.std(axis=0)
        differs = (spread > 0) & (random > 0)
        if not differs.any():
            return 1.0
        share = np.log2(np.where(is_last, random, spread)[differs] / random[differs]).mean()
        return float(2.0 ** np.clip(np.round(share), -14, 0))

    def draw(self, trial: int) -> np.ndarray:
        """Return further solutions for the places of the generation."""
        if self.state is None:
            return np.asarray(self.programs.draw_again(self.roots, trial)[0])
        return np.asarray(self.programs.again(self.roots, self.state, trial)[0])

    def place_for(self, genotype: np.ndarray) -> int | None:
        """Return an open place that a solution asked for another one, or earlier, may take; None: there is none."""
        generation = self.generation
        if generation is None or self.state is None:
            return None
        same = np.tile(genotype, (1, generation.size, 1))
        fits = np.asarray(self.programs.could_ask(self.state, same))[0] & ~generation.filled
        return int(np.argmax(fits)) if fits.any() else None

    def reopen(self) -> None:
        """Let the places of the open generation, all of which failed, take a result once more."""
        assert self.generation is not None
        self.generation.filled[:] = False

    def descriptors(self) -> Float[np.ndarray, "n samples d"]:
        """Return the descriptors of the open generation and of the other results that are known."""
        assert self.generation is not None
        return np.concatenate([self.generation.descriptors, *(one.descriptor[None] for one in self.known)])

    def close(self) -> None:
        """Give the results of the open generation, which is complete, to the method."""
        generation, penalty = self.generation, self.penalty
        assert generation is not None
        adapts = not self.penalty.number or self.state is None or bool(np.all(self.method.climbs(self.state)))
        try:
            results = self._evaluation(
                generation.fitness, generation.descriptors, generation.constraints, adapts=adapts
            )
            if self.state is None:
                state = self.programs.init(self.roots, generation.genotypes[None], results)
            else:
                state = self.programs.tell(self.roots, self.state, generation.genotypes[None], results)
        except BaseException:  # such as Ctrl-C; the generation can be closed again
            self.penalty = penalty
            raise
        self.state, self.generation = state, None
        self.insert(self.known)
        self.known = []

    def insert(self, results: list[Result]) -> None:
        """Put solutions that no generation waits for into the repertoire."""
        if self.state is None:
            self.known += results
            return
        if not results:
            return
        genotypes, _, fitness, descriptors, constraints, _ = (
            padded(np.array(column, np.float64), few_sizes(len(results))) for column in zip(*results, strict=True)
        )
        self.state = self.programs.insert(
            self.state, genotypes[None], self._evaluation(fitness, descriptors, constraints)
        )

    def _evaluation(
        self, fitness: np.ndarray, descriptors: np.ndarray, constraints: np.ndarray, *, adapts: bool = False
    ) -> Evaluation:
        """Return results `(n, samples)`, `(n, samples, d)`, `(n, constraints)` as an evaluation with a replica axis.

        If `adapts`, the penalty of violated constraints adapts to them.
        """
        found = Evaluation(fitness[:, 0], descriptors[:, 0])  # type: ignore[arg-type]
        if fitness.shape[1] > 1:
            many = few_sizes(len(fitness))
            samples = padded(fitness, many).T, padded(descriptors, many).swapaxes(0, 1)
            found = self.programs.aggregate(Evaluation(*samples))  # type: ignore[arg-type]
            found = jax.tree.map(lambda part: np.asarray(part)[: len(fitness)], found)
        if self.penalty.number:
            own = np.asarray(found.fitness)
            if adapts:
                self.penalty = self.penalty.adapted(own, constraints, self.task.num_params)
            compared, score = stored(own, total_violation(constraints)), self.penalty.scores(own, constraints)
            found = Evaluation(compared, found.descriptor, score=score)  # type: ignore[arg-type]
        return jax.tree.map(lambda part: np.asarray(part)[None], found)

    def best(self) -> tuple[float, np.ndarray, np.ndarray] | None:
        """Return fitness, genotype and descriptor of the best solution, as the repertoire has them; None: no result."""
        found: list[tuple[float, np.ndarray, np.ndarray]] = []
        if self.state is not None:
            kept = self.state.repertoire
            fitness, genotype, descriptor = jax.device_get(
                (kept.best_fitness, kept.best_genotype, kept.best_descriptor)
            )
            if np.isfinite(fitness[0]):
                found.append((float(fitness[0]), genotype[0], descriptor[0]))
        genotypes, evaluation = self._evaluated_apart()
        if len(genotypes):
            place = int(np.argmax(evaluation.fitness[0]))
            descriptor = np.asarray(evaluation.descriptor)[0, place]
            found.append((float(evaluation.fitness[0, place]), genotypes[place], descriptor))
        return max(found, key=lambda one: one[0], default=None)

    def _evaluated_apart(self) -> tuple[np.ndarray, Evaluation]:
        """Return usable solutions whose results are not in the method's state yet, and these results."""
        parts = [
            (one.genotype[None], one.fitness[None], one.descriptor[None], one.constraints[None]) for one in self.known
        ]
        if self.generation is not None:
            g, usable = self.generation, self.generation.usable
            parts.append((g.genotypes[usable], g.fitness[usable], g.descriptors[usable], g.constraints[usable]))
        if not sum(len(part[0]) for part in parts):
            return np.zeros((0, self.task.num_params)), Evaluation(np.zeros((1, 0)), np.zeros((1, 0, 1)))  # type: ignore[arg-type]
        genotypes, *results = (np.concatenate(column) for column in zip(*parts, strict=True))
        return self.programs.fold(genotypes), self._evaluation(*results)

    def arrays(self) -> dict[str, Any]:
        """Return all that it knows, as arrays, for `restore`."""
        return {
            "state": self.state,
            "given": self.given,
            "known": {
                name: np.array([getattr(one, name) for one in self.known], np.float64) for name in Result._fields
            },
            "penalty": vars(self.penalty),
            "generation": None if self.generation is None else vars(self.generation),
        }

    def restore(self, tree: dict[str, Any]) -> None:
        """Restore what `arrays` returned, but for the state; `ValueError`, or what NumPy raises, if damaged."""
        self.given = checked_genotypes("initial", tree["given"], self.method.num_initial, self.task.num_params)
        self.known = [Result(*row) for row in zip(*(tree["known"][key] for key in Result._fields), strict=True)]
        self.generation = Generation(**tree["generation"]) if "generation" in tree else None
        self.penalty = Penalty(**tree["penalty"])
        number = self.penalty.check()
        if self.generation is not None:
            samples, num_descriptors = self.method.samples, self.task.num_descriptors
            self.generation.check(samples, self.task.num_params, num_descriptors, number)

    def shapes(self) -> Any:
        """Return the shapes and types of the state."""
        return self.programs.shapes(self.roots, self.given)

    def note_constraints(self, number: int) -> None:
        """Note how many constraints there are, as the first results with violations tell."""
        if number and not self.penalty.number:
            self.penalty = Penalty.begin(number)
            self.known = [one._replace(constraints=np.zeros(number)) for one in self.known]
            if self.generation is not None:
                self.generation.constraints = np.zeros((self.generation.size, number))

    def widen(self, num_descriptors: int) -> None:
        """Note how many descriptors there are, as the first result tells; the generation has none yet."""
        if self.generation is not None:
            shape = (*self.generation.fitness.shape, num_descriptors)
            self.generation.descriptors = np.full(shape, np.nan)
