"""Ask and tell from outside."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.search.workers.work import sphere

import jedax
from jedax.tasks import make as make_task

BOUNDS = ([-1.0, -1.0], [1.0, 1.0])
SMALL = {"population": 4, "pool": 2, "cells": 64}


def simulate(genotypes):
    return -np.square(genotypes - 0.5).sum(axis=1), np.clip(genotypes[:, :2], -1, 1)


def make(**changes):
    return jedax.Optimizer(**{"num_params": 6, "descriptor_bounds": BOUNDS, "evaluations": 8 * 200, **SMALL, **changes})


def drive(optimizer, generations):
    for _ in range(generations):
        optimizer.tell(*simulate(optimizer.ask()))
    return optimizer


def test_finds_what_it_is_after():
    optimizer = make()
    first = simulate(optimizer.ask())[0].max()
    while not optimizer.done:
        optimizer.tell(*simulate(optimizer.ask()))
    assert optimizer.evaluations == 1600
    assert optimizer.best.fitness > first / 2
    fitness, descriptors = simulate(optimizer.best.genotype[None])
    assert optimizer.best.fitness == pytest.approx(float(fitness[0]), rel=1e-5)
    np.testing.assert_allclose(optimizer.best.descriptor, descriptors[0], rtol=1e-6)
    assert int(optimizer.repertoire.counts.sum()) == 1600


def test_minimising_is_maximising_the_negative():
    up, down = drive(make(), 12), make(minimise=True)
    for _ in range(12):
        fitness, descriptors = simulate(down.ask())
        down.tell(-fitness, descriptors)
    assert down.best.fitness == -up.best.fitness
    np.testing.assert_array_equal(down.best.genotype, up.best.genotype)


def test_same_seed_same_batches():
    one, other = drive(make(seed=3), 7), drive(make(seed=3), 7)
    np.testing.assert_array_equal(one.ask(), other.ask())
    assert not np.array_equal(make(seed=3).ask(), make(seed=4).ask())


def test_a_batch_stays_until_it_is_told():
    optimizer = make()
    for _ in range(8):
        np.testing.assert_array_equal(optimizer.ask(), optimizer.ask())
        batch = optimizer.ask()
        batch[:] = 0  # the caller's own copy
        optimizer.tell(*simulate(optimizer.ask()))


def test_initial_genotypes_come_first():
    optimizer = make(initial=np.full((2, 6), 0.5))
    np.testing.assert_array_equal(optimizer.ask()[:2], np.full((2, 6), 0.5, np.float32))
    assert optimizer.ask().shape == (8, 6)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("jedi", {"population": 4, "pool": 2, "generations": 5}),
        ("es", {"population": 8}),
        ("es-restart", {"population": 8}),
        ("map-elites", {"offspring": 8}),
        ("cma-me", {"population": 4, "pool": 2}),
        ("cma-mae", {"population": 4, "pool": 2, "threshold_min": -100.0}),
    ],
)
def test_every_method_can_be_fed_from_outside(tmp_path, method, parameters):
    def search():
        return jedax.Optimizer(6, BOUNDS, evaluations=8 * 50, method=method, cells=16, seed=2, **parameters)

    optimizer = search()
    first = simulate(optimizer.ask())[0].max()
    drive(optimizer, 4).save(tmp_path / "half")
    again = jedax.Optimizer.load(tmp_path / "half")
    assert type(again.config) is type(optimizer.config)
    for other in (optimizer, again):
        while not other.done:
            other.tell(*simulate(other.ask()))
    assert optimizer.best.fitness > first
    assert int(optimizer.repertoire.counts.sum()) == optimizer.evaluations
    assert_same_bits(optimizer.repertoire, again.repertoire)


def test_numbers_of_numpy_are_saved(tmp_path):
    numbers = {"seed": np.int64(3), "population": np.int32(4), "minimise": np.bool_(True), "initial_std": np.float32(1)}
    optimizer = drive(make(**numbers), 2)
    optimizer.save(tmp_path / "saved")
    assert_same_bits(jedax.Optimizer.load(tmp_path / "saved").repertoire, optimizer.repertoire)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("jedi-x", {"population": 4, "pool": 2, "patience": 2, "scouts": 2}),
        ("jedi", {"population": 4, "pool": 2, "generations": 5, "gp_max_steps": 4}),
        ("es-restart", {"population": 8}),
        ("map-elites", {"offspring": 8}),
        ("cma-me", {"population": 4, "pool": 2}),
    ],
)
def test_finds_what_a_run_finds_whose_task_is_a_function(method, settings):
    task = make_task("tests.search.workers.work:sphere", initial_std=0.7)
    settings = {"evaluations": 8 * 16, "seed": 3, "cells": 64, **settings}
    given = np.full((1, 3), 0.5, np.float32)
    run = jedax.run(method, task, workers=1, start_genotypes=given, **settings)
    optimizer = jedax.Optimizer(3, BOUNDS, method=method, initial_std=0.7, initial=given, **settings)
    while not optimizer.done:
        optimizer.tell(*sphere(optimizer.ask()))
    assert optimizer.evaluations == run.summary["evaluations"]
    assert_same_bits(optimizer.repertoire, jax.tree.map(lambda leaf: leaf[0], run.repertoire))


def test_methods_that_need_more_than_fitness_and_descriptors_are_refused():
    with pytest.raises(jedax.JedaxError, match=r"task outside: expected for pga-me, a .*Task whose genotypes are"):
        jedax.Optimizer(6, BOUNDS, evaluations=100, method="pga-me")


def test_the_lowest_fitness_of_an_unknown_problem_must_be_told():
    with pytest.raises(jedax.JedaxError, match="threshold_min: expected a number"):
        jedax.Optimizer(6, BOUNDS, evaluations=100, method="cma-mae")


@pytest.mark.parametrize("generations", [0, 1, 5, 7])
@pytest.mark.parametrize("out", [False, True])
def test_save_and_load_go_on_with_the_same_bits(tmp_path, generations, out):
    optimizer = drive(make(seed=1), generations)
    if out:
        optimizer.ask()
    optimizer.save(tmp_path / "search.safetensors")
    loaded = jedax.Optimizer.load(tmp_path / "search.safetensors")
    assert loaded.evaluations == optimizer.evaluations
    for _ in range(9):
        np.testing.assert_array_equal(loaded.ask(), optimizer.ask())
        for each in (loaded, optimizer):
            each.tell(*simulate(each.ask()))
    assert_same_bits(loaded.repertoire, optimizer.repertoire)


def test_gp_targets_by_ask_and_tell():
    optimizer = drive(make(method="jedi", generations=5, gp_max_steps=4), 12)
    assert optimizer.evaluations == 96
    assert int(optimizer._state.gp_fitted_at[0]) == 88


def test_failures_are_counted():
    optimizer = make()
    fitness, descriptors = simulate(optimizer.ask())
    fitness[0], fitness[1], descriptors[2, 1] = np.nan, np.inf, np.nan
    optimizer.tell(fitness, descriptors)
    assert int(optimizer.repertoire.num_failed) == 3
    assert int(optimizer.repertoire.counts.sum()) == 5


def test_descriptors_outside_the_bounds_are_counted():
    optimizer = make()
    optimizer.ask()
    optimizer.tell(np.zeros(8), np.full((8, 2), 3.0))
    assert int(optimizer.repertoire.num_outside) == 8
    nearest = optimizer.cells.centroids[optimizer.repertoire.counts.argmax()]
    assert (nearest > 0.7).all()


def test_tell_before_ask():
    with pytest.raises(jedax.JedaxError, match=r"tell: expected a batch from ask\(\) first"):
        make().tell(np.zeros(8), np.zeros((8, 2)))
    optimizer = drive(make(), 1)
    with pytest.raises(jedax.JedaxError, match="tell"):
        optimizer.tell(np.zeros(8), np.zeros((8, 2)))


def test_best_before_tell():
    with pytest.raises(jedax.JedaxError, match=r"best: expected at least one tell\(\)"):
        _ = make().best


@pytest.mark.parametrize(
    ("fitness", "descriptors", "message"),
    [
        (np.zeros(7), np.zeros((8, 2)), r"fitness: expected shape \(8,\), got \(7,\)"),
        (np.zeros((8, 1)), np.zeros((8, 2)), r"fitness: expected shape \(8,\), got \(8, 1\)"),
        (np.zeros(8), np.zeros((8, 3)), r"descriptors: expected shape \(8, 2\), got \(8, 3\)"),
        (np.zeros(8), np.zeros((2, 8)), r"descriptors: expected shape \(8, 2\), got \(2, 8\)"),
        (["a"] * 8, np.zeros((8, 2)), r"fitness: expected numbers"),
        (np.zeros(8), None, r"descriptors: expected shape"),
        ([10**400] * 8, np.zeros((8, 2)), r"fitness: expected numbers of shape \(8,\), got a number beyond all floats"),
        (np.zeros(8) + 1j, np.zeros((8, 2)), r"fitness: expected numbers of shape \(8,\), got complex numbers"),
        (np.zeros(8), np.ma.array(np.zeros((8, 2)), mask=True), r"descriptors: expected .*, got masked values"),
        (np.zeros(8, "M8[D]"), np.zeros((8, 2)), r"fitness: expected .*, got dates"),
    ],
)
def test_wrong_shapes_change_nothing(fitness, descriptors, message):
    optimizer = drive(make(), 3)
    batch = optimizer.ask()
    with pytest.raises(jedax.JedaxError, match=message):
        optimizer.tell(fitness, descriptors)
    assert optimizer.evaluations == 24
    np.testing.assert_array_equal(optimizer.ask(), batch)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population": 1}, "population: expected greater than or equal to 2"),
        ({"method": "jedi", "alpa": 0.3}, "parameter: unknown name 'alpa'; did you mean 'alpha'"),
        ({"alpha": 0.3}, "setting: expected one that jedi-x has, got alpha, which belongs to jedi, jedi-uniform"),
        (
            {"method": "jedi", "patience": 5},
            "setting: expected one that jedi has, got patience, which belongs to jedi-x",
        ),
        ({"method": "jedy"}, "method: unknown name 'jedy'; did you mean 'jedi'"),
        ({"descriptor_bounds": ([0.0, 1.0], [1.0, 1.0])}, "descriptor_bounds: expected"),
        ({"num_params": 0}, "num_params: expected a whole number of at least 1"),
        ({"evaluations": -1}, "evaluations: expected"),
        ({"evaluations": 7}, r"evaluations: expected at least 8 \(one generation\), got 7"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"seed": "a"}, "seed: expected a whole number of at least 0, got 'a'"),
        (
            {"method": 3},
            "method: expected a name, settings such as a JediConfig, or a class derived from jedax.Method, got 3",
        ),
        ({"initial_std": -1}, "initial_std: expected a finite number of at least 0, got -1"),
        ({"initial_std": np.nan}, "initial_std: expected a finite number of at least 0, got nan"),
        ({"descriptor_bounds": 5}, "descriptor_bounds: expected"),
        ({"descriptor_bounds": (["a"], ["b"])}, "descriptor_bounds: expected"),
        ({"initial": "abc"}, r"initial: expected at most 8 rows of 6 numbers, got <U3"),
        (
            {"initial": np.zeros((2, 5))},
            r"initial: expected at most 8 rows of 6 numbers, got float64 of shape \(2, 5\)",
        ),
        ({"initial": np.zeros((9, 6))}, r"initial: expected at most 8 rows of 6 numbers"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(jedax.JedaxError, match=message):
        make(**changes)


def test_saving_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(jedax.JedaxError, match=r"path: expected a file that can be written, got .*(exists|Not a dir)"):
        make().save(tmp_path / "file" / "x.safetensors")


@pytest.mark.parametrize("how", ["flip", "truncate", "foreign", "missing"])
def test_damaged_files_are_refused(tmp_path, how):
    path = tmp_path / "search.safetensors"
    drive(make(), 2).save(path)
    if how == "flip":
        data = bytearray(path.read_bytes())
        data[-50] ^= 1
        path.write_bytes(data)
    elif how == "truncate":
        path.write_bytes(path.read_bytes()[:200])
    elif how == "foreign":
        from safetensors.numpy import save_file

        save_file({"a": np.zeros(3)}, path)
    else:
        path.unlink()
    with pytest.raises(jedax.JedaxError, match=str(path)):
        jedax.Optimizer.load(path)


def test_a_new_process_takes_compiled_programs_from_the_cache(tmp_path):
    """Also where the user compiled something before."""
    program = (
        "import jax; jax.jit(lambda x: 2 * x)(jax.numpy.ones(3))\n"
        "import jedax; jedax.Optimizer(2, ([-1, -1], [1, 1]), evaluations=640, cells=16).ask()"
    )
    taken = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    environment = {name: value for name, value in os.environ.items() if name not in taken}
    subprocess.run([sys.executable, "-c", program], env=environment | {"XDG_CACHE_HOME": str(tmp_path)}, check=True)
    assert any("draw" in file.name for file in (tmp_path / "jedax" / "xla").rglob("*"))
