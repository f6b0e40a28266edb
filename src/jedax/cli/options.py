"""Options of the commands: typed fields that tyro parses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from jedax.errors import fail


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a command: its help, its type, and its value where it is not given."""

    help: str
    type: Any
    default: Any = None


ENGINE = {
    "engine": Option("Where the work is done: local (this machine) or ray (several; needs the extra [ray]).", str,
                     "local"),
    "address": Option("With --engine ray: host:port of the cluster, or auto; default: start Ray here.", str | None),
}  # fmt: skip
"""Options of all commands that can use several machines."""


def parse(arguments: Sequence[str], options: Mapping[str, Option], *, prog: str, description: str) -> dict[str, Any]:
    """Return the value of every option; prints the help or the mistake and exits.

    Args:
        arguments: What follows the command.
        options: Every option by its name in Python, such as `max_seconds` for `--max-seconds`.
        prog: The command, for the help.
        description: What it does.
    """
    import tyro

    fields = []
    for name, option in options.items():
        kind = _plain_type(option.type)
        optional = [part for part in typing.get_args(kind) if part is not type(None)]
        is_optional = type(None) in typing.get_args(kind) and len(optional) == 1
        metavar = optional[0].__name__.upper() if is_optional else None
        hint = "" if is_optional and option.default is None else None
        arg = tyro.conf.arg(help=option.help, metavar=metavar, help_behavior_hint=hint)
        fields.append((name, Annotated[kind, arg], option.default))
    made = dataclasses.make_dataclass("Options", fields, frozen=True)
    parsed = tyro.cli(made, args=list(arguments), prog=prog, description=description)
    return {name: getattr(parsed, name) for name in options}


def directory_of(command: str, arguments: list[str]) -> str:
    """Remove the one word before the options, a directory, from the arguments and return it.

    Raises:
        JedaxError: There is none, or there are several; asking for help is no mistake.
    """
    words = leading_words(arguments)
    if len(words) != 1 and not {"-h", "--help"} & set(arguments):
        raise fail(
            f"jedax {command}",
            expected="one directory",
            received=" ".join(words) or "none",
            remedy=f"try: jedax {command} runs/maze-a-jedi-x-seed0",
        )
    return words[0] if words else ""


def _plain_type(kind: Any) -> Any:
    """Return a type for tyro: without the bounds, which settings check themselves; names stand for objects."""
    if kind is Any:
        return str | None
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _plain_type(parts[0])
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(map(_plain_type, parts))]  # noqa: UP007
    return tuple[tuple(map(_plain_type, parts))] if origin is tuple else kind


def peek(arguments: Sequence[str], flag: str) -> str | None:
    """Return the value of an option on which other options depend.

    Raises:
        JedaxError: It has no value.
    """
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
        if argument == flag:
            if place + 1 == len(arguments) or arguments[place + 1].startswith("--"):
                raise fail(flag, expected="a value after it", received="none", remedy="give one")
            return arguments[place + 1]
    return None


def leading_words(arguments: list[str]) -> list[str]:
    """Remove the words before the first option from the arguments and return them."""
    count = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    words = arguments[:count]
    del arguments[:count]
    return words
