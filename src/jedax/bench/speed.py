"""How fast this machine is at the parts of a search, beside NumPy and packages of `pip install 'jedax[compare]'`.

Times are the best of many calls, since other work on the machine can only slow a call down. Calls of jedax are timed
inside a compiled loop, as in a search, or as whole runs. The last functions of this file return calls of
others to be timed, and raise ImportError if the package is missing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks
from jedax.bench.grids import MAZES
from jedax.es import make_strategy
from jedax.gp import GPData, GPSettings, fit
from jedax.gp.threads import one_blas_thread
from jedax.native import random as native_random
from jedax.repertoire import Cells, Repertoire
from jedax.search.api import run
from jedax.tasks import make
from jedax.types import Array, Evaluation

Call = Callable[[], Any]

PARAMS = 66
_TURNS = 16  # of a compiled loop: so many that the cost of a call from Python does not count


@dataclass(frozen=True)
class Speed:
    """One measured speed."""

    part: str  # simulator, es, repertoire, gp or run
    what: str  # what was measured, with its sizes
    per_second: float
    unit: str  # what was counted
    others: dict[str, float]  # `per_second` of others, by name

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as fast jedax is as each of the others."""
        return {name: self.per_second / rate for name, rate in self.others.items()}


def best_time(call: Call, seconds: float) -> float:
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


def _rates(makers: Mapping[str, Callable[[], Call]], count: float, seconds: float) -> dict[str, float]:
    """Return the speeds of the others that are installed."""
    calls: dict[str, Call] = {}
    for name, make_call in makers.items():
        with contextlib.suppress(ImportError):
            calls[name] = make_call()
    return {name: count / best_time(call, seconds) for name, call in calls.items()}


def simulator(maze: str, batch: int, seconds: float, *, compare: bool = True) -> Speed:
    """Return evaluations of random controllers in a maze per second; beside JAX alone and, for 64, Kheperax."""
    task: Any = make(maze)
    keys = jax.random.split(jax.random.key(0), batch)
    rows = jax.jit(jax.vmap(task.init))(keys)
    # The input of each turn depends on the output of the last, so that the compiler cannot move work out of the loop.
    took = time_in_loop(lambda _, rows: rows + 0 * task.evaluate_batch(keys[0], rows).fitness[0], rows, seconds)
    in_jax = jax.jit(task.evaluate_in_jax)
    makers: dict[str, Callable[[], Call]] = {"JAX alone": lambda: lambda: in_jax(keys, rows).fitness}
    if batch <= 64:
        makers["Kheperax"] = lambda: kheperax_evaluation(task, np.asarray(rows))
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
    layout = Cells(random.uniform(size=(cells, 2)).astype(np.float32), ((0.0, 0.0), (1.0, 1.0)))
    given = jnp.asarray(genotypes), jnp.asarray(fitness), jnp.asarray(descriptors)

    def program(natively: bool) -> Call:
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
        "pyribs": lambda: pyribs_insertion(layout.centroids, genotypes, fitness, descriptors),
    }
    return Speed("repertoire", what, count / took, "solutions", _rates(makers if compare else {}, count, seconds))


