"""The commands that read runs: `jedax compare`, `replay`, `reevaluate`, `report`, `export` and `view`."""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import Literal

from jedax.cli.options import DIRECTORY, TRUST, TRUST_TO_SHOW, Option, nothing_to_save, only_directory, parse, say
from jedax.errors import fail, jedax_command

_COMPARE = {
    "directories": Option("Directories of runs, and CSV files of other programs.", tuple[str, ...], (), words="DIR..."),
    "out": Option(
        "Directory for tables and figures; default: compare/ in the first directory, beside it if it is a run.",
        str | None,
    ),
    "reference": Option("The method that others are tested against; default: the best JEDi of each task.", str | None),
    "band": Option("Around the median: quartiles, or std: one standard deviation, as in the paper.", str, "quartiles"),
    "fitness": Option("Also count the evaluations needed to reach each of these.", tuple[float, ...], ()),
}
_REPLAY = {
    **DIRECTORY,
    "cell": Option("A descriptor; replay the solution of its cell. Default: the best solution.", tuple[float, ...], ()),
    "seed": Option("Replay the replica with this seed. Default: the one with the best solution.", int | None),
    "out": Option("Folder for pictures and films. Default: replay/ in the run's directory.", str | None),
    **TRUST,
}
_REEVALUATE = {
    **DIRECTORY,
    "samples": Option(
        "New evaluations of each solution, at least 4; without noise of task or parameters always 2.", int, 128
    ),
    "seed": Option("Random seed; the random numbers differ from those of every search.", int, 0),
    "cells": Option("Evaluate all elites, or only the best solution of each seed.", Literal["all", "best"], "all"),
    "parameter_noise": Option(
        "Noise on the parameters of each sample, in units of the spread of random solutions.", float, 0.0
    ),
    **TRUST,
}
_REPORT = {
    **DIRECTORY,
    "out": Option("File of the page; default: report.html in the directory.", str | None),
    "share": Option("Put the chart library beside the page instead of inside it.", bool, False),
    "runs": Option("For a directory of runs: also write the page of each run; they share plotly.min.js.", bool, False),
    "trace_seconds": Option("Seconds for simulating robots again, so that the page shows them; 0: none.", float, 60.0),
    **TRUST_TO_SHOW,
}
_EXPORT = {
    **DIRECTORY,
    "onnx": Option("File of the network as ONNX; needs the extra [onnx].", str | None),
    "numpy": Option("File of a Python module that needs NumPy alone; its weights are written beside it.", str | None),
    **TRUST,
}
_VIEW = {
    **DIRECTORY,
    "port": Option("Port on this machine, 0 to 65535; default: any that is free.", int, 0),
    "open": Option("Open a browser.", bool, False),
    **TRUST_TO_SHOW,
}
_NO_CODE = "Without --trust no code outside jedax that the run names is imported."
_SECONDS_BETWEEN_LINES = 10.0


def compare(arguments: list[str]) -> None:
    """Write tables and figures of finished runs."""
    values = parse(
        arguments, _COMPARE, prog="jedax compare",
        description="Compare the runs below some directories, and results of other programs in CSV files (method, "
        "task, seed, evaluations, max_fitness; coverage may be missing). Nothing is run, and no code that the runs "
        "name is imported.",
    )  # fmt: skip
    directories = values.pop("directories")
    if not directories:
        expected = "at least one directory of runs, or a CSV file"
        raise fail("jedax compare", expected=expected, received="none", remedy="try: jedax compare runs")
    with nothing_to_save():
        from jedax.report import comparisons
    found = comparisons.compare(directories, **values)
    say(comparisons.outcome(found, comparisons.folder_for(Path(directories[0]), values["out"])))


