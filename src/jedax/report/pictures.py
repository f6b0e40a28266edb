"""How pictures, films and arrays are written; figures for papers, in several formats, by `jedax.report.plots.save`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from jedax.store.files import write_atomic

_DPI = 150


def write_picture(path: Path, figure: Figure) -> Path:
    """Write a figure as PNG, close it, and return the path."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight")
    plt.close(figure)
    write_atomic(path, buffer.getvalue())
    return path


def write_film(path: Path, frames: Sequence[np.ndarray], seconds: float) -> Path:
    """Write frames, each `(height, width, 3)` bytes, as an endless GIF of so many seconds, and return its path."""
    from PIL import Image

    first, *others = (Image.fromarray(frame).quantize(64) for frame in frames)
    milliseconds = max(20, round(1000 * seconds / len(frames), -1))  # a GIF counts hundredths of seconds
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=int(milliseconds), loop=0, optimize=True)
    write_atomic(path, buffer.getvalue())
    return path


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays as a compressed .npz file, and return its path."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, buffer.getvalue())
    return path
