"""How single pictures are written; those for papers, in several formats, are `jedax.report.plots.save`'s."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.pyplot as plt
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
