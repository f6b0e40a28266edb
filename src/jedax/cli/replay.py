"""The command `jedax replay`."""

from __future__ import annotations

import os

from jedax.cli.options import Option, directory_of, parse
from jedax.cli.run import nothing_to_save

_REPLAY = {
    "cell": Option("A descriptor; replay the solution of its cell. Default: the best solution.", tuple[float, ...], ()),
    "seed": Option("Replay the replica with this seed. Default: the one with the best solution.", int | None),
    "out": Option("Folder for pictures and films. Default: replay/ in the run's directory.", str | None),
}


def replay(arguments: list[str]) -> None:
    """Evaluate a solution of a run again, and draw it."""
    directory = directory_of("replay", arguments)
    values = parse(
        arguments, _REPLAY, prog="jedax replay DIR",
        description="Replay the best solution of a run: picture (PNG), film (GIF) and trajectory (npz).",
    )  # fmt: skip
    # With this set, MuJoCo cannot even simulate where that OpenGL is missing; films are made in another process.
    os.environ.pop("MUJOCO_GL", None)
    with nothing_to_save():
        from jedax.report.replay import replay as show
        from jedax.search.compile_cache import keep_compiled_programs

        keep_compiled_programs()
    found = show(directory, cell=values["cell"] or None, seed=values["seed"], out=values["out"])
    descriptor = " ".join(f"{number:.4g}" for number in found.solution.descriptor)
    print(f"fitness {found.fitness:.5g}, recorded descriptor {descriptor}")
    for line in (*found.remarks, *found.files):
        print(line)
