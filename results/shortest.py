"""The shortest ways through mazes, at full speed, for a robot whose centre keeps its radius from every wall.

    python results/shortest.py [maze-a maze-b ...]

The shortest way bends around ends of walls only. So its corners are among points on circles around these ends; the way
is found among all straight lines between such points that keep the distance. It is too long by less than 0.1 %, because
a polygon goes round a circle.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

import jedax
from jedax.bench.grids import MAZES
from jedax.tasks.maze.settings import MazeConfig

CORNERS = (
    40  # points around the end of a wall, each outside the circle so that lines between neighbours keep the distance
)


def shortest_way(maze: MazeConfig) -> float:
    """Return the length of the shortest way from the start to the edge of the target, in steps at full speed."""
    walls = np.array(maze.all_walls)
    least = maze.robot_radius * (1 - 1e-6)
    angles = 2 * math.pi * np.arange(CORNERS) / CORNERS
    circle = maze.robot_radius / math.cos(math.pi / CORNERS) * np.column_stack([np.cos(angles), np.sin(angles)])
    corners = (walls.reshape(-1, 1, 2) + circle).reshape(-1, 2)
    corners = corners[_distances(corners, corners, walls) >= least]
    points = np.vstack([maze.start[:2], maze.target, corners])
    one, other = np.triu_indices(len(points), 1)
    free = np.concatenate([
        _distances(points[one[part]], points[other[part]], walls) >= least
        for part in np.array_split(np.arange(len(one)), 1 + len(one) // 100_000)
    ])  # fmt: skip
    one, other = one[free], other[free]
    lengths = np.linalg.norm(points[one] - points[other], axis=1)
    graph = csr_matrix((lengths, (one, other)), shape=(len(points), len(points)))
    way = dijkstra(graph, directed=False, indices=0)[1]
    return float((way - maze.target_radius) / maze.wheel_speed)


def _distances(a: np.ndarray, b: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """Return the distance of each segment from `a` to `b`, `(n, 2)`, to the nearest wall."""
    c, d = walls[None, :, :2], walls[None, :, 2:]
    a, b = a[:, None], b[:, None]
    apart = np.minimum.reduce([_to_segment(a, c, d), _to_segment(b, c, d), _to_segment(c, a, b), _to_segment(d, a, b)])
    crosses = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    return np.where(crosses, 0.0, apart).min(axis=1)


def _to_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    along = b - a
    share = ((p - a) * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-30)
    return np.linalg.norm(p - a - np.clip(share, 0, 1)[..., None] * along, axis=-1)


def _side(a: np.ndarray, b: np.ndarray, p: np.ndarray) -> np.ndarray:
    return (b - a)[..., 0] * (p - a)[..., 1] - (b - a)[..., 1] * (p - a)[..., 0]


if __name__ == "__main__":
    for maze in sys.argv[1:] or MAZES:
        print(f"{maze}: {shortest_way(jedax.tasks.make(maze).config):.1f}")
