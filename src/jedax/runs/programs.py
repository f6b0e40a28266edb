"""The compiled programs of a search: R replicas side by side, all work on the device.

A replica's random numbers depend on its seed and on counters alone, so a run can be cut into chunks of any
length, and resumed, without changing a bit.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jedax import native
from jedax.algorithms import Algorithm
from jedax.algorithms.jedi import JEDi, JEDiState
from jedax.repertoire import Cells
from jedax.tasks.base import Task
from jedax.types import Array, Evaluation, Float, Int, PRNGKeyArray

# What a random stream is for; each purpose counts for itself.
_INITIAL_GENOTYPES, _INITIAL_EVALUATION, _INITIAL_STATE, _LOOP, _GENERATION = range(5)
# Shares of the cells that the GP's compiled sizes have room for.
_GP_SHARES = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)


def gp_size_for(cells: Cells, filled: int) -> int:
    """Return the smallest of the GP's compiled sizes with room for `filled` cells."""
    sizes = [math.ceil(cells.num_cells * share) for share in _GP_SHARES]
    return next(size for size in sizes if size >= filled)


def _stream(root: PRNGKeyArray, purpose: int, count: int | Int[Array, ""] = 0) -> PRNGKeyArray:
    """Return the key for one purpose and one count of one replica."""
    return jax.random.fold_in(jax.random.fold_in(root, purpose), count)


class Programs:
    """Programs for one algorithm, task and number of replicas; each is compiled when first called.

    Arrays have a leading replica axis. A state that is passed in is used up (its buffers are donated).

    Attributes:
        compile_seconds: Time spent compiling so far.
    """

    def __init__(self, algorithm: Algorithm, task: Task, replicas: int):
        self.algorithm, self.task, self.replicas = algorithm, task, replicas
        self.compile_seconds = 0.0
        self._compiled: dict[Any, Callable] = {}
        # One object for both that need it, so that it is traced once.
        self._jitted_begin = jax.jit(self._begin)

    def begin(self, roots: PRNGKeyArray, start_genotypes: Float[Array, "given params"]) -> Any:
        """Draw, evaluate and store the initial batch; its first members are `start_genotypes`."""
        return self._call("begin", self._jitted_begin, (roots, start_genotypes))

    def shapes(self, roots: PRNGKeyArray, start_genotypes: Any) -> Any:
        """Return shapes and types of the state, without computing anything.

        Raises:
            JedaxError: Something in the settings or in the task does not fit; so it is worth a call early on.
        """
        return self._jitted_begin.eval_shape(roots, start_genotypes)

    def start_loop(self, roots: PRNGKeyArray, state: Any, progress: float, gp_size: int) -> Any:
        """Begin a loop: see `Algorithm.start_loop`."""
        program = functools.partial(self._start_loop, gp_size=gp_size)
        return self._call(("start_loop", gp_size), program, (roots, state, jnp.float32(progress)), donate=(1,))

    def advance(self, roots: PRNGKeyArray, state: Any, generations: int) -> Any:
        """Run that many generations."""
        return self._call("advance", self._advance, (roots, state, jnp.int32(generations)), donate=(1,))

    def fit_gp(self, state: JEDiState, gp_size: int) -> JEDiState:
        """Fit the GP's hyperparameters, for the record; JEDi only."""
        assert isinstance(self.algorithm, JEDi)
        program = jax.vmap(functools.partial(self.algorithm.fit_gp, gp_size=gp_size))
        return self._call(("fit_gp", gp_size), lambda state: program(state)[0], (state,), donate=(0,))

    def predict_gp(self, state: JEDiState, gp_size: int) -> tuple[Array, Array]:
        """Return the GP's mean and standard deviation at all centroids, each `(replicas, cells)`; JEDi only."""
        assert isinstance(self.algorithm, JEDi)
        program = jax.vmap(functools.partial(self.algorithm.predict_gp, gp_size=gp_size))
        return self._call(("predict_gp", gp_size), program, (state,))

    def _begin(self, roots: PRNGKeyArray, start_genotypes: Float[Array, "given params"]) -> Any:
        batch = self.algorithm.num_initial

        def begin(root: PRNGKeyArray) -> Any:
            keys = jax.random.split(_stream(root, _INITIAL_GENOTYPES), batch)
            genotypes = jax.vmap(self.task.init)(native.drawn_by_jax(keys))
            genotypes = jnp.concatenate([start_genotypes, genotypes])[:batch]
            evaluation = self._evaluate(_stream(root, _INITIAL_EVALUATION), genotypes)
            return self.algorithm.init(_stream(root, _INITIAL_STATE), genotypes, evaluation)

        return jax.vmap(begin)(roots)

    def _evaluate(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        key = native.drawn_by_jax(key)
        if self.algorithm.needs_transitions:
            return self.task.evaluate_with_transitions(key, genotypes)
        return self.task.evaluate_batch(key, genotypes)

    def _start_loop(self, roots: PRNGKeyArray, state: Any, progress: Float[Array, ""], *, gp_size: int) -> Any:
        def start(root: PRNGKeyArray, state: Any) -> Any:
            key = _stream(root, _LOOP, state.generation)
            return self.algorithm.start_loop(key, state, progress, gp_size=gp_size)

        return jax.vmap(start)(roots, state)

    def _advance(self, roots: PRNGKeyArray, state: Any, generations: Int[Array, ""]) -> Any:
        def generation(root: PRNGKeyArray, state: Any) -> Any:
            key = _stream(root, _GENERATION, state.generation)
            ask_key, evaluate_key, tell_key = jax.random.split(key, 3)
            genotypes, state = self.algorithm.ask(ask_key, state)
            evaluation = self._evaluate(evaluate_key, genotypes)
            return self.algorithm.tell(tell_key, state, genotypes, evaluation)[0]

        return jax.lax.fori_loop(0, generations, lambda _, state: jax.vmap(generation)(roots, state), state)

    def _call(self, name: Any, function: Callable, args: tuple, donate: tuple[int, ...] = ()) -> Any:
        """Call a program, compiled ahead of time so that compilation can be told from work."""
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(args))
        if (name, shapes) not in self._compiled:
            began = time.perf_counter()
            self._compiled[name, shapes] = jax.jit(function, donate_argnums=donate).lower(*args).compile()
            self.compile_seconds += time.perf_counter() - began
        return self._compiled[name, shapes](*args)


@functools.lru_cache(maxsize=8)
def programs_for(algorithm: Algorithm, task: Task, replicas: int) -> Programs:
    """Return the programs of an algorithm on a task; equal arguments share what is compiled."""
    return Programs(algorithm, task, replicas)


def replica_roots(seed: int, replicas: int) -> PRNGKeyArray:
    """Return the keys from which all randomness of each replica comes: those of seeds `seed + r`."""
    return native.drawn_natively(jax.vmap(jax.random.key)(jnp.arange(replicas, dtype=jnp.uint32) + jnp.uint32(seed)))
