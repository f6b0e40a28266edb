"""How fast this machine is at the parts of a search, beside NumPy and other packages if they are installed.

Times are the best of many calls, since other work on the machine can only slow a call down. Calls of jedax are timed
inside a compiled loop, as in a search, or as whole runs.
"""

from __future__ import annotations

import itertools
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
class Figure:
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


def simulator(
    seconds: float, mazes: tuple[str, ...] = MAZES, batches: tuple[int, ...] = (64, 4096), compare: bool = True
) -> Iterator[Figure]:
    """Yield evaluations of random controllers in mazes per second; beside JAX alone and Kheperax."""
    for maze, batch in itertools.product(mazes, batches):
        others = ("JAX alone", "Kheperax") if batch == min(batches) else ("JAX alone",)
        yield _simulate(maze, batch, seconds, others if compare else ())


def _simulate(maze: str, batch: int, seconds: float, who: tuple[str, ...]) -> Figure:
    task: Any = make(maze)
    keys = jax.random.split(jax.random.key(0), batch)
    rows = jax.jit(jax.vmap(task.init))(keys)
    # The input of each turn depends on the output of the last, so that the compiler cannot move work out of the loop.
    took = time_in_loop(lambda _, rows: rows + 0 * task.evaluate_batch(keys[0], rows).fitness[0], rows, seconds)
    in_jax = jax.jit(task.evaluate_in_jax)
    calls: dict[str, peers.Call | None] = {"JAX alone": lambda: in_jax(keys, rows).fitness}
    if "Kheperax" in who:
        calls["Kheperax"] = peers.kheperax(task, np.asarray(rows))
    others = _rates(calls, who, batch, seconds)
    return Figure("simulator", f"{maze}, batch {batch:,}", batch / took, "evaluations", others)


def _rates(
    calls: Mapping[str, Callable[[], Any] | None], who: tuple[str, ...], count: float, seconds: float
) -> dict[str, float]:
    """Return the speeds of the wanted others that are installed."""
    wanted = {name: call for name, call in calls.items() if name in who and call is not None}
    return {name: count / best_time(call, seconds) for name, call in wanted.items()}


def repertoire(
    seconds: float,
    cells: tuple[int, ...] = (1024, 10_000),
    batch: int = 1024,
    params: int = PARAMS,
    compare: bool = True,
) -> Iterator[Figure]:
    """Yield solutions added to a repertoire per second; beside the insertion in JAX and pyribs.

    All start empty and get the same batches in the same order.
    """
    for number in cells:
        yield _add(number, batch, params, seconds, ("insertion in JAX", "pyribs") if compare else ())


def _add(number: int, batch: int, params: int, seconds: float, who: tuple[str, ...]) -> Figure:
    random = np.random.default_rng(0)
    genotypes = random.standard_normal((batch, params), np.float32)
    fitness = random.uniform(size=(_TURNS, batch)).astype(np.float32)
    descriptors = random.uniform(size=(_TURNS, batch, 2)).astype(np.float32)
    layout = Cells(random.uniform(size=(number, 2)).astype(np.float32), UNIT)
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
    calls: dict[str, peers.Call | None] = {"insertion in JAX": program(natively=False)}
    if "pyribs" in who:
        calls["pyribs"] = peers.pyribs(layout.centroids, genotypes, fitness, descriptors)
    what = f"add {batch:,} to {number:,} cells" + f", {params:,} parameters" * (params != PARAMS)
    took = best_time(program(natively=True), seconds)
    return Figure("repertoire", what, count / took, "solutions", _rates(calls, who, count, seconds))


def es(
    seconds: float, params: tuple[int, ...] = (PARAMS, 10_000), population: int = 64, compare: bool = True
) -> Iterator[Figure]:
    """Yield generations per second of Sep-CMA-ES; beside NumPy and cma."""
    for number in params:
        yield _evolve(number, population, seconds, ("NumPy", "cma") if compare else ())


