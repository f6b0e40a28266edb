"""Names of the user's own tasks: `module:object`, a function, a class or an object that can be imported."""

from __future__ import annotations

import ast
import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jedax.errors import JedaxError, fail
from jedax.imports import is_custom, load_object, object_name
from jedax.settings import Config, object_names
from jedax.tasks.family import Family, TaskEntry, path_of
from jedax.tasks.python.settings import OwnTaskConfig, PythonFunctionConfig

if TYPE_CHECKING:
    from jedax.tasks.base import Task

_FUNCTION = "jedax.tasks.python.function:PythonFunction"


def object_entry(name: str, target: str) -> TaskEntry:
    """Return the entry of the user's `target`, `module:object`: a function, a `Task` class or object, a `TaskEntry`."""
    found = load_object(target, "task")
    if isinstance(found, TaskEntry):
        return replace(found, name=name)
    if isinstance(found, type) or hasattr(found, "evaluate"):
        summary = f"The {'class' if isinstance(found, type) else 'task'} {target}."
        return TaskEntry(name, summary, _own_config(target, found), functools.partial(_own_task, target, found))
    if not callable(found):
        raise fail(
            "task",
            expected="a function, a subclass of jedax.tasks.Task or an object of one",
            received=f"{target}, which is none",
            remedy="name another",
        )
    given = {field: getattr(found, field) for field in PythonFunctionConfig.model_fields if hasattr(found, field)}
    config = functools.partial(PythonFunctionConfig.build, {**given, "name": target})
    return TaskEntry(name, f"The function {target}.", config, _FUNCTION, few_evaluations=True)


def _own_config(target: str, found: Any) -> Callable[[], Config]:
    """Return what makes the default settings of a task class, or the settings of a task."""
    from jedax.tasks.base import ConfiguredTask

    if isinstance(found, ConfiguredTask):
        return lambda: found.config
    if isinstance(found, type) and issubclass(found, ConfiguredTask):
        return functools.partial(found.Config.build, {}, where=f"{target}.Config")
    budget = getattr(found, "default_evaluations", None)
    given = {"evaluations": budget} if isinstance(budget, int) else {}
    return functools.partial(OwnTaskConfig, name=target, **given)


def _own_task(target: str, found: Any, config: Config) -> Task:
    """Make a task of a class of the user's, or one like a task of the user's, and check it."""
    from jedax.tasks.base import ConfiguredTask, Task, check_task
    from jedax.tasks.measured import MeasuredTask

    kind = found if isinstance(found, type) else type(found)
    if not issubclass(kind, Task):
        raise fail(
            "task",
            expected="a subclass of jedax.tasks.Task",
            received=f"{target}, which is none",
            remedy="derive the class from it",
        )
    try:
        if issubclass(kind, ConfiguredTask):
            task: Task = kind(config)
        else:
            task = found if isinstance(found, Task) else kind()
    except TypeError as error:
        raise fail(
            "task",
            expected="a class that is made without arguments and has init and evaluate",
            received=f"{target} ({error})",
            remedy="give defaults, and see jedax.tasks.Task for what is missing",
        ) from None
    return task if isinstance(task, MeasuredTask) else check_task(task)


class OwnTasks(Family):
    """Tasks of the user's own."""

    order = 90
    pattern = r"[^\W\d][\w.]*(?<!\.py):\S+"

    def entry(self, name: str) -> TaskEntry:
        """Return the entry of an object of the user's, which is imported."""
        return object_entry(name, name)

    def name_of(self, task: Task) -> str | None:
        """Return `module:object` for a function, a class or an object that makes the same task when imported again."""
        from jedax.tasks.base import ConfiguredTask

        kind = type(task)
        if path_of(kind) == _FUNCTION:
            return task.name
        own, named = object_name(kind), object_name(task)
        if not is_custom(own) and (isinstance(task, ConfiguredTask) or _is_default(task)):
            return own
        return None if is_custom(named) else named

    def code(self, name: str, settings: Mapping[str, Any]) -> list[str]:
        """Return the object and all settings that may name another."""
        return [name, *object_names(settings)]

    def explain(self, argument: str, name: str) -> JedaxError | None:
        """Return what to write instead of the name of a Python file."""
        file = _meant_file(name)
        return None if file is None else _file_for_task(argument, name, file)


def _is_default(task: Task) -> bool:
    """Return whether the task's class, called without arguments, makes an equal task."""
    kind = type(task)
    try:
        inspect.signature(kind).bind()
    except TypeError:
        return False
    if is_dataclass(kind):
        return kind() == task
    own = (name for name in vars(task) if not isinstance(getattr(kind, name, None), functools.cached_property))
    return next(own, None) is None


def _meant_file(name: str) -> Path | None:
    """Return the Python file that an unknown name means, such as drone.py, drone.py:fly or drone, or None."""
    file = Path(name.partition(":")[0])
    if file.suffix == ".py":
        return file
    return beside if os.path.isfile(beside := Path(f"{file}.py")) else None


def _file_for_task(argument: str, name: str, file: Path) -> JedaxError:
    """Return the error for a Python file in the place of `module:name`; it offers the tasks that the file defines."""
    expected = "a task's name, or a function or class of a Python file as module:name"
    if not os.path.isfile(file):
        return fail(argument, expected=expected, received=f"{name}, where there is no file", remedy="check the path")
    is_below = not file.is_absolute() and all(part.isidentifier() for part in file.with_suffix("").parts)
    module = ".".join(file.with_suffix("").parts) if is_below else file.stem
    found = [f"{module}:{known}" for known in _tasks_in(file)] or [f"{module}:NAME, of a function that it defines"]
    where = "" if is_below else f" in {file.parent}"
    return fail(argument, expected=expected, received=name, remedy=f"try{where}: {' or '.join(found[:3])}")


def _tasks_in(file: Path) -> list[str]:
    """Return the Task classes and the functions of one argument that a file defines; the file is not run."""
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


FAMILY = OwnTasks()
