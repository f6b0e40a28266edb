"""The command `jedax run`."""

from __future__ import annotations

import contextlib
import os
import signal
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jedax.cli import BEGAN
from jedax.cli.options import ENGINE, Option, is_tuple, parse, peek
from jedax.errors import fail
from jedax.methods.registry import DEFAULT_METHOD, check_parameters, default_method

_COMMAND = {
    "method": Option(
        f"How to search; see jedax methods. Default: {DEFAULT_METHOD}, or jedi where an option of its own is given.",
        str,
    ),
    "preset": Option("Parameters of the paper, such as tuned; see jedax methods.", str),
    "out": Option("Directory for results, new or empty. Default: runs/TASK-METHOD-seedS.", str),
    "overwrite": Option("Replace what an earlier run left in --out.", bool, False),
    "config": Option("Settings as in a run's config.yaml; TASK and options given here win.", str),
    "track": Option(
        "Trackers that follow the run: tensorboard, wandb, mlflow; see docs/guides/tracking.md.", tuple[str, ...]
    ),
    "resume": Option(
        "Directory of a run to go on with; takes no option but --devices, --max-seconds, --track and the engine's.", str
    ),
    **ENGINE,
}
# Settings that no flag changes: they come with the task.
_HIDDEN = {"walls", "name"}
_WITHOUT_VALUE = {"--overwrite", "--border", "--no-border", "--history", "--no-history",
                  "--random-resets", "--no-random-resets"}  # fmt: skip


def run(arguments: list[str]) -> None:
    """Search, or go on with a search, as the arguments say."""
    from jedax.methods.registry import method_defaults, preset_budget
    from jedax.store.config import FullConfig, RunConfig
    from jedax.tasks.registry import task_entry

    given_config = peek(arguments, "--config")
    task = _take_task(arguments)
    config = None
    if given_config is not None:
        config = FullConfig.parse(_read(given_config), given_config, task)
    name = task or (config.task if config else "maze-a")
    method, preset = peek(arguments, "--method"), peek(arguments, "--preset")
    given = [_parameter(argument) for argument in arguments if argument.startswith("--")]
    guessed = config is None and method is None
    if config is None:
        method = method or default_method(given, preset)
        task_config: Any = task_entry(name).config()
        method_config = method_defaults(method, name, preset)
        budget = preset_budget(method, name, preset) or task_config.evaluations
        config = FullConfig(
            task=name, task_config=task_config, method=method, method_config=method_config,
            run=RunConfig(evaluations=budget),
        )  # fmt: skip
    elif method or preset:
        raise fail(
            "method",
            expected="one source for the method",
            received="--config and --method or --preset",
            remedy="leave one of them out",
        )
    options = {option: taken for option, (_, taken) in _options(config).items()}
    check_parameters(config.method, [name for name in given if name not in options], flag="--")
    values = parse(arguments, options, prog=f"jedax run {name}", description="Search for the best solution of a task.")
    where = {flag: values.pop(flag) for flag in ENGINE if flag in values}
    if "resume" in values:
        others = sorted(set(values) - {"resume", "devices", "max_seconds", "track"})
        if others or task or given_config:
            raise fail(
                "resume",
                expected="no other option but --devices, --max-seconds and --track, for a run goes on as it began",
                received=", ".join(["TASK"] * bool(task) + others),
                remedy="leave them out",
            )
        _carry_out(where, resume=values["resume"], devices=values.get("devices"), track=values.get("track", ()),
                   max_seconds=values.get("max_seconds"))  # fmt: skip
        return
    if task is None and given_config is None:
        raise fail(
            "task",
            expected="the name of a task",
            received="none",
            remedy="see jedax tasks, or try: jedax run maze-a",
        )
    out = values.pop("out", None)
    overwrite, track = values.pop("overwrite", False), values.pop("track", ())
    config = _with_flags(config, values)
    if guessed and config.method != DEFAULT_METHOD:
        print(f"method: {config.method} ({DEFAULT_METHOD}, the default, has not all of the options given)")
    _carry_out(where, config=config, out=out or _default_name(config, overwrite), overwrite=overwrite, track=track)


def _parameter(argument: str) -> str:
    """Return the name of the parameter that a flag stands for."""
    return argument[2:].partition("=")[0].replace("-", "_")


def _take_task(arguments: list[str]) -> str | None:
    """Remove the task from the arguments and return it: a task's name or a maze file that is no flag's value."""
    from jedax.tasks.registry import TASKS, is_elsewhere, is_maze_file, unknown_task

    before = ""
    for place, argument in enumerate(arguments):
        is_value = before.startswith("--") and "=" not in before and before not in _WITHOUT_VALUE
        is_task = argument in TASKS or is_maze_file(argument) or is_elsewhere(argument)
        if not is_value and is_task and not argument.startswith("-"):
            return arguments.pop(place)
        before = argument
    if arguments and not arguments[0].startswith("-"):
        raise unknown_task(arguments[0])
    return None