def _evolve(params: int, population: int, seconds: float, who: tuple[str, ...]) -> Figure:
    strategy = make_strategy("sep-cma-es", population=population)
    key = native_random.native_keys(jax.random.key(0))

    def generation(turn: Array, state: Any) -> Any:
        genotypes, state = strategy.ask(jax.random.fold_in(key, turn), state)
        return strategy.tell(key, state, genotypes, -jnp.square(genotypes[:, :8]).sum(axis=1))

    took = time_in_loop(generation, strategy.init(key, jnp.zeros(params)), seconds)
    calls: dict[str, peers.Call | None] = {}
    if who:
        calls = {"NumPy": peers.numpy_sep_cma_es(params, population), "cma": peers.cma(params, population)}
    what = f"sep-cma-es, {params:,} parameters, population {population}"
    return Figure("es", what, 1 / took, "generations", _rates(calls, who, 1, seconds))


def gp(seconds: float, rows: tuple[int, ...] = (256, 1024)) -> Iterator[Figure]:
    """Yield fits per second of the weighted GP's hyperparameters; beside SciPy's L-BFGS-B on NumPy."""
    for number in rows:
        with one_blas_thread():
            yield _fit(number, seconds)


def _fit(rows: int, seconds: float) -> Figure:
    random = np.random.default_rng(0)
    settings = GPSettings()
    x = random.uniform(size=(rows, 2)).astype(np.float32)
    fitness = (np.sin(5 * x[:, 0]) + np.cos(4 * x[:, 1]) + 0.1 * random.standard_normal(rows)).astype(np.float32)
    counts = random.integers(1, 50, rows).astype(np.int32)
    data = GPData(jnp.asarray(x), jnp.asarray(fitness), jnp.asarray(counts), jnp.ones(rows, bool))
    program = jax.jit(lambda data: fit(settings, settings.initial_hyperparameters(), data).hyperparameters)
    took = best_time(lambda: program(data), seconds)
    others = {"NumPy": 1 / best_time(peers.numpy_gp(x, fitness, counts), seconds)}
    return Figure("gp", f"fit, {rows:,} rows", 1 / took, "fits", others)


def runs(
    seconds: float,
    methods: tuple[str, ...] = ("jedi", "map-elites"),
    evaluations: int = 100_000,
    replicas: int = 20,
    **settings: Any,
) -> Iterator[Figure]:
    """Yield evaluations per second of whole runs on maze A, and of many seeds in one program beside one after another.

    Each run is done twice and the second one counts, whose programs are compiled. `seconds` is not used.
    """
    for method in methods:
        one = _rate(method, evaluations, 1, settings)
        yield Figure("run", f"{method}, maze-a, {evaluations:,} evaluations", one, "evaluations", {})
        share = max(evaluations // replicas, 1_000)
        many = _rate(method, share, replicas, settings)
        few = _rate(method, share, 1, settings)
        what = f"{method}, maze-a, {replicas} seeds of {share:,} in one program"
        yield Figure("run", what, many, "evaluations", {"one by one": few})


def _rate(method: str, evaluations: int, replicas: int, settings: dict[str, Any]) -> float:
    for _ in range(2):
        found = run(method, "maze-a", evaluations=evaluations, replicas=replicas, **settings)
    return found.summary["evaluations_per_second"]


PARTS: dict[str, Callable[[float], Iterator[Figure]]] = {
    "simulator": simulator,
    "repertoire": repertoire,
    "es": es,
    "gp": gp,
    "run": runs,
}
"""The parts that can be measured, by name."""


def growth(seconds: float) -> Iterator[Figure]:
    """Yield the speed of each part at growing sizes (cells, batch, parameters), without others."""
    for number in (256, 1024, 4096, 16_384, 65_536):
        yield from repertoire(seconds, cells=(number,), compare=False)
    for batch in (64, 512, 4096, 65_536):
        yield from repertoire(seconds, cells=(1024,), batch=batch, compare=False)
    yield from simulator(seconds, mazes=("maze-a",), batches=(64, 512, 4096, 65_536), compare=False)
    yield from es(seconds, params=(PARAMS, 1_000, 10_000, 100_000, 1_000_000), population=16, compare=False)
    for params in (PARAMS, 1_000, 10_000, 100_000, 1_000_000):
        yield from repertoire(seconds, cells=(64,), batch=16, params=params, compare=False)
