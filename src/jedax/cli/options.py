"""Options of the commands: read by tyro, with errors in one sentence."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any

from jedax.errors import fail, unknown


@dataclasses.dataclass(frozen=True)
class Option:
    """One flag of a command: what it says, what it takes, and what it is where it is not given."""

    help: str
    annotation: Any
    default: Any = None


ENGINE = {
    "engine": Option("Where the work is done: local (this machine) or ray (several; needs the extra [ray]).", str,
                     "local"),
    "address": Option("With --engine ray: host:port of the cluster, or auto; default: Ray is started here.", str),
}  # fmt: skip
"""Flags of all commands that can use several machines."""


def parse(arguments: list[str], options: Mapping[str, Option], *, prog: str, description: str) -> dict[str, Any]:
    """Return the flags that were given, as strings (flags without a value: as bools).

    Raises:
        JedaxError: An unknown flag, one without its value, or a word that belongs to no flag.
    """
    import tyro

    flags = {f"--{name.replace('_', '-')}" for name in options}
    flags |= {f"--no-{name.replace('_', '-')}" for name, option in options.items() if option.annotation is bool}
    for argument in arguments:
        flag = argument.partition("=")[0].replace("_", "-")
        if flag.startswith("--") and flag not in flags | {"--help"}:
            raise unknown("option", flag, sorted(flags))
    _check_values(arguments, {f"--{name.replace('_', '-')}": option for name, option in options.items()}, prog)
    fields = []
    for name, option in options.items():
        hint = "" if option.default is None else f"(default: {_plain(option.default)})"
        if option.annotation is bool:
            arg = tyro.conf.arg(help=option.help, help_behavior_hint=hint)
            fields.append((name, Annotated[bool, arg], option.default))
            continue
        kind = tuple[str, ...] | None if is_tuple(option.annotation) else str | None
        arg = tyro.conf.arg(help=option.help, help_behavior_hint=hint, metavar=_metavar(option.annotation))
        fields.append((name, Annotated[kind, arg], None))
    parsed = tyro.cli(
        dataclasses.make_dataclass("Options", fields), args=arguments, prog=prog, description=description,
    )  # fmt: skip
    kept = {name: None if option.annotation is not bool else option.default for name, option in options.items()}
    return {name: getattr(parsed, name) for name, default in kept.items() if getattr(parsed, name) != default}


def _check_values(arguments: list[str], options: dict[str, Option], prog: str) -> None:
    """Raise a `JedaxError` for a flag without its value, and for a word that belongs to no flag."""
    flag, room, lacking = prog, 0, False
    for argument in [*arguments, "--"]:
        if argument.startswith("--"):
            if lacking:
                raise fail(flag, expected="a value after it", received="none", remedy="give one")
            flag, equals, _ = argument.replace("_", "-").partition("=")
            option = options.get(flag)
            several = option is not None and is_tuple(option.annotation)
            takes = option is not None and option.annotation is not bool and not equals
            room, lacking = (len(arguments) if several else int(takes)), takes
            continue
        if not room:
            raise fail(flag, expected="no more words after it", received=repr(argument), remedy="leave it out")
        room, lacking = room - 1, False


def is_tuple(annotation: Any) -> bool:
    """Whether an option takes several words."""
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


def peek(arguments: list[str], flag: str) -> str | None:
    """Return the value of a flag that decides what the others are."""
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
        if argument == flag and place + 1 < len(arguments):
            return arguments[place + 1]
    return None
