"""How methods look in figures: a colour and a marker for each, the same in every figure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from jedax.report.plots import COLOURS

Styles = Mapping[str, dict[str, Any]]

METHODS = {
    "jedi-x": ("#d55e00", "*"),
    "jedi": ("#0072b2", "o"),
    "jedi-uniform": ("#56b4e9", "s"),
    "es": ("#222222", "v"),
    "es-restart": ("#8a8a8a", "^"),
    "map-elites": ("#009e73", "D"),
    "cma-me": ("#cc79a7", "P"),
    "cma-mae": ("#7b3fb5", "X"),
    "pga-me": ("#e69f00", "h"),
    "td3": ("#8c510a", "<"),
    "dns": ("#7f9a1c", ">"),
}
"""Colour and marker of each method that jedax brings."""

LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
"""Line styles: of the first label of a colour, the second, the third."""

_MARKERS = ("o", "s", "D", "v", "^", "P", "X")


def styles(labels: Sequence[str]) -> Styles:
    """Return colour, marker and line style of each label, for matplotlib; curves have the marker at their end.

    A label that begins with the name of a method, such as `jedi tuned`, has the colour of this method; further labels
    of the same method are dashed, then dotted, then lighter and darker. Other labels have 7 colours in turn, solid,
    then dashed, then dotted.
    """
    found: dict[str, dict[str, Any]] = {}
    seen: dict[str, int] = {}
    for number, label in enumerate(labels):
        name = label.split()[0] if label.split() else label
        place = number % len(COLOURS)
        colour, marker = METHODS.get(name, (COLOURS[place], _MARKERS[place]))
        times = seen.get(colour, 0)
        seen[colour] = times + 1
        found[label] = _style(_shade(colour, times // len(LINES)), LINES[times % len(LINES)], marker)
    return found


def _shade(colour: str, step: int) -> str:
    """Return a colour: itself, lighter, darker, and so on in turn."""
    towards, share = ((0.0, 0.0), (1.0, 0.5), (0.0, 0.45))[step % 3]
    red, green, blue = ((1 - share) * part + share * towards for part in to_rgb(colour))
    return to_hex((red, green, blue))


def sequential_styles(labels: Sequence[str]) -> Styles:
    """Return colours from dark to light for labels such as `alpha=0.3`, in their order.

    Labels without a number, such as `alpha=decay`, have other colours, orange first.
    """
    numbers = [label for label in labels if re.search(r"=[-+]?[\d.]+(e[-+]?\d+)?$", label)]
    others = [label for label in labels if label not in numbers]
    shades = colormaps["viridis"](np.linspace(0, 0.88, len(numbers)))
    return {
        **{label: _style(shade, "-", "o") for label, shade in zip(numbers, shades, strict=True)},
        **{label: _style(COLOURS[(n + 1) % len(COLOURS)], LINES[(n + 1) % 3], "D") for n, label in enumerate(others)},
    }


def _style(colour: Any, line: Any, marker: str) -> dict[str, Any]:
    return {"color": colour, "linestyle": line, "marker": marker, "markevery": [-1], "markersize": 5}
