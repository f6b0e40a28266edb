"""The tasks that come with jedax, by name, without importing JAX."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jedax.errors import JedaxError, unknown
from jedax.imports import load_object
from jedax.settings import Config
from jedax.tasks.control.settings import AntMazeConfig, LocomotionConfig, Robot
from jedax.tasks.functions.settings import ArmConfig, FunctionConfig
from jedax.tasks.gym.settings import GymConfig
from jedax.tasks.maze.settings import MazeConfig, load_maze_file
from jedax.tasks.playground.settings import PlaygroundConfig
from jedax.tasks.python.files import file_for_task, meant_file
from jedax.tasks.python.settings import OwnTaskConfig, PythonFunctionConfig

if TYPE_CHECKING:
    from jedax.tasks.base import Task


@dataclass(frozen=True)
class TaskEntry:
    """A task by name: what it is, its default settings, and the class that runs it."""

    summary: str
    config: Callable[..., Config]
    factory: str  # "module:class", imported when the task is made


def _maze(name: str, summary: str) -> TaskEntry:
    layout = Path(__file__).parent / "maze" / "layouts" / f"{name}.yaml"
    return TaskEntry(summary, functools.partial(load_maze_file, layout), _MAZE)


def _robot(name: Robot, summary: str, steps: int, evaluations: int) -> TaskEntry:
    config = functools.partial(LocomotionConfig, name=name, steps=steps, evaluations=evaluations)
    return TaskEntry(summary, config, "jedax.tasks.control.locomotion:Locomotion")


_MAZE = "jedax.tasks.maze.task:Maze"
_FUNCTIONS = "jedax.tasks.functions.task"

TASKS: dict[str, TaskEntry] = {
    "maze-a": _maze("maze-a", "Robot in maze A of the paper; behaviour: where it stands before its last step."),
    "maze-b": _maze("maze-b", "Robot in maze B, a snake."),
    "maze-c": _maze("maze-c", "Robot in maze C, slanted walls and dead ends."),
    "maze-quad-b": _maze("maze-quad-b", "Robot in the middle of four mirrored copies of maze B."),
    "sphere": TaskEntry("Sphere function; behaviour: two sums of parameters.", FunctionConfig, f"{_FUNCTIONS}:Sphere"),
    "rastrigin": TaskEntry("Rastrigin function, many local optima; behaviour as sphere.", FunctionConfig,
                           f"{_FUNCTIONS}:Rastrigin"),
    "arm": TaskEntry("Planar arm with smooth joints; behaviour: where its tip is.", ArmConfig,
                     f"{_FUNCTIONS}:PlanarArm"),
    "halfcheetah": _robot("halfcheetah", "Brax's half cheetah is to run; behaviour: how often each foot is down.",
                          500, 5_000_000),
    "walker2d": _robot("walker2d", "Brax's two-legged walker is to walk; behaviour as halfcheetah.", 1000, 10_000_000),
    "ant-maze": TaskEntry("Brax's ant is to find its way between walls; behaviour: where it ends.", AntMazeConfig,
                          "jedax.tasks.control.ant_maze:AntMaze"),
    "hopper": _robot("hopper", "Brax's one-legged hopper is to hop; behaviour as halfcheetah.", 1000, 10_000_000),
    "ant": _robot("ant", "Brax's ant is to run; behaviour as halfcheetah, four feet.", 1000, 10_000_000),
    "humanoid": _robot("humanoid", "Brax's humanoid is to walk; behaviour as halfcheetah.", 1000, 10_000_000),
}  # fmt: skip


MAZE = "maze:"
"""Starts the name of a maze that was made in Python; its settings say all."""


_ELSEWHERE = {
    "gym:": TaskEntry("An environment of gymnasium, such as gym:HalfCheetah-v5.", GymConfig,
                      "jedax.tasks.gym.task:Gym"),
    "playground:": TaskEntry("An environment of MuJoCo Playground, such as playground:CheetahRun.", PlaygroundConfig,
                             "jedax.tasks.playground.task:Playground"),
}  # fmt: skip
"""Tasks of others, by how their names start."""


def is_elsewhere(name: str) -> bool:
    """Whether a task's name is `gym:...`, `playground:...`, or a function or class of the user's, `module:name`."""
    is_named = re.fullmatch(r"[A-Za-z_][\w.]*(?<!\.py):\S+", name) is not None
    return is_named and not name.startswith((MAZE, "custom:"))


def is_own(name: str) -> bool:
    """Whether a task's name is that of a function or class of the user's."""
    return is_elsewhere(name) and not name.startswith(tuple(_ELSEWHERE))


def _elsewhere_entry(name: str) -> TaskEntry:
    """Return the entry of a task of others; modules of the user's are imported."""
    for prefix, entry in _ELSEWHERE.items():
        if name.startswith(prefix):
            return replace(entry, config=functools.partial(entry.config, name=name))
    found = load_object(name, "task")
    if isinstance(found, type):
        budget = getattr(found, "default_evaluations", None)
        given = {"evaluations": budget} if isinstance(budget, int) else {}
        return TaskEntry(f"The class {name}.", functools.partial(OwnTaskConfig, name=name, **given),
                         "jedax.tasks.python.own:make")  # fmt: skip
    given = {field: getattr(found, field) for field in PythonFunctionConfig.model_fields if hasattr(found, field)}
    return TaskEntry(f"The function {name}.", functools.partial(PythonFunctionConfig.build, {**given, "name": name}),
                     "jedax.tasks.python.function:PythonFunction")  # fmt: skip


def is_maze_file(name: str) -> bool:
    """Whether a task's name is a path to a maze file rather than the name of a task."""
    return name.endswith((".yaml", ".yml"))


def task_entry(name: str, *, where: str = "") -> TaskEntry:
    """Return the task of that name, or the maze of that YAML file.

    Args:
        name: As the user gave it.
        where: Put in front of the argument's name in errors, such as a file's name.

    Raises:
        JedaxError: Unknown name (the nearest are offered), a maze file that cannot be read, or a module of the
            user's that cannot be imported.
    """
    if is_maze_file(name):
        return TaskEntry(f"The maze in {name}.", functools.partial(load_maze_file, name), _MAZE)
    if name.startswith(MAZE):
        return TaskEntry("A maze made in Python.", MazeConfig, _MAZE)
    if is_elsewhere(name):
        return _elsewhere_entry(name)
    if name not in TASKS:
        raise unknown_task(name, f"{where}: task" if where else "task")
    return TASKS[name]


def unknown_task(name: str, argument: str = "task") -> JedaxError:
    """Word the error for a task that there is not: the nearest names, or what is in the Python file that was meant."""
    file = meant_file(name)
    return unknown(argument, name, TASKS) if file is None else file_for_task(argument, name, file)


def names() -> list[str]:
    """Return the names that `make` knows."""
    return sorted(TASKS)


def make(name: str, config: Config | None = None, /, **parameters: Any) -> Task:
    """Make a task by name, such as `make("maze-a")`, or from a maze file, `make("mine.yaml")`.

    Args:
        name: One of `names()`, or a path that ends in .yaml.
        config: The task's settings; None: its defaults.
        **parameters: Settings to change, such as `hidden=(16,)`.

    Raises:
        JedaxError: Unknown name or parameter, or a value that does not fit.
    """
    entry = task_entry(name)
    module, _, factory = entry.factory.partition(":")
    return getattr(importlib.import_module(module), factory)(config or entry.config(), **parameters)


def is_task(word: str) -> bool:
    """Return whether a word on the command line names a task."""
    return word in TASKS or is_maze_file(word) or is_elsewhere(word)
