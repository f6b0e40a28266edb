"""The commands `jedax bench` and `jedax compare`."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import Any

from jedax.cli.options import ENGINE, Option, leading_words, parse
from jedax.cli.run import nothing_to_save
from jedax.errors import fail

_BENCH = {
    "preset": Option("Tasks, methods and seeds of the paper; see below.", str | None),
    "methods": Option(
        "Methods, each with a preset or parameters after commas: jedi map-elites cma-me,opt jedi,alpha=0.3,pool=1.",
        tuple[str, ...],
        (),
    ),
    "seeds": Option("Seeds of every cell, from 0 on; default: 10, or the preset's own.", int | None),
    "evaluations": Option("Budget of each seed; default: the task's or the preset's own.", int | None),
    "out": Option("Directory of all runs; give it again to go on, or to add seeds, methods or tasks.", str | None),
    "figures": Option("Whether each run draws its own figures.", bool, False),
    "track": Option(
        "Trackers of each run: tensorboard, wandb, mlflow; see docs/guides/tracking.md.", tuple[str, ...], ()
    ),
    **ENGINE,
    "cpus_per_trial": Option(
        "With --engine ray: cores that a cell takes, one method on one task; default: 1.", float | None
    ),
    "gpus_per_trial": Option("With --engine ray: GPUs of a cell; default: 1 where the cluster has GPUs.", float | None),
    "cells": Option("Only these cells, each as its folder in --out, such as maze-a/jedi.", tuple[str, ...], ()),
    "print_cells": Option("Run nothing; print a command for each cell that is left, for a job array.", bool, False),
    "collect": Option(
        "Run nothing; gather in --out what such commands left in these directories.", tuple[str, ...], ()
    ),
}
_COMPARE = {
    "out": Option("Directory for tables and figures; default: compare/ in the first directory.", str | None),
    "reference": Option(
        "The method that others are tested against; default: the better JEDi of each task.", str | None
    ),
    "band": Option("Around the median: quartiles, or std: one standard deviation, as in the paper.", str, "quartiles"),
    "fitness": Option("Tell also how many evaluations it took to reach each of these.", tuple[float, ...], ()),
}


def bench(arguments: list[str]) -> None:
    """Run a grid of tasks, methods and seeds."""
    from jedax.bench.grids import GRIDS

    words, tasks = list(arguments), leading_words(arguments)
    presets = "; ".join(f"{name}: {grid.summary}" for name, grid in GRIDS.items())
    values = parse(
        arguments, _BENCH, prog="jedax bench",
        description="Run methods on tasks with several seeds, on this machine or, with --engine ray, on several; what "
        f"has finished is not run again. Presets: {presets}.",
    )  # fmt: skip
    if values["collect"]:
        _collect(tasks, values)
        return
    grid = _grid(tasks, values)
    out = values["out"] or _default_out(tasks, values)
    only = values["cells"]
    with nothing_to_save():
        from jedax.bench.bench import bench as run_bench
        from jedax.bench.bench import chosen_cells
        from jedax.bench.cells import left_to_do
        from jedax.bench.progress import BenchProgress, runs_text
        from jedax.search import engines
        from jedax.search.compile_cache import keep_compiled_programs
        from jedax.search.loop import Interrupted

        keep_compiled_programs()
    if values["print_cells"]:
        cells = chosen_cells(grid, Path(out), engines.LocalEngine(), only)
        _print_commands(words, out, [cell.place for cell in cells if left_to_do(cell, grid.seeds)[0]])
        return
    per_trial = {name: values[name] for name in ("cpus_per_trial", "gpus_per_trial")}
    shown = BenchProgress(sys.stderr)
    try:
        with engines.make(values["engine"], address=values["address"], **per_trial) as engine:
            outcome = run_bench(
                grid, out, progress=shown, track=values["track"], engine=engine, only=only,
                figures="jedax.report.figures:write_figures" if values["figures"] else None,
            )  # fmt: skip
    except Interrupted as stop:
        raise Interrupted("Stopped; all that was done is saved. Go on with the same command.", stop.signal) from None
    for path, message in outcome.failed:
        print(f"failed: {path}: {message}")
    if outcome.elsewhere:
        print(f"{runs_text(len(outcome.elsewhere))} left to another process that works on {out}")
    print(f"{runs_text(outcome.done)} done, {len(outcome.failed)} failed; compare them with: jedax compare {out}")
    if outcome.failed:
        raise SystemExit(1)


def _print_commands(words: list[str], out: str, places: list[str]) -> None:
    """Print a command for each cell: the one that was given, for that cell alone."""
    kept, is_dropped = [], False
    for word in words:
        if word.startswith("--"):
            is_dropped = word.replace("_", "-").partition("=")[0] in ("--print-cells", "--cells", "--out")
        if not is_dropped:
            kept.append(word)
    for place in places:
        print(shlex.join(["jedax", "bench", *kept, "--out", out, "--cells", place]))


def _collect(tasks: list[str], values: dict[str, Any]) -> None:
    """Gather runs; where a grid is given, tell what it still lacks."""
    has_grid = bool(tasks or values["preset"] or values["methods"])
    grid = _grid(tasks, values) if has_grid else None
    out = values["out"] or (_default_out(tasks, values) if has_grid else None)
    if out is None:
        raise fail("collect", expected="--out", received="none", remedy="name the directory to gather in")
    with nothing_to_save():
        from jedax.bench.bench import chosen_cells
        from jedax.bench.cells import error_file, left_to_do
        from jedax.bench.collect import collect
        from jedax.bench.progress import runs_text
        from jedax.search.engines import LocalEngine
    found = collect(values["collect"], out)
    for path in found.unfinished:
        print(f"not finished: {path}")
    gathered = runs_text(len(found.copied))
    print(f"{gathered} gathered, {len(found.before)} were there; compare them with: jedax compare {out}")
    if grid is None:
        return
    cells = chosen_cells(grid, Path(out), LocalEngine(), values["cells"])
    jobs = [job for cell in cells for job in left_to_do(cell, grid.seeds)[0]]
    for job in jobs:
        print(f"{'failed' if error_file(job.path).exists() else 'missing'}: {job.path}")
    if jobs:
        raise SystemExit(1)


def _grid(tasks: list[str], values: dict[str, Any]) -> Any:
    from jedax.bench.grids import Grid, grid_named, parse_entry

    methods = tuple(parse_entry(text) for text in values["methods"])
    if values["preset"]:
        grid = grid_named(values["preset"])
    elif tasks and methods:
        grid = Grid("", tuple(tasks), methods)
    else:
        raise fail(
            "jedax bench",
            expected="tasks and --methods, or --preset",
            received=" ".join(tasks) or "neither",
            remedy="try: jedax bench maze-a --methods jedi-x map-elites",
        )
    changes: dict[str, Any] = {name: values[name] for name in ("seeds", "evaluations") if values[name]}
    if tasks:
        changes["tasks"] = tuple(tasks)
    if methods:
        changes["entries"] = methods
    return dataclasses.replace(grid, **changes)


def _default_out(tasks: list[str], values: dict[str, Any]) -> str:
    from jedax.bench.grids import slug

    return f"runs/bench-{values['preset'] or '-'.join(slug(Path(task).stem) for task in tasks)}"


def compare(arguments: list[str]) -> None:
    """Write tables and figures of what runs left."""
    directories = leading_words(arguments)
    values = parse(
        arguments, _COMPARE, prog="jedax compare",
        description="Compare what runs left below some directories, and what CSV files of other programs hold "
        "(method, task, seed, evaluations, max_fitness, coverage). It never searches.",
    )  # fmt: skip
    if not directories:
        raise fail(
            "jedax compare",
            expected="at least one directory of runs, or a CSV file",
            received="none",
            remedy="try: jedax compare runs",
        )
    with nothing_to_save():
        from jedax.report.compare import compare as write_comparison
        from jedax.report.compare import folder_for, outcome
    found = write_comparison(
        directories,
        out=values["out"],
        reference=values["reference"],
        band=values["band"],
        fitness=list(values["fitness"]),
    )
    print(outcome(found, folder_for(Path(directories[0]), values["out"])))
