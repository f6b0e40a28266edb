"""Tasks: problems whose solutions have a fitness and a behaviour."""

from __future__ import annotations

import importlib
from typing import Any

from jedax.config.base import Config
from jedax.config.tasks import TASKS, task_entry
from jedax.tasks.base import Task
from jedax.tasks.control import AntMaze, Locomotion
from jedax.tasks.functions import PlanarArm, Rastrigin, Sphere
from jedax.tasks.maze import Maze

__all__ = ["AntMaze", "Locomotion", "Maze", "PlanarArm", "Rastrigin", "Sphere", "Task", "make", "names"]


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
