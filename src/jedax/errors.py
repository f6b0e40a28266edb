"""The error class of jedax and the functions that word its messages."""

from __future__ import annotations

import contextlib
import difflib
import numbers
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard
from unicodedata import category

_NO_MEMORY = ("RESOURCE_EXHAUSTED", "bad_alloc", "failed to map segment", "Cannot allocate memory")
_CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode: controls, formats, surrogates, ends of lines


class JedaxError(ValueError):
    """A mistake of the caller, described in one sentence; the command line prints it and exits with code 2."""


class NotImportableError(JedaxError):
    """A module or package that is needed cannot be imported here."""


def fail(
    argument: str, *, expected: str, received: object, remedy: str, kind: type[JedaxError] = JedaxError
) -> JedaxError:
    """Return an error with the message "argument: expected ..., got ...; remedy.".

    Args:
        argument: Name of the wrong argument, as the caller wrote it.
        expected: What is valid.
        received: The invalid value; shortened to 120 characters.
        remedy: What to do: an imperative sentence without its full stop.
        kind: Class of the error.
    """
    shown = str(received)
    if len(shown) > 120:
        shown = shown[:117] + "..."
    return kind(f"{argument}: expected {expected}, got {shown}; {remedy}.")


def jedax_command(*words: object) -> str:
    """Return the command `jedax` with these words as a shell reads it, where a folder's name may have spaces."""
    return shlex.join(["jedax", *map(str, words)])


@contextlib.contextmanager
def memory_in_words() -> Iterator[None]:
    """Turn failed allocations, of Python, NumPy or JAX, into one sentence; also usable as a decorator."""
    try:
        yield
    except (MemoryError, RuntimeError, ImportError, OSError) as error:
        said = " ".join(str(error).split())
        if not isinstance(error, MemoryError) and not any(words in said for words in _NO_MEMORY):
            raise
        raise fail(
            "memory",
            expected="enough for these settings",
            received=said.rstrip(".") or "a failed allocation",
            remedy="lower the sizes in the settings or free some memory; continue a run with: jedax run --resume DIR",
        ) from None


def printable(text: str, keep: str = "") -> str:
    r"""Return a text that cannot control a terminal: control characters and marks of direction are written as \x1b.

    `keep` holds characters that stay, such as a newline.
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if c not in keep and category(c) in _CONTROLS else c for c in text
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a remedy with its final punctuation: up to three known names that are similar to `name`, or all names."""
    known = sorted(known)
    folded = {n.casefold(): n for n in known}
    longer = [n for n in known if len(name) > 2 and name.casefold() in n.casefold()]
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    near = dict.fromkeys([*(folded[n] for n in close), *longer])
    if near:
        return "did you mean " + " or ".join(repr(n) for n in list(near)[:3]) + "?"
    return "choose one of " + ", ".join(known) + "."


def unknown(argument: str, name: str, known: Iterable[str]) -> JedaxError:
    """Return the error for a name that is not in `known`."""
    return JedaxError(f"{argument}: unknown name {name!r}; {nearest(name, known)}")


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number of Python or NumPy, and no truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_whole(argument: str, value: Any, low: int, high: int) -> int:
    """Return a whole number of Python or NumPy, such as 1000 or 1e3, as an int from `low` to `high`, or an error."""
    if not _is_number(value) or value % 1 or not low <= value <= high:
        expected = f"a whole number from {low} to {high:,}"
        raise fail(argument, expected=expected, received=repr(value), remedy="change it")
    return int(value)


def check_pair(function: str, found: Any, expected: str, remedy: str) -> tuple[Any, Any]:
    """Return what a function of the user's returned, an error unless it is a tuple of two."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise fail(function, expected=expected, received=type(found).__name__, remedy=remedy)
    return found


def check_choice(argument: str, name: str, known: Iterable[str]) -> str:
    """Return `name` if it is in `known`, else raise an error that lists similar names."""
    known = list(known)
    if name not in known:
        raise unknown(argument, name, known)
    return name
