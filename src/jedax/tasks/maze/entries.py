"""Names of mazes: those of the paper, maze files, and `maze:NAME` for mazes made in Python."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jedax.errors import fail
from jedax.settings import Config
from jedax.tasks.family import Family, TaskEntry
from jedax.tasks.maze.settings import MazeConfig, load_maze_file

_MAKE = "jedax.tasks.maze.task:Maze"
_PREFIX = "maze:"  # of a maze made in Python; the settings of its run hold the whole maze


def _of_paper(name: str, summary: str) -> TaskEntry:
    layout = Path(__file__).parent / "layouts" / f"{name}.yaml"
    return TaskEntry(name, summary, functools.partial(load_maze_file, layout), _MAKE)


def _no_settings(name: str) -> MazeConfig:
    raise fail(
        "task",
        expected="the name of a task or a maze file",
        received=f"{name!r}, which stands for a maze made in Python",
        remedy="see jedax tasks",
    )


def _read(path: str, given: Mapping[str, Any], where: str) -> MazeConfig:
    """Return the maze of a run's settings; its file is read only where the settings lack the walls."""
    default = MazeConfig() if "walls" in given or path.startswith(_PREFIX) else load_maze_file(path)
    return MazeConfig.build({**default.model_dump(), **given}, where=where)


class Mazes(Family):
    """Mazes."""

    order = 0
    pattern = rf"{_PREFIX}.+|.+\.ya?ml"
    prefix = _PREFIX
    make = _MAKE
    entries = (
        _of_paper("maze-a", "Robot in maze A of the paper; behaviour: its position before its last step."),
        _of_paper("maze-b", "Robot in maze B, a snake."),
        _of_paper("maze-c", "Robot in maze C, slanted walls and dead ends."),
        _of_paper("maze-quad-b", "Robot in the middle of four mirrored copies of maze B."),
    )

    def entry(self, name: str) -> TaskEntry:
        """Return the entry of a maze file, or of a maze made in Python."""
        read = functools.partial(_read, name)
        config = functools.partial(_no_settings if name.startswith(_PREFIX) else load_maze_file, name)
        return TaskEntry(name, f"The maze {name}.", config, _MAKE, read=read)

    def title(self, name: str, config: Config | None) -> str:
        """Return the maze's own name, or that of its file."""
        if name.startswith(_PREFIX):
            return name.removeprefix(_PREFIX)
        return str(getattr(config, "name", "")) or Path(name).stem


FAMILY = Mazes()
