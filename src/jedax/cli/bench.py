"""The command `jedax bench`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from jedax.cli.options import ENGINE, Option, nothing_to_save, parse, say
from jedax.errors import fail, jedax_command

_BENCH = {
    "preset": Option("Tasks, methods and seeds of the paper; see above.", str | None),
    "methods": Option(
        "Methods, each with a preset or settings after commas: jedi-x map-elites cma-me,opt jedi,alpha=0.3,pool=1.",
        tuple[str, ...],
        (),
    ),
    "seeds": Option("Number of seeds of every trial; default: 10, or the preset's own.", int | None),
    "first_seed": Option("The first of these seeds.", int, 0),
    "evaluations": Option("Budget of each seed; default: the task's or the preset's own.", int | None),
    "out": Option("Directory of all runs; give it again to continue, or to add seeds, methods or tasks.", str | None),
    "figures": Option("Whether each run draws its own figures.", bool, False),
    "track": Option(
        "Trackers of each run: tensorboard, wandb, mlflow; see docs/guides/tracking.md.", tuple[str, ...], ()
    ),
    **ENGINE,
    "cpus_per_trial": Option("With --engine ray: cores of a trial, one method on one task; default: 1.", float | None),
    "gpus_per_trial": Option(
        "With --engine ray: GPUs of a trial; default: 1 if the cluster has GPUs and the task runs in JAX.", float | None
    ),
    "trials": Option("Run only these trials, each as its folder in --out, such as maze-a/jedi.", tuple[str, ...], ()),
    "print_trials": Option("Run nothing; print a command for each unfinished trial, for a job array.", bool, False),
    "collect": Option(
        "Run nothing; copy to --out the runs that such commands left in these directories.", tuple[str, ...], ()
    ),
}


def bench(arguments: list[str]) -> None:
    """Run a grid of tasks, methods and seeds."""
    from jedax.bench.grids import GRIDS, slug
    from jedax.tasks.registry import title_of

    words, tasks = list(arguments), _leading_words(arguments)
    _check_options(arguments, tasks)
    presets = "; ".join(f"{name}: {grid.summary}" for name, grid in GRIDS.items())
    values = parse(
        arguments, _BENCH, prog="jedax bench",
        description="Run methods on tasks with several seeds, on this machine or, with --engine ray, on several; runs "
        f"that have ended are skipped. Presets: {presets}.",
    )  # fmt: skip
    grid = None
    if tasks or values["preset"] or values["methods"] or not values["collect"]:
        grid = _grid(tasks, values)
    out = values["out"]
    if out is None and grid is not None:
        out = f"runs/bench-{values['preset'] or '-'.join(slug(title_of(task)) for task in tasks)}"
    if out is None:
        raise fail("collect", expected="--out", received="none", remedy="name the directory to copy to")
    if values["collect"]:
        _collect(grid, out, values)
    elif values["print_trials"]:
        for run in _runs_left(grid, out, values, one_per_trial=True):
            say(_command(words, out, run.trial))
    else:
        _run(grid, out, values)


def _leading_words(arguments: list[str]) -> list[str]:
    """Remove the words before the first option from the arguments and return them."""
    is_option = [word.startswith("-") and word != "-" for word in arguments]
    count = is_option.index(True) if True in is_option else len(arguments)
    words = arguments[:count]
    del arguments[:count]
    return words


def _check_options(arguments: list[str], tasks: list[str]) -> None:
    """Raise a `JedaxError` for an option of `jedax run` that sets a task or a method: a bench has several of them."""
    words = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    others = {name: word for word in words if (name := word[2:].replace("-", "_")) not in _BENCH}
    if not others:
        return
    from jedax.methods.registry import methods
    from jedax.tasks.registry import task_entry

    known = reversed(methods().items())  # the first method that has a setting is the one that is named
    of_methods = {name: method for method, entry in known for name in type(entry.config).model_fields}
    of_tasks = {name for task in tasks for name in type(task_entry(task).config()).model_fields}
    for name, word in others.items():
        if name in of_methods:
            remedy = f"write it after the method's name: --methods {of_methods[name]},{name}=VALUE"
        elif name in of_tasks:
            remedy = (
                f"set it where a task of your own is defined, such as f.{name} = VALUE for a function mine:f, or an "
                f"object T = MyTask({name}=VALUE) named mine:T"
            )
        else:
            continue
        expected = "an option of jedax bench (see --help)"
        raise fail(word, expected=expected, received="a setting of jedax run", remedy=remedy)


def _run(grid: Any, out: str, values: dict[str, Any]) -> None:
    """Run what is left of a grid."""
    with nothing_to_save(compiles=True):
        from jedax.bench.bench import BenchProgress, runs_text
        from jedax.bench.bench import bench as run_bench
        from jedax.search import engines
        from jedax.search.loop import Interrupted
    per_trial = {name: values[name] for name in ("cpus_per_trial", "gpus_per_trial")}
    try:
        with engines.make(values["engine"], address=values["address"], **per_trial) as engine:
            outcome = run_bench(
                grid, out, progress=BenchProgress(sys.stderr), track=values["track"], engine=engine,
                only=values["trials"], figures="jedax.report.figures:write_figures" if values["figures"] else None,
            )  # fmt: skip
    except Interrupted as stop:
        message = "Stopped; everything done so far is saved. Give the same command again to continue."
        raise Interrupted(message, stop.signal) from None
    for path, message in outcome.failed:
        say(f"failed: {path}: {message}")
    if outcome.elsewhere:
        say(f"{runs_text(len(outcome.elsewhere))} left to another process that works on {out}")
    compare = jedax_command("compare", out)
    say(f"{runs_text(outcome.done)} done, {len(outcome.failed)} failed; compare them with: {compare}")
    if outcome.failed:
        raise SystemExit(1)


def _runs_left(grid: Any, out: str, values: dict[str, Any], one_per_trial: bool = False) -> list[Any]:
    """Return the runs of a grid that have not ended, or only the first of each trial."""
    with nothing_to_save():
        from jedax.bench.trials import left_to_do, trials_of
        from jedax.search.engines import LocalEngine
    left = [left_to_do(trial)[0] for trial in trials_of(grid, Path(out), LocalEngine(), values["trials"]).values()]
    return [run for runs in left for run in (runs[:1] if one_per_trial else runs)]


def _command(words: list[str], out: str, trial: str) -> str:
    """Return the given command, for one trial."""
    kept, is_dropped = [], False
    for word in words:
        if word.startswith("--"):
            is_dropped = word.replace("_", "-").partition("=")[0] in ("--print-trials", "--trials", "--out")
        if not is_dropped:
            kept.append(word)
    return jedax_command("bench", *kept, "--out", out, "--trials", trial)


def _collect(grid: Any, out: str, values: dict[str, Any]) -> None:
    """Copy runs into one directory; if a grid is given, list the runs that it still lacks."""
    with nothing_to_save():
        from jedax.bench.bench import runs_text
        from jedax.bench.collect import collect, place_of
        from jedax.bench.trials import error_file
    found = collect(values["collect"], out)
    for path in found.unfinished:
        say(f"not finished: {path}")
    gathered = runs_text(len(found.copied))
    say(f"{gathered} gathered, {len(found.before)} were there; compare them with: {jedax_command('compare', out)}")
    runs = [] if grid is None else _runs_left(grid, out, values)
    for run in runs:
        tried = [Path(folder, place_of(run.path)) for folder in (out, *values["collect"])]
        say(f"{'failed' if any(error_file(path).exists() for path in tried) else 'missing'}: {run.path}")
    if runs:
        raise SystemExit(1)


def _grid(tasks: list[str], values: dict[str, Any]) -> Any:
    from jedax.bench.grids import Grid, grid_named, parse_entry

    methods = tuple(parse_entry(text) for text in values["methods"])
    if values["preset"]:
        grid = grid_named(values["preset"])
    elif tasks and methods:
        grid = Grid("", tuple(tasks), methods)
    else:
        remedy = "try: jedax bench maze-a --methods jedi-x map-elites"
        received = " ".join(tasks) or "neither"
        raise fail("jedax bench", expected="tasks and --methods, or --preset", received=received, remedy=remedy)
    changes: dict[str, Any] = {
        name: values[name] for name in ("seeds", "first_seed", "evaluations") if values[name] is not None
    }
    if tasks:
        changes["tasks"] = tuple(tasks)
    if methods:
        changes["entries"] = methods
    return dataclasses.replace(grid, **changes)
