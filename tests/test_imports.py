"""Objects by name, and what is imported when."""

import subprocess
import sys

import pytest

from jedax.errors import JedaxError
from jedax.imports import load_object, object_name, require


def test_modules_in_the_current_directory_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found_here.py").write_text("class A:\n    b = 4\n")
    assert load_object("found_here:A.b", "task") == 4


def test_installed_modules_bring_no_modules_of_the_current_directory(tmp_path, monkeypatch):
    """Those could take the place of packages that are imported later."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert load_object("json:dumps", "task") is not None
    assert str(tmp_path) not in sys.path
    (tmp_path / "mine_alone.py").write_text("f = 1\n")
    assert load_object("mine_alone:f", "task") == 1
    assert str(tmp_path) in sys.path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "no_such_module:f",
            r"task: expected a module no_such_module .*No module named 'no_such_module'; check its name",
        ),
        ("math:sine", r"task: expected 'sine' in math, got none; did you mean .*'sin'"),
        ("math:q", r"task: expected 'q' in math, got none; choose one of acos, .*\.$"),
    ],
)
def test_what_is_not_there(name, message):
    with pytest.raises(JedaxError, match=message):
        load_object(name, "task")


def test_modules_are_not_proposed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "with_modules.py").write_text("import json\n\njsons = 1\n")
    with pytest.raises(JedaxError, match=r"did you mean 'jsons'\?$"):
        load_object("with_modules:json2", "task")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import broken", r"No module named 'broken'; correct the module"),  # not broken_module itself
        ("import missing_elsewhere", r"No module named 'missing_elsewhere'; correct the module"),
        ("1 / 0", r"ZeroDivisionError: division by zero; correct the module"),
        ("def f(:", r"SyntaxError: .*; correct the module"),
        ("import sys; sys.exit(0)", r"SystemExit: 0; put what it runs as a script below: if __name__ == '__main__'"),
    ],
)
def test_modules_that_are_broken(tmp_path, monkeypatch, code, message):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_module.py").write_text(code)
    with pytest.raises(JedaxError, match=message):
        load_object("broken_module:f", "task")


def test_a_missing_extra_is_said():
    with pytest.raises(JedaxError, match=r"gym:X: expected the package gymnasum, .*pip install 'jedax\[gym\]'"):
        require("gymnasum", "gym", "gym:X")


class Outer:
    class Inner:
        pass


def test_names_of_objects_import_them_again():
    for known in (Outer, Outer.Inner, test_what_is_not_there):
        assert load_object(object_name(known), "object") is known
    assert object_name(Outer.Inner) == f"{__name__}:Outer.Inner"
    assert object_name(Outer()) == "custom:Outer"

    class Local:
        pass

    assert object_name(Local).startswith("custom:test_names_of_objects")


def test_objects_of_the_main_module_cannot_be_imported_again():
    program = "from jedax.imports import object_name\nclass Mine: pass\nprint(object_name(Mine))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "custom:Mine\n"


HEAVY = ["jax", "jaxlib", "matplotlib", "pandas", "scipy", "optax", "evosax", "brax", "mujoco", "flax", "gymnasium",
         "ray", "plotly", "optuna"]  # fmt: skip
WORKERS = ["jedax.search.workers.evaluator", "jedax.search.workers.functions", "jedax.networks", "jedax.tasks.work",
           "jedax.tasks.gym.episodes", "jedax.tasks.python.calls"]  # fmt: skip
STRATEGY = "from jedax.es import make_strategy; make_strategy('lm-ma-es', population=4)"
CONTROL = """
import jax, jedax
task = jedax.tasks.make("ant-maze")
task.init(jax.random.key(0))
repr(task), task.descriptor_bounds, task.qd_offset
"""


def loaded(program, names):
    """Return those of the modules that a program imports in a new process."""
    program += f"\nimport sys; print(*sorted(set({names}) & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("module", ["jedax", "jedax.tasks", "jedax.cli", "jedax.cli.exchange", *WORKERS])
def test_importing_the_package_is_light(module):
    """No JAX, no figures, no extra, for the package and for what worker processes load."""
    assert loaded(f"import {module}", HEAVY) == []


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("import jedax; jedax.Evaluation; jedax.tasks", ["optax"]),
        (STRATEGY, ["evosax"]),
        (CONTROL, ["brax", "mujoco", "flax"]),
    ],
)
def test_extras_and_learning_are_imported_when_they_are_needed(program, names):
    assert loaded(program, names) == []


def test_evosax_is_imported_for_its_strategies():
    pytest.importorskip("evosax", reason="needs the extra [evosax]")
    assert loaded(STRATEGY.replace("lm-ma-es", "evosax:SNES"), ["evosax"]) == ["evosax"]
