"""Tasks: problems whose solutions have a fitness and a behaviour. One folder is one family of tasks.

Importing this package does not import JAX, so that worker processes stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jedax.imports import lazy_names

if TYPE_CHECKING:
    from jedax.tasks.base import Task
    from jedax.tasks.control.ant_maze import AntMaze
    from jedax.tasks.control.locomotion import Locomotion
    from jedax.tasks.functions.task import PlanarArm, Rastrigin, Sphere
    from jedax.tasks.maze.task import Maze
    from jedax.tasks.registry import make, names

__all__ = ["AntMaze", "Locomotion", "Maze", "PlanarArm", "Rastrigin", "Sphere", "Task", "make", "names"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AntMaze": "jedax.tasks.control.ant_maze",
        "Locomotion": "jedax.tasks.control.locomotion",
        "Maze": "jedax.tasks.maze.task",
        "PlanarArm": "jedax.tasks.functions.task",
        "Rastrigin": "jedax.tasks.functions.task",
        "Sphere": "jedax.tasks.functions.task",
        "Task": "jedax.tasks.base",
        "make": "jedax.tasks.registry",
        "names": "jedax.tasks.registry",
    },
)
