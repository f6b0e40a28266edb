"""What a search measures: the rows of metrics.csv, and the seconds of each of its phases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from jedax.methods.base import Method


def measure(
    method: Method,
    state: Any,
    qd_offset: float,
    evaluations: int,
    seconds: float,
    failures: Mapping[str, np.ndarray],
) -> list[dict[str, Any]]:
    """Return one row of metrics per replica; `failures` holds the failed evaluations of each replica by kind."""
    repertoire = state.repertoire
    small = {name: getattr(repertoire, name) for name in ("fitness", "best_fitness", "num_failed", "num_outside")}
    found, own = jax.device_get((small, method.metrics(state)))
    rows = []
    for replica, all_fitness in enumerate(found["fitness"].astype(np.float64)):
        filled = all_fitness > -np.inf
        rows.append({
            "evaluations": evaluations,
            "replica": replica,
            "max_fitness": float(found["best_fitness"][replica]),
            "coverage": float(filled.mean()),
            "qd_score": float((all_fitness[filled] - qd_offset).sum()),
            **{name: values[replica].item() for name, values in own.items()},
            "num_failed": int(found["num_failed"][replica]),
            **{f"failed_{kind}": int(numbers[replica]) for kind, numbers in failures.items()},
            "num_outside": int(found["num_outside"][replica]),
            "seconds": round(seconds, 3),
        })  # fmt: skip
    return rows


class Phases:
    """Seconds by phase: import, compile, simulate+es, gp, io, figures."""

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
