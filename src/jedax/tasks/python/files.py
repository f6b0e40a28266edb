"""Names of tasks in a Python file that was given instead of one; the file is read, never run."""

from __future__ import annotations

import ast
import os
from pathlib import Path

from jedax.errors import JedaxError, fail


def meant_file(name: str) -> Path | None:
    """Return the Python file that an unknown name means, such as drone.py, drone.py:fly or drone, or None."""
    file = Path(name.partition(":")[0])
    if file.suffix == ".py":
        return file
    beside = Path(f"{file}.py")
    return beside if os.path.isfile(beside) else None


def file_for_task(argument: str, name: str, file: Path) -> JedaxError:
    """Return the error for a Python file in the place of `module:name`; it offers the tasks that the file defines.

    Args:
        argument: Name of the argument.
        name: As the user gave it.
        file: What `meant_file` returned.
    """
    expected = "a task's name, or a function or class of a Python file as module:name"
    if not os.path.isfile(file):
        return fail(argument, expected=expected, received=f"{name}, where there is no file", remedy="check the path")
    is_below = not file.is_absolute() and all(part.isidentifier() for part in file.with_suffix("").parts)
    module = ".".join(file.with_suffix("").parts) if is_below else file.stem
    found = [f"{module}:{known}" for known in _tasks_in(file)] or [f"{module}:NAME, of a function that it defines"]
    where = "" if is_below else f" in {file.parent}"
    return fail(argument, expected=expected, received=name, remedy=f"try{where}: {' or '.join(found[:3])}")


def _tasks_in(file: Path) -> list[str]:
    """Return the classes of a file that derive from some Task, and the functions that take one argument."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef) and _takes_one(node.args)]
    bases, classes = {"Task", "ConfiguredTask"}, []
    for node in body:
        if isinstance(node, ast.ClassDef) and {ast.unparse(b).rpartition(".")[2] for b in node.bases} & bases:
            bases.add(node.name)
            classes.append(node.name)
    return [name for name in classes + functions if not name.startswith("_")]


def _takes_one(arguments: ast.arguments) -> bool:
    required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return required == 1 and None not in arguments.kw_defaults