def es(params: int, seconds: float, *, population: int = 64, compare: bool = True) -> Speed:
    """Return generations of Sep-CMA-ES per second; beside NumPy and cma."""
    strategy = make_strategy("sep-cma-es", population=population)
    key = native_random.native_keys(native_random.seeded(0))

    def generation(turn: Array, state: Any) -> Any:
        genotypes, state = strategy.ask(jax.random.fold_in(key, turn), state)
        return strategy.tell(key, state, genotypes, -jnp.square(genotypes[:, :8]).sum(axis=1))

    took = time_in_loop(generation, strategy.init(key, jnp.zeros(params)), seconds)
    makers = {
        "NumPy": lambda: numpy_generation(params, population),
        "cma": lambda: cma_generation(params, population),
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
        others = _rates({"NumPy": lambda: numpy_gp_fit(x, fitness, counts)}, 1, seconds)
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


def pyribs_insertion(
    centroids: np.ndarray, genotypes: np.ndarray, fitness: np.ndarray, descriptors: np.ndarray
) -> Call:
    """Return the insertion of batches, `(batches, batch)` fitness, all of the same genotypes, into an empty archive."""
    from ribs.archives import CVTArchive

    ranges = [(0.0, 1.0)] * 2
    archive = CVTArchive(solution_dim=genotypes.shape[1], centroids=centroids, ranges=ranges, dtype=np.float32)

    def add() -> None:
        archive.clear()
        for one in zip(fitness, descriptors, strict=True):
            archive.add(genotypes, *one)

    return add


def cma_generation(params: int, population: int) -> Call:
    """Return a generation of the separable CMA-ES of the package cma."""
    from cma import CMAEvolutionStrategy

    options = {"CMA_diagonal": True, "popsize": population, "verbose": -9, "seed": 1}
    strategy = CMAEvolutionStrategy(np.zeros(params), 0.05, options)

    def generation() -> None:
        genotypes = strategy.ask()
        strategy.tell(genotypes, [float(np.square(genotype[:8]).sum()) for genotype in genotypes])

    return generation


def numpy_generation(params: int, population: int) -> Call:
    """Return a generation of Sep-CMA-ES in NumPy, with the sums and products of jedax's own."""
    random = np.random.default_rng(0)
    elites = population // 2
    weights = np.log(elites + 0.5) - np.log(np.arange(1, elites + 1))
    weights = (weights / weights.sum()).astype(np.float32)
    mean, path, p_c = (np.zeros(params, np.float32) for _ in range(3))
    state = [mean, np.ones(params, np.float32), path, p_c, np.float32(0.05)]

    def generation() -> None:
        mean, variances, path, p_c, sigma = state
        y = np.sqrt(variances) * random.standard_normal((population, params), np.float32)
        genotypes = mean + sigma * y
        best = y[np.argsort(np.square(genotypes[:, :8]).sum(axis=1))[:elites]]
        step = weights @ best
        path = 0.9 * path + 0.4 * step / np.sqrt(variances)
        p_c = 0.9 * p_c + 0.4 * step
        variances = 0.8 * variances + 0.1 * p_c**2 + 0.1 * (weights @ best**2)
        sigma = sigma * np.exp(min(1.0, 0.1 * (np.linalg.norm(path) / math.sqrt(params) - 1)))
        state[:] = mean + sigma * step, variances, path, p_c, np.clip(sigma, 1e-12, 1e12)

    return generation


def numpy_gp_fit(x: np.ndarray, fitness: np.ndarray, counts: np.ndarray) -> Call:
    """Return a fit of the weighted GP's three hyperparameters by SciPy's L-BFGS-B, with its gradient, in float64."""
    import scipy.linalg
    import scipy.optimize

    squared = np.square(x[:, None].astype(float) - x).sum(axis=-1)
    y = (fitness - fitness.mean()) / fitness.std()
    rows = np.arange(len(y))

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        signal, length, noise = np.exp(2 * logs)
        kernel = signal * np.exp(-0.5 * squared / length)
        covariance = kernel.copy()
        covariance[rows, rows] += noise / counts + 1e-6 * signal
        factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
        inverse = scipy.linalg.cho_solve((factor, True), np.eye(len(y)), check_finite=False)
        alpha = inverse @ y
        outer = inverse - np.outer(alpha, alpha)
        gradient = np.array([(outer * kernel).sum(), 0.5 * (outer * kernel * squared).sum() / length,
                             noise * (outer[rows, rows] / counts).sum()])  # fmt: skip
        return 0.5 * float(y @ alpha) + float(np.log(np.diag(factor)).sum()), gradient

    start, bounds = np.log([1.0, 0.2, 0.1]), [(-5.0, 5.0), (-5.0, 2.0), (-7.0, 2.0)]
    return lambda: scipy.optimize.minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x


def kheperax_evaluation(task: Any, genotypes: np.ndarray) -> Call:
    """Return an evaluation of a batch of controllers in a maze by Kheperax 0.2."""
    if importlib.util.find_spec("kheperax") is None:
        raise ImportError("kheperax")
    jax.tree_leaves = jax.tree.leaves  # type: ignore[attr-defined]  # Kheperax uses a name that JAX has since removed
    from kheperax.simu.geoms import Pos, Segment  # type: ignore[import-not-found]
    from kheperax.simu.maze import Maze  # type: ignore[import-not-found]
    from kheperax.tasks.final_distance import FinalDistKheperaxTask  # type: ignore[import-not-found]
    from kheperax.tasks.target import TargetKheperaxConfig  # type: ignore[import-not-found]

    config = task.config
    walls = [Segment(Pos(x1, y1), Pos(x2, y2)) for x1, y1, x2, y2 in config.walls]
    default = TargetKheperaxConfig.get_default_for_map("standard")
    setup = replace(
        default,
        maze=Maze.create(segments_list=walls, limits=config.limits),
        episode_length=config.steps,
        target_pos=tuple(config.target),
        target_radius=config.target_radius,
        robot=default.robot.replace(posture=type(default.robot.posture)(*config.start)),
    )
    key = jax.random.PRNGKey(0)
    score = jax.jit(FinalDistKheperaxTask.create_default_task(setup, key)[2])
    layers = networks.layers(jnp.asarray(genotypes), task.layer_sizes)
    parameters = {"params": {f"Dense_{i}": {"kernel": k, "bias": b} for i, (k, b) in enumerate(layers)}}
    return lambda: score(parameters, key)[0]
