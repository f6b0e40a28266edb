"""The one place that words errors: argument, what was expected, what came, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class JedaxError(ValueError):
    """A mistake of the caller's, said in one sentence; the command line prints it and exits with code 2."""


def fail(argument: str, *, expected: str, received: object, remedy: str) -> JedaxError:
    """Word an error.

    Args:
        argument: The name of what is wrong, as the caller wrote it.
        expected: What would have been right.
        received: What came; shown shortened where it is long.
        remedy: What to do, as an imperative sentence without its full stop.

    Returns:
        The error, to be raised by the caller.
    """
    shown = str(received)
    if len(shown) > 120:
        shown = shown[:117] + "..."
    return JedaxError(f"{argument}: expected {expected}, got {shown}; {remedy}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a remedy: known names that are like `name` or contain it, or all of them where there are none."""
    known = sorted(known)
    longer = [n for n in known if len(name) > 2 and name.casefold() in n.casefold()]
    near = dict.fromkeys([*difflib.get_close_matches(name, known, n=3, cutoff=0.6), *longer])
    if near:
        return "did you mean " + " or ".join(repr(n) for n in list(near)[:3]) + "?"
    return "choose one of " + ", ".join(known)


def unknown(argument: str, name: str, known: Iterable[str]) -> JedaxError:
    """Word the error for a name that is not among `known`."""
    known = list(known)
    remedy = nearest(name, known)
    end = "" if remedy.endswith("?") else "."
    return JedaxError(f"{argument}: unknown name {name!r}; {remedy}{end}")


def check_choice(argument: str, name: str, known: Iterable[str]) -> str:
    """Return `name` if it is among `known`.

    Raises:
        JedaxError: It is not; the message offers the nearest names.
    """
    known = list(known)
    if name not in known:
        raise unknown(argument, name, known)
    return name
