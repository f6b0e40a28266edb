"""Brax's environments, loaded once per process. Importing this module imports Brax.

References:
    [1] C. D. Freeman et al. Brax: a differentiable physics engine for large scale rigid body simulation. 2021.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import brax.envs
import jax
import jax.numpy as jnp
import mujoco as _mujoco
import numpy as np
from brax.envs.ant import Ant
from brax.envs.base import State
from brax.io import mjcf
from etils import epath

from jedax.tasks.control.settings import RADIUS, TARGET, WALLS
from jedax.tasks.mujoco import quiet_mujoco
from jedax.types import Array, Float

mujoco: Any = _mujoco  # its stubs lack most of it

ANT_MAZE = "ant-maze"
# Geoms that collide with the walls, and the bit of that collision; Brax's robots use the first bit for the floor.
_TOUCHES_WALLS = ("torso_geom", "left_ankle_geom", "right_ankle_geom", "third_ankle_geom", "fourth_ankle_geom")
_WALL_BIT = "2"
_FIRST_WALL = 1  # the floor is geom 0
_NEAR = 2


@dataclass(frozen=True)
class Feet:
    """The feet of a robot, each a sphere or a capsule, which is as low as the lower of the spheres at its two ends."""

    links: np.ndarray  # `(feet,)`, the link of each foot
    ends: np.ndarray  # `(feet, 2, 3)`, centres of its two spheres in the frame of the link; equal for a sphere
    radii: np.ndarray  # `(feet,)`, in metres

    def heights(
        self, positions: Float[Array, "*batch links 3"], rotations: Float[Array, "*batch links 4"]
    ) -> Float[Array, "*batch feet"]:
        """Return the height of each foot's lowest point above the floor, from the links' positions and quaternions."""
        w, x, y, z = jnp.moveaxis(rotations[..., self.links, :], -1, 0)
        down = jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)
        lowest = (self.ends * down[..., None, :]).sum(axis=-1).min(axis=-1)
        return positions[..., self.links, 2] + lowest - self.radii


@functools.cache
def load(name: str, backend: str) -> Any:
    """Return one of Brax's environments, or the maze of the ant, with one of Brax's engines."""
    # Constants that are made while a program is traced must not belong to it: the next program uses them as well.
    with jax.ensure_compile_time_eval(), _shown_once():
        return AntMazeEnv(backend) if name == ANT_MAZE else brax.envs.get_environment(name, backend=backend)


@functools.cache
def start_state(name: str, backend: str, seed: int) -> State:
    """Return the state that Brax's `reset` draws for this seed, as NumPy arrays."""
    env = load(name, backend)
    with jax.ensure_compile_time_eval():
        return jax.tree.map(np.asarray, jax.jit(env.reset)(jax.random.key(seed)))


def feet_of(name: str, backend: str, names: tuple[str, ...]) -> Feet:
    """Return the feet of a robot by the names of their geoms."""
    model = load(name, backend).sys.mj_model
    geoms = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot) for foot in names]
    ends = []
    for geom in geoms:
        along = np.zeros(3)
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE:
            mujoco.mju_rotVecQuat(along, np.array([0, 0, model.geom_size[geom][1]]), model.geom_quat[geom])
        ends.append([model.geom_pos[geom] + along, model.geom_pos[geom] - along])
    links = model.geom_bodyid[geoms] - 1  # body 0 is the world
    return Feet(links, np.array(ends, np.float32), model.geom_size[geoms, 0].astype(np.float32))


