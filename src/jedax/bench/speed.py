"""How fast this machine is at the parts of a search, beside NumPy and other packages if they are installed.

Times are the best of many calls, since other work on the machine can only slow a call down. Calls of jedax are timed
inside a compiled loop, as in a search, or as whole runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.bench import peers
from jedax.es import make_strategy
from jedax.gp import GPData, GPSettings, fit
from jedax.gp.threads import one_blas_thread
from jedax.native import random as native_random
from jedax.repertoire import Cells, Repertoire
from jedax.search.api import run
from jedax.tasks import make
from jedax.types import Array, Evaluation

MAZES = ("maze-a", "maze-b", "maze-c", "maze-quad-b")
PARAMS = 66
UNIT = ((0.0, 0.0), (1.0, 1.0))
# Turns of a compiled loop: so many that the cost of a call from Python does not count.
_TURNS = 16


@dataclass(frozen=True)
class Speed:
    """One measured speed.

    Attributes:
        part: simulator, es, repertoire, gp or run.
        what: What was measured, with its sizes.
        per_second: How often it was done in a second.
        unit: What was counted.
        others: The same number for others, by name.
    """

    part: str
    what: str
    per_second: float
    unit: str
    others: dict[str, float]

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as fast jedax is as each of the others."""
        return {name: self.per_second / rate for name, rate in self.others.items()}


def best_time(call: Callable[[], Any], seconds: float) -> float:
    """Return the time of the fastest call among those that fit into some seconds; at least one is timed."""
    for _ in range(2):  # the second call may compile again for what the first one returned
        jax.block_until_ready(call())
    best, until = np.inf, time.perf_counter() + seconds
    while True:
        began = time.perf_counter()
        jax.block_until_ready(call())
        now = time.perf_counter()
        best = min(best, now - began)
        if now >= until:
            return best


def time_in_loop(body: Callable[[Array, Any], Any], start: Any, seconds: float, turns: int = _TURNS) -> float:
    """Return the time of one turn of a compiled loop in seconds; `body(turn, state)` returns the next state."""
    loop = jax.jit(lambda state: jax.lax.fori_loop(0, turns, body, state))
    return best_time(lambda: loop(start), seconds) / turns


def _rates(makers: Mapping[str, Callable[[], peers.Call | None]], count: float, seconds: float) -> dict[str, float]:
    """Return the speeds of the others that are installed."""
    calls = {name: make_call() for name, make_call in makers.items()}
    return {name: count / best_time(call, seconds) for name, call in calls.items() if call is not None}


def simulator(maze: str, batch: int, seconds: float, *, compare: bool = True) -> Speed:
    """Return evaluations of random controllers in a maze per second; beside JAX alone and, for 64, Kheperax."""
    task: Any = make(maze)
    keys = jax.random.split(jax.random.key(0), batch)
    rows = jax.jit(jax.vmap(task.init))(keys)
    # The input of each turn depends on the output of the last, so that the compiler cannot move work out of the loop.
    took = time_in_loop(lambda _, rows: rows + 0 * task.evaluate_batch(keys[0], rows).fitness[0], rows, seconds)
    in_jax = jax.jit(task.evaluate_in_jax)
    makers: dict[str, Callable[[], peers.Call | None]] = {"JAX alone": lambda: lambda: in_jax(keys, rows).fitness}
    if batch <= 64:
        makers["Kheperax"] = lambda: peers.kheperax(task, np.asarray(rows))
    others = _rates(makers if compare else {}, batch, seconds)
    return Speed("simulator", f"{maze}, batch {batch:,}", batch / took, "evaluations", others)


def repertoire(cells: int, seconds: float, *, batch: int = 1024, params: int = PARAMS, compare: bool = True) -> Speed:
    """Return solutions added to a repertoire per second; beside the insertion in JAX and pyribs.

    All start empty and get the same batches in the same order.
    """
    random = np.random.default_rng(0)
    genotypes = random.standard_normal((batch, params), np.float32)
    fitness = random.uniform(size=(_TURNS, batch)).astype(np.float32)
    descriptors = random.uniform(size=(_TURNS, batch, 2)).astype(np.float32)
    layout = Cells(random.uniform(size=(cells, 2)).astype(np.float32), UNIT)
    given = jnp.asarray(genotypes), jnp.asarray(fitness), jnp.asarray(descriptors)

    def program(natively: bool) -> Callable[[], Any]:
        def loop(held: Repertoire, genotypes: Array, fitness: Array, descriptors: Array) -> Repertoire:
            def step(held: Repertoire, one: tuple[Array, Array]) -> tuple[Repertoire, None]:
                add = held.add if natively else held.add_in_jax
                return add(layout, genotypes, Evaluation(*one), jnp.int32(1))[0], None

            # Emptied in place: touching new memory would cost more than everything else.
            none = jnp.full_like(held.fitness, -jnp.inf)
            return jax.lax.scan(step, replace(held, fitness=none, thresholds=none), (fitness, descriptors))[0]

        compiled = jax.jit(loop, donate_argnums=0)
        state = [jax.tree.map(jnp.array, Repertoire.empty(layout, given[0][0]))]

        def call() -> Repertoire:
            state[0] = compiled(state[0], *given)
            return state[0]

        return call

    count = _TURNS * batch
    what = f"add {batch:,} to {cells:,} cells" + f", {params:,} parameters" * (params != PARAMS)
    took = best_time(program(natively=True), seconds)
    makers = {
        "insertion in JAX": lambda: program(natively=False),
        "pyribs": lambda: peers.pyribs(layout.centroids, genotypes, fitness, descriptors),
    }
    return Speed("repertoire", what, count / took, "solutions", _rates(makers if compare else {}, count, seconds))


