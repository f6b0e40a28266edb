"""Native robots beside Brax's, from the same states and with the same policies."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from brax import com, contact, kinematics
from brax.base import Motion, Transform
from brax.spring.base import State as Spring
from tests.watching import watch

from jedax import networks
from jedax.native import control
from jedax.tasks import make
from jedax.tasks.control import native_model
from jedax.tasks.control.settings import WALLS

ROBOTS = ("halfcheetah", "walker2d", "hopper", "ant", "humanoid", "ant-maze")
QUICK = {"xla_cpu_use_fusion_emitters": False}  # halves the time that compiling Brax takes
ROUNDING = 1.2e-7  # the step from 1 to the next number of float32


class After(NamedTuple):
    """States of a batch of robots after some steps; the last step's reward and end."""

    positions: np.ndarray  # of the links' origins
    rotations: np.ndarray
    velocities: np.ndarray
    spins: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    observation: np.ndarray
    reward: np.ndarray
    done: np.ndarray


COMPARED = After._fields[:-1]


class Robot:
    """A robot that native code and Brax simulate from the same rows, those of `jedax.native.control.evaluate`."""

    def __init__(self, name, hidden=(16,), **settings):
        self.name, self.task = name, make(name, hidden=hidden, physics="native", **settings)
        assert control.KERNEL.available, control.KERNEL.status  # which registers its functions
        self.environment = self.task.environment
        self.model = native_model.model(self.environment)
        settings = self.task.native_settings()
        self.episode = native_model.episode(self.task.robot, self.environment, **settings)
        self.links, self.dofs = len(self.model["parents"]), len(self.model["turns"])
        self.seen = self.episode.layers[0]
        self.start = self._start()

    def _start(self):
        """Return a row: the robot as its model has it, at rest. Brax's reset would take seconds to compile."""
        model = self.environment.sys.mj_model
        data = mujoco.MjData(model)
        data.qpos[:] = self.environment.sys.init_q
        mujoco.mj_kinematics(model, data)
        links = np.concatenate([data.xpos[1:], data.xquat[1:], np.zeros((self.links, 6))], axis=1)
        return np.concatenate([links.ravel(), np.zeros(self.seen)])[None].astype(np.float32)

    def random_policies(self, count, seed=0):
        keys = jax.random.split(jax.random.key(seed), count)
        return np.asarray(jax.jit(jax.vmap(self.task.init))(keys))

    @functools.cached_property
    def evaluate(self):
        """The function that evaluates genotypes in whole episodes of the task."""
        return jax.jit(lambda genotypes: control.evaluate(self.model, self.episode, genotypes, self.start))

    def trained_policies(self, count, generations=20, pairs=32, seed=0):
        """Return policies around the mean of a small evolution strategy, which comes first."""
        random = np.random.default_rng(seed)
        mean, sigma = self.random_policies(1, seed)[0], 0.1
        for _ in range(generations):
            noise = random.normal(size=(pairs, mean.size)).astype(np.float32)
            noise = np.concatenate([noise, -noise])
            fitness = np.nan_to_num(np.asarray(self.evaluate(mean + sigma * noise).fitness), nan=-1e9)
            ranks = np.argsort(np.argsort(fitness)) / (len(fitness) - 1) - 0.5
            mean = mean + np.float32(4 * sigma / len(noise)) * (ranks.astype(np.float32) @ noise)
        near = mean + 0.05 * random.normal(size=(count, mean.size)).astype(np.float32)
        near[0] = mean
        return near

    def native(self, rows, genotypes, steps, substeps=None):
        """Return every state of `steps` control steps in native code as `After` with an axis of steps, and lengths."""
        substeps = substeps or self.model["substeps"]
        return jax.tree.map(np.asarray, self._native_program(steps, substeps)(rows, genotypes))

    @functools.cache  # noqa: B019
    def _native_program(self, steps, substeps):
        episode = dataclasses.replace(self.episode, steps=steps)
        model = {**self.model, "substeps": substeps}

        def run(rows, genotypes):
            outcome, record, seen = watch(model, episode, genotypes, rows)
            return After(*seen, record.observations[:, 1:], record.rewards, record.ends), outcome.length

        return jax.jit(run)

    def rows(self, after):
        """Return states as rows from which both may begin."""
        links = np.concatenate([after.positions, after.rotations, after.velocities, after.spins], axis=-1)
        links = links.reshape(*links.shape[:-2], -1)
        return np.concatenate([links, after.observation], axis=-1).astype(np.float32)

    def brax(self, rows, genotypes, steps, substeps=None):
        """Return states after some steps by Brax, all by one program."""
        substeps = substeps or self.model["substeps"]
        found = self._brax_program(rows, genotypes, jnp.int32(steps), jnp.int32(substeps))
        return jax.tree.map(np.asarray, found)

    @functools.cached_property
    def _brax_program(self):
        class Counted(type(self.environment)):
            """Brax's environment; the number of substeps is an argument of the program."""

            def pipeline_step(self, physics, action):
                def substep(_, physics):
                    return self._pipeline.step(self.sys, physics, action)

                return jax.lax.fori_loop(0, self.substeps, substep, physics)

        layers = functools.partial(networks.layers, sizes=self.task.layer_sizes)
        shapes = jax.eval_shape(self.environment.reset, jax.random.key(0))
        begin = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

        def run(row, genotype, steps, substeps):
            environment = Counted.__new__(Counted)
            vars(environment).update(vars(self.environment), substeps=substeps)
            weights = layers(genotype)

            def step(_, state):
                action = networks.forward(weights, state.obs[None], self.task.config.activation)[0]
                return environment.step(state, action)

            physics = self._physics(row[: 13 * self.links].reshape(self.links, 13))
            state = begin.replace(pipeline_state=physics, obs=row[13 * self.links :])
            end = jax.lax.fori_loop(0, steps, step, state)
            physics = end.pipeline_state
            return After(
                physics.x.pos, physics.x.rot, physics.xd.vel, physics.xd.ang, physics.q, physics.qd, end.obs,
                end.reward, end.done > 0
            )  # fmt: skip

        return jax.jit(jax.vmap(run, (0, 0, None, None)), compiler_options=QUICK)

    def _physics(self, links):
        """Return Brax's state of links."""
        system = self.environment.sys
        x = Transform(pos=links[:, :3], rot=links[:, 3:7])
        xd = Motion(vel=links[:, 7:10], ang=links[:, 10:])
        j, jd, a_p, a_c = kinematics.world_to_joint(system, x, xd)
        x_i, xd_i = com.from_world(system, x, xd)
        q, qd = kinematics.inverse(system, j, jd)
        mass = system.link.inertia.mass ** (1 - system.spring_mass_scale)
        return Spring(
            q=q, qd=qd, x=x, xd=xd, contact=None, x_i=x_i, xd_i=xd_i, j=j, jd=jd, a_p=a_p, a_c=a_c,
            i_inv=com.inv_inertia(system, x), mass=mass
        )  # fmt: skip

    @functools.cached_property
    def touching(self):
        """The function that returns which of Brax's contacts overlap in states given as rows."""

        def overlaps(row):
            links = row[: 13 * self.links].reshape(self.links, 13)
            everywhere = getattr(self.environment, "maze", self.environment.sys)
            found = contact.get(everywhere, Transform(pos=links[:, :3], rot=links[:, 3:7]))
            assert found is not None
            return found.dist < 0

        return jax.jit(jax.vmap(overlaps))

    def perturbed(self, rows, size, seed=0):
        """Return rows whose states differ by relative errors of that size; observations stay."""
        noise = np.random.default_rng(seed).normal(size=rows.shape)
        noise[:, 13 * self.links :] = 0
        return (rows * (1 + size * noise)).astype(np.float32)

    def states(self, genotypes, count, steps, seed=0):
        """Return `count` states met in episodes of policies, as rows, and whose policy met each.

        One in eight is the last before its episode ends. In the maze half of the ants are moved near walls and pushed.
        """
        after, length = self.native(np.repeat(self.start, len(genotypes), 0), genotypes, steps)
        random = np.random.default_rng(seed)
        policy = np.arange(count) % len(genotypes)
        last = np.maximum(length[policy] - 2, 0)
        step = np.where(np.arange(count) % 8, (random.uniform(size=count) * (last + 1)).astype(int), last)
        after = jax.tree.map(lambda leaf: leaf[policy, step], after)
        if self.name == "ant-maze":
            self._push_to_walls(after, random)
        return self.rows(after), policy

    @staticmethod
    def _push_to_walls(after, random):
        """Move every other ant beside a wall, at any side or end of it, and push it, most of them towards the wall."""
        x1, y1, x2, y2 = np.array(WALLS)[random.integers(len(WALLS), size=len(after.reward[1::2]))].T
        along, beside = random.uniform(-0.05, 1.05, len(x1)), random.uniform(0.6, 1.4, len(x1))
        side, angle = random.choice([-1, 1], len(x1)), random.uniform(0, 2 * np.pi, len(x1))
        lies = y1 == y2
        place = np.stack([x1 + along * (x2 - x1), y1 + along * (y2 - y1)], axis=1)
        off = np.where(lies[:, None], [0, 1], [1, 0]) * (side * beside)[:, None]
        after.positions[1::2, :, :2] += (place + off - after.positions[1::2, 0, :2])[:, None]
        anywhere = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        push = random.uniform(0, 8, (len(x1), 1)) * (anywhere - off / beside[:, None])
        after.velocities[1::2, :, :2] += push[:, None]


def errors(one, other):
    """Return for each quantity the largest difference in each state, in units of the quantity's scale.

    The scale of each component is the 95th percentile of its magnitude, at least 1 (radian, m/s ...); of positions 1 m.
    """
    found = {}
    for name in COMPARED:
        a, b = (np.float64(getattr(after, name)) for after in (one, other))
        scale = np.maximum(1, 0 if name == "positions" else np.quantile(np.abs(b), 0.95, axis=0))
        off = np.abs(a - b) / scale
        if name == "rotations":  # q and -q are the same rotation
            off = np.minimum(off, np.abs(a + b).max(-1, keepdims=True) / scale.min())
        found[name] = off.reshape(len(a), -1).max(axis=1)
    return found
