"""The command `jedax`: parse and call, nothing else."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import contextlib  # noqa: E402
import dataclasses  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import types  # noqa: E402
import typing  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Annotated, Any  # noqa: E402

from jedax._checks import JedaxError, fail, unknown  # noqa: E402
from jedax._version import __version__  # noqa: E402

_HELP = """\
usage: jedax COMMAND ...

Find the best solution of a hard black-box problem by looking at how solutions behave.

commands:
  run TASK [options]    search, such as: jedax run maze-a
  run --resume DIR      go on with a run that was stopped or killed
  run TASK --help       all options, with the defaults for that task
  tasks                 the tasks that come with jedax
  methods               the methods, and presets of their parameters

options:
  -h, --help            show this help
  --version             show the version
"""


@dataclasses.dataclass(frozen=True)
class _Option:
    """One flag of `jedax run`: a field of some settings, or one of the command's own."""

    help: str
    annotation: Any
    default: Any = None


_COMMAND = {
    "method": _Option("How to search; see jedax methods.", str, "jedi"),
    "preset": _Option("Parameters of the paper, such as tuned; see jedax methods.", str),
    "out": _Option("Directory for results, new or empty. Default: runs/TASK-METHOD-seedS.", str),
    "overwrite": _Option("Replace what an earlier run left in --out.", bool, False),
    "config": _Option("Settings as in a run's config.yaml; options given here win.", str),
    "resume": _Option("Directory of a run to go on with; takes no other option.", str),
}
# Settings that no flag changes: they come with the task.
_HIDDEN = {"walls", "name"}
_WITHOUT_VALUE = {"--overwrite", "--border", "--no-border"}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; leaves with code 0, 2 for a mistake of the user's, 130 or 143 when stopped."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _dispatch(arguments)
    except JedaxError as error:
        print(f"jedax: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt as stop:
        print(f"jedax: {stop}" if str(stop) else "jedax: stopped.", file=sys.stderr)
        raise SystemExit(128 + getattr(stop, "signal", 2)) from None


def _dispatch(arguments: list[str]) -> None:
    command = arguments.pop(0) if arguments else "--help"
    if command in ("-h", "--help"):
        print(_HELP, end="")
    elif command == "--version":
        print(f"jedax {__version__}")
    elif command == "run":
        _run(arguments)
    elif command in ("tasks", "methods"):
        if arguments not in ([], ["--help"], ["-h"]):
            raise fail(command, expected="no more words after it", received=repr(arguments[0]), remedy="leave it out")
        _show_tasks() if command == "tasks" else _show_methods()
    else:
        raise unknown("command", command, ["run", "tasks", "methods", "--help", "--version"])


def _show_tasks() -> None:
    from jedax.config.tasks import TASKS

    for name, entry in TASKS.items():
        print(f"{name:<14}{entry.summary}")
    print("\nA maze of your own: jedax run mine.yaml (see the README for what is in the file).")


def _show_methods() -> None:
    from jedax.config.presets import METHODS

    for name, method in METHODS.items():
        print(f"{name:<14}{method.summary}")
        for number, (preset, entry) in enumerate(method.presets.items()):
            print(f"{'':<14}  --preset {preset}{' (default)' * (not number)}: {entry.summary}")
    print("\nevolution strategies (--es): sep-cma-es, lm-ma-es, or evosax: and one of evosax's, as in evosax:SNES")


def _run(arguments: list[str]) -> None:
    from jedax.config.presets import method_defaults
    from jedax.config.run import FullConfig, RunConfig
    from jedax.config.tasks import task_entry

    given_config = _peek(arguments, "--config")
    config = None
    if given_config is not None:
        config = FullConfig.parse(_read(given_config), where=given_config)
    task = _take_task(arguments)
    name = task or (config.task if config else "maze-a")
    method, preset = _peek(arguments, "--method"), _peek(arguments, "--preset")
    if config is None:
        method = method or "jedi"
        task_config: Any = task_entry(name).config()
        config = FullConfig(
            task=name, task_config=task_config, method=method,
            method_config=method_defaults(method, name, preset),
            run=RunConfig(evaluations=task_config.evaluations),
        )  # fmt: skip
    elif method or preset:
        raise fail(
            "method",
            expected="one source for the method",
            received="--config and --method or --preset",
            remedy="leave one of them out",
        )
    elif task not in (None, config.task):
        config = config.replace(task=name, task_config=task_entry(name).config())
    values = _parse(arguments, name, config)
    if "resume" in values:
        others = sorted(set(values) - {"resume"})
        if others or task or given_config:
            raise fail(
                "resume",
                expected="no other option, for a run goes on as it began",
                received=", ".join(["TASK"] * bool(task) + others),
                remedy="leave them out",
            )
        _carry_out(resume=values["resume"])
        return
    if task is None and given_config is None:
        raise fail(
            "task",
            expected="the name of a task",
            received="none",
            remedy="see jedax tasks, or try: jedax run maze-a",
        )
    out = values.pop("out", None)
    overwrite = values.pop("overwrite", False)
    config = _with_flags(config, values)
    _carry_out(config=config, out=out or _free_name(config), overwrite=overwrite)


def _take_task(arguments: list[str]) -> str | None:
    """Remove the task from the arguments and return it: a task's name or a maze file that is no flag's value."""
    from jedax.config.tasks import TASKS, is_maze_file

    before = ""
    for place, argument in enumerate(arguments):
        is_value = before.startswith("--") and "=" not in before and before not in _WITHOUT_VALUE
        if not is_value and (argument in TASKS or is_maze_file(argument)) and not argument.startswith("-"):
            return arguments.pop(place)
        before = argument
    if arguments and not arguments[0].startswith("-"):
        raise unknown("task", arguments[0], TASKS)
    return None


def _carry_out(*, config: Any = None, out: Any = None, overwrite: bool = False, resume: str | None = None) -> None:
    """Import what does the work, and do it."""
    with _nothing_to_save():
        from jedax.runs import api, progress
        from jedax.runs.environment import keep_compiled_programs

        keep_compiled_programs()
    if resume is not None:
        from jedax.runs.directory import RunDirectory

        config, out = RunDirectory.open(resume).read_config(), resume
    shown = progress.make(config.run.evaluations)
    try:
        if resume is not None:
            found = api.resume(resume, progress=shown, began=_BEGAN)
        else:
            found = api.start(config, out=out, overwrite=overwrite, progress=shown, began=_BEGAN)
    finally:
        shown.close()
    summary = found.summary
    fitness = summary["max_fitness"]
    best = f"best fitness {found.best().fitness:.2f}"
    if isinstance(fitness, list):
        best = f"best fitness of each replica {', '.join(f'{f:.2f}' for f in fitness)}"
    print(f"{best} after {summary['evaluations']:,} evaluations at {summary['evaluations_per_second']:,.0f}/s "
          f"({progress.clock(summary['wall_seconds'])} in all)")  # fmt: skip
    if summary["status"] in _ENDS:
        print(_ENDS[summary["status"]])
    if any(_each(summary["num_failed"])):
        print(f"{sum(_each(summary['num_failed'])):,} evaluations failed (not finite) and were not stored")
    print(f"results are in {out}: see {Path(out) / 'figures' / 'best.png'}")


_ENDS = {
    "goal": "stopped because --stop-fitness was reached",
    "time": "stopped because --max-seconds had passed",
}


@contextlib.contextmanager
def _nothing_to_save() -> Iterator[None]:
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


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _options(config: Any) -> dict[str, tuple[str, _Option]]:
    """Return every flag: the settings it belongs to ("" for the command's own) and what it takes."""
    options = {name: ("", option) for name, option in _COMMAND.items()}
    for section in ("run", "method_config", "task_config"):
        settings = getattr(config, section)
        for name, field in type(settings).model_fields.items():
            if name not in _HIDDEN and name not in options:
                options[name] = (
                    section,
                    _Option(field.description or "", field.annotation, getattr(settings, name)),
                )
    return options


def _parse(arguments: list[str], task: str, config: Any) -> dict[str, Any]:
    """Return the flags that were given, as strings; pydantic turns them into what they should be."""
    import tyro

    options = _options(config)
    flags = {f"--{name.replace('_', '-')}" for name in options}
    flags |= {f"--no-{name.replace('_', '-')}" for name, (_, option) in options.items() if option.annotation is bool}
    for argument in arguments:
        flag = argument.partition("=")[0].replace("_", "-")
        if flag.startswith("--") and flag not in flags | {"--help"}:
            raise unknown("option", flag, sorted(flags))
    _check_values(arguments, {f"--{name.replace('_', '-')}": option for name, (_, option) in options.items()})
    fields = []
    for name, (_, option) in options.items():
        hint = "" if option.default is None else f"(default: {_plain(option.default)})"
        if option.annotation is bool:
            arg = tyro.conf.arg(help=option.help, help_behavior_hint=hint)
            fields.append((name, Annotated[bool, arg], option.default))
            continue
        kind = tuple[str, ...] | None if _is_tuple(option.annotation) else str | None
        arg = tyro.conf.arg(help=option.help, help_behavior_hint=hint, metavar=_metavar(option.annotation))
        fields.append((name, Annotated[kind, arg], None))
    parsed = tyro.cli(
        dataclasses.make_dataclass("Options", fields), args=arguments, prog=f"jedax run {task}",
        description="Search for the best solution of a task.",
    )  # fmt: skip
    kept = {name: None if option.annotation is not bool else option.default for name, (_, option) in options.items()}
    return {name: getattr(parsed, name) for name, default in kept.items() if getattr(parsed, name) != default}


def _check_values(arguments: list[str], options: dict[str, _Option]) -> None:
    """Raise a `JedaxError` for a flag without its value, and for a word that belongs to no flag."""
    flag, room, lacking = "jedax run", 0, False
    for argument in [*arguments, "--"]:
        if argument.startswith("--"):
            if lacking:
                raise fail(flag, expected="a value after it", received="none", remedy="give one")
            flag, equals, _ = argument.replace("_", "-").partition("=")
            option = options.get(flag)
            several = option is not None and _is_tuple(option.annotation)
            takes = option is not None and option.annotation is not bool and not equals
            room, lacking = (len(arguments) if several else int(takes)), takes
            continue
        if not room:
            raise fail(flag, expected="no more words after it", received=repr(argument), remedy="leave it out")
        room, lacking = room - 1, False


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
    if isinstance(value, tuple) and parts and _is_tuple(parts[0]):
        size = len(typing.get_args(parts[0]))
        return tuple(value[i : i + size] for i in range(0, len(value), size))
    return value


def _is_tuple(annotation: Any) -> bool:
    return typing.get_origin(annotation) is tuple


def _metavar(annotation: Any) -> str:
    """Return what help shows for a value, such as INT or {cvt,grid}."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _metavar(parts[0])
    if origin is typing.Literal:
        return "{" + ",".join(map(str, parts)) + "}"
    if origin is tuple:
        if parts[-1] is Ellipsis:
            return f"[{_metavar(parts[0])} ...]"
        return " ".join(_metavar(part) for part in parts)
    if origin in (typing.Union, types.UnionType):
        return "|".join(_metavar(part) for part in parts if part is not type(None))
    return getattr(annotation, "__name__", str(annotation)).upper()


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(_plain(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _peek(arguments: list[str], flag: str) -> str | None:
    """Return the value of a flag that decides what the others are."""
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
        if argument == flag and place + 1 < len(arguments):
            return arguments[place + 1]
    return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise fail(
            "config", expected="a readable file", received=f"{path} ({error})", remedy="check the path"
        ) from None


def _free_name(config: Any) -> Path:
    """Return a directory under runs/ that does not exist yet."""
    stem = f"{Path(config.task).stem}-{config.method}-seed{config.run.seed}"
    folder = Path("runs") / stem
    number = 2
    while folder.exists():
        folder = Path("runs") / f"{stem}-{number}"
        number += 1
    return folder
