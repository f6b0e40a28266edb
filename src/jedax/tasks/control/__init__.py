"""Control tasks: robots that Brax simulates. Needs the extra `jedax[brax]` as soon as something is evaluated."""

from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.control.locomotion import Locomotion

__all__ = ["AntMaze", "Locomotion"]
