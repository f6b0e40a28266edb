"""The metrics of a search, as rows of metrics.csv."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Return one row of metrics per replica.

    Args:
        method: The method.
        state: Its state, with a leading replica axis.
        qd_offset: Subtracted from each fitness in the QD score.
        evaluations: Evaluations done by each replica.
        seconds: Duration of the search so far.
        failures: Failed evaluations of each replica by kind.
    """
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
