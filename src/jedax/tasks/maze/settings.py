"""Settings of a maze: its geometry and the robot in it (paper, section 5.1; Kheperax, Grillotti & Cully 2023)."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from jedax.errors import JedaxError, fail
from jedax.settings import MOST, Config
from jedax.tasks.settings import Activation, Budget, Hidden
from jedax.yaml_text import read_yaml

Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
_SHORTEST_WALL = 1e-6
Wall = tuple[Coordinate, Coordinate, Coordinate, Coordinate]


class MazeConfig(Config):
    """Settings of a maze and its robot. Lengths are in the units of the walls, y points up, angles are radians."""

    name: str = Field(default="my-maze", min_length=1, description="Name of the maze in reports.")
    walls: tuple[Wall, ...] = Field(default=(), description="Inner walls, each (x1, y1, x2, y2).")
    limits: tuple[tuple[Coordinate, Coordinate], tuple[Coordinate, Coordinate]] = Field(
        default=((0.0, 0.0), (1.0, 1.0)), description="Lower left and upper right corner; also the descriptor's bounds."
    )
    border: bool = Field(default=True, description="Whether the four sides of the limits are walls.")
    start: tuple[Coordinate, Coordinate, Coordinate] = Field(
        default=(0.15, 0.15, math.pi / 2), description="Start of the robot: x, y, heading."
    )
    target: tuple[Coordinate, Coordinate] = Field(default=(0.9, 0.9), description="Centre of the target: x, y.")
    target_radius: float = Field(default=0.05, gt=0, description="Distance below which the robot reaches the target.")
    steps: int = Field(default=250, ge=1, le=MOST, description="Steps of an episode.")
    distance_weight: float = Field(
        default=100.0, ge=0, description="Cost of a unit of distance to the target that a robot did not cover."
    )
    robot_radius: float = Field(
        default=0.015, gt=0, description="A robot touches walls that are this near to its centre."
    )
    wheel_speed: float = Field(default=0.025, gt=0, description="Travel of a wheel in one step at action 1.")
    wheel_noise: float = Field(default=0.0, ge=0, description="Standard deviation added to a wheel's travel.")
    laser_angles: tuple[Coordinate, ...] = Field(
        default=(-math.pi / 4, 0.0, math.pi / 4), min_length=1, description="Bearings of the lasers from the heading."
    )
    laser_range: float = Field(default=0.2, gt=0, description="Range of a laser.")
    laser_out_of_range: Literal["range", "minus-one"] = Field(
        default="range", description="Reading of a laser without a wall in its range: the range, or -1."
    )
    laser_noise: float = Field(default=0.0, ge=0, description="Standard deviation added to a laser's reading.")
    hidden: Hidden = Field(default=(8,), description="Neurons in each hidden layer of the controller.")
    activation: Activation = Field(default="relu", description="Activation of the hidden layers; the output is tanh.")
    evaluations: Budget = 1_000_000

    @model_validator(mode="after")
    def _check_geometry(self) -> Self:
        (x_low, y_low), (x_high, y_high) = self.limits
        if x_low >= x_high or y_low >= y_high:
            raise fail(
                "limits",
                expected="a lower left corner below and left of the upper right one",
                received=self.limits,
                remedy="swap or change the corners",
            )
        for number, wall in enumerate(self.walls):
            x1, y1, x2, y2 = struct.unpack("4f", struct.pack("4f", *wall))  # as the simulator has them
            if math.hypot(x2 - x1, y2 - y1) < _SHORTEST_WALL:
                raise fail(
                    f"walls[{number}]",
                    expected=f"two ends at least {_SHORTEST_WALL:g} apart in 32 bits",
                    received=wall,
                    remedy="remove this wall or move one end",
                )
        for what, (x, y) in (("start", self.start[:2]), ("target", self.target)):
            if not (x_low <= x <= x_high and y_low <= y <= y_high):
                raise fail(
                    what, expected=f"a point within the limits {self.limits}", received=(x, y), remedy="move it inside"
                )
        for wall in self.all_walls:
            if distance_to_wall(self.start[:2], wall) <= self.robot_radius:
                raise fail(
                    "start",
                    expected=f"a point more than the robot's radius {self.robot_radius} from every wall",
                    received=f"{self.start[:2]} on the wall {wall}",
                    remedy="move the start or the wall",
                )
        return self

    @property
    def all_walls(self) -> tuple[Wall, ...]:
        """The inner walls and, with `border`, the four sides."""
        if not self.border:
            return self.walls
        (x0, y0), (x1, y1) = self.limits
        sides = ((x0, y0, x1, y0), (x0, y0, x0, y1), (x0, y1, x1, y1), (x1, y1, x1, y0))
        return self.walls + sides


def distance_to_wall(point: tuple[float, float], wall: Wall) -> float:
    """Return the distance from a point to the nearest point of a wall."""
    x1, y1, x2, y2 = wall
    dx, dy = x2 - x1, y2 - y1
    along = ((point[0] - x1) * dx + (point[1] - y1) * dy) / (dx * dx + dy * dy)
    along = min(1.0, max(0.0, along))
    return math.hypot(point[0] - x1 - along * dx, point[1] - y1 - along * dy)


def load_maze_file(path: str | Path) -> MazeConfig:
    """Read a maze from a YAML file whose keys are the fields of `MazeConfig`; `name` defaults to the file's."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise fail(
            str(path),
            expected="a readable maze file",
            received=getattr(error, "strerror", error),
            remedy="check the path",
        ) from None
    values: Any = read_yaml(text, str(path))
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise fail(
            str(path),
            expected="keys and values such as 'walls: [[0, .25, .75, .25]]'",
            received=type(values).__name__,
            remedy="see the README for an example",
        )
    if "walls" not in values:
        raise JedaxError(f"{path}: expected the key 'walls', got only {sorted(values)}; add the list of walls.")
    return MazeConfig.build({"name": path.stem, **values}, where=str(path))
