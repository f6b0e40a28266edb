"""The compiled programs of a search: R replicas side by side, all work on the device, or on several.

A replica's random numbers depend on its seed and on counters alone, so a run can be cut into chunks of any
length, and resumed, without changing a bit.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from jedax.gp import Posterior, Prediction
from jedax.methods import Algorithm
from jedax.methods.jedi import JEDi, JEDiState
from jedax.native import random as native_random
from jedax.sampling import aggregate
from jedax.search import devices, failures
from jedax.search.engines.base import Engine
from jedax.search.failures import Failures
from jedax.store.config import RunConfig
from jedax.tasks.base import Task
from jedax.types import Array, Evaluation, Float, Int, PRNGKeyArray

# What a random stream is for; each purpose counts for itself.
_INITIAL_GENOTYPES, _INITIAL_EVALUATION, _INITIAL_STATE, _LOOP, _GENERATION, _REEVALUATION = range(6)


def _stream(root: PRNGKeyArray, purpose: int, count: int | Int[Array, ""] = 0) -> PRNGKeyArray:
    """Return the key for one purpose and one count of one replica."""
    return jax.random.fold_in(jax.random.fold_in(root, purpose), count)


class Programs:
    """Programs for one algorithm, task and number of replicas; each is compiled when first called.

    Arrays have a leading replica axis.

    Attributes:
        mesh: The devices that share the work, see `jedax.search.devices`; None: one does it all.
        compile_seconds: Time spent compiling so far.
        failure_kinds: In which ways an evaluation can fail; see `jedax.search.failures`.
        donates: Whether a state that is passed in is used up.
        first_chunk: Generations to run before it is known how long one takes.
    """

    first_chunk = 16
    donates = True  # its buffers serve the next one
    failure_kinds: tuple[str, ...] = failures.KINDS

    def __init__(self, algorithm: Algorithm, task: Task, replicas: int, mesh: Mesh | None = None):
        self.algorithm, self.task, self.replicas, self.mesh = algorithm, task, replicas, mesh
        self.compile_seconds = 0.0
        self._compiled: dict[Any, Callable] = {}
        # One object for both that need it, so that it is traced once.
        self._jitted_begin = jax.jit(self._begin)

    def opened(
        self, settings: RunConfig, note: Callable[[str], None], should_stop: Callable[[], bool], engine: Engine
    ) -> Any:
        """Return a context manager in which the programs may be called.

        Args:
            settings: Those of the run.
            note: Told what goes wrong on the way, in a sentence.
            should_stop: Asked, where a generation takes long, whether to leave it undone.
            engine: What has the workers.
        """
        return contextlib.nullcontext()

    def begin(self, roots: PRNGKeyArray, start_genotypes: Float[Array, "given params"]) -> tuple[Any, Failures]:
        """Draw, evaluate and store the initial batch; its first members are `start_genotypes`.

        Returns:
            The state, and how many evaluations failed, `(replicas, kinds)`.
        """
        return self._call("begin", self._jitted_begin, (roots, start_genotypes), shared=(1,))

    def shapes(self, roots: PRNGKeyArray, start_genotypes: Any) -> Any:
        """Return shapes and types of the state, without computing anything.

        Raises:
            JedaxError: Something in the settings or in the task does not fit; so it is worth a call early on.
        """
        begin = devices.spread(self._jitted_begin, self.mesh, 2, shared=(1,))
        return jax.eval_shape(begin, roots, start_genotypes)[0]

    def start_loop(self, roots: PRNGKeyArray, state: Any, progress: float, at: Any = None) -> Any:
        """Begin a loop: see `Algorithm.start_loop`; `at` is what `learn_gp` predicts, where the choice needs it."""
        args = roots, state, jnp.float32(progress), at
        return self._call("start_loop", self._start_loop, args, donate=(1,), shared=(2,))

    def advance(self, roots: PRNGKeyArray, state: Any, generations: int) -> tuple[Any, dict[str, Array], Failures]:
        """Run that many generations, at least 1.

        Returns:
            The state, where the last generation got to (see `Algorithm.ends`), and how many evaluations failed in all
            of them, `(replicas, kinds)`.
        """
        args = roots, state, jnp.int32(generations)
        return self._call("advance", self._advance, args, donate=(1,), shared=(2,))

    def learn_gp(self, state: JEDiState) -> tuple[JEDiState, Prediction | Posterior]:
        """Let the GP learn from the filled cells, and predict for all: see `JEDi.learn_gp`; JEDi only."""
        assert isinstance(self.algorithm, JEDi)
        return self._call("learn_gp", jax.vmap(self.algorithm.learn_gp), (state,), donate=(0,))

    def _begin(self, roots: PRNGKeyArray, start_genotypes: Float[Array, "given params"]) -> tuple[Any, Failures]:
        def begin(root: PRNGKeyArray) -> tuple[Any, Failures]:
            genotypes = self.draw(root, start_genotypes)
            evaluation = self._evaluate(_stream(root, _INITIAL_EVALUATION), genotypes)
            state = self.init(root, genotypes, evaluation)
            return state, failures.by_kind(failures.count_nan(evaluation), state.repertoire.num_failed)

        return jax.vmap(begin)(roots)

    def draw(self, root: PRNGKeyArray, start_genotypes: Float[Array, "given params"]) -> Float[Array, "batch params"]:
        """Return the initial batch of one replica, traced."""
        batch = self.algorithm.num_initial
        keys = jax.random.split(_stream(root, _INITIAL_GENOTYPES), batch)
        return jnp.concatenate([start_genotypes, jax.vmap(self.task.init)(native_random.jax_keys(keys))])[:batch]

    def init(self, root: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> Any:
        """Return the state of one replica after its initial batch, traced."""
        return self.algorithm.init(_stream(root, _INITIAL_STATE), genotypes, evaluation)

    def generation_keys(self, root: PRNGKeyArray, state: Any) -> PRNGKeyArray:
        """Return the keys for asking, evaluating and telling of one replica's next generation, traced."""
        return jax.random.split(_stream(root, _GENERATION, state.generation), 3)

    def _evaluate(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        key = native_random.jax_keys(key)
        needs_transitions = self.algorithm.needs_transitions
        evaluate = self.task.evaluate_with_transitions if needs_transitions else self.task.evaluate_batch
        num_shares = devices.describe(self.mesh)[devices.POPULATION]
        if num_shares > 1:
            evaluate = functools.partial(devices.evaluate_in_shares, evaluate, num_shares)
        if self.algorithm.samples == 1:
            return evaluate(key, genotypes)
        keys = jax.random.split(key, self.algorithm.samples)
        how = self.algorithm.config.sample_aggregation
        return aggregate(jax.vmap(evaluate, in_axes=(0, None))(keys, genotypes), how)

    def _start_loop(self, roots: PRNGKeyArray, state: Any, progress: Float[Array, ""], at: Any) -> Any:
        def start(root: PRNGKeyArray, state: Any, at: Any) -> Any:
            key = _stream(root, _LOOP, state.generation)
            learnt = () if at is None else (at,)
            return self.algorithm.start_loop(key, state, progress, *learnt)

        return jax.vmap(start)(roots, state, at)

    def _advance(
        self, roots: PRNGKeyArray, state: Any, generations: Int[Array, ""]
    ) -> tuple[Any, dict[str, Array], Failures]:
        def generation(root: PRNGKeyArray, state: Any) -> tuple[Any, Evaluation]:
            ask_key, evaluate_key, tell_key = self.generation_keys(root, state)
            genotypes, state = self.algorithm.ask(ask_key, state)
            evaluation = self._evaluate(evaluate_key, genotypes)
            state = self.algorithm.tell(tell_key, state, genotypes, evaluation)[0]
            fitness, descriptor = evaluation.fitness, evaluation.descriptor
            return state, Evaluation(fitness.astype(jnp.float32), descriptor.astype(jnp.float32))

        batch = *roots.shape, self.algorithm.config.batch
        none = Evaluation(jnp.zeros(batch), jnp.zeros((*batch, self.task.num_descriptors)))
        before, no_nan = state.repertoire.num_failed, jnp.zeros(roots.shape, jnp.int32)

        def step(_: Any, carry: tuple[Any, Evaluation, Any]) -> tuple[Any, Evaluation, Any]:
            state, evaluation = jax.vmap(generation)(roots, carry[0])
            return state, evaluation, carry[2] + self.algorithm.samples * failures.count_nan(evaluation)

        state, last, num_nan = jax.lax.fori_loop(0, generations, step, (state, none, no_nan))
        failed = failures.by_kind(num_nan, state.repertoire.num_failed - before)
        return state, jax.vmap(self.algorithm.ends)(state, last), failed

    def _call(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        donate: tuple[int, ...] = (),
        shared: tuple[int, ...] = (),
    ) -> Any:
        """Call a program, compiled ahead of time so that compilation can be told from work.

        Args:
            name: The program's.
            function: What it does.
            args: Its arguments, with a leading replica axis.
            donate: Places of those that are used up.
            shared: Places of those without a replica axis.
        """
        args = devices.place(args, self.mesh, shared)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(args))
        if (name, shapes) not in self._compiled:
            began = time.perf_counter()
            program = devices.spread(function, self.mesh, len(args), shared)
            self._compiled[name, shapes] = (
                jax.jit(program, donate_argnums=donate if self.donates else ()).lower(*args).compile()
            )
            self.compile_seconds += time.perf_counter() - began
        return self._compiled[name, shapes](*args)


def reevaluation_key(seed: int) -> PRNGKeyArray:
    """Return the key from which samples after a search come: a stream that no search of any method draws from."""
    return _stream(jax.random.key(seed), _REEVALUATION)


def replica_roots(seed: int, replicas: int) -> PRNGKeyArray:
    """Return the keys from which all randomness of each replica comes: those of seeds `seed + r`."""
    seeds = jnp.arange(replicas, dtype=jnp.uint32) + jnp.uint32(seed)
    return native_random.native_keys(jax.vmap(jax.random.key)(seeds))
