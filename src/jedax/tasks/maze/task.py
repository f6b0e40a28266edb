"""A maze as a task: reach the target in few steps; the behaviour is where the robot ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks as policy
from jedax.errors import fail
from jedax.native import choose
from jedax.native import maze as native
from jedax.tasks.base import ConfiguredTask, member_keys
from jedax.tasks.maze import robot
from jedax.tasks.maze.settings import MazeConfig
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray, Transitions

_NO_CONTACT = (-1.0, -1.0)


class Episode(NamedTuple):
    """An episode while it goes on."""

    step: Int[Array, ""]
    posture: robot.Posture
    previous: tuple[robot.Scalar, robot.Scalar]  # position before the last step
    lasers: list[robot.Scalar]
    stuck: Bool[Array, ""]  # touches a wall: will not move any more
    arrived: Bool[Array, ""]


class Trajectory(NamedTuple):
    """All steps of one episode; after reaching the target the robot drives on.

    Attributes:
        observations: `(steps, lasers + 2)`, before each step.
        actions: `(steps, 2)`, left and right wheel, in [-1, 1].
        positions: `(steps, 2)`, after each step.
        length: Steps that count: up to and including the one that reaches the target.
    """

    observations: Float[Array, "steps observation"]
    actions: Float[Array, "steps 2"]
    positions: Float[Array, "steps 2"]
    length: Int[Array, ""]


class Maze(ConfiguredTask):
    """A robot in a maze (paper, section 5.1).

    Fitness: -1 for each step up to the one that brings the robot's centre nearer to the target than its
    radius; if that never happens, minus the number of steps minus 100 times the distance left. Descriptor:
    x and y before the last counted step. Genotype: weights of a multilayer perceptron from lasers and bumpers
    to the two wheels; hidden kernel row by row, hidden bias, output kernel, output bias.

    Give the maze as a `MazeConfig`, or its parameters by name, as in `Maze(walls=[(0, 0.5, 0.7, 0.5)])`.
    """

    config: MazeConfig
    config_class = MazeConfig
    descriptor_names = ("x", "y")

    @property
    def name(self) -> str:
        """The maze's name."""
        return self.config.name

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the controller, inputs (lasers, bumpers) and outputs (wheels) included."""
        return (len(self.config.laser_angles) + 2, *self.config.hidden, 2)

    @property
    def observation_size(self) -> int:
        """Numbers in one observation: lasers and two bumpers."""
        return self.layer_sizes[0]

    @property
    def action_size(self) -> int:
        """Numbers in one action: two wheels."""
        return self.layer_sizes[-1]

    @property
    def num_params(self) -> int:
        """Weights and biases of the controller."""
        return policy.num_params(self.layer_sizes)

    @property
    def descriptor_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The maze's lower left and upper right corner."""
        return self.config.limits

    @property
    def qd_offset(self) -> float:
        """The fitness of a robot that ends a whole diagonal away from the target."""
        (x_low, y_low), (x_high, y_high) = self.config.limits
        diagonal = math.hypot(x_high - x_low, y_high - y_low)
        return -self.config.steps - self.config.distance_weight * diagonal

    @property
    def goal_fitness(self) -> float:
        """The fitness of arriving at the very last step."""
        return float(-self.config.steps)

    @property
    def is_noisy(self) -> bool:
        """Whether wheels or lasers are."""
        return self.config.wheel_noise > 0 or self.config.laser_noise > 0

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype: kernels LeCun-uniform, biases zero."""
        return policy.init(key, self.layer_sizes)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate one genotype; the episode ends when the robot has arrived or touches a wall.

        A controller with weights that are not finite fails: fitness and descriptor are NaN.
        """
        self._check(genotype)
        # A stuck robot stays for good: its episode can end here, and its bumpers never matter.
        episode = jax.lax.while_loop(
            lambda episode: (episode.step < self.config.steps) & ~episode.arrived & ~episode.stuck,
            lambda episode: self._step(key, genotype, episode, _NO_CONTACT)[0],
            self._begin(key),
        )
        dx, dy = self._to_target(episode.posture)
        missed = -self.config.steps - self.config.distance_weight * jnp.sqrt(dx * dx + dy * dy)
        fitness = jnp.where(episode.arrived, -episode.step.astype(jnp.float32), missed)
        # The position before the last step; where steps were left out, the robot stood still in them.
        stood = (episode.step < self.config.steps) & ~episode.arrived
        descriptor = [jnp.where(stood, p, q) for p, q in zip(episode.posture[:2], episode.previous, strict=True)]
        evaluation = Evaluation(fitness=fitness, descriptor=jnp.stack(descriptor))
        finite = jnp.isfinite(genotype).all()
        return jax.tree.map(lambda value: jnp.where(finite, value, jnp.nan), evaluation)

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch; on a CPU in native code (`jedax.native.maze`) where it is available.

        Native code returns the same bits for a controller whatever else is in the batch. It rounds in its own way: a
        few robots that graze a wall may end elsewhere than with `evaluate`.
        """
        self._check_batch(genotypes)
        keys = member_keys(key, genotypes.shape[0])
        settings = self.native_settings()
        if not native.fits(settings, genotypes.shape[0]):
            return self.evaluate_in_jax(keys, genotypes)
        natively = partial(native.evaluate, settings)
        return choose(keys, genotypes, on_cpu=natively, elsewhere=self.evaluate_in_jax)

    def evaluate_in_jax(self, keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch, each member with its own key, without native code.

        It is laid out so that each weight of all members lies in one row.
        """
        return jax.vmap(self.evaluate, in_axes=(0, 1))(keys, genotypes.T)

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Return what `evaluate_batch` does, and every step as well.

        Each step earns -1, and the last step of a robot that never arrives, on top of it, minus 100 times the
        distance left: the rewards of Kheperax (`FinalDistKheperaxTask`), whose sum is the fitness. Arriving is
        terminal, the time limit is not. A controller with weights that are not finite has no valid steps.
        """
        evaluation = self.evaluate_batch(key, genotypes)
        limit = self.config.steps
        # One step more shows what is seen after the last one.
        longer = type(self)(self.config, steps=limit + 1)
        trajectory = longer.rollout_batch(key, genotypes)
        # Two programs for the same robot can part ways in the last bits, and then grow apart: `evaluate_batch`
        # has the say on when the episode ends and on what it earned.
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

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return what ONE controller does for many observations; see `act`."""
        return policy.apply_batch(genotype, observations, self.layer_sizes, self.config.activation)

    def act(self, genotype: Float[Array, " params"], observation: Sequence[float]) -> Float[Array, "2"]:
        """Return what a controller does: left and right wheel, in [-1, 1].

        Args:
            genotype: The controller.
            observation: What each laser reads (a distance), then left and right bumper (1 touches, -1 does not).

        Raises:
            JedaxError: Another number of readings.
        """
        if len(observation) != self.layer_sizes[0]:
            raise fail(
                "observation",
                expected=f"{self.layer_sizes[0]} readings, lasers and two bumpers",
                received=len(observation),
                remedy="give one number for each",
            )
        values = [jnp.float32(value) for value in observation]
        return jnp.stack(policy.apply(jnp.asarray(genotype), values, self.layer_sizes, self.config.activation))

    def rollout(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Trajectory:
        """Return every step of one episode; `key` as in `evaluate`."""
        self._check(genotype)

        def step(carry: tuple[Episode, list[robot.Scalar]], _: None) -> tuple[tuple, tuple]:
            episode, bumpers = carry
            after, action, contacts = self._step(key, genotype, episode, bumpers)
            after = after._replace(arrived=episode.arrived | after.arrived)
            outputs = ([*episode.lasers, *bumpers], action, after.posture[:2], after.arrived)
            return (after, contacts), outputs

        start = (self._begin(key), [jnp.float32(b) for b in _NO_CONTACT])
        _, (observations, actions, positions, arrived) = jax.lax.scan(step, start, length=self.config.steps)
        length = jnp.where(arrived.any(), jnp.argmax(arrived) + 1, self.config.steps)
        stacked = [jnp.stack(rows, axis=-1) for rows in (observations, actions, positions)]
        return Trajectory(stacked[0], stacked[1], stacked[2], length)

    def rollout_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Trajectory:
        """Return every step of one episode of each genotype, batch first; `key` as in `evaluate_batch`."""
        self._check_batch(genotypes)
        keys = member_keys(key, genotypes.shape[0])
        settings = self.native_settings()
        if not native.fits(settings, genotypes.shape[0]):
            return jax.vmap(self.rollout)(keys, genotypes)

        def natively(keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Trajectory:
            return Trajectory(*native.record(settings, keys, genotypes))

        return choose(keys, genotypes, on_cpu=natively, elsewhere=jax.vmap(self.rollout))

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

    def _begin(self, key: PRNGKeyArray) -> Episode:
        x, y, heading = (jnp.float32(v) for v in self.config.start)
        posture = robot.Posture(x, y, jnp.cos(heading), jnp.sin(heading))
        seen = robot.look_around(self.config, posture)
        lasers = robot.read_lasers(self.config, jax.random.fold_in(key, 0), seen.beams)
        no = jnp.array(False)
        return Episode(jnp.int32(0), posture, (x, y), lasers, stuck=no, arrived=no)

    def _step(
        self, key: PRNGKeyArray, genotype: Float[Array, " params"], episode: Episode, bumpers: Sequence
    ) -> tuple[Episode, list[robot.Scalar], list[robot.Scalar]]:
        """One step: decide, drive, look.

        Args:
            key: The episode's.
            genotype: The controller.
            episode: As it stands before the step.
            bumpers: What the controller feels: contacts one posture before the one it stands in.

        Returns:
            The episode after the step, the action, and the bumpers for the next step.
        """
        laser_key, wheel_key = jax.random.split(jax.random.fold_in(key, episode.step + 1))
        before = episode.posture
        action = policy.apply(genotype, [*episode.lasers, *bumpers], self.layer_sizes, self.config.activation)
        moved = robot.drive(self.config, wheel_key, before, action)
        after = jax.tree.map(lambda old, new: jnp.where(episode.stuck, old, new), before, moved)
        seen = robot.look_around(self.config, after)
        dx, dy = self._to_target(after)
        arrived = dx * dx + dy * dy < self.config.target_radius**2
        lasers = robot.read_lasers(self.config, laser_key, seen.beams)
        stuck = robot.is_touching(self.config, seen)
        # Bumpers are read before the move; a robot that was not stuck then touched nothing.
        contacts = [jnp.where(episode.stuck, bumper, -1.0) for bumper in robot.read_bumpers(seen)]
        return Episode(episode.step + 1, after, before[:2], lasers, stuck, arrived), action, contacts

    def _to_target(self, posture: robot.Posture) -> tuple[robot.Scalar, robot.Scalar]:
        return self.config.target[0] - posture.x, self.config.target[1] - posture.y
