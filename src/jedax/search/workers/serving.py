"""What a worker does with what it is sent, in whatever process it lives."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jedax.errors import JedaxError
from jedax.imports import load_object

Evaluate = Callable[..., tuple[np.ndarray, np.ndarray]]
"""From genotypes `(n, params)`, and seeds `(n,)` where they are given, to fitness `(n,)` and descriptors `(n, d)`."""


def prepare(factory: str, settings: Mapping[str, Any]) -> tuple[Evaluate | None, list[tuple[Any, ...]]]:
    """Return what evaluates, and the reply to say so; None, and what went wrong.

    Args:
        factory: `module:name` of what makes, from the settings, the function that evaluates.
        settings: Its arguments by name.
    """
    reply = attempt(lambda: load_object(factory, "worker")(**settings))
    return (reply[1], [("ready",)]) if reply[0] == "done" else (None, [reply])


def answer(evaluate: Evaluate, chunks: Sequence[tuple[np.ndarray, ...]]) -> list[tuple[Any, ...]]:
    """Return a reply for each chunk, arguments of what evaluates, one after the other, as if each had come alone."""
    return [attempt(lambda chunk=chunk: evaluate(*chunk)) for chunk in chunks]


def attempt(work: Callable[[], Any]) -> tuple[Any, ...]:
    """Return what some work gave, or in which way it failed: by a mistake of the user's, or by chance."""
    try:
        return "done", work()
    except JedaxError as error:
        return "mistake", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}", traceback.format_exc()
