"""What the commands share: options, which are typed fields that tyro parses, and how a command is stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from jedax.errors import fail, printable
from jedax.search.interrupts import handled_by


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a command: its help, its type, its value where it is not given, and other names.

    With `words`, what the help calls them, it has no name on the command line: it holds the words beside the options.
    """

    help: str
    type: Any
    default: Any = None
    aliases: tuple[str, ...] = ()
    words: str | None = None


DIRECTORY = {"directory": Option("Directory of a run.", tuple[str, ...], (), words="DIR")}
"""The words of commands that read one directory; `only_directory` checks them."""

ENGINE = {
    "engine": Option("Where the work is done: local (this machine) or ray (several; needs the extra [ray]).", str,
                     "local"),
    "address": Option("With --engine ray: host:port of the cluster, or auto; default: start Ray here.", str | None),
}  # fmt: skip
"""Options of all commands that can use several machines."""

TRUST = {
    "trust": Option("Import the code that the run names, whoever made the run: only where you would run that code "
                    "yourself. Not needed for installed code and for runs that you made on this machine.", bool, False),
}  # fmt: skip
"""The option of commands that need the task of a run, which can be code of somebody else."""

TRUST_TO_SHOW = {
    "trust": Option("Import the code that the run names, to draw its task: only where you would run that code "
                    "yourself. Without it no such code is imported.", bool, False),
}  # fmt: skip
"""The option of commands that show a run."""


def parse(arguments: Sequence[str], options: Mapping[str, Option], *, prog: str, description: str) -> dict[str, Any]:
    """Return the value of every option; prints the help or the mistake and exits.

    `options` are named as in Python, such as `max_seconds` for `--max-seconds`.
    """
    import tyro

    fields = []
    for name, option in options.items():
        kind = _plain_type(option.type)
        optional = [part for part in typing.get_args(kind) if part is not type(None)]
        is_optional = type(None) in typing.get_args(kind) and len(optional) == 1
        metavar = option.words or (optional[0].__name__.upper() if is_optional else None)
        hint = "" if option.words or (is_optional and option.default is None) else None
        arg = tyro.conf.arg(help=option.help, metavar=metavar, help_behavior_hint=hint, aliases=option.aliases or None)
        marked = Annotated[kind, arg]
        fields.append((name, tyro.conf.Positional[marked] if option.words else marked, option.default))
    made = dataclasses.make_dataclass("Options", fields, frozen=True)
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_whole_number_spec)
    parsed = tyro.cli(made, args=list(arguments), prog=prog, description=description, registry=registry)
    return {name: getattr(parsed, name) for name in options}


def say(text: object, *, flush: bool = False) -> None:
    """Print a text; it cannot control the terminal, whatever names from files are in it."""
    print(printable(str(text), keep="\n"), flush=flush)


def only_directory(command: str, words: Sequence[str]) -> str:
    """Return the directory that a command reads: the only word beside its options."""
    if len(words) != 1:
        received, remedy = " ".join(words) or "none", f"name it, as in: jedax {command} DIR"
        raise fail(f"jedax {command}", expected="one directory", received=received, remedy=remedy)
    return words[0]


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


def _whole_number_spec(kind: Any) -> Any:
    """Return how tyro reads whole numbers; None for other types, which it reads as usual."""
    from tyro.constructors import PrimitiveConstructorSpec

    if kind.type is not int:
        return None
    return PrimitiveConstructorSpec(
        1, "INT", _whole_number, lambda value: type(value) is int, lambda value: [str(value)]
    )


def _whole_number(words: list[str]) -> int:
    """Return a whole number from text such as 250000, 250_000 or 2.5e5."""
    with contextlib.suppress(ValueError):
        return int(words[0])
    with contextlib.suppress(ValueError):
        if (number := float(words[0])).is_integer():
            return int(number)
    raise ValueError(f"expected a whole number, such as 250000 or 2.5e5, got {words[0]!r}")


def peek(arguments: Sequence[str], flag: str) -> str | None:
    """Return the value of an option on which other options depend."""
    for place, argument in enumerate(arguments):
        name, sign, value = argument.partition("=")
        if name.replace("_", "-") != flag:
            continue
        if sign:
            return value
        if place + 1 == len(arguments) or arguments[place + 1].startswith("--"):
            raise fail(flag, expected="a value after it", received="none", remedy="give one")
        return arguments[place + 1]
    return None


@contextlib.contextmanager
def nothing_to_save(*, compiles: bool = False) -> Iterator[None]:
    """Exit at once on Ctrl-C or SIGTERM: an exception raised while modules are imported can get lost.

    With `compiles`, JAX keeps the programs that it compiles from then on.
    """

    def leave(number: int, frame: Any) -> None:
        os.write(2, b"jedax: stopped; nothing was written.\n")
        os._exit(128 + number)

    with handled_by(leave):
        if compiles:
            from jedax.search.compiled import keep_compiled_programs

            keep_compiled_programs()
        yield
