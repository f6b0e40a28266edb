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


def ablations(labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels that differ in one value only, such as `alpha=0` and `alpha=0.3`, by what is before the `=`."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        prefix, equals, _ = label.rpartition("=")
        if equals:
            groups.setdefault(prefix, []).append(label)
    return {prefix: group for prefix, group in groups.items() if len(group) > 1}


def styles(labels: Sequence[str]) -> Styles:
    """Return colour, marker and line style of each label, for matplotlib; curves have the marker at their end.

    Labels that differ in a number only, such as `alpha=0.3`, have shades from dark to light, with another line and
    marker for each group of them. A label that begins with the name of a method, such as `jedi tuned`, has the colour
    of this method; further labels of the same method are dashed, then dotted, then lighter and darker. Other labels
    have 7 colours in turn, orange first beside shades, solid, then dashed, then dotted.
    """
    shaded = _shaded(labels)
    found: dict[str, dict[str, Any]] = {}
    seen: dict[str, int] = {}
    for number, label in enumerate((label for label in labels if label not in shaded), start=bool(shaded)):
        name = label.split()[0] if label.split() else label
        place = number % len(COLOURS)
        colour, marker = METHODS.get(name, (COLOURS[place], _MARKERS[place]))
        times = seen.get(colour, 0)
        seen[colour] = times + 1
        found[label] = _style(_shade(colour, times // len(LINES)), LINES[times % len(LINES)], marker)
    return {label: shaded[label] if label in shaded else found[label] for label in labels}


def _shaded(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the styles of the labels that differ in a number only."""
    found = {}
    for place, group in enumerate(ablations(labels).values()):
        numbers = [label for label in group if re.search(r"=[-+]?[\d.]+(e[-+]?\d+)?$", label)]
        shades = colormaps["viridis"](np.linspace(0, 0.88, len(numbers))) if len(numbers) > 1 else ()
        line, marker = LINES[place % len(LINES)], _MARKERS[place % len(_MARKERS)]
        found |= {label: _style(shade, line, marker) for label, shade in zip(numbers, shades, strict=False)}
    return found


def _shade(colour: str, step: int) -> str:
    """Return a colour: itself, lighter, darker, and so on in turn."""
    towards, share = ((0.0, 0.0), (1.0, 0.5), (0.0, 0.45))[step % 3]
    red, green, blue = ((1 - share) * part + share * towards for part in to_rgb(colour))
    return to_hex((red, green, blue))


def _style(colour: Any, line: Any, marker: str) -> dict[str, Any]:
    return {"color": to_hex(colour), "linestyle": line, "marker": marker, "markevery": [-1], "markersize": 5}
