"""`Optimizer`: the search with `ask` and `tell`, for evaluations that are done elsewhere.

It runs the programs of the loop (`jedax.search.compiled.StepPrograms`) with one replica: a search that is told what a
task in worker processes gives finds the same solutions, bit for bit, as `jedax.run` with that task, unless evaluations
fail: `Optimizer` then asks for other solutions.
"""

from __future__ import annotations

import contextlib
import errno
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from jedax.arrays import as_floats
from jedax.errors import JedaxError, check_whole, fail, is_whole, memory_in_words
from jedax.gp.threads import one_blas_thread
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import (
    DEFAULT_METHOD,
    check_arguments,
    check_settings,
    code_of,
    method_defaults,
    method_named,
)
from jedax.repertoire import Cells, Repertoire
from jedax.repertoire.repertoire import INFEASIBLE
from jedax.search import saved
from jedax.search.compiled import StepPrograms, checked_genotypes, replica_roots
from jedax.search.constraints import Penalty, stored, total_violation, violation_of
from jedax.search.generation import Generation
from jedax.search.outside import OutsideTask, box_of, measured_box, space_of
from jedax.search.programs import step_programs_for
from jedax.search.told import Opened, Print, Result, few_sizes, fingerprints, flags, padded, prints_of
from jedax.space import Space
from jedax.store import files
from jedax.store.run import Solution
from jedax.store.trust import SIGNATURES, check, is_own, sign
from jedax.types import Bounds, Evaluation

_FACTS = {
    "num_params", "descriptor_bounds", "space", "evaluations", "seed", "minimise", "noisy", "initial_std",
}  # fmt: skip
_REMEMBERED = 10_000  # solutions whose results are known when they are told again; late ones that can be told
_SAME = 1e-6  # difference, in coordinates, up to which a told solution is the one that was asked for


