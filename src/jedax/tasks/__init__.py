"""Tasks: problems whose solutions have a fitness and a behaviour. Each folder is one family of tasks.

Importing this package does not import JAX, which worker processes do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jedax.imports import lazy_names

if TYPE_CHECKING:
    from jedax.tasks.base import ConfiguredTask, Task
    from jedax.tasks.control.task import AntMaze, Locomotion
    from jedax.tasks.family import TaskEntry
    from jedax.tasks.functions.task import PlanarArm, Rastrigin, Sphere
    from jedax.tasks.maze.task import Maze
    from jedax.tasks.registry import make, names
    from jedax.tasks.settings import TaskConfig

__all__ = [
    "AntMaze", "ConfiguredTask", "Locomotion", "Maze", "PlanarArm", "Rastrigin", "Sphere", "Task", "TaskConfig",
    "TaskEntry", "make", "names"
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AntMaze": "jedax.tasks.control.task",
        "ConfiguredTask": "jedax.tasks.base",
        "Locomotion": "jedax.tasks.control.task",
        "Maze": "jedax.tasks.maze.task",
        "PlanarArm": "jedax.tasks.functions.task",
        "Rastrigin": "jedax.tasks.functions.task",
        "Sphere": "jedax.tasks.functions.task",
        "Task": "jedax.tasks.base",
        "TaskConfig": "jedax.tasks.settings",
        "TaskEntry": "jedax.tasks.family",
        "make": "jedax.tasks.registry",
        "names": "jedax.tasks.registry",
    },
)
