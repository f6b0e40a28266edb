"""Times of the parts of a search, for developers who change one of them.

    pip install -e '.[dev]' pytest-benchmark
    python -m pytest -n 0 benchmarks --benchmark-autosave            # before
    python -m pytest -n 0 benchmarks --benchmark-compare             # after, beside the last saved

Each part runs in a compiled loop or in one compiled call, as in a search; nothing is asserted. `jedax doctor
--speed` measures the same for users, beside other packages.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.es import make_strategy
from jedax.gp import GPData, GPSettings, condition, fit, predict
from jedax.gp.threads import one_blas_thread
from jedax.native import random as native_random
from jedax.repertoire import Cells, Repertoire
from jedax.tasks import make
from jedax.types import Evaluation

TURNS = 16
UNIT = ((0.0, 0.0), (1.0, 1.0))
RANDOM = np.random.default_rng(0)


def timed(benchmark, function, *arguments, turns=TURNS, unit):
    """Time a jitted function, compiled before; `unit` says what it does `turns` times."""
    compiled = jax.jit(function)
    for _ in range(2):
        jax.block_until_ready(compiled(*arguments))
    benchmark.extra_info.update(turns=turns, unit=unit)
    benchmark(lambda: jax.block_until_ready(compiled(*arguments)))


@pytest.mark.parametrize("batch", [64, 4096])
@pytest.mark.parametrize("maze", ["maze-a", "maze-b", "maze-c", "maze-quad-b"])
def test_simulator(benchmark, maze, batch):
    task = make(maze)
    key = jax.random.key(0)
    genotypes = jax.jit(jax.vmap(task.init))(jax.random.split(key, batch))

    def loop(genotypes):
        def turn(_, genotypes):  # what goes in depends on what came out, so that nothing is done once for all
            return genotypes + 0 * task.evaluate_batch(key, genotypes).fitness[0]

        return jax.lax.fori_loop(0, TURNS, turn, genotypes)

    timed(benchmark, loop, genotypes, unit=f"{batch} evaluations")


@pytest.mark.parametrize("cells", [1024, 10_000])
def test_insertion(benchmark, cells):
    genotypes = jnp.asarray(RANDOM.standard_normal((1024, 66)), jnp.float32)
    layout = Cells(RANDOM.uniform(size=(cells, 2)).astype(np.float32), UNIT)
    batches = Evaluation(
        jnp.asarray(RANDOM.uniform(size=(TURNS, 1024)), jnp.float32),
        jnp.asarray(RANDOM.uniform(size=(TURNS, 1024, 2)), jnp.float32),
    )

    def loop(genotypes, batches):
        def turn(held, batch):
            return held.add(layout, genotypes, batch, jnp.int32(1))[0], None

        return jax.lax.scan(turn, Repertoire.empty(layout, genotypes[0]), batches)[0]

    timed(benchmark, loop, genotypes, batches, unit="1,024 solutions")


@pytest.mark.parametrize("cells", [1024, 10_000])
def test_nearest_centroid(benchmark, cells):
    layout = Cells(RANDOM.uniform(size=(cells, 2)).astype(np.float32), UNIT)
    points = jnp.asarray(RANDOM.uniform(size=(4096, 2)), jnp.float32)
    timed(benchmark, layout.assign, points, turns=1, unit="4,096 descriptors")


@pytest.mark.parametrize(
    ("name", "params"), [("sep-cma-es", 66), ("lm-ma-es", 66), ("sep-cma-es", 72_000), ("lm-ma-es", 72_000)]
)
def test_strategy(benchmark, name, params):
    strategy = make_strategy(name, population=16)
    key = native_random.native_keys(jax.random.key(0))

    def loop(state):
        def turn(turn, state):
            genotypes, state = strategy.ask(jax.random.fold_in(key, turn), state)
            return strategy.tell(key, state, genotypes, -jnp.square(genotypes[:, :8]).sum(axis=1))

        return jax.lax.fori_loop(0, TURNS, turn, state)

    timed(benchmark, loop, strategy.init(key, jnp.zeros(params)), unit="generations of 16")


def gp_data(rows):
    """Return what a GP learns from: a wavy surface with noise."""
    x = RANDOM.uniform(size=(rows, 2))
    fitness = np.sin(5 * x[:, 0]) + np.cos(4 * x[:, 1]) + 0.1 * RANDOM.standard_normal(rows)
    numbers = (jnp.asarray(values, jnp.float32) for values in (x, fitness))
    return GPData(*numbers, jnp.asarray(RANDOM.integers(1, 50, rows), jnp.int32), jnp.ones(rows, bool))


@pytest.mark.parametrize("rows", [256, 1024, 10_000])
@pytest.mark.parametrize("step", ["fit", "condition", "predict"])
def test_gp(benchmark, step, rows):
    settings, data = GPSettings(), gp_data(rows)
    start = settings.initial_hyperparameters()
    steps = {
        "fit": (lambda data: fit(settings, start, data).hyperparameters, (data,)),
        "condition": (lambda data: condition(settings, start, data).weights, (data,)),
        "predict": (predict, (condition(settings, start, data), data.x)),
    }
    function, arguments = steps[step]
    with one_blas_thread():
        timed(benchmark, function, *arguments, turns=1, unit=f"{rows} rows")
