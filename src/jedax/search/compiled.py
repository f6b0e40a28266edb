"""The compiled programs of a search: R replicas side by side on one device or several.

The random numbers of a replica depend only on its seed and on counters, so a run can be cut into chunks of any length,
and resumed, without changing a bit.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.sharding import Mesh

from jedax.errors import check_pair, fail
from jedax.methods.base import Method
from jedax.native import random as native_random
from jedax.sampling import aggregate
from jedax.search import devices, failures
from jedax.search.engines.base import Engine
from jedax.search.failures import Noted
from jedax.store.config import RunConfig
from jedax.store.environment import processor
from jedax.tasks.base import check_evaluation, in_words
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray

Genotypes = Float[Array | np.ndarray, "*replicas batch params"]

# The purposes of random numbers; each has its own stream.
_INITIAL_GENOTYPES, _INITIAL_EVALUATION, _INITIAL_STATE, _LOOP, _GENERATION, _REEVALUATION, _AGAIN = range(7)


def _stream(root: PRNGKeyArray, purpose: int, count: int | Int[Array, ""] = 0) -> PRNGKeyArray:
    """Return the key of one replica for one purpose and count."""
    return jax.random.fold_in(jax.random.fold_in(root, purpose), count)


class Programs:
    """The programs for one method, task and number of replicas; each is compiled when it is first called.

    Arrays have a leading replica axis. The task has at least `init`, `num_params` and `num_descriptors`. The devices of
    the mesh share the work, see `jedax.search.devices`.
    """

    first_chunk = 16  # generations of the first chunk, when the time per generation is not yet known
    donates = True  # whether programs overwrite the state that is passed in
    in_float64 = False  # whether programs compute in float64, whatever JAX is set to
    failure_kinds: tuple[str, ...] = failures.KINDS

    def __init__(self, method: Method, task: Any, replicas: int, mesh: Mesh | None = None):
        if not self.in_float64:
            method.cells.check_float32()
        keep_compiled_programs()
        self.method, self.task, self.replicas, self.mesh = method, task, replicas, mesh
        self.compile_seconds = 0.0  # so far
        self._compiled: dict[Any, Callable] = {}
        self._changed: list[int] = []  # leaves of the state that `StepPrograms.ask` changes, known once it is traced
        self._jitted_begin = jax.jit(self._begin)  # one object, so that `begin` and `shapes` share one trace

    def opened(
        self, settings: RunConfig, note: Callable[[str], None], should_stop: Callable[[], bool], engine: Engine
    ) -> Any:
        """Return a context manager for calls of programs; a generation is abandoned when `should_stop` returns True."""
        return contextlib.nullcontext()

    def begin(self, roots: PRNGKeyArray, start_genotypes: Genotypes) -> tuple[Any, Noted]:
        """Return the state after the initial batch, which begins with `start_genotypes`, and what was noted of it."""
        return self._call("begin", self._jitted_begin, (roots, jnp.asarray(start_genotypes)), shared=(1,))

    def shapes(self, roots: PRNGKeyArray, start_genotypes: Any) -> Any:
        """Return shapes and types of the state without computing anything; settings that do not fit are refused."""
        begin = devices.spread(self._jitted_begin, self.mesh, 2, shared=(1,))
        with jax.enable_x64(self.in_float64):
            return jax.eval_shape(begin, roots, start_genotypes)[0]

    def fit_model(self, state: Any) -> tuple[Any, Any]:
        """Fit the method's model: see `Method.fit_model`."""
        return self._call("fit_model", jax.vmap(self.method.fit_model), (state,), donate=(0,))

    def begin_loop(self, roots: PRNGKeyArray, state: Any, progress: float) -> tuple[Any, Any]:
        """Begin a loop of the method, at a progress of 0 to 1; return the state and the model's prediction, if any."""
        prediction = None
        if self.method.model_guides:
            state, prediction = self.fit_model(state)

        def start(root: PRNGKeyArray, state: Any, progress: Float[Array, ""], prediction: Any) -> Any:
            begun = self.method.start_loop(_stream(root, _LOOP, state.generation), state, progress, prediction)
            return self._alike("start_loop", begun, state)

        start_all, args = jax.vmap(start, in_axes=(0, 0, None, 0)), (roots, state, jnp.float32(progress), prediction)
        state = self._call("start_loop", start_all, args, donate=(1,), shared=(2,))
        return jax.block_until_ready(state), prediction

    def advance(self, roots: PRNGKeyArray, state: Any, generations: int) -> tuple[Any, dict[str, Array], Noted]:
        """Run at least one generation; return the state, `Method.loop_results` of the last one, and what was noted."""
        args = roots, state, jnp.int32(generations)
        return self._call("advance", self._advance, args, donate=(1,), shared=(2,))

    def _asked(self, key: PRNGKeyArray, state: Any) -> tuple[Float[Array, "batch params"], Any]:
        """Return what the method asks for, an error where its shape is not that of a generation."""
        name = f"{type(self.method).__name__}.ask"
        genotypes, asked = check_pair(name, self.method.ask(key, state), "genotypes and a state", "return both")
        wanted = self.method.batch, self.task.num_params
        if jnp.shape(genotypes) != wanted:
            received = f"shape {jnp.shape(genotypes)}"
            raise fail(name, expected=f"shape {wanted}", received=received, remedy=f"correct {name}")
        return genotypes, self._alike("ask", asked, state)

    def _told(self, key: PRNGKeyArray, state: Any, asked: Array, genotypes: Array, evaluation: Evaluation) -> Any:
        """Return the state after the method was told a generation, an error where it is no such state.

        `genotypes` are the solutions that were asked for, within bounds.
        """
        if self.task.space is not None:
            evaluation = replace(evaluation, asked=asked)
        name, remedy = f"{type(self.method).__name__}.tell", "return what self.store returns, too"
        told = self.method.tell(key, state, genotypes, evaluation)
        after = self._alike("tell", check_pair(name, told, "a state and an Insertion", remedy)[0], state)
        if after.generation is state.generation:
            remedy = "return replace(state, generation=state.generation + 1, ...)"
            raise fail(name, expected="a state of the next generation", received="the same one", remedy=remedy)
        return after

    def _alike(self, function: str, new: Any, old: Any) -> Any:
        """Return a state of the method with the types of another: with float64, JAX also counts in 64 bits.

        Raises a `JedaxError` that names the function which returned the state where the two have other fields, shapes
        or kinds of numbers.
        """
        name = f"{type(self.method).__name__}.{function}"
        if jax.tree.structure(new) != jax.tree.structure(old):
            ours, theirs = (dict(jax.tree.leaves_with_path(state)) for state in (new, old))
            other = [jax.tree_util.keystr(path) for path in [*ours, *theirs] if (path in ours) != (path in theirs)]
            expected, received = "a state with the fields it had", ", ".join(other) or f"a {type(new).__name__}"
            raise fail(name, expected=expected, received=received, remedy="use replace(state, ...)")

        def cast(path: Any, new: Any, old: Any) -> Any:
            new = new if hasattr(new, "dtype") else jnp.asarray(new)
            same_kind = new.dtype == old.dtype or getattr(new.dtype, "kind", "") == getattr(old.dtype, "kind", None)
            if new.shape != old.shape or not same_kind:
                field = f"{name}: state{jax.tree_util.keystr(path)}"
                expected, received = (f"{part.dtype} of shape {part.shape}" for part in (old, new))
                raise fail(field, expected=expected, received=received, remedy="keep shapes and types")
            return new if new.dtype == old.dtype else new.astype(old.dtype)

        return jax.tree_util.tree_map_with_path(cast, new, old)

    def _advance(
        self, roots: PRNGKeyArray, state: Any, generations: Int[Array, ""]
    ) -> tuple[Any, dict[str, Array], Noted]:
        goal, size = self.task.goal_fitness, self.method.batch

        def generation(root: PRNGKeyArray, state: Any) -> tuple[Any, Evaluation]:
            ask_key, evaluate_key, tell_key = self._generation_keys(root, state)
            # The barriers keep XLA from fusing across the steps, so that other devices do not round otherwise.
            asked, state = self._asked(ask_key, state)
            asked, genotypes, state = jax.lax.optimization_barrier((asked, self.within_bounds(asked), state))
            evaluation = jax.lax.optimization_barrier(self._evaluate(evaluate_key, genotypes))
            state = self._told(tell_key, state, asked, genotypes, evaluation)
            fitness, descriptor = evaluation.fitness, evaluation.descriptor
            return state, Evaluation(fitness.astype(jnp.float32), descriptor.astype(jnp.float32))

        def chunk(roots: PRNGKeyArray, state: Any, each: Callable) -> tuple[Any, Evaluation, Any, Any]:
            batch = *roots.shape, size
            zero = jnp.zeros(roots.shape, jnp.int32)
            none = Evaluation(
                jnp.zeros(batch, jnp.float32), jnp.zeros((*batch, self.task.num_descriptors), jnp.float32)
            )

            def step(done: Any, carry: tuple[Any, Evaluation, Any, Any]) -> tuple[Any, Evaluation, Any, Any]:
                state, evaluation = each(roots, carry[0])
                num_nan = carry[2] + self.method.samples * failures.count_nan(evaluation)
                place = failures.first_at(goal, evaluation.achieved)
                return state, evaluation, num_nan, failures.first_arrival(carry[3], place, done * size)

            return jax.lax.fori_loop(0, generations, step, (state, none, zero, zero))

        before = state.repertoire.num_failed
        if self._runs_sequentially:
            state, last, num_nan, arrived = self._over_replicas(functools.partial(chunk, each=generation))(roots, state)
        else:
            state, last, num_nan, arrived = chunk(roots, state, jax.vmap(generation))
        failed = failures.by_kind(num_nan, state.repertoire.num_failed - before)
        return state, jax.vmap(self.method.loop_results)(state, last), Noted(failed, arrived)

    @property
    def _runs_sequentially(self) -> bool:
        """Whether replicas run one after the other, because `jax.vmap` would compute all branches of each."""
        return self.method.has_branches and jax.default_backend() == "cpu"

    def _over_replicas(self, function: Callable) -> Callable:
        """Return a function of one replica as one of all replicas."""
        if not self._runs_sequentially:
            return jax.vmap(function)
        return lambda *args: jax.lax.map(lambda replica: function(*replica), args)

    def _begin(self, roots: PRNGKeyArray, start_genotypes: Genotypes) -> tuple[Any, Noted]:
        def begin(root: PRNGKeyArray) -> tuple[Any, Noted]:
            genotypes = self._draw(root, start_genotypes)
            evaluation = self._evaluate(_stream(root, _INITIAL_EVALUATION), genotypes)
            state = self._init(root, genotypes, evaluation)
            failed = failures.by_kind(failures.count_nan(evaluation), state.repertoire.num_failed)
            return state, Noted(failed, failures.first_at(self.task.goal_fitness, evaluation.achieved))

        return jax.vmap(begin)(roots)

    def _draw(self, root: PRNGKeyArray, start_genotypes: Genotypes) -> Float[Array, "batch params"]:
        batch = self.method.num_initial
        drawn = self._random(jax.random.split(_stream(root, _INITIAL_GENOTYPES), batch))
        return jnp.concatenate([start_genotypes.astype(float), drawn])[:batch]

    def _random(self, keys: PRNGKeyArray) -> Float[Array, "batch params"]:
        """Return random genotypes, one per key."""
        return jax.vmap(self.task.init)(native_random.jax_keys(keys))

    def within_bounds(self, genotypes: Any) -> Any:
        """Return genotypes `(..., params)` reflected at the bounds of the task's parameters."""
        return genotypes if self.task.space is None else self.task.space.fold(genotypes)

    def _init(self, root: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> Any:
        state = self.method.init(_stream(root, _INITIAL_STATE), genotypes, evaluation)
        function = f"{type(self.method).__name__}.init"
        if missing := [name for name in ("repertoire", "generation") if not hasattr(state, name)]:
            expected, remedy = f"a state with the field {missing[0]}", "see docs/guides/own-method.md"
            raise fail(function, expected=expected, received=type(state).__name__, remedy=remedy)
        for part in jax.tree.leaves(state):
            if not isinstance(part, jax.Array | np.ndarray | np.generic | int | float):
                name, remedy = type(part).__name__, "decorate its class with @jax.tree_util.register_dataclass"
                raise fail(function, expected="a state of arrays", received=f"the object {name}", remedy=remedy)
        return state

    def _generation_keys(self, root: PRNGKeyArray, state: Any) -> PRNGKeyArray:
        """Return the keys for `ask`, evaluation and `tell` of the next generation of one replica."""
        return jax.random.split(_stream(root, _GENERATION, state.generation), 3)

    def _evaluate(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        key = native_random.jax_keys(key)
        name = "evaluate_with_transitions" if self.method.needs_transitions else "evaluate_batch"
        evaluate = getattr(self.task, name)
        num_shares = devices.describe(self.mesh)[devices.POPULATION]
        if num_shares > 1:
            evaluate = functools.partial(devices.evaluate_in_shares, evaluate, num_shares)

        def checked(key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
            found = in_words(self.task, name, lambda: evaluate(key, genotypes))
            check_evaluation(self.task, name, genotypes.shape[:1], found)
            return found.in_floats()

        if self.method.samples == 1:
            return checked(key, genotypes)
        keys = jax.random.split(key, self.method.samples)
        return aggregate(jax.vmap(checked, in_axes=(0, None))(keys, genotypes), self.method.config.sample_aggregation)

    def _call(
        self, name: str, function: Callable, args: tuple, donate: tuple[int, ...] = (), shared: tuple[int, ...] = ()
    ) -> Any:
        """Call a program, compiled ahead of time so that the time of compilation is known.

        It may overwrite the arguments at the positions `donate`; those at `shared` have no replica axis.
        """
        with jax.enable_x64(self.in_float64):
            args = devices.place(args, self.mesh, shared)
            shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(args))
            if (name, shapes) not in self._compiled:
                began = time.perf_counter()
                spread = devices.spread(function, self.mesh, len(args), shared)
                self._compiled[name, shapes] = self._compile(spread, args, donate if self.donates else ())
                self.compile_seconds += time.perf_counter() - began
            return self._compiled[name, shapes](*args)

    def _compile(self, function: Callable, args: tuple, donate: tuple[int, ...]) -> Callable:
        """Return a compiled program."""
        return jax.jit(function, donate_argnums=donate).lower(*args).compile()


class StepPrograms(Programs):
    """Programs for evaluations outside JAX: asking and telling are compiled apart, and compute in float64.

    Nothing is donated, so that a generation that is abandoned leaves the state as it was.
    """

    first_chunk = 1
    donates = False
    in_float64 = True
    limits: np.ndarray | None = None  # ends of the coordinates, see `Space.limited`

    def _limited(self, limits: Any) -> Any:
        """Return a context in which the coordinates of the task's space have these ends."""
        return contextlib.nullcontext() if limits is None else self.task.space.limited(limits)

    def fold(self, genotypes: np.ndarray) -> np.ndarray:
        """Return genotypes `(n, params)` reflected at the bounds, outside compiled programs."""
        with self._limited(self.limits):
            return self.within_bounds(genotypes)

    def _call(
        self, name: str, function: Callable, args: tuple, donate: tuple[int, ...] = (), shared: tuple[int, ...] = ()
    ) -> Any:
        """Call a program, see `Programs`; the limits of the coordinates are one of its arguments."""

        def limited(limits: Any, *args: Any) -> Any:
            with self._limited(limits):
                return function(*args)

        limited.__name__ = getattr(function, "__name__", name)
        donate, shared = (tuple(place + 1 for place in places) for places in (donate, shared))
        return super()._call(name, limited, (self.limits, *args), donate, (0, *shared))

    def _compile(self, function: Callable, args: tuple, donate: tuple[int, ...]) -> Callable:
        """Return a compiled program to which its constants are arguments.

        They describe the user's problem: cells, bounds of parameters around the start of a search. So searches that
        differ in them alone share one program in the cache of compiled programs.
        """
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        constants = [jnp.asarray(constant) for constant in traced.consts]

        def program(constants: list[Array], *args: Any) -> Any:
            found = jaxpr_as_fun(ClosedJaxpr(traced.jaxpr, constants))(*jax.tree.leaves(args))
            return jax.tree.unflatten(jax.tree.structure(shapes), found)

        program.__name__ = getattr(function, "__name__", program.__name__)  # that of its files in the cache
        donate = tuple(place + 1 for place in donate)  # behind the constants
        return functools.partial(super()._compile(program, (constants, *args), donate), constants)

    def draw(self, roots: PRNGKeyArray, start_genotypes: Genotypes) -> Float[Array, "replicas b p"]:
        """Return the initial batches; their first members are `start_genotypes`."""
        return self._call("draw", jax.vmap(self._draw, in_axes=(0, None)), (roots, start_genotypes))

    def init(self, roots: PRNGKeyArray, genotypes: Genotypes, evaluation: Evaluation) -> Any:
        """Return the state after the evaluated initial batches."""
        return self._call("init", jax.vmap(self._init), (roots, genotypes, evaluation))

    def ask(self, roots: PRNGKeyArray, state: Any) -> tuple[Float[Array, "replicas b p"], Any]:
        """Return a generation of every replica, not within bounds yet, and the state that `tell` expects."""

        def ask(root: PRNGKeyArray, state: Any) -> Any:
            genotypes, asked = self._asked(self._generation_keys(root, state)[0], state)
            before, after = jax.tree.leaves(state), jax.tree.leaves(asked)
            # The program returns what `ask` changes and nothing else: the repertoire is large.
            self._changed[:] = [place for place, leaf in enumerate(after) if leaf is not before[place]]
            return genotypes, [after[place] for place in self._changed]

        genotypes, changed = self._call("ask", self._over_replicas(ask), (roots, state))
        leaves, structure = jax.tree.flatten(state)
        for place, leaf in zip(self._changed, changed, strict=True):
            leaves[place] = leaf
        return genotypes, jax.tree.unflatten(structure, leaves)

    def tell(
        self,
        roots: PRNGKeyArray,
        state: Any,
        asked: Float[Array | np.ndarray, "replicas b p"],
        evaluation: Evaluation,
    ) -> Any:
        """Return the state after an evaluated generation; `asked` need not be within bounds."""

        def tell(root: PRNGKeyArray, state: Any, asked: Any, evaluation: Evaluation) -> Any:
            key = self._generation_keys(root, state)[2]
            return self._told(key, state, asked, self.within_bounds(asked), evaluation)

        return self._call("tell", self._over_replicas(tell), (roots, state, asked, evaluation))

    def draw_again(self, roots: PRNGKeyArray, trial: int) -> Float[Array, "replicas b p"]:
        """Return further initial batches; `trial` is 1, 2, ..."""

        def draw(root: PRNGKeyArray, trial: Int[Array, ""]) -> Any:
            keys = jax.random.split(jax.random.fold_in(_stream(root, _AGAIN), trial), self.method.num_initial)
            return self._random(keys)

        return self._call("draw_again", jax.vmap(draw, in_axes=(0, None)), (roots, np.int32(trial)))

    def again(self, roots: PRNGKeyArray, asked: Any, trial: int) -> Float[Array, "replicas b p"]:
        """Return further solutions for a generation that was asked for; `trial` is 1, 2, ..."""

        def again(root: PRNGKeyArray, asked: Any, trial: Int[Array, ""]) -> Any:
            key = jax.random.fold_in(_stream(root, _AGAIN, asked.generation + 1), trial)
            return self.method.again(key, asked)

        return self._call("again", jax.vmap(again, in_axes=(0, 0, None)), (roots, asked, np.int32(trial)))

    def could_ask(self, asked: Any, genotypes: Genotypes) -> Bool[Array, "replicas b"]:
        """Return which solutions may take their places in a generation that was asked for: see `Method.could_ask`."""
        return self._call("could_ask", jax.vmap(self.method.could_ask), (asked, genotypes))

    def insert(self, state: Any, genotypes: Genotypes, evaluation: Evaluation) -> Any:
        """Return the state with further solutions in its repertoire; they need not be within bounds."""

        def insert(state: Any, genotypes: Any, evaluation: Evaluation) -> Any:
            return self._alike("insert", self.method.insert(state, self.within_bounds(genotypes), evaluation), state)

        return self._call("insert", jax.vmap(insert), (state, genotypes, evaluation))

    def aggregate(self, samples: Evaluation) -> Evaluation:
        """Return one evaluation per solution from its samples, a leading axis."""
        how = self.method.config.sample_aggregation
        return self._call("aggregate", functools.partial(aggregate, how=how), (samples,))

    def shapes(self, roots: PRNGKeyArray, start_genotypes: Any) -> Any:
        """Return shapes and types of the state; errors as for all programs."""

        def begin(root: PRNGKeyArray, start_genotypes: Genotypes) -> Any:
            genotypes = self._draw(root, start_genotypes)
            if self.method.needs_transitions:
                self.task.evaluate_with_transitions(root, genotypes)
            evaluation = Evaluation(jnp.zeros(len(genotypes)), jnp.zeros((len(genotypes), self.task.num_descriptors)))
            return self._init(root, genotypes, evaluation)

        with jax.enable_x64(self.in_float64):
            return jax.eval_shape(jax.vmap(begin, in_axes=(0, None)), roots, start_genotypes)


def checked_genotypes(argument: str, genotypes: Any, most: int, size: int) -> Float[np.ndarray, "given params"]:
    """Return a user's genotypes for the initial batch of `most` genotypes of `size` numbers; None: no genotypes."""
    try:
        array = np.atleast_2d(np.zeros((0, size)) if genotypes is None else np.asarray(genotypes))
    except ValueError:  # rows of different lengths
        array = np.atleast_2d(np.asarray(genotypes, object))
    if array.dtype.kind not in "fiu" or array.ndim != 2 or array.shape[1] != size or len(array) > most:
        raise fail(
            argument,
            expected=f"at most {most} rows of {size} numbers",
            received=f"{array.dtype} of shape {array.shape}",
            remedy="give genotypes of this task, no more than the initial batch has",
        )
    found = array.astype(np.float64)
    in_range = np.abs(found) <= np.finfo(np.float32).max
    if not in_range.all():
        expected, remedy = "finite numbers that float32 holds", "change or remove those rows"
        raise fail(argument, expected=expected, received=array[~in_range][0], remedy=remedy)
    return found


def reevaluation_key(seed: int) -> PRNGKeyArray:
    """Return the key for samples after a search, from a stream that no search uses."""
    return _stream(native_random.seeded(seed), _REEVALUATION)


def replica_roots(seed: int, replicas: int) -> PRNGKeyArray:
    """Return the keys from which all random numbers of each replica derive: those of seeds `seed + r`."""
    seeds = jnp.arange(replicas, dtype=jnp.uint32) + jnp.uint32(seed)
    return native_random.native_keys(jax.vmap(native_random.seeded)(seeds))


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache directory, in a folder for each type of processor.

    A cache directory that the user has set, by `JAX_COMPILATION_CACHE_DIR` or in JAX's configuration, is not changed.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home directory
        return
    kind = hashlib.sha256(f"{platform.machine()} {processor(flags=True)}".encode()).hexdigest()[:12]
    jax.config.update("jax_compilation_cache_dir", str(home / "jedax" / "xla" / kind))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