def replay(arguments: list[str]) -> None:
    """Evaluate a solution of a run again, and draw it."""
    values = parse(
        arguments, _REPLAY, prog="jedax replay",
        description="Replay the best solution of a run: picture (PNG), film (GIF) and trajectory (npz).",
    )  # fmt: skip
    directory = only_directory("replay", values.pop("directory"))
    # With this set, MuJoCo cannot even simulate where that OpenGL is missing; films are made in another process.
    os.environ.pop("MUJOCO_GL", None)
    with nothing_to_save(compiles=True):
        from jedax.report import replay as replaying
    found = replaying.replay(directory, **{**values, "cell": values["cell"] or None})
    descriptor = " ".join(f"{number:.4g}" for number in found.solution.descriptor)
    say(f"fitness {found.fitness:.5g}, recorded descriptor {descriptor}")
    for line in (*found.remarks, *found.files):
        say(line)


def reevaluate(arguments: list[str]) -> None:
    """Evaluate the solutions of a run again, and print how much of their fitness was luck."""
    values = parse(
        arguments, _REEVALUATE, prog="jedax reevaluate",
        description="Evaluate the solutions of a run many times: corrected fitness, coverage and QD score. Writes "
        "reevaluated.json, .csv and .png to the directory; its other files are not changed.",
    )  # fmt: skip
    directory = only_directory("reevaluate", values.pop("directory"))
    with nothing_to_save(compiles=True):
        from jedax.report import reevaluation
        from jedax.search.progress import StatusLine
        from jedax.store.directory import REEVALUATED
    line, last = StatusLine(sys.stderr), time.monotonic()

    def note(share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            line.note(f"{share:.0%} of the evaluations")

    found = reevaluation.reevaluate(directory, **values, note=note)
    say(reevaluation.table(found))
    say(f"\nthe numbers are in {directory}/{REEVALUATED[0]} and {REEVALUATED[1]}"
          + f", the figure in {REEVALUATED[2]}" * (found.scope == "all"))  # fmt: skip


def report(arguments: list[str]) -> None:
    """Write the page of a run, or of a directory of runs."""
    summary = f"Write a run, or a directory of runs, as one HTML page that opens from disk. {_NO_CODE}"
    values = parse(arguments, _REPORT, prog="jedax report", description=summary)
    directory = only_directory("report", values.pop("directory"))
    if not values["trace_seconds"] >= 0:
        received = values["trace_seconds"]
        raise fail("trace-seconds", expected="a number of at least 0", received=received, remedy="change it")
    with nothing_to_save(compiles=True):
        from jedax.report.pages import write_report
    page = write_report(directory, **values, say=functools.partial(say, flush=True))
    say(f"the report is in {page}")


def export(arguments: list[str]) -> None:
    """Write the best policy of a run for other programs."""
    summary = "Write the best policy of a run for other programs: an ONNX file, or a Python module with NumPy."
    values = parse(arguments, _EXPORT, prog="jedax export", description=summary)
    directory = only_directory("export", values.pop("directory"))
    if not (values["onnx"] or values["numpy"]):
        remedy = f"try: {jedax_command('export', directory, '--numpy', 'policy.py')}"
        raise fail("jedax export", expected="--onnx FILE, --numpy FILE or both", received="neither", remedy=remedy)
    with nothing_to_save():
        from jedax.report.export import export as write
        from jedax.store.run import opened
    run = opened(directory, trust=values.pop("trust"))
    for file in write(run, **values):
        say(f"the policy is in {file}")


def view(arguments: list[str]) -> None:
    """Serve the page of a run on this machine; the page follows the run."""
    summary = f"Show a run in a browser on this machine; the page follows the run. {_NO_CODE}"
    values = parse(arguments, _VIEW, prog="jedax view", description=summary)
    directory = only_directory("view", values.pop("directory"))
    if not 0 <= values["port"] < 65536:
        raise fail("port", expected="a number from 0 to 65535", received=values["port"], remedy="change it")
    with nothing_to_save(compiles=True):
        from jedax.report.viewer import serve
    serve(
        directory,
        port=values["port"],
        browser=values["open"],
        trust=values["trust"],
        say=functools.partial(say, flush=True),
    )
