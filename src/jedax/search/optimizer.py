"""Searches for simulators that JAX cannot run: ask for genotypes, evaluate them anywhere, tell what came out."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.arrays import numbers
from jedax.errors import JedaxError, fail
from jedax.methods import Algorithm, make_algorithm
from jedax.methods.registry import check_parameters, config_class, default_method, method_defaults
from jedax.methods.settings import MethodConfig
from jedax.repertoire import Repertoire
from jedax.repertoire.cells import Bounds, Cells
from jedax.sampling import aggregate
from jedax.search import environment
from jedax.store import files
from jedax.store.run import Solution
from jedax.types import Evaluation

_KIND = "jedax optimizer "
_FORMAT = f"{_KIND}1"
_REMEDIES = ("give one entry per genotype of the batch", "give one entry per genotype of the batch, in its order")


@dataclass(frozen=True)
class _Outside:
    """All that is known of a problem outside."""

    num_params: int
    descriptor_bounds: Bounds
    initial_std: float

    @property
    def qd_offset(self) -> float:
        raise fail(
            "threshold_min",
            expected="a number, for the lowest fitness of your problem is not known",
            received="'task'",
            remedy="give a fitness that no solution falls below; with minimise=True, minus what none exceeds",
        )

    def init(self, key: Any) -> Any:
        return self.initial_std * jax.random.normal(key, (self.num_params,))


class Optimizer:
    """A search that is fed from outside.

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
        evaluations: Budget; `done` follows it, and JEDi's alpha. Asking goes on beyond it.
        method: A method's name, or its parameters; None: JEDi-X, or JEDi where a parameter of its own is given.
        initial: `(given, num_params)`, the first members of the initial batch; random ones fill it up.
        initial_std: Standard deviation of the random ones, drawn around zero.
        seed: Same seed, same results told: same bits.
        minimise: Whether low fitness is good. `tell` then takes, and `best` gives, what is minimised.
        **parameters: Changes to the method's parameters, such as `alpha=0.3`.

    Raises:
        JedaxError: An argument that does not fit.
    """

    def __init__(
        self,
        num_params: int,
        descriptor_bounds: tuple[Sequence[float], Sequence[float]],
        *,
        evaluations: int,
        method: str | MethodConfig | None = None,
        initial: np.ndarray | None = None,
        initial_std: float = 1.0,
        seed: int = 0,
        minimise: bool = False,
        **parameters: Any,
    ):
        if method is None:
            method = default_method(parameters)
        config: Any = method
        if isinstance(method, str):
            config = method_defaults(method, "")
            check_parameters(method, parameters)
        if not isinstance(config, MethodConfig):
            raise fail(
                "method",
                expected="a name or parameters such as a JediConfig",
                received=repr(method),
                remedy="try 'jedi-x'",
            )
        self.config = config.replace(**parameters) if parameters else config
        generation = self.config.evaluations_per_generation
        least = {"num_params": (num_params, 1), "evaluations": (evaluations, generation), "seed": (seed, 0)}
        for name, (value, low) in least.items():
            if not isinstance(value, int | np.integer) or not low <= value < 2**32:
                what = " (a generation)" if name == "evaluations" else ""
                raise fail(
                    name, expected=f"a whole number of at least {low}{what}", received=repr(value), remedy="change it"
                )
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
        problem = _Outside(int(num_params), (lows, highs), float(initial_std))
        self._algorithm = make_algorithm(self.config, problem)
        self._initial_std = initial_std
        self._num_params, self._budget, self._seed, self.minimise = (
            int(num_params),
            int(evaluations),
            seed,
            minimise,
        )
        self._state: Any = None
        self._pending: np.ndarray | None = None
        self._initial = self._initial_batch(initial, initial_std)

    @property
    def evaluations(self) -> int:
        """Evaluations told so far."""
        return 0 if self._state is None else int(self._algorithm.evaluations(self._state))

    @property
    def done(self) -> bool:
        """Whether the budget has no room for another generation."""
        return self.evaluations + self._algorithm.evaluations_per_generation > self._budget

    @property
    def cells(self) -> Cells:
        """How the descriptor space is cut."""
        return self._algorithm.cells

    @property
    def repertoire(self) -> Repertoire:
        """What was found so far, as NumPy arrays; fitness is maximised here, whatever `minimise` says.

        Raises:
            JedaxError: Nothing was told yet.
        """
        return jax.device_get(self._told().repertoire)

    @property
    def best(self) -> Solution:
        """The best solution told so far.

        Raises:
            JedaxError: Nothing was told yet.
        """
        found = jax.device_get(self._told().repertoire)
        fitness = float(found.best_fitness)
        return Solution(found.best_genotype, -fitness if self.minimise else fitness, found.best_descriptor)

    def ask(self) -> np.ndarray:
        """Return genotypes to evaluate, `(batch, num_params)`; until they are told, the same ones again."""
        if self._pending is None:
            self._pending = self._next_batch()
        return self._pending.copy()

    def tell(self, fitness: Any, descriptors: Any) -> None:
        """Take what evaluating the last batch gave.

        With several samples per evaluation (`samples_per_evaluation`), each has an axis for them after the first:
        `(batch, samples)` and `(batch, samples, d)`; see `jedax.sampling` for what becomes of them.

        Args:
            fitness: `(batch,)`; what is not finite counts as failed.
            descriptors: `(batch, d)`, one row per genotype, in the order of the batch.

        Raises:
            JedaxError: Nothing was asked, or a shape does not fit. Nothing is changed then.
        """
        if self._pending is None:
            raise fail("tell", expected="a batch from ask() first", received="none", remedy="call ask(), then tell()")
        samples, num_descriptors = self._algorithm.samples, self.cells.centroids.shape[1]
        shape = (len(self._pending),) if samples == 1 else (len(self._pending), samples)
        fitness = numbers("fitness", fitness, shape, *_REMEDIES)
        descriptors = numbers("descriptors", descriptors, (*shape, num_descriptors), *_REMEDIES)
        evaluation = Evaluation(jnp.asarray(-fitness if self.minimise else fitness), jnp.asarray(descriptors))
        if samples > 1:
            by_sample = jax.tree.map(lambda values: jnp.swapaxes(values, 0, 1), evaluation)
            evaluation = aggregate(by_sample, self.config.sample_aggregation)
        genotypes = jnp.asarray(self._pending)
        if self._state is None:
            self._state = _init(self._algorithm, self._key(0), genotypes, evaluation)
        else:
            self._state = _tell(self._algorithm, self._key(2), self._state, genotypes, evaluation)
        self._pending = None

    def save(self, path: str | Path) -> None:
        """Write all there is to one file, atomically; `load` brings it back, a batch that is out included.

        Raises:
            JedaxError: The file cannot be written.
        """
        tree = {"state": self._state, "pending": self._pending, "initial": self._initial}
        arrays = files.flatten(tree)
        facts = {
            "num_params": self._num_params,
            "descriptor_bounds": self.cells.bounds,
            "evaluations": self._budget,
            "seed": self._seed,
            "minimise": self.minimise,
            "initial_std": self._initial_std,
            "kind": type(self.config).__name__,
            "config": self.config.model_dump(mode="json"),
            "sha256": _digest(arrays),
        }
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
    def load(cls, path: str | Path) -> Optimizer:
        """Bring back what `save` wrote; the search goes on with the same bits.

        Raises:
            JedaxError: The file is missing, damaged, or something else.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), "np") as file:
                metadata = file.metadata() or {}
            received = str(metadata.get("format"))
            if received != _FORMAT and received.startswith(_KIND):
                raise files.other_format(path, repr(_FORMAT), repr(received[:60]))
            if received != _FORMAT:
                raise files.CorruptError(f"{path}: expected a saved optimizer, got another file; check the path.")
            facts = dict(json.loads(metadata["facts"]))
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(f"{path}: expected a saved optimizer, got {error}; restore it.") from None
        arrays = files.read_tensors(Path(path))
        if _digest(arrays) != facts.pop("sha256", None):
            raise files.CorruptError(f"{path}: expected another checksum; the file is damaged, restore it.")
        initial = arrays.get("['initial']")
        if initial is None or initial.ndim != 2 or initial.shape[1] != facts.get("num_params"):
            raise files.CorruptError(f"{path}: expected the first genotypes of the search, got none; restore it.")
        try:
            config = config_class(facts.pop("kind")).build(facts.pop("config"), where=str(path))
            optimizer = cls(method=config, **facts)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, JedaxError):
                raise
            raise files.CorruptError(f"{path}: expected the settings of a search, got {error!r}; restore it.") from None
        pending = arrays.get("['pending']")
        if initial.shape != optimizer._initial.shape or (
            pending is not None and pending.shape[1:] != initial.shape[1:]
        ):
            raise files.CorruptError(f"{path}: expected genotypes that fit the settings, got others; restore it.")
        optimizer._initial, optimizer._pending = initial, pending
        if any(name.startswith("['state']") for name in arrays):
            number = optimizer._algorithm.num_initial
            like = jax.eval_shape(
                functools.partial(_init, optimizer._algorithm), optimizer._key(0), jnp.asarray(optimizer._initial),
                Evaluation(jnp.zeros(number), jnp.zeros((number, optimizer.cells.centroids.shape[1]))),
            )  # fmt: skip
            optimizer._state = files.unflatten(arrays, like, prefix="['state']")
        return optimizer

    def _initial_batch(self, initial: Any, std: float) -> np.ndarray:
        batch = self._algorithm.num_initial
        drawn = std * jax.random.normal(self._key(3), (batch, self._num_params))
        if initial is None:
            return np.asarray(drawn)
        given = np.atleast_2d(np.asarray(initial))
        if given.dtype.kind not in "fiu" or given.ndim != 2 or given.shape[1] != self._num_params or len(given) > batch:
            raise fail(
                "initial",
                expected=f"at most {batch} rows of {self._num_params} numbers",
                received=f"{given.dtype} of shape {given.shape}",
                remedy="change it",
            )
        return np.concatenate([given, drawn])[:batch].astype(np.float32)

    def _next_batch(self) -> np.ndarray:
        if self._state is None:
            return self._initial
        if self._algorithm.is_loop_start(int(self._state.generation)):
            progress = jnp.float32(self.evaluations / self._budget)
            with environment.one_blas_thread():
                started = _start_loop(self._algorithm, self._key(1), self._state, progress)
                self._state = jax.block_until_ready(started)
        genotypes, self._state = _ask(self._algorithm, self._key(4), self._state)
        return np.asarray(genotypes)

    def _key(self, purpose: int) -> Any:
        count = 0 if self._state is None else int(self._state.generation) + 1
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(self._seed), purpose), count)

    def _told(self) -> Any:
        if self._state is None:
            raise fail("best", expected="at least one tell()", received="none", remedy="call ask(), then tell()")
        return self._state


@functools.partial(jax.jit, static_argnums=0)
def _init(algorithm: Algorithm, key: Any, genotypes: Any, evaluation: Evaluation) -> Any:
    return algorithm.init(key, genotypes, evaluation)


@functools.partial(jax.jit, static_argnums=0)
def _start_loop(algorithm: Algorithm, key: Any, state: Any, progress: Any) -> Any:
    return algorithm.start_loop(key, state, progress)


@functools.partial(jax.jit, static_argnums=0)
def _ask(algorithm: Algorithm, key: Any, state: Any) -> tuple[Any, Any]:
    return algorithm.ask(key, state)


@functools.partial(jax.jit, static_argnums=0)
def _tell(algorithm: Algorithm, key: Any, state: Any, genotypes: Any, evaluation: Evaluation) -> Any:
    return algorithm.tell(key, state, genotypes, evaluation)[0]


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
