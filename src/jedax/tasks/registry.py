"""Tasks by name: those of the folders in `jedax.tasks`, of other packages, and of the user. Does not import JAX.

Another package registers tasks through entry points of the group `jedax.tasks`: the value is a `Task` class, a task
object, a function, or a `TaskEntry`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jedax.errors import JedaxError, fail, unknown
from jedax.imports import CUSTOM, entry_points, is_custom
from jedax.settings import Config, object_names
from jedax.tasks.family import Family, TaskEntry, path_of
from jedax.tasks.python.entries import object_entry
from jedax.tasks.python.settings import OwnTaskConfig
from jedax.tasks.settings import UnknownTask

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from jedax.tasks.base import Task

GROUP = "jedax.tasks"
"""Group of the entry points."""


@functools.cache
def _families() -> tuple[Family, ...]:
    folders = (module.name for module in pkgutil.iter_modules(importlib.import_module(GROUP).__path__) if module.ispkg)
    found = (importlib.import_module(f"{GROUP}.{folder}.entries").FAMILY for folder in folders)
    return tuple(sorted(found, key=lambda family: family.order))


@functools.cache
def entries() -> dict[str, TaskEntry]:
    """Return the entries of the tasks that come with jedax, by name, in the order of lists."""
    return {entry.name: entry for family in _families() for entry in family.entries}


def _registered() -> dict[str, EntryPoint]:
    """Return the entry points of other packages; names of jedax itself win."""
    return {name: point for name, point in entry_points(GROUP).items() if name not in entries()}


def _family_of(name: str) -> Family | None:
    if is_custom(name):
        return None
    return next((family for family in _families() if re.fullmatch(family.pattern, name)), None)


def names() -> list[str]:
    """Return the names of all registered tasks."""
    return sorted([*entries(), *_registered()])


def summaries() -> dict[str, str]:
    """Return what each registered task is, in a sentence; packages of others are not imported."""
    others = {name: f"{point.value}, of another package." for name, point in _registered().items()}
    return {name: entry.summary for name, entry in entries().items()} | others


def is_task(word: str) -> bool:
    """Return whether a word on the command line names a task; nothing of the user's is imported or read."""
    return word in entries() or _family_of(word) is not None or word in _registered()


def task_entry(name: str, where: str = "") -> TaskEntry:
    """Return the entry of a task: one of `names()`, a maze file, `gym:ID`, `module:object`, and so on.

    Errors begin with `where`, such as the name of a file.
    """
    if name in entries():
        return entries()[name]
    family = _family_of(name)
    if family is not None:
        return family.entry(name)
    if name in _registered():
        point = _registered()[name]
        return object_entry(name, f"{point.module}:{point.attr}")
    raise unknown_task(name, f"{where}: task" if where else "task")


def code_of(name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return what a task in the settings of a run imports that jedax does not know, as `module:object`.

    Nothing is imported. `settings` are plain values.
    """
    family = None if name in entries() else _family_of(name)
    if family is not None:
        return family.code(name, settings)
    return object_names(settings) if name in _registered() else []


def unknown_task(name: str, argument: str = "task") -> JedaxError:
    """Return the error for an unknown task: it offers similar names, or what is in the Python file that was meant."""
    explained = filter(None, (family.explain(argument, name) for family in _families()))
    return next(explained, None) or unknown(argument, name, names())


def make(name: str, config: Config | None = None, /, **settings: Any) -> Task:
    """Make a task by name, such as `make("maze-a")`, `make("mine.yaml")` or `make("mine:Drone")`.

    Args:
        name: As in `task_entry`.
        config: The task's settings; None: its defaults.
        **settings: Settings to change, such as `hidden=(16,)`.

    Raises:
        JedaxError: An unknown name or setting, or a value that does not fit.
    """
    entry = task_entry(name)
    config = entry.config() if config is None else config
    if settings:
        config = config.replace(**settings)
    if not isinstance(entry.make, str):
        return entry.make(config)
    module, _, attribute = entry.make.partition(":")
    return getattr(importlib.import_module(module), attribute)(config)


def settings_of(name: str, given: Mapping[str, Any], where: str = "") -> Config | None:
    """Return a task's settings from some values, by default its own; None: the task has no settings."""
    if is_custom(name):
        if given:
            expected = "none for a task defined in Python"
            raise fail(f"{where}: task_config", expected=expected, received=given, remedy="remove it")
        return None
    entry = task_entry(name, where)
    if entry.read is not None:
        return entry.read(given, where)
    default = entry.config()
    return type(default).build({**default.model_dump(), **given}, where=where)


def name_of(task: Task) -> str:
    """Return the name under which the settings of a run keep a task.

    That is its registered name, another one that `task_entry` knows, such as `module:Class`, or `custom:NAME` for a
    task that only the user's program can make.
    """
    name, config, kind = getattr(task, "name", ""), getattr(task, "config", None), type(task)
    found = None
    if config is None or type(config) is getattr(kind, "Config", None):
        if name in entries() and entries()[name].make == path_of(kind):
            return name
        found = next(filter(None, (family.name_of(task) for family in _families())), None)
    return found or f"{CUSTOM}{name}"


def config_of(name: str, task: Task) -> Config | None:
    """Return the settings of a task under the name that `name_of` gave; None: no settings can make it again."""
    return None if is_custom(name) else getattr(task, "config", None) or task_entry(name).config()


def title_of(name: str, config: Config | None = None) -> str:
    """Return what reports and directories call a task; the settings of a maze file may name the maze."""
    if is_custom(name):
        return name.removeprefix(CUSTOM)
    if name in entries():
        return entries()[name].title or name
    family = _family_of(name)
    return name if family is None else family.title(name, config)


def task_of(name: str, task_config: Config | None, given: Task | None = None) -> Task:
    """Return the task that the settings of a run name: the one that the user gave, after checks, or a new one."""
    from jedax.tasks.base import check_task

    if given is not None and isinstance(task_config, UnknownTask):
        kind = type(getattr(given, "config", None) or OwnTaskConfig(name=name))
        task_config = kind.build(task_config.model_dump(), where="task")
    if given is not None and (is_custom(name) or isinstance(task_config, OwnTaskConfig)):
        return check_task(given)
    if given is not None:
        if getattr(given, "config", None) != task_config:
            raise fail("task", expected=f"the {name} of the settings", received=repr(given), remedy="leave it out")
        return given
    if is_custom(name):
        expected = f"the task object {name.removeprefix(CUSTOM)}"
        raise fail("task", expected=expected, received="none", remedy="pass it as task=...")
    return make(name, task_config)
