"""How figures, films, arrays and other results are written."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from jedax.errors import fail
from jedax.store.files import write_atomic

_DPI = 150


@contextlib.contextmanager
def writing(kind: str, path: Path, argument: str = "out") -> Iterator[None]:
    """Turn an error of the disk into one sentence about `path`, a file or a directory that `argument` has named."""
    try:
        yield
    except OSError as error:
        expected, received = f"{kind} that can be written", f"{path} ({error.strerror or error})"
        raise fail(argument, expected=expected, received=received, remedy=f"choose another with --{argument}") from None


def write_figure(path: Path, figure: Figure, dpi: int = _DPI) -> Path:
    """Write a figure in the format that the path ends with, png or pdf, and return the path."""
    buffer = io.BytesIO()
    kind = path.suffix.removeprefix(".")
    metadata = {"CreationDate": None} if kind == "pdf" else None  # the same figure gives the same bytes
    figure.savefig(buffer, format=kind, dpi=dpi, bbox_inches="tight", metadata=metadata)
    write_atomic(path, buffer.getvalue())
    return path


def write_picture(path: Path, figure: Figure) -> Path:
    """Write a figure as PNG, cut to what it shows, close it, and return the path.

    A figure that leaves a margin on all sides of its canvas is drawn once; `Figure.savefig` would draw it twice. The
    margin must be wider than a space, else it could be one within a title that the canvas cuts off.
    """
    figure.set_dpi(_DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    shown = (pixels != 255).any(axis=2)
    rows, columns = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    pad = _DPI // 10
    if all(len(n) and pad <= n[0] and n[-1] + pad < size for n, size in zip((rows, columns), shown.shape, strict=True)):
        cut = pixels[rows[0] - pad : rows[-1] + pad, columns[0] - pad : columns[-1] + pad]
        buffer = io.BytesIO()
        Image.fromarray(cut).save(buffer, "PNG", dpi=(_DPI, _DPI))
        write_atomic(path, buffer.getvalue())
    else:
        write_figure(path, figure, _DPI)
    plt.close(figure)
    return path


def write_film(path: Path, frames: Sequence[np.ndarray], seconds: float) -> Path:
    """Write frames, each `(height, width, 3)` bytes, as an endless GIF of so many seconds, and return its path."""
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
