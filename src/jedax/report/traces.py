"""What the solutions of cells do, as lines on a page: such as a robot's path in its maze, or the links of an arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jedax.store.packing import pack
from jedax.tasks.drawing import TaskDrawing, Trace
from jedax.types import Float


def packed_lines(
    lines: Mapping[int, Trace], *, every: int = 1, whole: int | None = None, joints: bool = False
) -> dict[str, Any]:
    """Return lines as JSON values, their points packed as `jedax.store.packing` does.

    Args:
        lines: The line of each cell.
        every: One point in so many was kept, and always the last.
        whole: The cell whose line has all its points.
        joints: Whether the points are marked.
    """
    points = np.concatenate([np.zeros((0, 2)), *(line.points for line in lines.values())])
    endings = list(dict.fromkeys(line[1:] for line in lines.values()))
    return {
        "cells": [int(cell) for cell in lines],
        "sizes": [len(line.points) for line in lines.values()],
        "x": pack(points[:, 0]),
        "y": pack(points[:, 1]),
        "endings": [{"caption": caption, "mark": mark} for caption, mark in endings],
        "ends": [endings.index(line[1:]) for line in lines.values()],
        "every": every,
        "whole": whole,
        "joints": joints,
    }


def lines_of(
    drawing: TaskDrawing, genotypes: Float[np.ndarray, "cells params"], fitness: Float[np.ndarray, " cells"], seed: int,
    most_points: int,
) -> tuple[dict[int, Trace], int]:  # fmt: skip
    """Return what the solutions of the filled cells do, the best first, and that one point in so many was kept.

    Args:
        drawing: That of the task.
        genotypes: One per cell.
        fitness: One per cell; not finite: empty.
        seed: Seed of the run.
        most_points: Points of all lines together. Of more, points in between are left out, and then the lines of the
            worst cells; the best line stays whole.

    Returns:
        The line of each cell; none for tasks that draw no lines.
    """
    best_first = [cell for cell in np.argsort(-fitness, kind="stable").tolist() if np.isfinite(fitness[cell])]
    found = drawing.traces(genotypes, seed) if best_first else None
    if found is None:
        return {}, 1
    total = sum(len(found[cell].points) for cell in best_first)
    every = 1 if drawing.marks_points else min(8, max(1, -(-total // max(1, most_points))))
    lines: dict[int, Trace] = {}
    for cell in best_first:
        points = found[cell].points
        if lines and every > 1:
            points = np.concatenate([points[:-1:every], points[-1:]])
        most_points -= len(points)
        if lines and most_points < 0:
            break
        lines[cell] = found[cell]._replace(points=points)
    return lines, every
