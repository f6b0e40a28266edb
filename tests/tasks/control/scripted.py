"""Robots that follow a script instead of physics, so that what is counted can be said by hand."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from brax.envs.base import State

from jedax.tasks.control.task import AntMaze, Locomotion


class Pose(NamedTuple):
    pos: Any
    rot: Any


class Physics(NamedTuple):
    step: Any
    x: Pose
    q: Any
    qd: Any


class Script:
    """An environment whose states, rewards and ends are given; a table has a row for each step."""

    def __init__(self, positions, rewards, done, rotations=None, speeds=None):
        self.positions = np.asarray(positions, np.float32)
        self.rewards, self.done = np.asarray(rewards, np.float32), np.asarray(done, np.float32)
        upright = np.broadcast_to(np.float32([1, 0, 0, 0]), (*self.positions.shape[:2], 4))
        self.speeds = np.zeros(len(self.rewards), np.float32) if speeds is None else np.asarray(speeds, np.float32)
        self.rotations = upright if rotations is None else np.asarray(rotations, np.float32)

    def state(self, step, row, reward, done):
        pose = Pose(jnp.asarray(self.positions)[row], jnp.asarray(self.rotations)[row])
        observation = jnp.full(17, step, jnp.float32)
        velocities = jnp.zeros(3).at[0].set(jnp.asarray(self.speeds)[row])
        return State(Physics(step, pose, jnp.zeros(3), velocities), observation, reward, done)

    def start(self):
        return self.state(jnp.int32(0), 0, jnp.float32(0), jnp.float32(0))

    def step(self, state, action):
        row = state.pipeline_state.step
        return self.state(row + 1, row, jnp.asarray(self.rewards)[row], jnp.asarray(self.done)[row])


def follow(kind, script, **settings):
    """Return a task of that kind on a scripted robot."""

    class Scripted(kind):
        observation_size = 17

        @property
        def environment(self):
            return script

        def start_state(self):
            return script.start()

    return Scripted(steps=len(script.rewards), hidden=(2,), physics="brax", **settings)


def walker(script, **settings):
    return follow(Locomotion, script, name="walker2d", **settings)


def ant(script, **settings):
    return follow(AntMaze, script, **settings)
