"""Objects by name."""

import sys

import pytest

from jedax.errors import JedaxError
from jedax.imports import load_object, require


def test_modules_in_the_current_directory_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "found_here.py").write_text("class A:\n    b = 4\n")
    assert load_object("found_here:A.b", "task") == 4


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


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import missing_elsewhere", r"No module named 'missing_elsewhere'; mend the module"),
        ("1 / 0", r"ZeroDivisionError: division by zero; mend the module"),
        ("def f(:", r"SyntaxError: .*; mend the module"),
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
