"""`Optimizer`: the search with `ask` and `tell`, for evaluations that are done elsewhere.

It runs the programs of the loop (`jedax.search.compiled.StepPrograms`) with one replica: a search that is told what a
task in worker processes gives finds the same solutions, bit for bit, as `jedax.run` with that task, unless evaluations
fail: `Optimizer` then asks for other solutions. Nor does it ask again for solutions of whole numbers and options whose
results it knows.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from jedax.errors import JedaxError, check_whole, fail, memory_in_words
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import (
    DEFAULT_METHOD,
    check_arguments,
    check_settings,
    method_defaults,
    method_named,
)
from jedax.repertoire import Cells, Repertoire
from jedax.search import saved
from jedax.search.compiled import replica_roots
from jedax.search.constraints import violation_of
from jedax.search.generation import Generation
from jedax.search.ledger import Ledger
from jedax.search.outside import OutsideTask, box_of, measured_box, space_of, spread_follows_bounds
from jedax.search.stepwise import Stepwise
from jedax.search.told import Print, Result, checked_results, prints_of
from jedax.search.units import Units
from jedax.space import Space
from jedax.store import files
from jedax.store.run import Solution
from jedax.types import Bounds

_MOST_SPARED = 5_000  # solutions in a row that are not asked for, since their results are known or awaited
_FACTS = {
    "num_params", "descriptor_bounds", "space", "evaluations", "seed", "minimise", "noisy", "initial_std",
}  # fmt: skip


def _one_at_a_time(function: Callable[..., Any]) -> Any:
    """Let a method of `Optimizer` wait for those that other threads have called."""

    @functools.wraps(function)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return function(self, *args, **kwargs)

    return locked


class Optimizer:
    """A search with `ask` and `tell`, which several threads may call.

    Example:
        ```python
        optimizer = jedax.Optimizer(num_params=10, descriptor_bounds=([-1, -1], [1, 1]), evaluations=50_000)
        while not optimizer.done:
            genotypes = optimizer.ask()
            optimizer.tell(genotypes, *simulate(genotypes))
        print(optimizer.best.fitness)
        ```

    Solutions are rows of numbers in your units, or dicts where `space` names the parameters. Evaluations take place in
    any order and number: `ask(1)` for each idle worker, `tell` for each result.

    Where all parameters are whole numbers or options, a solution whose result is known is not asked for again: the
    search goes on with this result. It is asked for again if evaluations are `noisy`, if a solution has several
    samples, or after 5,000 known solutions in a row.

    Args:
        num_params: Number of parameters; None: `space`, `bounds` or `x0` says it.
        descriptor_bounds: `(lows, highs)` of the descriptors, or a list of tuples `(low, high)`; "measure": from the
            first generation; None: there are no descriptors, and the search is an evolution strategy with restarts.
        evaluations: Budget, rounded down to whole generations, for `done` and for settings that change over a run;
            None: it is not known.
        space: The parameters by name, see `jedax.Space`.
        bounds: `(lows, highs)` of the parameters: numbers, or one per parameter; or a list of tuples `(low, high)`. No
            solution leaves them.
        x0: A solution to start from, the first that is evaluated; a dict where `space` names the parameters.
        sigma0: Standard deviation of random solutions around `x0`: one number, or one per parameter; default: 0.3 of
            the distance between the bounds, 1 for a parameter without two bounds.
        method: A name, settings such as a `JediConfig`, or a class derived from `jedax.Method`; default: JEDi-X.
        initial: `(given, parameters)`, the first members of the initial batch; random ones fill it up. Without
            `initial`, `x0` and `start` of a parameter, the first one is the middle of the box, if all have bounds.
        initial_std: Standard deviation of random solutions around zero, where nothing else describes them.
        seed: Random seed, 0 to 2^32 - 1.
        minimise: Whether to minimise: `tell` then expects, and `best` gives, what is minimised.
        noisy: Whether `tell` takes other results for a solution that was told before, as further evaluations.
        out: A file to save the search in after every `tell`; `Optimizer.load` continues it.
        **settings: Changes to the method's settings, such as `population=32`.

    Raises:
        JedaxError: An argument that does not fit.
    """

    @memory_in_words()
    def __init__(
        self,
        num_params: int | None = None,
        descriptor_bounds: tuple[Sequence[float], Sequence[float]] | Literal["measure"] | None = None,
        *,
        evaluations: int | None = None,
        space: Space | Mapping[str, Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
        x0: Any = None,
        sigma0: Any = None,
        method: str | MethodConfig | type[Method] = DEFAULT_METHOD,
        initial: Any = None,
        initial_std: float = 1.0,
        seed: int = 0,
        minimise: bool = False,
        noisy: bool = False,
        out: str | Path | None = None,
        **settings: Any,
    ):
        for name, number in (("num_params", num_params), ("evaluations", evaluations)):
            if number is not None:
                check_whole(name, number, 1, 2**31 - 1)
        for name, flag in (("minimise", minimise), ("noisy", noisy)):
            if not isinstance(flag, bool | np.bool_):
                raise fail(name, expected="True or False", received=repr(flag), remedy="change it")
        if not (isinstance(initial_std, int | float | np.number) and 0 <= initial_std < float("inf")):
            raise fail(
                "initial_std", expected="a finite number of at least 0", received=repr(initial_std), remedy="change it"
            )
        entry = method_named(method)
        if not isinstance(method, MethodConfig):
            check_settings(entry, settings)
        check_arguments(settings, method, Optimizer)
        self._lock = threading.RLock()
        self._name, self._entry, self._settings = entry.name, entry, settings
        self._is_configured = isinstance(method, MethodConfig)  # then no settings are chosen by the problem's size
        self._defaults = method if isinstance(method, MethodConfig) else method_defaults(method)
        self._seed, self._budget = (
            check_whole("seed", seed, 0, 2**32 - 1),
            None if evaluations is None else int(evaluations),
        )
        self.minimise, self.noisy = bool(minimise), bool(noisy)
        found = space_of(num_params, space, bounds, x0, sigma0)
        self._units = Units(found, int(num_params) if found is None else found.num_params)  # type: ignore[arg-type]
        self._in_box = found is not None and spread_follows_bounds(found, space, sigma0)
        self._initial_std = float(initial_std)
        self.has_descriptors = descriptor_bounds is not None
        self._measures = isinstance(descriptor_bounds, str)
        if self._measures and descriptor_bounds != "measure":
            expected = "(lows, highs), 'measure' or None"
            raise fail("descriptor_bounds", expected=expected, received=repr(descriptor_bounds), remedy="change it")
        self._batch: int | None = None  # solutions that the user evaluates at once
        self._gathered = 1.0  # spread of the best solutions that were added before the first `ask`
        made, task = self._made(None if self._measures else box_of(descriptor_bounds), None)
        if self._budget is not None and self._budget < made.evaluations_per_generation:
            expected = f"at least {made.evaluations_per_generation} (one generation)"
            raise fail("evaluations", expected=expected, received=evaluations, remedy="raise it")
        self._steps = Stepwise(replica_roots(self._seed, 1), made, task)
        is_discrete = found is not None and found.is_discrete
        keeps_results = is_discrete and not self.noisy and made.samples == 1
        self._ledger = Ledger(self._units, is_noisy=self.noisy, keeps_results=keeps_results)
        self._evaluations = self.num_failed = self._spared = 0
        first = [
            self._units.starts(name, rows, made.num_initial)
            for name, rows in (("x0", x0), ("initial", initial))
            if rows is not None
        ]
        if found is not None and x0 is None and (initial is None or found.has_start):
            start = found.start_genotype
            first = first if start is None else [start[None], *first]
        if first:
            self._steps.given = np.concatenate(first)
        if len(self._steps.given) > made.num_initial:
            expected = f"at most {made.num_initial - 1} rows beside the solution to start from"
            raise fail("initial", expected=expected, received=made.num_initial, remedy="leave some out")
        self._out = None if out is None else Path(out).absolute()
        if self._out is not None and self._out.exists():
            remedy = "continue it with jedax.Optimizer.load, or choose another"
            raise fail("out", expected="a path that does not exist", received=str(out), remedy=remedy)

    def _made(self, box: Bounds | None, batch: int | None) -> tuple[Method, OutsideTask]:
        """Return the method and its task, for descriptors in a box, and for a batch of solutions evaluated at once."""
        config, units = self._defaults, self._units
        if not self._is_configured:
            fitting = self._entry.method.few_evaluations(
                units.num_params,
                batch,
                in_box=self._in_box,
                has_descriptors=self.has_descriptors,
                is_categorical=units.space is not None and units.space.is_categorical,
                gathered=self._gathered,
            )
            config = config.replace(**{name: value for name, value in fitting.items() if name not in self._settings})
        config = config.replace(**self._settings)
        config = config if self.has_descriptors else config.replace(cells=1, dims=None)
        if box is None:
            size = len(config.dims or [1])
            box = (0.0,) * size, (1.0,) * size
        coordinates, limits = (None, None) if units.space is None else (units.space.coordinates, units.space.limits)
        task = OutsideTask(units.num_params, box, coordinates, self._initial_std, limits=limits)
        method = self._entry.method(config, task)
        if self._budget is None and method.follows_budget:
            expected, remedy = f"a budget, which {self._name} with these settings follows", "give one"
            raise fail("evaluations", expected=expected, received="None", remedy=remedy)
        _ = method.acceptance  # a threshold that is not known is refused here, before anything is evaluated
        return method, task

    def _build(self, box: Bounds | None, batch: int | None) -> None:
        """Go on with a method made anew, for descriptors in a box and for a batch of solutions evaluated at once."""
        self._steps.use(*self._made(box, batch))

    def __repr__(self) -> str:
        """Return the problem, the method and the progress."""
        of = "" if self._budget is None else f" of {self._budget:,}"
        best = ""
        known = self._steps.best()
        if known is not None:
            found = self._solution(*known)
            best = f", best {found.fitness:.6g}" if found.violation == 0 else f", violation {found.violation:.3g}"
        problem = f"{self._units.num_values} parameters, {self._name}"
        return f"<Optimizer: {problem}, {self.evaluations:,}{of} evaluations{best}>"

    def __reduce__(self) -> Any:
        """Refuse to be pickled or copied."""
        remedy = "call save(path), and jedax.Optimizer.load(path) for each copy"
        raise fail("Optimizer", expected="save and load", received="pickle or copy", remedy=remedy)

    @property
    def config(self) -> Any:
        """The settings of the method."""
        return self._steps.method.config

    @property
    def task(self) -> OutsideTask:
        """What is known about the problem."""
        return replace(self._steps.task, space=self._units.space, limits=None)

    @property
    def evaluations(self) -> int:
        """Evaluations told so far, without added solutions and failed ones; a third failure in one place counts."""
        return self._evaluations

    @property
    def generations(self) -> int:
        """Generations all of whose results were told."""
        return self._steps.number - (self._steps.generation is not None)

    @property
    def done(self) -> bool:
        """Whether the search is over: the budget has no room for a generation, or all solutions are known."""
        return self.stop_reason != ""

    @property
    def stop_reason(self) -> str:
        """Why the search is done, in one sentence; empty while it is not."""
        if self._ledger.knows_all:
            return f"All {len(self._ledger.known):,} solutions of the space are evaluated."
        if self._budget is None:
            return ""
        if self.evaluations >= self._budget:
            return f"The budget of {self._budget:,} evaluations is spent."
        next_one = self._steps.method.evaluations_per_generation
        if self._steps.generation is not None or self.evaluations + next_one <= self._budget:
            return ""
        return f"The budget of {self._budget:,} evaluations has no room for another generation of {next_one}."

    @property
    def cells(self) -> Cells:
        """The cells of the repertoire."""
        return self._steps.method.cells

    @property
    @_one_at_a_time
    def repertoire(self) -> Repertoire:
        """The solutions of complete generations, as NumPy arrays; an error before the first one. `best` may be newer.

        Fitness is maximised here, also with `minimise`. Genotypes are those of the method: `values` gives them in your
        units, and `elites` whole solutions. Infeasible solutions have a fitness of at most -1e30, see `feasible`.
        """
        steps = self._steps
        if steps.state is None:
            received = "none" if steps.generation is None else f"{steps.generation.filled.sum()} of its results"
            remedy = "call ask(), then tell()"
            raise fail(
                "repertoire", expected="at least one tell() of a whole generation", received=received, remedy=remedy
            )
        return jax.tree.map(lambda leaf: leaf[0], jax.device_get(steps.state.repertoire))

    @property
    def feasible(self) -> np.ndarray:
        """`(cells,)`, whether each cell has a solution that violates no constraint; errors as for `repertoire`."""
        kept: Any = self.repertoire
        return kept.feasible if self._steps.penalty.number else kept.filled

    @property
    def has_best(self) -> bool:
        """Whether any solution told or added has not failed."""
        return self._steps.best() is not None

    @property
    @_one_at_a_time
    def best(self) -> Solution:
        """The best solution that was told, in your units; an error before the first one.

        Where no solution is feasible, that with the least violation; its fitness is NaN.
        """
        best = self._steps.best()
        if best is None:
            remedy = "call ask(), then tell()"
            raise fail("best", expected="a solution that was told and has not failed", received="none", remedy=remedy)
        return self._solution(*best)

    @_one_at_a_time
    def elites(self) -> list[Solution]:
        """Return the solutions of all filled cells in your units, the best first; errors as for `repertoire`.

        Infeasible ones come last; their fitness is NaN.
        """
        kept = self.repertoire
        places = sorted(np.flatnonzero(kept.filled), key=lambda place: -kept.fitness[place])
        return [self._solution(float(kept.fitness[i]), kept.genotypes[i], kept.descriptors[i]) for i in places]

    def _solution(self, fitness: float, genotype: Any, descriptor: Any) -> Solution:
        """Return a solution of the repertoire in the user's units."""
        violation = violation_of(fitness) if self._steps.penalty.number else 0.0
        fitness = np.nan if violation else -fitness if self.minimise else fitness
        descriptor = descriptor if self.has_descriptors else None
        return Solution(self.values(genotype), fitness, descriptor, violation, self._units.named(genotype))

    def values(self, genotypes: Any) -> np.ndarray:
        """Return genotypes of the repertoire, `(..., genotype)`, in your units, `(..., parameters)`."""
        return self._units.values(genotypes)

    @_one_at_a_time
    def ask(self, n: int | None = None) -> Any:
        """Return solutions to evaluate: `(n, parameters)`, or a list of dicts where `space` names the parameters.

        Args:
            n: Number of solutions, none of which was returned before. None: one for each missing result of the
                current generation, the same ones until they are told.

        Raises:
            JedaxError: `n` is not None and no whole number of at least 1.
        """
        numbers = self.ask_ids(n)
        return self._ledger.shown(self._ledger.opened.rows(numbers))

    @_one_at_a_time
    def ask_ids(self, n: int | None = None) -> list[int]:
        """Return the numbers of the solutions that `ask` would return; `asked` has the solutions.

        Solutions that are not told stay open. The last 10,000 of past generations do: a result of an older one is
        taken as that of a solution of your own, and is refused with its number. Arguments and errors as for `ask`.
        """
        n = None if n is None else check_whole("n", n, 1, 2**31 - 1)
        steps, ledger = self._steps, self._ledger
        if self._may_fit and n is not None and n > steps.method.num_initial:
            self._build(self._steps.task.descriptor_bounds, n)
            if self._budget is None or steps.method.evaluations_per_generation <= self._budget:
                self._batch = n
            else:  # such a generation would be larger than the budget
                self._build(self._steps.task.descriptor_bounds, self._batch)
        self._spared = 0
        if n is not None:
            numbers: list[int] = []
            while len(numbers) < n:
                places, genotypes = self._candidates(n - len(numbers))
                numbers += ledger.give(steps.number, places, genotypes)
            return numbers
        generation = self._open_generation()
        latest = ledger.latest(steps.number, generation.size)
        new = np.array([place for place in generation.open_places if latest[place] < 0], int)
        if self._may_spare and new.size:
            new = new[~ledger.repeats(steps.number, generation.upcoming(new.tolist(), steps.draw))]
        latest[new] = ledger.give(steps.number, new.tolist(), generation.give(new.tolist(), steps.draw))
        return [number for number in latest[generation.open_places].tolist() if number >= 0]

    @property
    @_one_at_a_time
    def asked(self) -> dict[int, Any]:
        """The solutions that were asked for and not told yet, by number."""
        return dict(zip(self._ledger.opened.numbers.tolist(), self._ledger.shown(slice(None)), strict=True))

    @_one_at_a_time
    def tell(
        self,
        genotypes: Any,
        fitness: Any,
        descriptors: Any = None,
        *,
        violations: Any = None,
        failed: Any = None,
        ids: Sequence[int | None] | None = None,
    ) -> None:
        """Take results, in any order and number, of solutions from `ask` or of others.

        An evaluation has failed if its fitness or descriptor is not finite, or if it is marked as failed. It does not
        count towards the budget, and another solution takes its place. After three failures the place itself counts as
        failed and as evaluated.

        Args:
            genotypes: `(n, parameters)`, a list of dicts or a table of pandas with their names as columns: solutions
                as `ask` returned them; None beside `ids`.
            fitness: `(n,)`; with several samples per evaluation (`samples_per_evaluation`), `(n, samples)`.
            descriptors: `(n, d)` or `(n, samples, d)`; None where there are none, or where all evaluations failed.
            violations: `(n, constraints)` or `(n,)`, the constraints' values: above 0 where violated, by how much, and
                below 0 where satisfied, if you know by how much, which helps. Give values of similar size: the sum of
                those above 0 is compared. Once given, they are needed each time.
            failed: `(n,)`, whether each evaluation failed, whatever its numbers are.
            ids: `(n,)`, the numbers from `ask_ids`, whose genotypes are not read; None for solutions of your own.
                Without them a solution is found by its values, which must have at least seven digits.

        Raises:
            JedaxError: A shape does not fit, a solution is out of its bounds, or was told before with other results; or
                a number is not that of a solution which was asked for and not told yet. Nothing is changed then. Or
                the file of `out` cannot be written: the results were taken then.
        """
        if ids is not None and not isinstance(ids, Iterable):
            raise fail("ids", expected="a list of numbers", received=repr(ids), remedy="write ids=[...]")
        ids = None if ids is None else list(ids)
        if genotypes is None:
            genotypes = [None] * (0 if ids is None else len(ids))
        genotypes = self._units.dicts(genotypes)
        if _are_none(genotypes, fitness):
            return
        steps, ledger = self._steps, self._ledger
        if ids is not None:
            ids = ledger.checked(ids, len(genotypes))
            genotypes = ledger.with_ids(genotypes, ids)
        results = self._results(genotypes, fitness, descriptors, violations, failed)
        prints, open_one = prints_of(results), steps.generation
        if (
            open_one is not None
            and not open_one.filled.any()
            and ledger.answers(steps.number, open_one.size, results, ids)
        ):
            self._note_constraints(results)
            self._take_generation(open_one, results, prints)
        else:
            rows = results.each()
            numbers = ledger.match(rows, prints, ids or [None] * len(rows))
            if open_one is not None:
                ledger.warn_of_changed(numbers, prints, open_one.size)
            self._note_constraints(results)
            extra = [self._take(*one) for one in zip(rows, numbers, prints, strict=True)]
            ledger.opened.remove([number for number in numbers if number not in (None, -1)])
            steps.insert([result for result in extra if result is not None])
        self._recall()
        if steps.generation is not None and steps.generation.is_complete:
            self._close_generation()
        if self._out is not None:
            self._write(self._out, "out")

    @_one_at_a_time
    def add(self, genotypes: Any, fitness: Any, descriptors: Any = None, *, violations: Any = None) -> None:
        """Add solutions whose results were known before; they do not count towards the budget.

        Those added before the first `ask` become members of the initial batch. If they are at least twice as many as it
        has members, JEDi-X begins with steps as long as the best of them are spread. Arguments and errors: see `tell`.
        """
        if _are_none(genotypes, fitness):
            return
        results = self._results(genotypes, fitness, descriptors, violations, None)
        self._note_constraints(results)
        known = [self._with_genotype(result) for result in results.each() if not result.failed]
        if self._ledger.keeps_results:
            self._ledger.keep(np.array(prints_of(results))[~results.failed].tolist(), known)
        self._steps.insert(known)
        if self._out is not None:
            self._write(self._out, "out")

    @_one_at_a_time
    def save(self, path: str | Path) -> None:
        """Write everything to one file, atomically, including solutions that were asked for; `load` reads it.

        Raises:
            JedaxError: The file cannot be written; an earlier one of that name is unchanged.
        """
        self._write(path, "path")

    def _write(self, path: str | Path, argument: str) -> None:
        """Write the file of `save`, whose path is that of an argument: "path", or "out" when results were taken."""
        arrays = files.flatten(self._steps.arrays() | self._ledger.arrays())
        space, box = self._units.space, "measure" if self._measures else self._steps.task.descriptor_bounds
        facts = {
            "num_params": self._units.num_params if space is None else None,
            "descriptor_bounds": box if self.has_descriptors else None,
            "space": None if space is None else space.spec(),
            "evaluations": self._budget,
            "seed": self._seed,
            "minimise": self.minimise,
            "noisy": self.noisy,
            "initial_std": self._initial_std,
            "in_box": self._in_box,
            "method": self._name,
            "config": self.config.model_dump(mode="json"),
            "chosen": sorted(self._settings) if self._may_fit else None,
            "counts": [self._steps.number, self._evaluations, self._ledger.next_number, self.num_failed],
            "saves_itself": Path(path).absolute() == self._out,
        }
        saved.write(Path(path), facts, arrays, argument)

    @classmethod
    @memory_in_words()
    def load(cls, path: str | Path, method: type[Method] | None = None, *, trust: bool = False) -> Optimizer:
        """Return the optimizer that `save` wrote; the search continues with the same bits.

        Args:
            path: The file. A search goes on saving itself there if it is the file of `out`.
            method: The class of the method, where it was defined in a script and cannot be imported.
            trust: Import all code that the file names. Without it, code outside jedax must be installed, be given as
                `method`, or be that of a file that you saved on this machine.

        Raises:
            JedaxError: The file is missing, damaged, not a saved optimizer, or its method cannot be imported.
        """
        facts, arrays = saved.read(Path(path))
        try:
            name, kind, config = saved.method_of(Path(path), facts, method, trust=trust)
            counts, space, chosen = facts.pop("counts"), facts.pop("space"), facts.pop("chosen", None)
            out = Path(path).absolute() if facts.pop("saves_itself") else None
            in_box = facts.pop("in_box", None)  # files of earlier versions have none
            if strange := sorted(set(facts) - _FACTS):
                raise KeyError(strange[0])
            facts["space"] = None if space is None else Space.from_spec(space)
            if isinstance(facts.get("descriptor_bounds"), list):
                facts["descriptor_bounds"] = tuple(facts["descriptor_bounds"])
            optimizer = cls(method=config, **facts)
            optimizer._name, optimizer._out = name, out
            optimizer._in_box = optimizer._in_box if in_box is None else bool(in_box)
            if optimizer._entry.method is not kind:  # classes may share the class of their settings
                optimizer._entry = replace(optimizer._entry, method=kind)
                optimizer._build(None if optimizer._measures else optimizer.task.descriptor_bounds, None)
            if chosen is not None:
                optimizer._is_configured = False
                optimizer._settings = {name: getattr(config, name) for name in chosen}
            optimizer._steps.number, optimizer._evaluations, optimizer._ledger.next_number, optimizer.num_failed = map(
                int, counts
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(f"{path}: expected the settings of a search, got {error!r}; restore it.") from None
        optimizer._restore(arrays, path)
        return optimizer

    def _restore(self, arrays: dict[str, np.ndarray], path: str | Path) -> None:
        """Restore what `save` wrote."""
        tree = saved.tree_of(arrays)
        try:
            rows = tree["generation"]["descriptors"] if "generation" in tree else tree["known"]["descriptor"]
            if self._measures and rows.ndim == 3:
                self._widen(rows.shape[-1])
            self._steps.restore(tree)
            samples, width = self._steps.method.samples, self._steps.task.num_descriptors
            self._ledger.restore(tree, samples, width, self._steps.penalty.number)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(
                f"{path}: expected solutions that fit the settings, got others; restore it."
            ) from None
        if any(name.startswith("['state']") for name in arrays):
            self._steps.state = files.unflatten(arrays, self._steps.shapes(), path, prefix="['state']")

    @property
    def _may_fit(self) -> bool:
        """Whether settings may still follow the number of solutions that are evaluated at once."""
        return not self._is_configured and self._steps.state is None and self._steps.generation is None

    @property
    def _progress(self) -> float:
        """Share of the budget that is spent; without a budget, of a thousand evaluations per parameter."""
        return min(1.0, self.evaluations / (self._budget or 1_000 * self._units.num_params))

    def _open_generation(self) -> Generation:
        """Return the open generation; begin one if there is none."""
        while True:
            if self._steps.generation is None:
                self._fit_to_known()
                self._steps.begin(self._progress)
            if self._may_spare:
                self._recall()
            generation = self._steps.generation
            assert generation is not None
            if not generation.is_complete:
                return generation
            self._close_generation()  # with known results, or where `tell` was interrupted

    def _candidates(self, n: int) -> tuple[list[int], np.ndarray]:
        """Return up to n places of the open generation with a solution for each, fewer where results are known."""
        generation, places, genotypes = self._open_generation(), [], []
        while len(places) < n and not generation.is_complete:
            place = generation.next_place()
            genotype = generation.give(place, self._steps.draw)
            if self._may_spare:
                self._recall([place])
                asked = np.array([*genotypes, genotype])
                if generation.filled[place] or self._ledger.repeats(self._steps.number, asked)[-1]:
                    self._spared += 1
                    continue
            places.append(place)
            genotypes.append(genotype)
        return places, np.array(genotypes)

    @property
    def _may_spare(self) -> bool:
        """Whether solutions are not asked for whose results are known or awaited: unless too many were, in a row."""
        return self._ledger.keeps_results and not self._ledger.knows_all and self._spared < _MOST_SPARED

    def _recall(self, places: list[int] | None = None) -> None:
        """Fill open places of the open generation, by default all, whose solutions have known results."""
        generation = self._steps.generation
        if generation is None or generation.is_complete or not self._ledger.known:
            return
        places = generation.open_places if places is None else places
        given = np.maximum(1, generation.given[places])
        candidates = generation.candidates[: given.max(), places]
        known = self._ledger.known_results(candidates.reshape(-1, candidates.shape[-1]))
        for number, place in enumerate(places):
            result = next(filter(None, known[number : given[number] * len(places) : len(places)]), None)
            if result is not None:
                generation.fill(place, result.genotype, result.fitness, result.descriptor, result.constraints)
                self._spared += 1

    def _fit_to_known(self) -> None:
        """Choose settings by the spread of the best solutions that were added before the first `ask`."""
        if self._may_fit and len(self._steps.known) >= 2 * self._steps.method.num_initial:
            self._gathered = self._steps.gathered()
            self._build(self._steps.task.descriptor_bounds, self._batch)

    def _close_generation(self) -> None:
        """Give the results of the open generation to the method; one that measures and has no result stays open."""
        if self._measures:
            if not self._steps.has_results:
                self._steps.reopen()
                return
            self._build(measured_box(self._steps.descriptors()), self._batch)
        self._steps.close()
        self._measures = False

    def _results(self, genotypes: Any, fitness: Any, descriptors: Any, violations: Any, failed: Any) -> Result:
        """Return the results of solutions, checked."""
        known = self._steps.task.num_descriptors
        results = checked_results(
            self._units.rows("genotypes", genotypes), (fitness, descriptors, violations, failed),
            samples=self._steps.method.samples,
            num_descriptors=known,
            num_constraints=self._steps.penalty.number,
            has_descriptors=self.has_descriptors,
            may_widen=self._measures and not self._steps.has_results,
        )  # fmt: skip
        if results.descriptor.shape[-1] != known:
            self._widen(results.descriptor.shape[-1])
        return results._replace(fitness=-results.fitness) if self.minimise else results

    def _widen(self, num_descriptors: int) -> None:
        """Note how many descriptors there are, as the first result tells."""
        self._build(((0.0,) * num_descriptors, (1.0,) * num_descriptors), self._batch)
        self._steps.widen(num_descriptors)

    def _note_constraints(self, results: Result) -> None:
        """Note how many constraints there are, as the first results with violations tell."""
        self._steps.note_constraints(results.constraints.shape[1])
        self._ledger.note_constraints(self._steps.penalty.number)

    def _with_genotype(self, result: Result) -> Result:
        return result._replace(genotype=self._units.genotypes(result.values))

    def _take_generation(self, generation: Generation, results: Result, prints: list[Print]) -> None:
        """Take the results of all solutions of the open generation."""
        ledger = self._ledger
        generation.fill(slice(None), ledger.opened.genotypes, results.fitness, results.descriptor, results.constraints)
        self._evaluations += self._steps.method.samples * len(prints)
        ledger.remember(prints)
        if ledger.keeps_results:
            ledger.keep(prints, results.each())
        ledger.forget_open()

    def _take(self, result: Result, number: int | None, prints: Print) -> Result | None:
        """Take the result of an open solution, of another (None), or of one that is known (-1).

        Returns the result if no place waits for it: then it is for the repertoire alone.
        """
        if number == -1:
            return None
        generation, opened, place, genotype = self._steps.generation, self._ledger.opened, None, None
        if number is not None:
            row = int(opened.rows(number))
            genotype = opened.genotypes[row].copy()  # not a view, which would keep all rows
            if opened.generations[row] == self._steps.number:
                place = int(opened.places[row])
        if generation is None or place is None or generation.filled[place]:
            place = None if genotype is None or result.failed else self._steps.place_for(genotype)
        if result.failed:
            self.num_failed += 1
            if generation is not None and place is not None and generation.fail(place):
                self._evaluations += self._steps.method.samples
            return None
        self._evaluations += self._steps.method.samples
        self._ledger.remember([prints])
        if self._ledger.keeps_results:
            self._ledger.keep([prints], [result])
        result = self._with_genotype(result) if genotype is None else result._replace(genotype=genotype)
        if generation is None or place is None:
            return result
        generation.fill(place, result.genotype, result.fitness, result.descriptor, result.constraints)
        return None


def _are_none(genotypes: Any, fitness: Any) -> bool:
    return isinstance(genotypes, Sized) and not len(genotypes) and not np.size(fitness)
