"""Mazes: a two-wheeled robot looks for a target between walls."""

from jedax.tasks.maze.task import Maze, Trajectory

__all__ = ["Maze", "Trajectory"]
