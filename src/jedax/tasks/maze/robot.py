"""A two-wheeled robot with lasers and bumpers in a maze of straight walls, after Kheperax.

All functions are written for ONE robot and ONE wall, in scalars: under `jax.vmap` each scalar becomes an array whose
only axis is the batch. The rules are those of Kheperax 0.2.0 (Grillotti & Cully 2023).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jedax.tasks.maze.settings import MazeConfig
from jedax.types import Array, Bool, Float, PRNGKeyArray

Scalar = Float[Array, ""]

# A beam through the end of a wall hits it: tolerance of the position along the wall, 0 to 1.
_END_TOLERANCE = 1e-6
# Up to this many walls are unrolled into straight code; more walls take a loop.
_UNROLL = 32


class Posture(NamedTuple):
    """Position of a robot, and its heading as a unit vector, which keeps the angle in [-pi, pi)."""

    x: Scalar
    y: Scalar
    cos: Scalar
    sin: Scalar


class Surroundings(NamedTuple):
    """The walls as seen by a robot in one posture."""

    beams: tuple[Scalar, ...]  # distance to the nearest wall along each laser; inf: none
    clearance: Scalar  # squared distance from the centre to the nearest wall
    contact_right: Bool[Array, ""]  # a wall is nearer than the radius, at a bearing in (-pi/2, 0]
    contact_left: Bool[Array, ""]  # the same, at a bearing in [0, pi/2)


def look_around(config: MazeConfig, posture: Posture) -> Surroundings:
    """Measure the nearest wall along every laser and around the robot."""
    cosines, sines = jnp.cos(jnp.array(config.laser_angles)), jnp.sin(jnp.array(config.laser_angles))
    directions = [
        (posture.cos * c - posture.sin * s, posture.sin * c + posture.cos * s)
        for c, s in zip(cosines, sines, strict=True)
    ]

    def add_wall(seen: Surroundings, wall: Float[Array, "4"]) -> tuple[Surroundings, None]:
        x1, y1, x2, y2 = wall
        to_wall = (x1 - posture.x, y1 - posture.y)
        span = (x2 - x1, y2 - y1)
        beams = tuple(
            jnp.minimum(beam, beam_length(direction, to_wall, span))
            for beam, direction in zip(seen.beams, directions, strict=True)
        )
        dx, dy = nearest_point(to_wall, span)
        distance = dx * dx + dy * dy
        ahead = dx * posture.cos + dy * posture.sin
        aside = dy * posture.cos - dx * posture.sin
        touched = (distance < config.robot_radius**2) & (ahead > 0)
        return Surroundings(
            beams,
            jnp.minimum(seen.clearance, distance),
            seen.contact_right | (touched & (aside <= 0)),
            seen.contact_left | (touched & (aside >= 0)),
        ), None

    # Starting values that depend on the posture keep the batch axis through the loop.
    far = jnp.full_like(posture.x, jnp.inf)
    never = jnp.zeros_like(posture.x, bool)
    nothing = Surroundings((far,) * len(directions), far, never, never)
    walls = jnp.array(config.all_walls, jnp.float32).reshape(-1, 4)
    return jax.lax.scan(add_wall, nothing, walls, unroll=max(1, min(_UNROLL, len(walls))))[0]


def beam_length(
    direction: tuple[Scalar, Scalar], to_wall: tuple[Scalar, Scalar], span: tuple[Scalar, Scalar]
) -> Scalar:
    """Return the length of a beam to a wall, inf if it does not meet the wall; `direction` is a unit vector.

    `to_wall` goes from the beam's origin to the wall's first end, `span` from there to its second end.
    """
    across = direction[0] * span[1] - direction[1] * span[0]
    length = to_wall[0] * span[1] - to_wall[1] * span[0]  # times `across`
    along = jnp.sign(across) * (to_wall[0] * direction[1] - to_wall[1] * direction[0])  # times |across|
    slack = _END_TOLERANCE * jnp.abs(across)
    hit = (length * across >= 0) & (along >= -slack) & (along <= jnp.abs(across) + slack) & (across != 0)
    return jnp.where(hit, length / across, jnp.inf)


def nearest_point(to_wall: tuple[Scalar, Scalar], span: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
    """Return the vector from the origin of `to_wall` to the wall's nearest point."""
    squared = span[0] * span[0] + span[1] * span[1]
    along = jnp.clip(-(to_wall[0] * span[0] + to_wall[1] * span[1]) / squared, 0, 1)
    return to_wall[0] + along * span[0], to_wall[1] + along * span[1]