def es(params: int, seconds: float, *, population: int = 64, compare: bool = True) -> Speed:
    """Return generations of Sep-CMA-ES per second; beside NumPy and cma."""
    strategy = make_strategy("sep-cma-es", population=population)
    key = native_random.native_keys(jax.random.key(0))

    def generation(turn: Array, state: Any) -> Any:
        genotypes, state = strategy.ask(jax.random.fold_in(key, turn), state)
        return strategy.tell(key, state, genotypes, -jnp.square(genotypes[:, :8]).sum(axis=1))

    took = time_in_loop(generation, strategy.init(key, jnp.zeros(params)), seconds)
    makers = {
        "NumPy": lambda: peers.numpy_sep_cma_es(params, population),
        "cma": lambda: peers.cma(params, population),
    }
    what = f"sep-cma-es, {params:,} parameters, population {population}"
    return Speed("es", what, 1 / took, "generations", _rates(makers if compare else {}, 1, seconds))


def gp(rows: int, seconds: float) -> Speed:
    """Return fits of the weighted GP's hyperparameters per second; beside SciPy's L-BFGS-B on NumPy."""
    random = np.random.default_rng(0)
    settings = GPSettings()
    x = random.uniform(size=(rows, 2)).astype(np.float32)
    fitness = (np.sin(5 * x[:, 0]) + np.cos(4 * x[:, 1]) + 0.1 * random.standard_normal(rows)).astype(np.float32)
    counts = random.integers(1, 50, rows).astype(np.int32)
    data = GPData(jnp.asarray(x), jnp.asarray(fitness), jnp.asarray(counts), jnp.ones(rows, bool))
    program = jax.jit(lambda data: fit(settings, settings.initial_hyperparameters(), data).hyperparameters)
    with one_blas_thread():
        took = best_time(lambda: program(data), seconds)
        others = _rates({"NumPy": lambda: peers.numpy_gp(x, fitness, counts)}, 1, seconds)
    return Speed("gp", f"fit, {rows:,} rows", 1 / took, "fits", others)


def runs(method: str, evaluations: int = 100_000, replicas: int = 20, **settings: Any) -> Iterator[Speed]:
    """Yield evaluations per second of a whole run on maze A, and of many seeds in one program beside one by one."""

    def rate(evaluations: int, replicas: int) -> float:
        for _ in range(2):  # the second run counts, whose programs are compiled
            found = run(method, "maze-a", evaluations=evaluations, replicas=replicas, **settings)
        return found.summary["evaluations_per_second"]

    one = rate(evaluations, 1)
    yield Speed("run", f"{method}, maze-a, {evaluations:,} evaluations", one, "evaluations", {})
    share = max(evaluations // replicas, 1_000)
    many = rate(share, replicas)
    what = f"{method}, maze-a, {replicas} seeds of {share:,} in one program"
    yield Speed("run", what, many, "evaluations", {"one by one": rate(share, 1)})


PARTS: dict[str, Callable[[float], Iterator[Speed]]] = {
    "simulator": lambda seconds: (simulator(maze, batch, seconds) for maze in MAZES for batch in (64, 4096)),
    "repertoire": lambda seconds: (repertoire(cells, seconds) for cells in (1024, 10_000)),
    "es": lambda seconds: (es(params, seconds) for params in (PARAMS, 10_000)),
    "gp": lambda seconds: (gp(rows, seconds) for rows in (256, 1024)),
    "run": lambda seconds: (speed for method in ("jedi-uniform", "map-elites") for speed in runs(method)),
}
"""The parts that can be measured, by name."""


def growth(seconds: float) -> Iterator[Speed]:
    """Yield the speed of each part at growing sizes (cells, batch, parameters), without others."""
    for cells in (256, 1024, 4096, 16_384, 65_536):
        yield repertoire(cells, seconds, compare=False)
    for batch in (64, 512, 4096, 65_536):
        yield repertoire(1024, seconds, batch=batch, compare=False)
    for batch in (64, 512, 4096, 65_536):
        yield simulator("maze-a", batch, seconds, compare=False)
    for params in (PARAMS, 1_000, 10_000, 100_000, 1_000_000):
        yield es(params, seconds, population=16, compare=False)
    for params in (PARAMS, 1_000, 10_000, 100_000, 1_000_000):
        yield repertoire(64, seconds, batch=16, params=params, compare=False)
