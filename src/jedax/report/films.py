"""What replays of every kind share: what they return, and how they write arrays and films."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax.store.files import write_atomic
from jedax.store.run import Solution


@dataclass(frozen=True)
class Replay:
    """What a replay left.

    Attributes:
        solution: The solution that was replayed, as the run recorded it.
        fitness: What it achieved now.
        files: What was written, in the order in which one would look at it.
        remarks: A sentence for each thing that is worth knowing, such as a renderer that is missing.
    """

    solution: Solution
    fitness: float
    files: tuple[Path, ...]
    remarks: tuple[str, ...] = field(default=())


def departures(fitness: float, solution: Solution, why: str) -> list[str]:
    """Return a remark where a replay achieved another fitness than the run recorded, `why` it may; else none."""
    if np.isclose(fitness, solution.fitness, rtol=1e-3, atol=1e-2):
        return []
    return [f"the run recorded fitness {solution.fitness:.1f}: {why}"]


def write_arrays(path: Path, arrays: dict[str, Any]) -> Path:
    """Write arrays as a compressed .npz file, and return its path."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, buffer.getvalue())
    return path


def write_film(path: Path, frames: list[np.ndarray], seconds_per_frame: float) -> Path:
    """Write frames, each `(height, width, 3)` bytes, as an endless GIF, and return its path."""
    from PIL import Image

    images = [Image.fromarray(frame).quantize(64) for frame in frames]
    buffer = io.BytesIO()
    milliseconds = max(20, round(1000 * seconds_per_frame, -1))  # a GIF counts hundredths of seconds
    images[0].save(
        buffer, "GIF", save_all=True, append_images=images[1:], duration=int(milliseconds), loop=0, optimize=True
    )
    write_atomic(path, buffer.getvalue())
    return path


def every(length: int, most: int) -> np.ndarray:
    """Return the numbers of at most `most` frames of `length`, evenly spread, the first and last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))


def jitted(function: Any, *args: Any) -> Any:
    """Compile a function and return what it gives, as NumPy arrays."""
    return jax.tree.map(np.asarray, jax.jit(function)(*args))
