"""Walls and target of the ant's maze. Lengths in metres; x and y in the plane of the floor, z up."""

from __future__ import annotations

LIMITS = ((-5.0, -5.0), (40.0, 40.0))
"""Lower left and upper right corner of the box; the walls along its sides are centred on them."""

TARGET = (35.0, 0.0)
"""The target: x, y."""

RADIUS = 0.5
"""Radius of the walls, which are capsules on the floor, and so the height of their centres."""

INNER_WALLS = ((20.0, -4.5, 20.0, 19.5), (10.5, 7.5, 19.5, 7.5), (10.0, 20.25, 10.0, 39.75))
"""Inner walls, each x1, y1, x2, y2 from end to end, caps included."""

WALLS = (
    *INNER_WALLS,
    (-5.5, -5.0, 40.5, -5.0),
    (-5.5, 40.0, 40.5, 40.0),
    (-5.0, -4.5, -5.0, 39.5),
    (40.0, -4.5, 40.0, 39.5),
)
"""All walls: the inner ones and the four sides of the box."""
