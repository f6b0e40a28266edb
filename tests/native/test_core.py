"""Which kernels are in use, and with which instruction set."""

import importlib
import logging
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from tests.conftest import assert_same_bits

from jedax import native
from jedax.errors import JedaxError
from jedax.native import core
from jedax.repertoire.cells import make_cells
from jedax.store import environment
from jedax.tasks import make

KERNELS = [importlib.import_module(f"jedax.native.{name}").KERNEL for name in core.KERNELS]
needs_library = pytest.mark.skipif(core.load()[0] is None, reason=core.load()[1].reason)
KEY = jax.random.key(0)
ROOT = Path(__file__).parents[2]


def forget():
    core.load.cache_clear()
    for kernel in KERNELS:
        vars(kernel).pop("status", None)


@pytest.fixture
def afresh(monkeypatch):
    """Environment variables are read again, and those of the tests' own process are forgotten."""
    monkeypatch.delenv(core.ISA, raising=False)
    monkeypatch.delenv(core.OFF, raising=False)
    forget()
    yield monkeypatch
    monkeypatch.undo()
    forget()
    core.load()


def genotypes_of(maze, count):
    return 2 * jax.vmap(maze.init)(jax.random.split(KEY, count))


def program(maze, genotypes):
    return jax.jit(maze.evaluate_batch).lower(KEY, genotypes).as_text()


def test_every_folder_is_a_kernel():
    assert list(native.status()) == ["control", "es", "maze", "random", "repertoire"]
    assert [kernel.name for kernel in KERNELS] == list(core.KERNELS)


def test_the_record_of_a_run_names_them():
    assert environment.describe()["native"] == {name: str(status) for name, status in native.status().items()}


@needs_library
class TestInstructionSet:
    def test_the_best_one_by_default(self, afresh):
        names = core.load()[0].jedax_instruction_sets().decode().split(",")
        assert names[-1] == "baseline"
        assert set(native.status().values()) == {(names[0], "")}
        assert str(native.status()["maze"]) == names[0]

    def test_by_name(self, afresh):
        afresh.setenv(core.ISA, "baseline")
        assert set(native.status().values()) == {("baseline", "")}
        maze = make("maze-a")
        genotypes = genotypes_of(maze, 20)
        here = jax.jit(maze.evaluate_batch)(KEY, genotypes).fitness
        code = (
            "import tests.conftest; from tests.native.test_core import KEY, genotypes_of, jax, make, np, sys; "
            "maze = make('maze-a'); evaluation = jax.jit(maze.evaluate_batch)(KEY, genotypes_of(maze, 20)); "
            "sys.stdout.buffer.write(np.asarray(evaluation.fitness).tobytes())"
        )
        output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        np.testing.assert_array_equal(np.frombuffer(output, np.float32), here)

    def test_unknown(self, afresh):
        afresh.setenv(core.ISA, "mmx")
        with pytest.raises(JedaxError, match=r"^JEDAX_ISA: expected one of .*baseline, got mmx; "):
            native.status()


class TestWithoutLibrary:
    def test_missing_is_said_once(self, afresh, tmp_path, caplog):
        afresh.setattr(core, "__path__", [str(tmp_path)])
        with caplog.at_level(logging.WARNING):
            found = set(native.status().values())
        assert len(found) == 1
        (status,) = found
        assert status.instruction_set is None
        assert "C++17 compiler" in status.reason
        assert str(status).startswith("none: it was not built")
        assert [record.levelname for record in caplog.records] == ["WARNING"]

    def test_broken(self, afresh, tmp_path):
        (tmp_path / core.LIBRARY).write_bytes(b"not a library")
        afresh.setattr(core, "__path__", [str(tmp_path)])
        assert core.LIBRARY in native.status()["maze"].reason

    @needs_library
    def test_of_other_sources(self, afresh, tmp_path):
        """As after an update of a checkout that is installed with `pip install -e`."""
        for path in (*Path(core.__file__).parents[1].glob("*/*.cc"), *Path(core.__file__).parents[1].glob("*/*.h")):
            copy = tmp_path / "native" / path.parent.name / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes() + b"\n" * (path.name == "es.h"))
        afresh.setattr(core, "__file__", str(tmp_path / "native" / "core" / "__init__.py"))
        assert native.status()["maze"].reason.startswith("it was built from other sources; build it again")


class TestOff:
    """Each kernel can be left out; JAX then does its work."""

    @needs_library
    def test_one(self, afresh, caplog):
        afresh.setenv(core.OFF, "repertoire")
        status = native.status()
        assert status["repertoire"] == (None, "JEDAX_NATIVE_OFF names repertoire")
        assert status["maze"].instruction_set == status["random"].instruction_set is not None
        maze, cells = make("maze-a", steps=12), make_cells(((0.0, 0.0), (1.0, 1.0)), 200)
        assert "jedax_maze_evaluate" in program(maze, genotypes_of(maze, 9))
        assert "jedax_repertoire" not in jax.jit(cells.assign).lower(np.zeros((3, 2), np.float32)).as_text()
        assert not caplog.records

    def test_the_maze(self, afresh):
        afresh.setenv(core.OFF, "random, maze")
        maze = make("maze-a", steps=11)
        genotypes = genotypes_of(maze, 9)
        assert "jedax_maze" not in program(maze, genotypes)
        keys = jax.random.split(KEY, len(genotypes))
        assert_same_bits(
            jax.jit(maze.evaluate_batch)(KEY, genotypes).fitness, jax.jit(maze.evaluate_in_jax)(keys, genotypes).fitness
        )
        assert_same_bits(jax.jit(maze.rollout_batch)(KEY, genotypes), jax.jit(jax.vmap(maze.rollout))(keys, genotypes))

    def test_all(self, afresh, caplog):
        afresh.setenv(core.OFF, "all")
        assert set(native.status().values()) == {(None, "JEDAX_NATIVE_OFF names all")}
        assert not caplog.records

    def test_unknown(self, afresh):
        afresh.setenv(core.OFF, "mazes")
        with pytest.raises(JedaxError, match=r"^JEDAX_NATIVE_OFF: unknown name 'mazes'; did you mean 'maze'\?"):
            native.status()