class Optimizer:
    """A search with `ask` and `tell`.

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

    Args:
        num_params: Number of parameters; None: `space`, `bounds` or `x0` says it.
        descriptor_bounds: `(lows, highs)` of the descriptors, or a list of tuples `(low, high)`; "measure": from the
            first generation; None: there are no descriptors, and the search is an evolution strategy with restarts.
        evaluations: Budget, for `done` and for settings that change over a run; None: it is not known.
        space: The parameters by name, see `jedax.Space`.
        bounds: `(lows, highs)` of the parameters: numbers, or one per parameter; or a list of tuples `(low, high)`. No
            solution leaves them.
        x0: A solution to start from, the first that is evaluated; a dict where `space` names the parameters.
        sigma0: Standard deviation of random solutions around `x0`: one number, or one per parameter; default: 0.3 of
            the distance between the bounds, 1 for a parameter without two bounds.
        method: A name, settings such as a `JediConfig`, or a class derived from `jedax.Method`; default: JEDi-X.
        initial: `(given, parameters)`, the first members of the initial batch; random ones fill it up.
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
        self._name, self._entry, self._settings = entry.name, entry, settings
        self._is_configured = isinstance(method, MethodConfig)  # then no settings are chosen by the problem's size
        self._defaults = method if isinstance(method, MethodConfig) else method_defaults(method)
        self._seed, self._budget = (
            check_whole("seed", seed, 0, 2**32 - 1),
            None if evaluations is None else int(evaluations),
        )
        self.minimise, self.noisy = bool(minimise), bool(noisy)
        self._space = space_of(num_params, space, bounds, x0, sigma0)
        self._num_params = int(num_params) if self._space is None else self._space.num_params  # type: ignore[arg-type]
        self._initial_std = float(initial_std)
        self.has_descriptors = descriptor_bounds is not None
        self._measures = isinstance(descriptor_bounds, str)
        if self._measures and descriptor_bounds != "measure":
            expected = "(lows, highs), 'measure' or None"
            raise fail("descriptor_bounds", expected=expected, received=repr(descriptor_bounds), remedy="change it")
        self._batch: int | None = None  # solutions that the user evaluates at once
        self._build(None if self._measures else box_of(descriptor_bounds), None)
        if self._budget is not None and self._budget < self._method.evaluations_per_generation:
            expected = f"at least {self._method.evaluations_per_generation} (one generation)"
            raise fail("evaluations", expected=expected, received=evaluations, remedy="raise it")
        self._roots = replica_roots(self._seed, 1)
        first = [self._initial(name, rows) for name, rows in (("x0", x0), ("initial", initial)) if rows is not None]
        start = None if self._space is None else self._space.start_genotype
        if x0 is None and start is not None:
            first.insert(0, start[None])
        self._given = np.concatenate(first) if first else np.zeros((0, self._num_params))
        most = self._method.num_initial
        if len(self._given) > most:
            expected = f"at most {most - 1} rows beside the solution to start from"
            raise fail("initial", expected=expected, received=most, remedy="leave some out")
        self._state: Any = None  # the state that `tell` expects while a generation is open
        self._generation: Generation | None = None
        self._number = self._evaluations = self._next_id = self.num_failed = 0
        self._open = Opened.none(self._num_params, self._num_values)
        self._told: OrderedDict[int, int] = OrderedDict()  # from the oldest
        self._known: list[Result] = []  # told or added before the first generation is complete
        self._penalty = Penalty.begin(0)  # of violated constraints; none until the first is told of
        self._out = None if out is None else Path(out)
        if self._out is not None and self._out.exists():
            remedy = "continue it with jedax.Optimizer.load, or choose another"
            raise fail("out", expected="a path that does not exist", received=str(out), remedy=remedy)

    def _build(self, box: Bounds | None, batch: int | None) -> None:
        """Make the method, for descriptors in a box, and for a batch of solutions evaluated at once."""
        config = self._defaults
        if not self._is_configured:
            fitting = self._entry.method.few_evaluations(self._num_params, batch)
            config = config.replace(**{name: value for name, value in fitting.items() if name not in self._settings})
        config = config.replace(**self._settings)
        self.config: Any = config if self.has_descriptors else config.replace(cells=1, dims=None)
        if box is None:
            size = len(self.config.dims or [1])
            box = (0.0,) * size, (1.0,) * size
        self.task = OutsideTask(self._num_params, box, self._space, self._initial_std)
        self._method = self._entry.method(self.config, self.task)
        if self._budget is None and self._method.follows_budget:
            expected, remedy = f"a budget, which {self._name} with these settings follows", "give one"
            raise fail("evaluations", expected=expected, received="None", remedy=remedy)
        _ = self._method.acceptance  # a threshold that is not known is refused here, before anything is evaluated
        self._programs: StepPrograms = step_programs_for(self._method, self.task)

    def __repr__(self) -> str:
        """Return the problem, the method and the progress."""
        of = "" if self._budget is None else f" of {self._budget:,}"
        best = ""
        found = self._find_best()
        if found is not None:
            best = f", best {found.fitness:.6g}" if found.violation == 0 else f", violation {found.violation:.3g}"
        return f"<Optimizer: {self._num_values} parameters, {self._name}, {self.evaluations:,}{of} evaluations{best}>"

    def __reduce__(self) -> Any:
        """Refuse to be pickled or copied."""
        remedy = "call save(path), and jedax.Optimizer.load(path) for each copy"
        raise fail("Optimizer", expected="save and load", received="pickle or copy", remedy=remedy)

    @property
    def evaluations(self) -> int:
        """Evaluations told so far, without added solutions and failed ones; a third failure in one place counts."""
        return self._evaluations

    @property
    def generations(self) -> int:
        """Generations all of whose results were told."""
        return self._number - (self._generation is not None)

    @property
    def done(self) -> bool:
        """Whether no generation is open and the budget has no room for another one."""
        return self.stop_reason != ""

    @property
    def stop_reason(self) -> str:
        """Why the search is done, in one sentence; empty while it is not."""
        next_one = self._method.evaluations_per_generation
        if self._budget is None or self._generation is not None or self.evaluations + next_one <= self._budget:
            return ""
        return f"The budget of {self._budget:,} evaluations has no room for another generation of {next_one}."

    @property
    def cells(self) -> Cells:
        """The cells of the repertoire."""
        return self._method.cells

    @property
    def repertoire(self) -> Repertoire:
        """The solutions of complete generations, as NumPy arrays; an error before the first one. `best` may be newer.

        Fitness is maximised here, also with `minimise`. Genotypes are those of the method: `values` gives them in your
        units, and `elites` whole solutions. Infeasible solutions have a fitness of at most -1e30, see `feasible`.
        """
        if self._state is None:
            received = "none" if self._generation is None else f"{self._generation.filled.sum()} of its results"
            remedy = "call ask(), then tell()"
            raise fail(
                "repertoire", expected="at least one tell() of a whole generation", received=received, remedy=remedy
            )
        return jax.tree.map(lambda leaf: leaf[0], jax.device_get(self._state.repertoire))

    @property
    def feasible(self) -> np.ndarray:
        """`(cells,)`, whether each cell has a solution that violates no constraint; errors as for `repertoire`."""
        fitness = self.repertoire.fitness
        return np.isfinite(fitness) & ((fitness > INFEASIBLE) | (self._penalty.number == 0))

    @property
    def has_best(self) -> bool:
        """Whether any solution told or added has not failed."""
        return self._find_best() is not None

    @property
    def best(self) -> Solution:
        """The best solution that was told, in your units; an error before the first one.

        Where no solution is feasible, that with the least violation; its fitness is NaN.
        """
        best = self._find_best()
        if best is None:
            remedy = "call ask(), then tell()"
            raise fail("best", expected="a solution that was told and has not failed", received="none", remedy=remedy)
        return best

    def _find_best(self) -> Solution | None:
        found: list[tuple[float, np.ndarray, np.ndarray]] = []
        if self._state is not None:
            kept = self._state.repertoire
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
        if not found:
            return None
        return self._solution(*max(found, key=lambda one: one[0]))

    def elites(self) -> list[Solution]:
        """Return the solutions of all filled cells in your units, the best first; errors as for `repertoire`.

        Infeasible ones come last; their fitness is NaN.
        """
        kept = self.repertoire
        places = sorted(np.flatnonzero(kept.filled), key=lambda place: -kept.fitness[place])
        return [self._solution(float(kept.fitness[i]), kept.genotypes[i], kept.descriptors[i]) for i in places]

    def _solution(self, fitness: float, genotype: Any, descriptor: Any) -> Solution:
        """Return a solution of the repertoire in the user's units."""
        violation = violation_of(fitness) if self._penalty.number else 0.0
        fitness = np.nan if violation else -fitness if self.minimise else fitness
        named = self._space.dict_of(genotype) if self._space is not None and self._space.is_named else None
        return Solution(self.values(genotype), fitness, descriptor, violation, named)

    def _evaluated_apart(self) -> tuple[np.ndarray, Evaluation]:
        """Return usable solutions whose results are not in the method's state yet, and these results."""
        parts = [
            (one.genotype[None], one.fitness[None], one.descriptor[None], one.constraints[None]) for one in self._known
        ]
        if self._generation is not None:
            g, usable = self._generation, self._generation.usable
            parts.append((g.genotypes[usable], g.fitness[usable], g.descriptors[usable], g.constraints[usable]))
        if not sum(len(part[0]) for part in parts):
            return np.zeros((0, self._num_params)), Evaluation(np.zeros((1, 0)), np.zeros((1, 0, 1)))  # type: ignore[arg-type]
        genotypes, *results = (np.concatenate(column) for column in zip(*parts, strict=True))
        return genotypes, self._evaluation(*results)

    def values(self, genotypes: Any) -> np.ndarray:
        """Return genotypes of the repertoire, `(..., genotype)`, in your units, `(..., parameters)`."""
        return np.asarray(genotypes) if self._space is None else np.asarray(self._space.values(np.asarray(genotypes)))

    def ask(self, n: int | None = None) -> Any:
        """Return solutions to evaluate: `(n, parameters)`, or a list of dicts where `space` names the parameters.

        Args:
            n: Number of solutions, none of which was returned before. None: one for each missing result of the
                current generation, the same ones until they are told.

        Raises:
            JedaxError: `n` is not None and no whole number of at least 1.
        """
        return self._shown(self._open.rows(self.ask_ids(n)))

    def ask_ids(self, n: int | None = None) -> list[int]:
        """Return the numbers of the solutions that `ask` would return; `asked` has the solutions.

        Solutions that are not told stay open. The last 10,000 of past generations do: a result of an older one is
        taken as that of a solution of your own, and is refused with its number. Arguments and errors as for `ask`.
        """
        n = None if n is None else check_whole("n", n, 1, 2**31 - 1)
        if self._may_fit and n is not None and n > self._method.num_initial:
            self._build(self.task.descriptor_bounds, n)
            if self._budget is None or self._method.evaluations_per_generation <= self._budget:
                self._batch = n
            else:  # such a generation would be larger than the budget
                self._build(self.task.descriptor_bounds, self._batch)
        generation, places, genotypes = self._open_generation(), [], []
        if n is not None:
            for _ in range(n):
                places.append(generation.next_place())
                genotypes.append(generation.give(places[-1], self._draw))
            return self._give(places, np.array(genotypes))
        latest = np.full(generation.size, -1)
        is_of_this = self._open.generations == self._number
        np.maximum.at(latest, self._open.places[is_of_this], self._open.numbers[is_of_this])
        new = [place for place in generation.open_places if latest[place] < 0]
        latest[new] = self._give(new, generation.give(new, self._draw))
        return latest[generation.open_places].tolist()

    @property
    def asked(self) -> dict[int, Any]:
        """The solutions that were asked for and not told yet, by number."""
        return dict(zip(self._open.numbers.tolist(), self._shown(slice(None)), strict=True))

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
            ids: `(n,)`, the numbers from `ask_ids`, whose genotypes may be None; None for solutions of your own.
                Without them a solution is found by its values, which must have at least seven digits.

        Raises:
            JedaxError: A shape does not fit, a solution is out of its bounds, or was told before with other results; or
                a number is not that of a solution which was asked for and not told yet. Nothing is changed then. Or
                the file of `out` cannot be written: the results were taken then.
        """
        if ids is not None and not isinstance(ids, Iterable):
            raise fail("ids", expected="a list of numbers", received=repr(ids), remedy="write ids=[...]")
        if genotypes is None:
            genotypes = [None] * (0 if ids is None else len(ids))
        genotypes = [genotypes] if isinstance(genotypes, Mapping) else genotypes
        if _are_none(genotypes, fitness):
            return
        if ids is not None:
            ids = self._checked_ids(ids, len(genotypes))
            genotypes = self._with_ids(genotypes, ids)
        results = self._results(genotypes, fitness, descriptors, violations, failed)
        prints = prints_of(results)
        if self._answers_generation(results, ids):
            self._note_constraints(results)
            self._take_generation(results, prints)
        else:
            rows = results.each()
            numbers = self._match(rows, prints, ids or [None] * len(rows))
            self._note_constraints(results)
            extra = [self._take(*one) for one in zip(rows, numbers, prints, strict=True)]
            self._open.remove([number for number in numbers if number not in (None, -1)])
            self._insert([result for result in extra if result is not None])
        if self._generation is not None and self._generation.is_complete:
            self._close_generation()
        if self._out is not None:
            self._write(self._out, "out")

    def add(self, genotypes: Any, fitness: Any, descriptors: Any = None, *, violations: Any = None) -> None:
        """Add solutions whose results were known before; they do not count towards the budget.

        Those added before the first `ask` become members of the initial batch. Arguments and errors as for `tell`.
        """
        if _are_none(genotypes, fitness):
            return
        results = self._results(genotypes, fitness, descriptors, violations, None)
        known = [self._with_genotype(result) for result in results.each() if not result.failed]
        self._note_constraints(results)
        self._insert(known)
        if self._out is not None:
            self._write(self._out, "out")

    def save(self, path: str | Path) -> None:
        """Write everything to one file, atomically, including solutions that were asked for; `load` reads it.

        Raises:
            JedaxError: The file cannot be written; an earlier one of that name is unchanged.
        """
        self._write(path, "path")

    def _write(self, path: str | Path, argument: str) -> None:
        """Write the file of `save`, whose path is that of an argument: "path", or "out" when results were taken."""
        arrays = files.flatten({"state": self._state, "given": self._given, **self._bookkeeping()})
        box = "measure" if self._measures else self.task.descriptor_bounds
        facts = {
            "num_params": None if self._space is not None else self._num_params,
            "descriptor_bounds": box if self.has_descriptors else None,
            "space": None if self._space is None else self._space.spec(),
            "evaluations": self._budget,
            "seed": self._seed,
            "minimise": self.minimise,
            "noisy": self.noisy,
            "initial_std": self._initial_std,
            "method": self._name,
            "config": self.config.model_dump(mode="json"),
            "chosen": sorted(self._settings) if self._may_fit else None,
            "counts": [self._number, self._evaluations, self._next_id, self.num_failed],
            "saves_itself": Path(path) == self._out,
            "sha256": saved.digest(arrays),
        }
        if names := code_of(self._name, facts["config"]):
            sign(facts, saved.settings_digest(self._name, facts["config"]), names)  # else `load` asks for trust
        facts["facts_sha256"] = files.digest(facts)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            files.write_tensors(Path(path), arrays, {"format": saved.FORMAT, "facts": json.dumps(facts)})
        except OSError as error:
            remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
            remedy += ", then call save(); the results were taken" if argument == "out" else ", or choose another"
            received = f"{path} ({error.strerror})"
            raise fail(argument, expected="a file that can be written", received=received, remedy=remedy) from None

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
            name, settings, signed = str(facts.pop("method")), dict(facts.pop("config")), {}
            signed[SIGNATURES] = facts.pop(SIGNATURES, None)
            names = code_of(name, settings)
            if not trust and not is_own([Path(path)], signed, saved.settings_digest(name, settings), names):
                check(path, [known for known in names if method is None or known != name])
            kind = method or method_named(name).method
            config = kind.Config.build(settings, where=str(path))
            counts, space, chosen = facts.pop("counts"), facts.pop("space"), facts.pop("chosen", None)
            out = Path(path) if facts.pop("saves_itself") else None
            if strange := sorted(set(facts) - _FACTS):
                raise KeyError(strange[0])
            facts["space"] = None if space is None else Space.from_spec(space)
            if isinstance(facts.get("descriptor_bounds"), list):
                facts["descriptor_bounds"] = tuple(facts["descriptor_bounds"])
            optimizer = cls(method=config, **facts)
            optimizer._name, optimizer._out = name, out
            if optimizer._entry.method is not kind:  # classes may share the class of their settings
                optimizer._entry = replace(optimizer._entry, method=kind)
                optimizer._build(None if optimizer._measures else optimizer.task.descriptor_bounds, None)
            if chosen is not None:
                optimizer._is_configured = False
                optimizer._settings = {name: getattr(config, name) for name in chosen}
            optimizer._number, optimizer._evaluations, optimizer._next_id, optimizer.num_failed = map(int, counts)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(f"{path}: expected the settings of a search, got {error!r}; restore it.") from None
        optimizer._restore(arrays, path)
        return optimizer

    def _bookkeeping(self) -> dict[str, Any]:
        """Return all that is known of solutions outside the method's state, as arrays."""
        opened = self._open
        return {
            "open": {
                "numbers": np.stack([opened.numbers, opened.generations, opened.places], axis=1),
                "genotype": opened.genotypes,
                "values": opened.values,
            },
            "told": np.array(list(self._told.items()), np.int64).reshape(-1, 2),
            "known": {
                name: np.array([getattr(one, name) for one in self._known], np.float64) for name in Result._fields
            },
            "penalty": vars(self._penalty),
            "generation": None if self._generation is None else vars(self._generation),
        }

    def _restore(self, arrays: dict[str, np.ndarray], path: str | Path) -> None:
        """Restore what `save` wrote."""
        tree: dict[str, Any] = {}
        for name, array in arrays.items():
            part, _, entry = name.removeprefix("['").removesuffix("']").partition("']['")
            if entry and part in ("open", "known", "penalty", "generation"):
                tree.setdefault(part, {})[entry] = array
            else:
                tree[part] = array
        try:
            self._given = checked_genotypes("initial", tree["given"], self._method.num_initial, self._num_params)
            self._told = OrderedDict(tree["told"].astype(np.int64).reshape(-1, 2).tolist())
            numbers, genotypes, values = (tree["open"][key] for key in ("numbers", "genotype", "values"))
            numbers = numbers.astype(np.int64).reshape(-1, 3)
            if len(numbers):
                expected = (len(numbers), self._num_params), (len(numbers), self._num_values)
                if (genotypes.shape, values.shape) != expected:
                    raise ValueError("open")
                self._open = Opened(numbers[:, 0], numbers[:, 1], numbers[:, 2], genotypes, values)
            rows = tree["generation"]["descriptors"] if "generation" in tree else tree["known"]["descriptor"]
            if self._measures and rows.ndim == 3:
                self._set_width(rows.shape[-1])
            self._known = [Result(*row) for row in zip(*(tree["known"][key] for key in Result._fields), strict=True)]
            self._generation = None if "generation" not in tree else Generation(**tree["generation"])
            self._penalty = Penalty(**tree["penalty"])
            number = self._penalty.check()
            if self._generation is not None:
                self._generation.check(self._method.samples, self._num_params, self.task.num_descriptors, number)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(
                f"{path}: expected solutions that fit the settings, got others; restore it."
            ) from None
        if any(name.startswith("['state']") for name in arrays):
            like = self._programs.shapes(self._roots, self._given)
            self._state = files.unflatten(arrays, like, path, prefix="['state']")

    @property
    def _may_fit(self) -> bool:
        """Whether settings may still follow the number of solutions that are evaluated at once."""
        return not self._is_configured and self._state is None and self._generation is None

    @property
    def _num_values(self) -> int:
        return self._num_params if self._space is None else self._space.num_values

    @property
    def _progress(self) -> float:
        """Share of the budget that is spent; without a budget, of a thousand evaluations per parameter."""
        return min(1.0, self.evaluations / (self._budget or 1_000 * self._num_params))

    def _shown(self, rows: Any) -> Any:
        """Return some of the open solutions as the user gets them."""
        if self._space is not None and self._space.is_named:
            return self._space.dicts(self._open.genotypes[rows])
        return self._open.values[rows].copy()

    def _initial(self, argument: str, given: Any) -> np.ndarray:
        """Return the genotypes of solutions to begin with."""
        if self._space is None:
            return checked_genotypes(argument, given, self._method.num_initial, self._num_params)
        given = [given] if isinstance(given, Mapping) or not np.iterable(given) else given
        if not len(given):
            return np.zeros((0, self._num_params))
        with contextlib.suppress(ValueError):  # rows of different lengths, which `_rows` refuses
            if np.ndim(given) == 1 and not isinstance(given[0], Mapping):  # the numbers of one solution
                given = [given]
        rows = self._genotypes(self._rows(argument, given))
        return checked_genotypes(argument, rows, self._method.num_initial, self._num_params)

    def _rows(self, argument: str, genotypes: Any) -> np.ndarray:
        """Return solutions as the user gives them as rows of values."""
        dicts: Any = [genotypes] if isinstance(genotypes, Mapping) else genotypes
        if hasattr(dicts, "to_dict") and self._space is not None and self._space.is_named:
            dicts = dicts.to_dict("records")  # a table of pandas, whose columns may have another order
        if self._space is not None and isinstance(dicts, list | tuple) and any(isinstance(d, Mapping) for d in dicts):
            return self._space.rows(dicts)  # not by genotypes, whose rounding could hide which solution it is
        return as_floats(argument, genotypes, (None, self._num_values), "give one solution per row, as ask() does")

    def _genotypes(self, values: Any) -> np.ndarray:
        """Return the genotypes of rows of values; an error where one is out of its bounds."""
        if self._space is not None:
            return self._space.genotypes(values)
        rows = np.asarray(values, np.float64)
        if not np.isfinite(rows).all():
            received, remedy = rows[~np.isfinite(rows)][0], "give solutions as ask() returns them"
            raise fail("genotypes", expected="finite numbers", received=received, remedy=remedy)
        return rows

    def _draw(self, trial: int) -> np.ndarray:
        """Return further solutions for the places of the generation."""
        if self._state is None:
            return np.asarray(self._programs.draw_again(self._roots, trial)[0])
        return np.asarray(self._programs.again(self._roots, self._state, trial)[0])

    def _give(self, places: list[int], genotypes: np.ndarray) -> list[int]:
        """Note that candidates of some places were given out; return their numbers. Forget the oldest of many."""
        numbers = np.arange(self._next_id, self._next_id + len(places))
        if places:
            number = np.full(len(places), self._number)
            self._open.append(Opened(numbers, number, np.array(places), genotypes, self.values(genotypes)))
            late = self._open.numbers[self._open.generations < self._number]
            self._open.remove(late[:-_REMEMBERED].tolist())  # those whose evaluation was lost are never told
        self._next_id += len(places)
        return numbers.tolist()

    def _open_generation(self) -> Generation:
        """Return the open generation; begin one if there is none."""
        while self._generation is None:
            if self._state is None:
                genotypes = self._programs.draw(self._roots, self._given)
            else:
                if self._method.generations_per_loop and self._method.is_loop_start(int(self._state.generation[0])):
                    with one_blas_thread():
                        self._state, _ = self._programs.begin_loop(self._roots, self._state, self._progress)
                genotypes, self._state = self._programs.ask(self._roots, self._state)
            samples, num_descriptors = self._method.samples, self.task.num_descriptors
            self._generation = Generation.begin(
                np.asarray(genotypes)[0], samples, num_descriptors, self._penalty.number
            )
            self._number += 1
            if self._state is None:
                self._fill_with_known(self._generation)
        return self._generation

    def _fill_with_known(self, generation: Generation) -> None:
        """Fill the last places of the initial batch with the best solutions that are known."""
        self._known.sort(key=lambda one: stored(one.fitness, total_violation(one.constraints[None])).mean())
        for place in range(generation.size - 1, len(self._given) - 1, -1):
            if self._known:
                best = self._known.pop()
                generation.fill(place, best.genotype, best.fitness, best.descriptor, best.constraints)
        if generation.is_complete:
            self._close_generation()

    def _close_generation(self) -> None:
        """Give the results of the open generation to the method."""
        generation = self._generation
        assert generation is not None
        if self._measures:
            self._build(measured_box(generation.descriptors), self._batch)
        adapts = not self._penalty.number or self._state is None or bool(np.all(self._method.climbs(self._state)))
        evaluation = self._evaluation(generation.fitness, generation.descriptors, generation.constraints, adapts=adapts)
        programs, genotypes = self._programs, generation.genotypes[None]
        if self._state is None:
            self._state = programs.init(self._roots, genotypes, evaluation)
        else:
            self._state = programs.tell(self._roots, self._state, genotypes, evaluation)
        self._generation, self._measures = None, False
        known, self._known = self._known, []
        self._insert(known)

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
            found = self._programs.aggregate(Evaluation(*samples))  # type: ignore[arg-type]
            found = jax.tree.map(lambda part: np.asarray(part)[: len(fitness)], found)
        if self._penalty.number:
            own = np.asarray(found.fitness)
            if adapts:
                self._penalty = self._penalty.adapted(own, constraints, self._num_params)
            compared, score = stored(own, total_violation(constraints)), self._penalty.scores(own, constraints)
            found = Evaluation(compared, found.descriptor, score=score)  # type: ignore[arg-type]
        return jax.tree.map(lambda part: np.asarray(part)[None], found)

    def _insert(self, results: list[Result]) -> None:
        """Put solutions that no generation waits for into the repertoire."""
        if self._state is None:
            self._known += results
            return
        if not results:
            return
        genotypes, _, fitness, descriptors, constraints, _ = (
            padded(np.array(column, np.float64), few_sizes(len(results))) for column in zip(*results, strict=True)
        )
        evaluation = self._evaluation(fitness, descriptors, constraints)
        self._state = self._programs.insert(self._state, genotypes[None], evaluation)

    def _results(self, genotypes: Any, fitness: Any, descriptors: Any, violations: Any, failed: Any) -> Result:
        """Return the results of solutions, checked."""
        values = self._rows("genotypes", genotypes)
        number, samples = len(values), self._method.samples
        shape = (number,) if samples == 1 else (number, samples)
        remedy = "give one entry per genotype, in the same order"
        fitness = as_floats("fitness", fitness, shape, remedy).reshape(number, samples)
        is_bad = ~np.isfinite(fitness).all(axis=1)
        if failed is not None:
            is_bad |= flags(failed, number)
        points = np.zeros((number, samples, self.task.num_descriptors))
        if self.has_descriptors and not (descriptors is None and is_bad.all()):
            if descriptors is None:
                received, remedy = "None", "give one row per solution, or leave out descriptor_bounds"
                raise fail("descriptors", expected="the descriptors of the solutions", received=received, remedy=remedy)
            width = self.task.num_descriptors if not self._measures or self._has_results else None
            remedy = "give one row per genotype, with a number for each descriptor"
            found = as_floats("descriptors", descriptors, (*shape, width), remedy)
            points = found.reshape(number, samples, found.shape[-1])
            is_bad |= ~np.isfinite(points).all(axis=(1, 2))
        elif descriptors is not None:
            expected, remedy = "None, as Optimizer has no descriptor_bounds", "give it bounds, or leave them out"
            raise fail("descriptors", expected=expected, received="descriptors", remedy=remedy)
        if self._measures and points.shape[-1] != self.task.num_descriptors:
            self._set_width(points.shape[-1])
        known = self._penalty.number
        constraints = np.zeros((number, known))
        if violations is None:
            if known and not is_bad.all():
                expected, remedy = f"{known} constraints, as told before", "give them each time"
                raise fail("violations", expected=expected, received="None", remedy=remedy)
        else:
            wanted = (number,) if np.asarray(violations, object).ndim == 1 else (number, None)
            constraints = as_floats("violations", violations, wanted, remedy).reshape(number, -1)
            if np.isnan(constraints[~is_bad]).any():
                remedy = "give numbers, or mark the evaluation as failed"
                raise fail("violations", expected="numbers, above 0 where violated", received="NaN", remedy=remedy)
            if known not in (0, constraints.shape[1]):
                expected, received = f"{known} constraints, as told before", constraints.shape[1]
                raise fail("violations", expected=expected, received=received, remedy="give the same ones each time")
        fitness = -fitness if self.minimise else fitness
        return Result(values[:, :0], values, fitness, points, constraints, is_bad)

    @property
    def _has_results(self) -> bool:
        """Whether there are results that are not in the method's state yet."""
        return bool(self._known) or (self._generation is not None and bool(self._generation.usable.any()))

    def _set_width(self, num_descriptors: int) -> None:
        """Note how many descriptors there are, as the first result tells."""
        self._build(((0.0,) * num_descriptors, (1.0,) * num_descriptors), self._batch)
        if self._generation is not None:
            shape = (*self._generation.fitness.shape, num_descriptors)
            self._generation.descriptors = np.full(shape, np.nan)

    def _note_constraints(self, results: Result) -> None:
        """Note how many constraints there are, as the first results with violations tell."""
        number = results.constraints.shape[1]
        if number and not self._penalty.number:
            self._penalty = Penalty.begin(number)
            self._known = [one._replace(constraints=np.zeros(number)) for one in self._known]
            if self._generation is not None:
                self._generation.constraints = np.zeros((self._generation.size, number))

    def _with_genotype(self, result: Result) -> Result:
        return result._replace(genotype=self._genotypes(result.values))

    def _checked_ids(self, ids: Sequence[int | None], number: int) -> list[int | None]:
        """Return the numbers of solutions as whole numbers, an error unless all are open and none is given twice."""
        found, seen, numbers = list(ids), set[int](), self._open.numbers
        whole = [one for one in found if is_whole(one)]
        opened = set(numbers[np.isin(numbers, whole)].tolist())
        if len(found) != number:
            raise fail("ids", expected=f"{number} numbers", received=len(found), remedy="give one per solution")
        for one in found:
            if one is None:
                continue
            if not is_whole(one) or one not in opened:
                known = ", ".join(map(str, numbers[:10])) + ", ..." * (len(numbers) > 10)
                expected = f"one of those asked for and not told yet ({known or 'none'})"
                raise fail("id", expected=expected, received=repr(one), remedy="leave it out, or check it")
            if one in seen:
                raise fail("id", expected="one result per solution", received=f"{one} twice", remedy="leave one out")
            seen.add(one)
        return [None if one is None else int(one) for one in found]

    def _with_ids(self, genotypes: Any, ids: list[int | None]) -> list[Any]:
        """Return solutions, those with numbers as they were asked for."""
        known = iter(self._shown(self._open.rows([one for one in ids if one is not None])))
        return [given if one is None else next(known) for given, one in zip(genotypes, ids, strict=True)]

    def _match(self, results: list[Result], prints: list[Print], ids: Sequence[int | None]) -> list[int | None]:
        """Return the number of the open solution of each result; None: there is none; -1: it is known already.

        An error where a solution was told before with another result, or is out of its bounds.
        """
        free = ~np.isin(self._open.numbers, [one for one in ids if one is not None])
        marks = fingerprints(self._open.values) if None in ids else free  # nobody reads them if all have numbers
        now: dict[int, int] = {}
        numbers = []
        for result, (solution, outcome), given in zip(results, prints, ids, strict=True):
            known = now.get(solution, self._told.get(solution))
            is_known, is_same = known is not None, known == outcome
            if given is None:
                row = self._open_row(result.values, free, marks == solution, self.noisy or not is_known)
                if row is None:
                    given = self._other(result, is_known, is_same)
                else:
                    given, free[row] = int(self._open.numbers[row]), False
            numbers.append(given)
            if not result.failed:
                now[solution] = outcome
        return numbers

    def _other(self, result: Result, is_known: bool, is_same: bool) -> int | None:
        """Return the number of a result that no open solution waits for: -1 if it is known already, else None."""
        if is_known and not self.noisy:
            if not is_same and not result.failed:
                raise fail(
                    "tell",
                    expected="one result per solution",
                    received=f"another one for {result.values}, which was told before",
                    remedy="give noisy=True to Optimizer if evaluations are noisy",
                )
            return -1
        self._with_genotype(result)  # refused here if it is out of its bounds
        return None

    def _open_row(self, values: np.ndarray, free: np.ndarray, same: np.ndarray, may_differ: bool) -> int | None:
        """Return the row of the oldest open solution that is `same`, or else of the nearest; None: there is none.

        The nearest is the same solution but for a detour through float32, or through a few decimals. `free` are the
        rows that still wait for a result.
        """
        rows = np.flatnonzero(free & same)
        if rows.size:
            return int(rows[0])
        rows = np.flatnonzero(free)
        if not (rows.size and may_differ):
            return None
        known, genotypes = self._open.values[rows], self._open.genotypes[rows]
        if self._space is None:
            tolerances = _SAME * np.maximum(1, np.abs(genotypes))
        else:
            tolerances = self._space.tolerances(genotypes, _SAME)
        with np.errstate(over="ignore"):
            is_rounded = known.astype(np.float32) == values
        difference = np.where(is_rounded, 0, np.abs(known - values))
        is_close = (difference <= tolerances).all(axis=1)
        farthest = np.where(is_close, (difference / np.maximum(tolerances, 1e-300)).max(axis=1), np.inf)
        return int(rows[np.argmin(farthest)]) if is_close.any() else None  # the oldest of several

    def _answers_generation(self, results: Result, ids: list[int | None] | None) -> bool:
        """Whether results are those of the open generation and of nothing else, one each, and in its order."""
        generation, opened = self._generation, self._open
        if generation is None or generation.filled.any() or not len(results.values) == len(opened) == generation.size:
            return False
        if ids not in (None, opened.numbers.tolist()):
            return False
        in_order = (opened.places == np.arange(generation.size)) & (opened.generations == self._number)
        return in_order.all() and not results.failed.any() and np.array_equal(opened.values, results.values)

    def _take_generation(self, results: Result, prints: list[Print]) -> None:
        """Take the results of all solutions of the open generation."""
        assert self._generation is not None
        self._generation.fill(
            slice(None), self._open.genotypes, results.fitness, results.descriptor, results.constraints
        )
        self._evaluations += self._method.samples * len(prints)
        self._remember(prints)
        self._open = Opened.none(self._num_params, self._num_values)

    def _remember(self, prints: Sequence[Print]) -> None:
        """Remember which solutions were told, and their results; forget the oldest of many."""
        self._told.update(prints)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def _take(self, result: Result, number: int | None, prints: Print) -> Result | None:
        """Take the result of an open solution, of another (None), or of one that is known (-1).

        Returns the result if no place waits for it: then it is for the repertoire alone.
        """
        if number == -1:
            return None
        generation, place, genotype = self._generation, None, None
        if number is not None:
            row = int(self._open.rows(number))
            genotype = self._open.genotypes[row].copy()  # not a view, which would keep all rows
            if self._open.generations[row] == self._number:
                place = int(self._open.places[row])
        if generation is None or place is None or generation.filled[place]:
            generation = place = None
        if result.failed:
            self.num_failed += 1
            if generation is not None and place is not None and generation.fail(place):
                self._evaluations += self._method.samples
            return None
        self._evaluations += self._method.samples
        self._remember([prints])
        result = self._with_genotype(result) if genotype is None else result._replace(genotype=genotype)
        if generation is None or place is None:
            return result
        generation.fill(place, result.genotype, result.fitness, result.descriptor, result.constraints)
        return None


def _are_none(genotypes: Any, fitness: Any) -> bool:
    return isinstance(genotypes, Sized) and not len(genotypes) and not np.size(fitness)
