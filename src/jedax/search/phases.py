"""The seconds that a run spends in each of its phases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Phases:
    """Seconds by phase: import, compile, simulate+es, gp, io, figures.

    Attributes:
        seconds: Seconds by name of the phase.
    """

    def __init__(self, compile_seconds: Callable[[], float]):
        self.seconds: dict[str, float] = {}
        self._compile_seconds = compile_seconds

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the duration of a block to a phase, except for compilation, which is a phase of its own."""
        began, compiled = time.perf_counter(), self._compile_seconds()
        yield
        compiling = self._compile_seconds() - compiled
        self.add("compile", compiling)
        self.add(name, time.perf_counter() - began - compiling)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @property
    def working(self) -> float:
        """Seconds of evaluation, method and output; compilation and figures do not count."""
        return sum(self.seconds.get(name, 0) for name in ("simulate+es", "gp", "io"))