def read_lasers(config: MazeConfig, key: PRNGKeyArray, beams: tuple[Scalar, ...]) -> list[Scalar]:
    """Return what the lasers read: noise first, then the range test; never below 0."""
    # A beam ends at the laser's range, whatever the noise.
    readings = [jnp.where(beam > config.laser_range, jnp.inf, beam) for beam in beams]
    if config.laser_noise > 0:
        noise = config.laser_noise * jax.random.normal(key, (len(beams),))
        readings = [jnp.maximum(0, reading + noise[i]) for i, reading in enumerate(readings)]
    beyond = config.laser_range if config.laser_out_of_range == "range" else -1.0
    return [jnp.where(reading > config.laser_range, beyond, reading) for reading in readings]


def read_bumpers(seen: Surroundings) -> list[Scalar]:
    """Return +1 for a bumper that touches a wall, -1 for one that does not: first the right, then the left."""
    return [jnp.where(contact, 1.0, -1.0) for contact in (seen.contact_right, seen.contact_left)]


def is_touching(config: MazeConfig, seen: Surroundings) -> Bool[Array, ""]:
    """Return whether a wall is within the radius. Such a robot never moves again."""
    return seen.clearance <= config.robot_radius**2


def drive(config: MazeConfig, key: PRNGKeyArray, posture: Posture, action: list[Scalar]) -> Posture:
    """Return the posture after one step along the exact arc of the two wheels' travel, walls ignored.

    With turn `a = (right - left) / axle` and mean travel `d`, the robot moves by the chord `d sin(a/2) / (a/2)`
    in the direction `heading + a/2`. This is exact in float32 for tiny turns and straight ahead, too.
    """
    speed = config.wheel_speed
    travel = [speed * jnp.clip(wheel, -1, 1) for wheel in action]
    if config.wheel_noise > 0:
        noise = config.wheel_noise * jax.random.normal(key, (2,))
        travel = [jnp.clip(t + noise[i], -speed, speed) for i, t in enumerate(travel)]
    left, right = travel
    axle = 2 * config.robot_radius
    half = (right - left) / (2 * axle)
    sinc, cos = sinc_and_cos(half, largest=speed / axle)
    sin = half * sinc
    chord = (left + right) / 2 * sinc
    middle_cos, middle_sin = posture.cos * cos - posture.sin * sin, posture.sin * cos + posture.cos * sin
    return Posture(
        posture.x + chord * middle_cos,
        posture.y + chord * middle_sin,
        middle_cos * cos - middle_sin * sin,
        middle_sin * cos + middle_cos * sin,
    )


def sinc_and_cos(angle: Scalar, largest: float) -> tuple[Scalar, Scalar]:
    """Return `sin(angle) / angle` and `cos(angle)` for `|angle| <= largest`, exact to float32.

    Small angles use the Taylor series, which is several times cheaper than the library's functions and does not
    divide by the angle.
    """
    if largest > 1.5:
        return jnp.sinc(angle / jnp.pi), jnp.cos(angle)
    terms = next(k for k in range(1, 30) if largest ** (2 * k) / math.factorial(2 * k) < 1e-9)
    sinc = cos = jnp.zeros_like(angle)
    for k in reversed(range(terms)):  # Horner's rule in -angle^2
        sinc = 1 / math.factorial(2 * k + 1) - angle * angle * sinc
        cos = 1 / math.factorial(2 * k) - angle * angle * cos
    return sinc, cos
