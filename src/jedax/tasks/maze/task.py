"""A maze as a task: reach the target in few steps; the behaviour is the robot's last position but one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks
from jedax.native import choose
from jedax.native import maze as native
from jedax.tasks.base import computed, member_keys
from jedax.tasks.maze import robot
from jedax.tasks.maze.settings import MazeConfig
from jedax.tasks.motion import Trajectory
from jedax.tasks.policy import PolicyTask
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray, Transitions

_NO_CONTACT = (-1.0, -1.0)


class State(NamedTuple):
    """An episode after some steps."""

    step: Int[Array, ""]
    posture: robot.Posture
    previous: tuple[robot.Scalar, robot.Scalar]  # position before the last step
    lasers: list[robot.Scalar]
    stuck: Bool[Array, ""]  # touches a wall and will not move again
    arrived: Bool[Array, ""]


class Maze(PolicyTask):
    """A robot in a maze (paper, section 5.1).

    Fitness: -1 for each step up to the one after which the robot's centre is nearer to the target than the target's
    radius; a robot that does not arrive has minus the number of steps minus `distance_weight` (100) times the distance
    left. Descriptor: x and y before the last step that counts. Genotype: weights of a multilayer perceptron from lasers
    and bumpers to the two wheels, layer by layer.

    Give the maze as a `MazeConfig`, or its parameters by name, as in `Maze(walls=[(0, 0.5, 0.7, 0.5)])`.
    """

    config: MazeConfig
    Config = MazeConfig
    drawing_class = "jedax.tasks.maze.drawing:MazeDrawing"
    name = computed(lambda self: self.config.name)
    descriptor_names = ("x", "y")
    descriptor_bounds = computed(lambda self: self.config.limits)
    observation_size = computed(lambda self: len(self.config.laser_angles) + 2)  # the lasers and two bumpers
    action_size = 2
    is_noisy = computed(lambda self: self.config.wheel_noise > 0 or self.config.laser_noise > 0)
    # Of a robot that arrives at the last step; where distance does not count, all that do not arrive have that, too.
    goal_fitness = computed(lambda self: float((self.config.distance_weight == 0) - self.config.steps))

    @property
    def qd_offset(self) -> float:
        """The fitness of a robot that ends a diagonal of the maze away from the target."""
        (x_low, y_low), (x_high, y_high) = self.config.limits
        diagonal = math.hypot(x_high - x_low, y_high - y_low)
        return -self.config.steps - self.config.distance_weight * diagonal

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate one genotype; the episode ends when the robot arrives or touches a wall.

        A controller with weights that are not finite fails: fitness and descriptor are NaN.
        """
        self._check(genotype)
        # A stuck robot never moves again: its episode can end here, and its bumpers do not matter.
        state = jax.lax.while_loop(
            lambda state: (state.step < self.config.steps) & ~state.arrived & ~state.stuck,
            lambda state: self._step(key, genotype, state, _NO_CONTACT)[0],
            self._begin(key),
        )
        dx, dy = self._to_target(state.posture)
        missed = -self.config.steps - self.config.distance_weight * jnp.sqrt(dx * dx + dy * dy)
        fitness = jnp.where(state.arrived, -state.step.astype(jnp.float32), missed)
        # The position before the last step; in steps that were left out the robot stood still.
        stood = (state.step < self.config.steps) & ~state.arrived
        descriptor = [jnp.where(stood, p, q) for p, q in zip(state.posture[:2], state.previous, strict=True)]
        evaluation = Evaluation(fitness=fitness, descriptor=jnp.stack(descriptor))
        finite = jnp.isfinite(genotype).all()
        return jax.tree.map(lambda value: jnp.where(finite, value, jnp.nan), evaluation)

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch; on a CPU in native code (`jedax.native.maze`) where it is available.

        Native code returns the same bits for a controller whatever else is in the batch. It rounds
        differently from `evaluate`: a few robots that graze a wall may end elsewhere.
        """
        return self._natively(native.evaluate, self.evaluate_in_jax, key, genotypes)

    def evaluate_in_jax(self, keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch, each member with its own key, without native code."""
        return jax.vmap(self.evaluate, in_axes=(0, 1))(keys, genotypes.T)  # a row holds one weight of all members

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Return fitness and descriptors as `evaluate_batch` does, and every step as well.

        The reward of each step is -1; the last step of a robot that does not arrive adds minus `distance_weight` (100)
        times the distance left. These are the rewards of Kheperax (`FinalDistKheperaxTask`), and their sum is the
        fitness. Arriving is terminal, the time limit is not. A controller with weights that are not finite has no valid
        steps.
        """
        evaluation = self.evaluate_batch(key, genotypes)
        limit = self.config.steps
        # One more step shows the observation after the last one.
        longer = type(self)(self.config, steps=limit + 1)
        trajectory = longer.rollout_batch(key, genotypes)
        # Two programs round differently, and robots magnify the difference: the end of the episode and its rewards
        # follow `evaluate_batch`.
        in_time = (evaluation.fitness == -limit) & (trajectory.length <= limit)
        arrived = (evaluation.fitness > -limit) | in_time
        length = jnp.where(arrived, -evaluation.fitness, limit)[:, None]
        step = jnp.arange(1, limit + 1)
        rest = jnp.where(step == length, evaluation.fitness[:, None] + length, 0)
        transitions = Transitions(
            observations=trajectory.observations[:, :-1],
            actions=trajectory.actions[:, :-1],
            rewards=rest - 1,
            next_observations=trajectory.observations[:, 1:],
            terminal=(step == length) & arrived[:, None],
            valid=(step <= length) & evaluation.valid[:, None],
        )
        return replace(evaluation, transitions=transitions)

    def act(self, genotype: Float[Array, " params"], observation: Sequence[float]) -> Float[Array, "2"]:
        """Return the action of a controller: left and right wheel, in [-1, 1].

        The observation is the distance that each laser reads, then right and left bumper (1 touches, -1 does not).
        """
        values = list(self._observation(observation))
        return jnp.stack(networks.apply(jnp.asarray(genotype), values, self.layer_sizes, self.config.activation))

    def rollout(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Trajectory:
        """Return every step of one episode; `key` as in `evaluate`."""
        self._check(genotype)

        def step(carry: tuple[State, list[robot.Scalar]], _: None) -> tuple[tuple, tuple]:
            state, bumpers = carry
            after, action, contacts = self._step(key, genotype, state, bumpers)
            after = after._replace(arrived=state.arrived | after.arrived)
            outputs = ([*state.lasers, *bumpers], action, after.posture[:2], after.arrived)
            return (after, contacts), outputs

        start = (self._begin(key), [jnp.float32(b) for b in _NO_CONTACT])
        _, (observations, actions, positions, arrived) = jax.lax.scan(step, start, length=self.config.steps)
        length = jnp.where(arrived.any(), jnp.argmax(arrived) + 1, self.config.steps)
        stacked = [jnp.stack(rows, axis=-1) for rows in (observations, actions, positions)]
        return Trajectory(stacked[0], stacked[1], stacked[2], length)

    def rollout_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Trajectory:
        """Return every step of one episode of each genotype, batch first; `key` as in `evaluate_batch`."""
        return self._natively(
            lambda *arguments: Trajectory(*native.record(*arguments)), jax.vmap(self.rollout), key, genotypes
        )

    def _natively(self, natively: Callable, in_jax: Callable, key: PRNGKeyArray, genotypes: Array) -> Any:
        """Call a function of native code on a CPU where it fits the maze and the batch, else one of JAX."""
        self._check_batch(genotypes)
        keys, settings = member_keys(key, genotypes.shape[0]), self.native_settings()
        if not native.fits(settings, genotypes.shape[0]):
            return in_jax(keys, genotypes)
        return choose(keys, genotypes, on_cpu=partial(natively, settings), elsewhere=in_jax)

    def native_settings(self) -> native.Settings:
        """Return the maze, the robot and the layout of controllers for native code."""
        config = self.config
        x, y, heading = (float(np.float32(value)) for value in config.start)
        angles = np.asarray(config.laser_angles, np.float32).astype(float)
        return native.Settings(
            walls=np.array(config.all_walls, np.float32).reshape(-1, 4),
            steps=config.steps,
            start_x=x,
            start_y=y,
            start_cos=math.cos(heading),
            start_sin=math.sin(heading),
            target_x=config.target[0],
            target_y=config.target[1],
            target_radius_squared=config.target_radius**2,
            distance_weight=config.distance_weight,
            robot_radius_squared=config.robot_radius**2,
            wheel_speed=config.wheel_speed,
            turn=1 / (4 * config.robot_radius),
            laser_cos=np.cos(angles),
            laser_sin=np.sin(angles),
            laser_range=config.laser_range,
            out_of_range=config.laser_range if config.laser_out_of_range == "range" else -1.0,
            laser_noise=config.laser_noise,
            wheel_noise=config.wheel_noise,
            layers=self.layer_sizes,
            activation=config.activation,
        )

    def _begin(self, key: PRNGKeyArray) -> State:
        x, y, heading = (jnp.float32(v) for v in self.config.start)
        posture = robot.Posture(x, y, jnp.cos(heading), jnp.sin(heading))
        seen = robot.look_around(self.config, posture)
        lasers = robot.read_lasers(self.config, jax.random.fold_in(key, 0), seen.beams)
        no = jnp.array(False)
        return State(jnp.int32(0), posture, (x, y), lasers, stuck=no, arrived=no)

    def _step(
        self, key: PRNGKeyArray, genotype: Float[Array, " params"], state: State, bumpers: Sequence
    ) -> tuple[State, list[robot.Scalar], list[robot.Scalar]]:
        """Return the episode after one step, the action, and the bumpers for the next step.

        `bumpers` are the contacts in the posture before the present one.
        """
        laser_key, wheel_key = jax.random.split(jax.random.fold_in(key, state.step + 1))
        before = state.posture
        action = networks.apply(genotype, [*state.lasers, *bumpers], self.layer_sizes, self.config.activation)
        moved = robot.drive(self.config, wheel_key, before, action)
        after = jax.tree.map(lambda old, new: jnp.where(state.stuck, old, new), before, moved)
        seen = robot.look_around(self.config, after)
        dx, dy = self._to_target(after)
        arrived = dx * dx + dy * dy < self.config.target_radius**2
        lasers = robot.read_lasers(self.config, laser_key, seen.beams)
        stuck = robot.is_touching(self.config, seen)
        # Bumpers are read before the move; a robot that was not stuck then touched nothing.
        contacts = [jnp.where(state.stuck, bumper, -1.0) for bumper in robot.read_bumpers(seen)]
        return State(state.step + 1, after, before[:2], lasers, stuck, arrived), action, contacts

    def _to_target(self, posture: robot.Posture) -> tuple[robot.Scalar, robot.Scalar]:
        return self.config.target[0] - posture.x, self.config.target[1] - posture.y
