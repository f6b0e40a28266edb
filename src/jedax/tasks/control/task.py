"""Robots of Brax that a policy controls: locomotion, and the ant in a maze (paper, section 5.1)."""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks
from jedax.errors import fail
from jedax.imports import require
from jedax.native import choose
from jedax.native import control as native
from jedax.tasks.base import computed, member_keys
from jedax.tasks.control import native_model
from jedax.tasks.control.settings import LIMITS, TARGET, AntMazeConfig, LocomotionConfig
from jedax.tasks.motion import Trajectory
from jedax.tasks.policy import NormalisingTask
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray, Transitions


class State(NamedTuple):
    """An episode after some steps. Steps count up to and including the one that ends the episode."""

    physics: Any  # Brax's state of the robot
    observation: Float[Array, " observation"]  # what the policy sees next
    fitness: Float[Array, ""]  # sum of the rewards of the steps that count
    length: Int[Array, ""]  # number of these steps
    alive: Bool[Array, ""]  # whether the episode has not ended
    behaviour: Float[Array, " descriptor"]  # what `_seen` returned: summed over these steps, or of the last of them


class ControlTask(NormalisingTask):
    """A robot that a multilayer perceptron controls (paper, section 5.1).

    Every episode begins in the state that Brax's `reset` draws from the setting `start_seed`, and nothing in it is
    random: a genotype always gets the same evaluation. With `random_resets`, `reset` draws the first state of each
    episode from the evaluation's key. Steps after the one in which the robot falls or leaves its range ("done") count
    neither for the fitness nor for the descriptor.
    """

    config: Any
    # Policies that a CPU simulates together. Their weights are read again in every step and should stay in its caches,
    # and a part takes as long as the longest of its episodes.
    part: ClassVar[int] = 32
    drawing_class = "jedax.tasks.control.drawing:ControlDrawing"
    robot: str  # name in `jedax.tasks.control.simulator`
    is_noisy = computed(lambda self: self.config.random_resets)
    sums_behaviour: ClassVar[bool]  # whether behaviour is summed over the steps; otherwise that of the last step counts

    @abc.abstractmethod
    def _seen(self, physics: Any) -> Float[Array, " descriptor"]:
        """Return what a state says of the behaviour."""

    def earned(self, reward: Float[Array, ""], done: Bool[Array, ""], length: Array) -> Float[Array, ""]:
        """Return what a step adds to the fitness.

        Args:
            reward: The reward of Brax's environment.
            done: Whether the step ends the episode.
            length: Steps of the episode before this one.
        """
        return reward

    def _descriptor(self, state: State) -> Float[Array, " descriptor"]:
        """Return the descriptor of an episode that has ended."""
        return state.behaviour

    @property
    def physics(self) -> str:
        """What simulates on a CPU: "native", or "brax" and why native code does not."""
        found = _find_native(self)
        return f"brax: {found}" if isinstance(found, str) else "native"

    def _natively(self, natively: Callable, in_jax: Callable, key: PRNGKeyArray, genotypes: Array) -> Any:
        """Call a function of native code on a CPU, else one of JAX; both get keys, one a member or None.

        Native code also gets the model, the episode and the states in which episodes begin.
        """
        keys, found = self._keys(key, len(genotypes)), _find_native(self)
        if isinstance(found, str):
            if self.config.physics == "native":
                remedy = "choose --physics brax or auto"
                raise fail("physics", expected="a task that native code simulates", received=found, remedy=remedy)
            return in_jax(keys, genotypes)

        def on_cpu(keys: PRNGKeyArray | None, genotypes: Array) -> Any:
            return natively(*found, genotypes, self._starts(keys))

        return choose(keys, genotypes, on_cpu=on_cpu, elsewhere=in_jax)

    def native_settings(self) -> dict[str, Any]:
        """Return the settings of `jedax.native.control.Episode` that the task knows and Brax does not."""
        config = self.config
        return {
            "steps": config.steps, "layers": self.layer_sizes, "activation": config.activation,
            "half_weights": config.weights == "bfloat16"
        }  # fmt: skip

    def layers(self, genotype: Float[Array, " params"]) -> list[tuple[Array, Array]]:
        """Return kernel and bias of each layer of a policy, in the precision of the setting `weights`.

        With the setting `normalise` the first layer has the normalisation in it: it takes observations as they are.
        """
        return super().layers(genotype.astype(self.config.weights).astype(jnp.float32))

    def settled(self, evaluate: Any = None) -> Self:
        """Return the task with the statistics that `normalise` needs, measured on random policies if not given."""

        def observed(raw: Self, genotypes: Any) -> np.ndarray:
            steps = jax.jit(raw.evaluate_with_transitions)(jax.random.key(0), genotypes).transitions
            return np.asarray(steps.observations)[np.asarray(steps.valid)]

        return self.with_statistics(observed)

    def _starts(self, keys: PRNGKeyArray | None) -> Float[Array, "episodes start"]:
        """Return the states in which episodes begin as rows for native code, one for each key, or one for all."""
        if keys is None:
            start = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.start_state())
        else:
            start = jax.vmap(self.environment.reset)(keys)
        x, xd = start.pipeline_state.x, start.pipeline_state.xd
        links = jnp.concatenate([x.pos, x.rot, xd.vel, xd.ang], axis=-1)
        observation = start.obs
        if (statistics := self.observation_statistics) is not None:
            mean, std = statistics
            observation = (observation - mean) / std
        return jnp.concatenate([links.reshape(len(links), -1), observation], axis=-1)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate one genotype; only random resets use `key`.

        A policy with weights that are not finite, or one that breaks the simulation, fails: its fitness is NaN.
        """
        self._check(genotype)
        return jax.tree.map(lambda leaf: leaf[0], self.evaluate_batch(key[None], genotype[None]))

    def evaluate_with_brax(self, key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate one genotype by Brax, on any device; only random resets use `key`."""
        layers = self.layers(genotype)
        finite = jnp.isfinite(genotype).all()
        state = jax.lax.while_loop(
            lambda state: state.alive & (state.length < self.config.steps),
            lambda state: self._step(layers, state)[0],
            self._begin(key, finite),
        )
        return self._evaluation(state, finite)

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch: on a CPU in native code (`jedax.native.control`) where it can be, elsewhere by Brax."""
        self._check_batch(genotypes)

        def natively(*arguments: Any) -> Evaluation:
            outcome = native.evaluate(*arguments)
            return Evaluation(outcome.fitness, outcome.descriptor)

        return self._natively(natively, partial(self._in_parts, self.evaluate_with_brax), key, genotypes)

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Return fitness and descriptors as `evaluate_batch` does, and every step as well.

        Falling is terminal, the time limit is not. A policy that failed has no valid steps. The fitness is that of
        these steps; with Brax it equals that of `evaluate_batch` up to rounding, which robots magnify.
        """
        self._check_batch(genotypes)

        def natively(*arguments: Any) -> Evaluation:
            outcome, record = native.record(*arguments, postures=False)
            return jax.vmap(self._with_transitions)(
                Evaluation(outcome.fitness, outcome.descriptor), self._trajectory(outcome, record)
            )

        def evaluate(key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> Evaluation:
            state, steps = self._record(key, genotype)
            return self._with_transitions(self._evaluation(state, jnp.isfinite(genotype).all()), steps)

        return self._natively(natively, partial(self._in_parts, evaluate), key, genotypes)

    def _trajectory(self, outcome: native.Outcome, record: native.Record) -> Trajectory:
        """Return the steps of a batch that native code has recorded, with observations as they are."""
        observations = record.observations
        if (statistics := self.observation_statistics) is not None:
            mean, std = statistics
            observations = observations * std + mean
        return Trajectory(
            observations=observations[:, :-1], actions=record.actions, positions=record.positions,
            length=outcome.length, rewards=record.rewards, next_observations=observations[:, 1:], done=record.ends,
            q=record.q, rotations=record.rotations
        )  # fmt: skip

    def _with_transitions(self, evaluation: Evaluation, steps: Trajectory) -> Evaluation:
        """Return the evaluation of one genotype with the steps of its episode."""
        counts = jnp.arange(self.config.steps) < steps.length
        transitions = Transitions(
            observations=steps.observations,
            actions=steps.actions,
            rewards=steps.rewards,
            next_observations=steps.next_observations,
            terminal=steps.done & counts,
            valid=counts & evaluation.valid,
        )
        return replace(evaluation, transitions=transitions)

    def rollout_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Trajectory:
        """Return every step of one episode of each genotype, batch first; those after its end mean nothing.

        Robots magnify rounding, and Brax's programs for batches of different sizes round differently: their steps are
        those of `evaluate_batch` for a batch of the same size, or for `part` genotypes.
        """
        self._check_batch(genotypes)

        def natively(*arguments: Any) -> Trajectory:
            return self._trajectory(*native.record(*arguments))

        in_jax = jax.vmap(lambda key, genotype: self._record(key, genotype)[1])
        return self._natively(natively, in_jax, key, genotypes)

    def replay(self, genotype: Float[Array, " params"]) -> Trajectory:
        """Return every step of one episode as `evaluate_batch` takes them in a part of a batch on a CPU.

        With random resets it begins in a random state, not in one of those of the search.
        """
        self._check(genotype)
        copies = jnp.broadcast_to(genotype, (self.part, self.num_params))
        return jax.tree.map(lambda leaf: leaf[0], self.rollout_batch(jax.random.key(0), copies))

    @property
    def _simulator(self) -> Any:
        """The module that imports Brax."""
        require("brax.envs", "brax", f"task {self.name}")
        from jedax.tasks.control import simulator

        return simulator

    @property
    def environment(self) -> Any:
        """Brax's environment: `reset`, `step`, and the model `sys`."""
        return self._simulator.load(self.robot, self.config.backend)

    def start_state(self) -> Any:
        """Return Brax's state in which every episode begins, unless resets are random."""
        return self._simulator.start_state(self.robot, self.config.backend, self.config.start_seed)

    def _keys(self, key: PRNGKeyArray, number: int) -> PRNGKeyArray | None:
        """Return a key for every member of a batch; None where no key is used."""
        return member_keys(key, number) if self.config.random_resets else None

    def _begin(self, key: PRNGKeyArray | None, alive: Bool[Array, ""]) -> State:
        if self.config.random_resets:
            start = self.environment.reset(key)
        else:
            start = jax.tree.map(jnp.asarray, self.start_state())
        nothing = jnp.zeros(self.num_descriptors)
        return State(start.pipeline_state, start.obs, jnp.float32(0), jnp.int32(0), jnp.asarray(alive), nothing)

    def _step(self, layers: list, state: State) -> tuple[State, tuple[Array, Array, Array]]:
        """Return the state after one more step, and the step's action, reward and end."""
        start = self.start_state()
        action = networks.forward(layers, state.observation[None], self.config.activation)[0]
        before = start.replace(
            pipeline_state=state.physics,
            obs=state.observation,
            metrics=dict(start.metrics),  # Brax writes into it
        )
        after = self.environment.step(before, action)
        done = after.done > 0
        reward = self.earned(after.reward, done, state.length)
        seen = self._seen(after.pipeline_state)
        behaviour = state.behaviour + seen if self.sums_behaviour else seen
        state = State(
            after.pipeline_state,
            after.obs,
            fitness=state.fitness + jnp.where(state.alive, reward, 0),
            length=state.length + state.alive,
            alive=state.alive & ~done,
            behaviour=jnp.where(state.alive, behaviour, state.behaviour),
        )
        return state, (action, reward, done)

    def _record(self, key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> tuple[State, Trajectory]:
        layers = self.layers(genotype)

        def step(state: State, _: None) -> tuple[State, dict[str, Array]]:
            after, (action, reward, done) = self._step(layers, state)
            x = after.physics.x
            return after, {
                "observations": state.observation, "actions": action, "rewards": reward,
                "next_observations": after.observation, "done": done, "q": after.physics.q, "positions": x.pos,
                "rotations": x.rot
            }  # fmt: skip

        state, records = jax.lax.scan(step, self._begin(key, jnp.array(True)), length=self.config.steps)
        return state, Trajectory(**records, length=state.length)

    def _evaluation(self, state: State, finite: Bool[Array, ""]) -> Evaluation:
        return Evaluation(fitness=jnp.where(finite, state.fitness, jnp.nan), descriptor=self._descriptor(state))

    def _in_parts(
        self, evaluate: Any, keys: PRNGKeyArray | None, genotypes: Float[Array, "batch params"]
    ) -> Evaluation:
        """Evaluate a batch by a function of one key (or None) and genotype; the parts change nothing but rounding."""
        whole = jax.vmap(evaluate)
        if genotypes.shape[0] <= self.part:
            return whole(keys, genotypes)

        def parts(keys: PRNGKeyArray | None, genotypes: Float[Array, "batch params"]) -> Evaluation:
            return jax.lax.map(lambda member: evaluate(*member), (keys, genotypes), batch_size=self.part)

        return choose(keys, genotypes, on_cpu=parts, elsewhere=whole)


@functools.cache
def _find_native(task: ControlTask) -> tuple[dict[str, Any], native.Episode] | str:
    """Return the model and the episodes of a task for native code, or why native code does not simulate it."""
    config = task.config
    if config.physics == "brax":
        return "the setting physics"
    if not native.KERNEL.available:
        return native.KERNEL.status.reason
    if config.backend != "spring":
        return f"the engine {config.backend}"
    try:
        environment = task.environment
        episode = native_model.episode(task.robot, environment, **task.native_settings())
        if (statistics := task.observation_statistics) is not None:
            episode = episode.normalised(*statistics)
        return native_model.model(environment), episode
    except native.Unsupported as missing:
        return str(missing)


class _Robot(NamedTuple):
    observation_size: int
    action_size: int
    feet: tuple[str, ...]  # names of their geoms in Brax's model
    names: tuple[str, ...]
    lowest: float  # about the lowest mean reward of a step
    speeds: tuple[float, float]  # bounds of the descriptor speed-height: m/s,
    heights: tuple[float, float]  # and m


ROBOTS = {
    "halfcheetah": _Robot(
        17, 6, ("bfoot", "ffoot"), ("back foot", "front foot"), -9.231, speeds=(-3.0, 10.0), heights=(0.1, 1.4)
    ),
    "walker2d": _Robot(
        17, 6, ("foot_geom", "foot_left_geom"), ("right foot", "left foot"), -1.413, speeds=(-3.0, 12.0),
        heights=(0.8, 1.6)
    ),
    "hopper": _Robot(11, 3, ("foot_geom",), ("foot",), -0.9, speeds=(-3.0, 6.0), heights=(0.7, 2.5)),
    "ant": _Robot(
        27, 8, ("left_foot_geom", "right_foot_geom", "third_foot_geom", "fourth_foot_geom"),
        ("front left foot", "front right foot", "back left foot", "back right foot"), -3.24, speeds=(-3.0, 10.0),
        heights=(0.2, 1.0)
    ),
    "humanoid": _Robot(
        244, 17, ("right_foot", "left_foot"), ("right foot", "left foot"), 0.0, speeds=(-3.0, 8.0), heights=(1.0, 1.6)
    )
}  # fmt: skip
"""Brax's robots by name. The lowest rewards are the offsets that QDax subtracts from QD scores of these tasks.

The bounds of speed and height hold what was measured, with a margin: 512 random policies of each robot (-1.3 to 1.6
m/s) and those that searches of two minutes found (-2.1 to 5.2 m/s). There is room above for 8, 10, 4, 8 and 6 m/s,
plausible speeds of policies that were trained for long.
"""


class Locomotion(ControlTask):
    """One of Brax's robots on a plane, with the reward of Brax's own environment (paper, section 5.1).

    Fitness: the sum of rewards (for speed with little effort and, except for the half cheetah, for staying upright).
    Descriptor: for each foot the share of steps, 0 to 1, after which it touches the floor. With
    `descriptor="speed-height"`: the means over the steps of the speed forward (Brax's `qd[0]`, m/s) and of the height
    of the first link, the torso (m). Genotype: weights of a multilayer perceptron from Brax's observation to Brax's
    action, layer by layer.

    Give it as a `LocomotionConfig`, or its parameters by name, as in `Locomotion(name="walker2d", steps=500)`.
    """

    config: LocomotionConfig
    Config = LocomotionConfig
    drawing_class = "jedax.tasks.control.drawing:LocomotionDrawing"
    sums_behaviour = True
    name = robot = computed(lambda self: self.config.name)
    _robot = computed(lambda self: ROBOTS[self.config.name])
    observation_size = computed(lambda self: self._robot.observation_size)
    sees_feet = computed(lambda self: self.config.descriptor == "feet-contact")
    action_size = computed(lambda self: self._robot.action_size)
    qd_offset = computed(lambda self: self.config.steps * self._robot.lowest)

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """The feet, or speed and height."""
        if self.sees_feet:
            return tuple(f"{foot} on the floor" for foot in self._robot.names)
        return ("speed in m/s", "height of the torso in m")

    @property
    def descriptor_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """0 (never) and 1 (always) for each foot; the robot's range of speed and height."""
        ranges = [(0.0, 1.0)] * len(self._robot.feet) if self.sees_feet else [self._robot.speeds, self._robot.heights]
        lows, highs = zip(*ranges, strict=True)
        return lows, highs

    def touches(
        self, positions: Float[Array, "*batch links 3"], rotations: Float[Array, "*batch links 4"]
    ) -> Bool[Array, "*batch feet"]:
        """Return whether each foot's lowest point is no higher than `contact_margin`.

        `positions` are those of Brax's links, in metres, and `rotations` their quaternions, real part first.
        """
        feet = self._simulator.feet_of(self.robot, self.config.backend, self._robot.feet)
        return feet.heights(positions, rotations) <= self.config.contact_margin

    def native_settings(self) -> dict[str, Any]:
        """Return the settings of `jedax.native.control.Episode` that the task knows and Brax does not."""
        if self.sees_feet:
            feet = self._simulator.feet_of(self.robot, self.config.backend, self._robot.feet)
            own = {
                "foot_links": feet.links, "foot_ends": feet.ends, "foot_radii": feet.radii,
                "foot_margin": self.config.contact_margin
            }  # fmt: skip
        else:
            own = {"averaged": native_model.speed_and_height(self.environment)}
        return super().native_settings() | own

    def _seen(self, physics: Any) -> Float[Array, " descriptor"]:
        if self.sees_feet:
            return self.touches(physics.x.pos, physics.x.rot).astype(jnp.float32)
        return jnp.stack([physics.qd[0], physics.x.pos[0, 2]])

    def _descriptor(self, state: State) -> Float[Array, " descriptor"]:
        return state.behaviour / jnp.maximum(state.length, 1)


class AntMaze(ControlTask):
    """Brax's ant walks from the origin to a target behind walls (paper, section 5.1; QDax's AntMaze).

    Fitness: minus the sum, over the steps, of the distance from the torso to the target after the step. The episode
    ends when the torso leaves z in [0.2, 5]. Each remaining step then costs the last distance, or nothing with
    `early_death="paper"`. Descriptor: x and y of the torso after the last step that counts, in metres. The walls are
    part of Brax's model, see `jedax.tasks.control.simulator.AntMazeEnv`. Genotype as in `Locomotion`; the observation
    begins with x and y, from -1 to 1 over the box.
    """

    config: AntMazeConfig
    Config = AntMazeConfig
    drawing_class = "jedax.tasks.control.drawing:AntMazeDrawing"
    name = "ant-maze"
    robot = "ant-maze"
    descriptor_names = ("x", "y")
    descriptor_bounds = LIMITS
    observation_size = 29
    action_size = 8
    sums_behaviour = False

    @property
    def qd_offset(self) -> float:
        """The fitness of an ant that stands in the corner of the box farthest from the target."""
        return -self.config.steps * max(
            math.dist(TARGET, corner) for corner in itertools.product(*zip(*LIMITS, strict=True))
        )

    def native_settings(self) -> dict[str, Any]:
        """Return the settings of `jedax.native.control.Episode` that the task knows and Brax does not."""
        x, y = TARGET
        charges = self.config.early_death == "charge"
        return super().native_settings() | {"target_x": x, "target_y": y, "charges_death": charges}

    def _seen(self, physics: Any) -> Float[Array, "2"]:
        return physics.x.pos[0, :2]

    def earned(self, reward: Float[Array, ""], done: Bool[Array, ""], length: Array) -> Float[Array, ""]:
        """Return what a step adds to the fitness: an ant that falls pays its last distance for all steps left."""
        if self.config.early_death == "paper":
            return reward
        return jnp.where(done, reward * (self.config.steps - length), reward)
