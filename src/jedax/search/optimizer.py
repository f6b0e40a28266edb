"""`Optimizer`: the search with `ask` and `tell`, for evaluations that are done elsewhere.

It runs the programs of the loop (`jedax.search.compiled.StepPrograms`) with one replica: a search that is told what a
task in worker processes gives finds the same solutions, bit for bit, as `jedax.run` with that task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.arrays import as_floats
from jedax.errors import JedaxError, fail, memory_in_words
from jedax.gp.threads import one_blas_thread
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import DEFAULT_METHOD, check_settings, code_of, method_defaults, method_named
from jedax.repertoire import Repertoire
from jedax.repertoire.cells import Cells
from jedax.search.compiled import StepPrograms, checked_genotypes, replica_roots
from jedax.search.programs import step_programs_for
from jedax.store import files
from jedax.store.run import Solution
from jedax.store.trust import SIGNATURES, check, is_own, sign
from jedax.types import Bounds, Evaluation

_KIND = "jedax optimizer "
_FORMAT = f"{_KIND}2"
_FACTS = {"num_params", "descriptor_bounds", "evaluations", "seed", "minimise", "initial_std"}


@dataclass(frozen=True)
class OutsideTask:
    """What is known about a problem that is evaluated elsewhere."""

    num_params: int
    descriptor_bounds: Bounds
    initial_std: float

    @property
    def num_descriptors(self) -> int:
        """Number of descriptors."""
        return len(self.descriptor_bounds[0])

    @property
    def qd_offset(self) -> float:
        """A lower bound of the fitness: unknown."""
        raise fail(
            "threshold_min",
            expected="a number, because no lower bound of your problem's fitness is known",
            received="'task'",
            remedy="give a lower bound of the fitness; with minimise=True, minus an upper bound of what you minimise",
        )

    def init(self, key: Any) -> Any:
        """Draw a genotype of normal numbers around zero."""
        return self.initial_std * jax.random.normal(key, (self.num_params,))


class Optimizer:
    """A search with `ask` and `tell`.

    Example:
        ```python
        optimizer = jedax.Optimizer(num_params=10, descriptor_bounds=([-1, -1], [1, 1]), evaluations=50_000)
        while not optimizer.done:
            genotypes = optimizer.ask()
            optimizer.tell(*simulate(genotypes))
        print(optimizer.best.fitness)
        ```

    Args:
        num_params: Length of a genotype.
        descriptor_bounds: `(lows, highs)` of the descriptors.
        evaluations: Budget, for `done` and for settings that change over a run; `ask` still works beyond it.
        method: A name, settings such as a `JediConfig`, or a class derived from `jedax.Method`; default: JEDi-X.
        initial: `(given, num_params)`, the first members of the initial batch; random ones fill it up.
        initial_std: Standard deviation of the random ones, drawn around zero.
        seed: Random seed.
        minimise: Whether to minimise: `tell` then expects, and `best` gives, what is minimised.
        **settings: Changes to the method's settings, such as `population=32`.

    Raises:
        JedaxError: An argument that does not fit.
    """

    @memory_in_words()
    def __init__(
        self,
        num_params: int,
        descriptor_bounds: tuple[Sequence[float], Sequence[float]],
        *,
        evaluations: int,
        method: str | MethodConfig | type[Method] = DEFAULT_METHOD,
        initial: np.ndarray | None = None,
        initial_std: float = 1.0,
        seed: int = 0,
        minimise: bool = False,
        **settings: Any,
    ):
        entry = method_named(method)
        if isinstance(method, MethodConfig):
            config = method
        else:
            config = method_defaults(method)
            check_settings(entry, settings)
        self.config: Any = config.replace(**settings)
        for name, value, low in (("num_params", num_params, 1), ("evaluations", evaluations, 1), ("seed", seed, 0)):
            if not isinstance(value, int | np.integer) or not low <= value < 2**32:
                expected = f"a whole number of at least {low}"
                raise fail(name, expected=expected, received=repr(value), remedy="change it")
        if not (isinstance(initial_std, int | float | np.number) and 0 <= initial_std < float("inf")):
            raise fail(
                "initial_std", expected="a finite number of at least 0", received=repr(initial_std), remedy="change it"
            )
        try:
            lows, highs = (tuple(float(b) for b in bound) for bound in descriptor_bounds)
        except (TypeError, ValueError):
            raise fail(
                "descriptor_bounds",
                expected="(lows, highs), each a list of numbers",
                received=repr(descriptor_bounds),
                remedy="change it",
            ) from None
        self._name, self._seed, self._budget, self.minimise = entry.name, int(seed), int(evaluations), bool(minimise)
        self._task = OutsideTask(int(num_params), (lows, highs), float(initial_std))
        self._method = entry.method(self.config, self._task)
        _ = self._method.acceptance  # a threshold that is not known is refused here, before anything is evaluated
        if evaluations < self._method.evaluations_per_generation:
            expected = f"at least {self._method.evaluations_per_generation} (one generation)"
            raise fail("evaluations", expected=expected, received=evaluations, remedy="raise it")
        self._programs: StepPrograms = step_programs_for(self._method, self._task)
        self._roots = replica_roots(self._seed, 1)
        self._given = checked_genotypes("initial", initial, self._method.num_initial, self._task.num_params)
        self._state: Any = None
        self._asked: Any = None  # the state that `tell` expects, with a batch that was asked for
        self._pending: np.ndarray | None = None

    @property
    def evaluations(self) -> int:
        """Evaluations told so far."""
        return 0 if self._state is None else int(self._method.evaluations(self._state)[0])

    @property
    def done(self) -> bool:
        """Whether the budget has no room for another generation."""
        return self.evaluations + self._method.evaluations_per_generation > self._budget

    @property
    def cells(self) -> Cells:
        """The cells of the repertoire."""
        return self._method.cells

    @property
    def repertoire(self) -> Repertoire:
        """The solutions found so far, as NumPy arrays; fitness is maximised here, also with `minimise`."""
        if self._state is None:
            raise fail("best", expected="at least one tell()", received="none", remedy="call ask(), then tell()")
        return jax.tree.map(lambda leaf: leaf[0], jax.device_get(self._state.repertoire))

    @property
    def best(self) -> Solution:
        """The best solution told so far; an error before the first `tell`."""
        found = self.repertoire
        fitness = float(found.best_fitness)
        return Solution(
            np.asarray(found.best_genotype), -fitness if self.minimise else fitness, np.asarray(found.best_descriptor)
        )

    def ask(self) -> np.ndarray:
        """Return genotypes to evaluate, `(batch, num_params)`; the same ones until they are told."""
        if self._pending is None:
            if self._state is None:
                self._pending = np.asarray(self._programs.draw(self._roots, self._given)[0])
            else:
                if self._method.is_loop_start(int(self._state.generation[0])):
                    with one_blas_thread():
                        progress = self.evaluations / self._budget
                        self._state, _ = self._programs.begin_loop(self._roots, self._state, progress)
                genotypes, self._asked = self._programs.ask(self._roots, self._state)
                self._pending = np.asarray(genotypes[0])
        return self._pending.copy()

    def tell(self, fitness: Any, descriptors: Any) -> None:
        """Take the evaluation of the last batch.

        With several samples per evaluation (`samples_per_evaluation`) both have a second axis for them: `(batch,
        samples)` and `(batch, samples, d)`.

        Args:
            fitness: `(batch,)`; values that are not finite count as failed.
            descriptors: `(batch, d)`, one row per genotype, in the order of the batch.

        Raises:
            JedaxError: Nothing was asked, or a shape does not fit; nothing is changed then.
        """
        if self._pending is None:
            raise fail("tell", expected="a batch from ask() first", received="none", remedy="call ask(), then tell()")
        samples = self._method.samples
        shape = (len(self._pending),) if samples == 1 else (len(self._pending), samples)
        remedy = "give one entry per genotype, in the order of the batch"
        fitness = as_floats("fitness", fitness, shape, remedy)
        descriptors = as_floats("descriptors", descriptors, (*shape, self._task.num_descriptors), remedy)
        evaluation = Evaluation(-fitness if self.minimise else fitness, descriptors)
        if samples > 1:
            evaluation = self._programs.aggregate(jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), evaluation))
        evaluation = jax.tree.map(lambda part: part[None], evaluation)
        genotypes = self._pending[None]
        if self._state is None:
            self._state = self._programs.init(self._roots, genotypes, evaluation)
        else:
            self._state = self._programs.tell(self._roots, self._asked, genotypes, evaluation)
        self._pending = self._asked = None

    def save(self, path: str | Path) -> None:
        """Write everything to one file, atomically, including a batch that was asked for; `load` reads it."""
        tree = {"state": self._state, "asked": self._asked, "pending": self._pending, "given": self._given}
        arrays = files.flatten(tree)
        facts = {
            "num_params": self._task.num_params,
            "descriptor_bounds": self.cells.bounds,
            "evaluations": self._budget,
            "seed": self._seed,
            "minimise": self.minimise,
            "initial_std": self._task.initial_std,
            "method": self._name,
            "config": self.config.model_dump(mode="json"),
            "sha256": _digest(arrays),
        }
        if names := code_of(self._name, facts["config"]):
            sign(facts, _settings_digest(self._name, facts["config"]), names)  # else `load` asks for trust
        facts["facts_sha256"] = files.digest(facts)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            files.write_tensors(Path(path), arrays, {"format": _FORMAT, "facts": json.dumps(facts)})
        except OSError as error:
            raise fail(
                "path",
                expected="a file that can be written",
                received=f"{path} ({error.strerror})",
                remedy="choose another",
            ) from None

    @classmethod
    @memory_in_words()
    def load(cls, path: str | Path, method: type[Method] | None = None, *, trust: bool = False) -> Optimizer:
        """Return the optimizer that `save` wrote; the search continues with the same bits.

        Args:
            path: The file.
            method: The class of the method, where it was defined in a script and cannot be imported.
            trust: Import all code that the file names. Without it, code outside jedax must be installed, be given as
                `method`, or be that of a file that you saved on this machine.

        Raises:
            JedaxError: The file is missing, damaged, not a saved optimizer, or its method cannot be imported.
        """
        facts, arrays = _read(Path(path))
        try:
            name, settings, signed = str(facts.pop("method")), dict(facts.pop("config")), {}
            signed[SIGNATURES] = facts.pop(SIGNATURES, None)
            names = code_of(name, settings)
            if not trust and not is_own([Path(path)], signed, _settings_digest(name, settings), names):
                check(path, [known for known in names if method is None or known != name])
            if strange := sorted(set(facts) - _FACTS):
                raise KeyError(strange[0])
            kind = method or method_named(name).method
            optimizer = cls(method=kind.Config.build(settings, where=str(path)), initial=arrays["['given']"], **facts)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(f"{path}: expected the settings of a search, got {error!r}; restore it.") from None
        optimizer._name = name
        pending, num_params = arrays.get("['pending']"), optimizer._task.num_params
        if pending is not None and (pending.ndim != 2 or pending.shape[1] != num_params):
            raise files.CorruptError(f"{path}: expected genotypes that fit the settings, got others; restore it.")
        optimizer._pending = pending
        like = optimizer._programs.shapes(optimizer._roots, optimizer._given)
        for part in ("state", "asked"):
            if any(key.startswith(f"['{part}']") for key in arrays):
                setattr(optimizer, f"_{part}", files.unflatten(arrays, like, path, prefix=f"['{part}']"))
        return optimizer


def _settings_digest(method: str, config: Any) -> str:
    return hashlib.sha256(json.dumps([method, config], sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and arrays of a saved optimizer."""
    from safetensors import SafetensorError, safe_open

    try:
        files.check_is_file(path)
        with safe_open(str(path), "np") as file:
            metadata = file.metadata() or {}
        received = str(metadata.get("format"))
        if received != _FORMAT and received.startswith(_KIND):
            raise files.other_format(path, repr(_FORMAT), repr(received[:60]))
        if received != _FORMAT:
            raise files.CorruptError(f"{path}: expected a saved optimizer, got another file; check the path.")
        facts = dict(json.loads(metadata["facts"]))
        checksum = facts.pop("facts_sha256", None)  # files of earlier versions have none
        if checksum not in (None, files.digest(facts)):
            raise files.CorruptError(f"{path}: expected settings with their checksum; the file is damaged, restore it.")
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, JedaxError):
            raise
        raise files.CorruptError(f"{path}: expected a saved optimizer, got {error}; restore it.") from None
    arrays = files.read_tensors(path)
    if _digest(arrays) != facts.pop("sha256", None):
        raise files.CorruptError(f"{path}: expected another checksum; the file is damaged, restore it.")
    return facts, arrays


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
