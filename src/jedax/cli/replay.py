"""The command `jedax replay`."""

from __future__ import annotations

import os
from typing import Any

from jedax.cli.options import Option, parse
from jedax.cli.run import nothing_to_save
from jedax.errors import JedaxError, fail

_REPLAY = {
    "cell": Option("A descriptor: replay the solution of the cell it lies in. Default: the best.", tuple[float, ...]),
    "seed": Option("Replay the replica of this seed. Default: the one that found the best solution.", int),
    "out": Option("Folder for pictures and films. Default: replay/ in the run's directory.", str),
}


def replay(arguments: list[str]) -> None:
    """Let a solution of a run act again, and draw it."""
    directory = arguments.pop(0) if arguments and not arguments[0].startswith("-") else None
    values = parse(
        arguments, _REPLAY, prog="jedax replay DIR",
        description="Let the best solution of a run act again: picture (PNG), film (GIF) and trajectory (npz).",
    )  # fmt: skip
    if directory is None:
        raise fail("jedax replay", expected="a run's directory", received="none", remedy="see runs/")
    cell = tuple(_number("cell", text, float) for text in values["cell"]) if "cell" in values else None
    seed = _number("seed", values["seed"], int) if "seed" in values else None
    # MuJoCo cannot even simulate where this asks for an OpenGL that is not there; films are made in another process.
    os.environ.pop("MUJOCO_GL", None)
    with nothing_to_save():
        from jedax.report.replay import replay as show
        from jedax.search.environment import keep_compiled_programs

        keep_compiled_programs()
    found = show(directory, cell=cell, seed=seed, out=values.get("out"))
    descriptor = " ".join(f"{number:.4g}" for number in found.solution.descriptor)
    print(f"fitness {found.fitness:.2f}, recorded descriptor {descriptor}")
    for remark in found.remarks:
        print(remark)
    for path in found.files:
        print(path)


def _number(name: str, text: str, kind: Any) -> Any:
    try:
        return kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise JedaxError(f"{name}: expected {expected}, got {text!r}; change it.") from None