class AntMazeEnv(Ant):
    """Brax's ant among the walls of `jedax.tasks.control.settings`.

    The walls are capsules that the torso and the four lower legs collide with. Reward: minus the distance from the
    torso to the target, in the plane. Done: the torso leaves z in [0.2, 5]. Observation: x and y of the torso from -1
    to 1 over the box, then the ant's own.

    `maze` and `sys.mj_model` have all seven walls. The simulated model has the two that are nearest to the torso before
    a step: a third wall is never within 6 m, the ant reaches 1.3 m, and a step among seven walls takes twice as long.
    """

    middle = 17.5  # of the box, in x and in y
    half_width = 22.5

    def __init__(self, backend: str = "spring"):
        super().__init__(backend=backend)
        self._healthy_z_range = (0.2, 5.0)
        # Brax tunes engines and motors to the backend.
        tuned = {"opt": self.sys.opt, "actuator": self.sys.actuator}
        self.maze = mjcf.loads(_maze_xml(WALLS)).replace(**tuned)
        self.sys = mjcf.loads(_maze_xml(WALLS[:_NEAR])).replace(**tuned, mj_model=self.maze.mj_model)

    def reset(self, rng: jax.Array) -> State:
        """Return a random posture of the ant at the origin."""
        posture = super().reset(rng).pipeline_state
        assert posture is not None
        physics = self.pipeline_init(posture.q.at[:2].set(0.0), posture.qd)
        return self._look(physics)

    def step(self, state: State, action: jax.Array) -> State:
        """Simulate one step."""
        physics = state.pipeline_state
        assert physics is not None
        among = copy.copy(self)
        among.sys = self._walls_near(physics.x.pos[0, :2])
        return self._look(among.pipeline_step(physics, action))

    def _walls_near(self, torso: jax.Array) -> Any:
        """Return the model with the walls that are nearest to a point."""
        starts, ends = jnp.split(jnp.array(WALLS), 2, axis=1)
        along = jnp.clip(torso, starts, ends)  # walls are parallel to the axes
        nearest = jnp.argsort(((torso - along) ** 2).sum(axis=1))[:_NEAR]
        everywhere, here = (_FIRST_WALL + np.arange(number) for number in (len(WALLS), _NEAR))

        def chosen(name: str) -> jax.Array:
            return getattr(self.sys, name).at[here].set(getattr(self.maze, name)[everywhere][nearest])

        return self.sys.replace(**{name: chosen(name) for name in ("geom_pos", "geom_quat", "geom_size")})

    def _look(self, physics: Any) -> State:
        x, y, z = physics.x.pos[0]
        to_target = jnp.array(TARGET) - physics.x.pos[0, :2]
        low, high = self._healthy_z_range
        seen = jnp.concatenate([(jnp.stack([x, y]) - self.middle) / self.half_width, self._get_obs(physics)])
        done = jnp.where((z < low) | (z > high), 1.0, 0.0)
        return State(physics, seen, -jnp.sqrt((to_target**2).sum()), done)


def _maze_xml(walls: Sequence[tuple[float, float, float, float]]) -> str:
    """Return Brax's model of the ant with walls, the geoms from `_FIRST_WALL` on."""
    root = ElementTree.fromstring((epath.resource_path("brax") / "envs/assets/ant.xml").read_text())
    for geom in root.iter("geom"):
        if geom.get("name") in _TOUCHES_WALLS:
            geom.set("contype", _WALL_BIT)
    world = root.find("worldbody")
    assert world is not None
    for number, (x1, y1, x2, y2) in enumerate(walls):
        # MuJoCo measures a capsule without its caps.
        dx, dy = RADIUS * (x2 > x1), RADIUS * (y2 > y1)
        ends = (x1 + dx, y1 + dy, RADIUS, x2 - dx, y2 - dy, RADIUS)
        ElementTree.SubElement(
            world, "geom", name=f"wall_{number}", type="capsule", size=str(RADIUS), fromto=" ".join(map(str, ends)),
            contype="0", conaffinity=_WALL_BIT, rgba="0.35 0.4 0.5 1"
        )  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


_shown: set[str] = set()


@contextmanager
def _shown_once() -> Iterator[None]:
    """Show each warning of Brax and MuJoCo about a robot that they load once per process."""
    with quiet_mujoco(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if str(warning.message) not in _shown:
            _shown.add(str(warning.message))
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