def _carry_out(
    where: dict[str, str],
    *,
    config: Any = None,
    out: Any = None,
    overwrite: bool = False,
    resume: str | None = None,
    devices: Any = None,
    max_seconds: Any = None,
    track: tuple = (),
) -> None:
    """Import what does the work, and do it."""
    with nothing_to_save():
        from jedax.search import api, engines, progress
        from jedax.search.environment import keep_compiled_programs
        from jedax.search.failures import ALL_FAILED
        from jedax.store.run import task_of
        from jedax.tasks.host import HostTask

        keep_compiled_programs()
    if resume is not None:
        from jedax.store.directory import RunDirectory

        config, out = RunDirectory.open(resume).read_config(), resume
    with engines.make(**where) as engine:
        if where.get("engine") == "ray" and not isinstance(task_of(config), HostTask):
            raise fail(
                "engine",
                expected="a task outside JAX, such as gym:HalfCheetah-v5, whose evaluations can go elsewhere",
                received=f"ray for {config.task}",
                remedy="leave it out; jedax bench --engine ray runs whole searches elsewhere",
            )
        shown = progress.make(config.run.evaluations)
        how = {"progress": shown, "began": BEGAN, "track": track, "engine": engine}
        try:
            if resume is not None:
                found = api.resume(resume, devices=devices, max_seconds=max_seconds, **how)
            else:
                found = api.start(config, out=out, overwrite=overwrite, **how)
        finally:
            shown.close()
    summary = found.summary
    fitness = summary["max_fitness"]
    best = f"best fitness {_rounded(found.best().fitness)}"
    if isinstance(fitness, list):
        best = f"best fitness of each replica {', '.join(map(_rounded, fitness))}"
    if not found.has_solution:
        print(ALL_FAILED)
        best = "no solution"
    print(f"{best} after {summary['evaluations']:,} evaluations at {summary['evaluations_per_second']:,.0f}/s "
          f"({progress.clock(summary['wall_seconds'])} in all)")  # fmt: skip
    if summary["status"] in _ENDS:
        print(_ENDS[summary["status"]].format(out=out))
    if any(_each(summary["num_failed"])):
        kinds = {kind.replace("_", " "): sum(_each(number)) for kind, number in summary["failures"].items()}
        named = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
        print(f"{sum(_each(summary['num_failed'])):,} evaluations failed ({named}) and were not stored")
    outside, counted = sum(_each(summary["num_outside"])), summary["evaluations"] * len(_each(fitness))
    if 2 * outside > counted:
        print(f"{outside:,} of {counted:,} descriptors lay outside the task's descriptor_bounds, which are "
              "(lows, highs); they went to the nearest cells")  # fmt: skip
    print(f"results are in {out}: see {Path(out) / 'figures' / 'best.png'}")


_ENDS = {
    "goal": "stopped because --stop-fitness was reached",
    "time": "stopped because --max-seconds had passed; all is saved. Go on for as long again with: "
    "jedax run --resume {out}, or add another --max-seconds",
}


@contextlib.contextmanager
def nothing_to_save() -> Iterator[None]:
    """Leave at once at Ctrl-C or SIGTERM; while modules are imported, an exception from a signal can get lost."""

    def leave(number: int, frame: Any) -> None:
        os.write(2, b"jedax: stopped; nothing was written.\n")
        os._exit(128 + number)

    try:
        before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: signals are somebody else's
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _rounded(fitness: float) -> str:
    """Return a fitness with two decimals, or three digits where that says more."""
    return f"{fitness:.3g}" if 0 < abs(fitness) < 1 else f"{fitness + 0.0:.2f}"


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _options(config: Any) -> dict[str, tuple[str, Option]]:
    """Return every flag: the settings it belongs to ("" for the command's own) and what it takes."""
    options = {name: ("", option) for name, option in _COMMAND.items()}
    for section in ("run", "method_config", "task_config"):
        settings = getattr(config, section)
        for name, field in type(settings).model_fields.items():
            if name not in _HIDDEN and name not in options:
                options[name] = (
                    section,
                    Option(field.description or "", field.annotation, getattr(settings, name)),
                )
    return options


def _with_flags(config: Any, values: dict[str, Any]) -> Any:
    """Return the settings with the flags' values in their places."""
    options = _options(config)
    changes: dict[str, dict[str, Any]] = {"run": {}, "method_config": {}, "task_config": {}}
    for name, value in values.items():
        section, option = options[name]
        if section:
            changes[section][name] = _nested(option.annotation, value)
    sections = {name: getattr(config, name).replace(**change) for name, change in changes.items() if change}
    return config.replace(**sections)


def _nested(annotation: Any, value: Any) -> Any:
    """Fold a flat tuple of words into pairs where a setting is a tuple of tuples, such as limits."""
    parts = typing.get_args(annotation)
    if isinstance(value, tuple) and parts and is_tuple(parts[0]):
        size = len(typing.get_args(parts[0]))
        return tuple(value[i : i + size] for i in range(0, len(value), size))
    return value


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise fail(
            "config", expected="a readable file", received=f"{path} ({error})", remedy="check the path"
        ) from None


def _default_name(config: Any, overwrite: bool) -> Path:
    """Return a directory under runs/ that does not exist yet, or may be overwritten."""
    from jedax.bench.grids import slug
    from jedax.tasks.registry import is_maze_file

    task = Path(config.task).stem if is_maze_file(config.task) else slug(config.task)
    stem = f"{task}-{config.method}-seed{config.run.seed}"
    folder = Path("runs") / stem
    number = 2
    while folder.exists() and not overwrite:
        folder = Path("runs") / f"{stem}-{number}"
        number += 1
    return folder
