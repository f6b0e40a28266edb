"""Environments of gymnasium as tasks: policies act in them, worker processes step them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jedax import networks as policy
from jedax.errors import JedaxError, fail, unknown
from jedax.imports import load_object, require
from jedax.search.workers.pool import Work
from jedax.settings import Config
from jedax.tasks.gym.descriptors import FinalXY, feet_of
from jedax.tasks.gym.episodes import Actions, Step, make_environment
from jedax.tasks.gym.settings import GymConfig, parse_arguments
from jedax.tasks.host import HostTask
from jedax.tasks.motion import Motion, Postures
from jedax.types import Array, Float, PRNGKeyArray

PREFIX = "gym:"
"""Starts the names of these tasks."""


@dataclasses.dataclass(frozen=True)
class _Facts:
    """What an environment says about itself."""

    observation_size: int
    num_outputs: int
    actions: Actions
    descriptor_names: tuple[str, ...]


class Gym(HostTask):
    """A gymnasium environment with Box observations and Box or Discrete actions.

    A genotype holds the weights of a multilayer perceptron (see `jedax.networks`) from the observation, flattened,
    to the action: for a Box its tanh outputs, scaled to the bounds; for Discrete the largest of its outputs chooses.
    Fitness is the sum of rewards of one episode, which always starts from the same seed; of several samples per
    evaluation, sample k of every solution starts from seed `episode_seed + k`.

    Example:
        `Gym(name="gym:HalfCheetah-v5", descriptor="feet-contact", hidden=(256, 256))`
    """

    config: GymConfig
    config_class = GymConfig

    def __init__(self, config: Config | None = None, /, **settings: Any):
        super().__init__(config, **settings)
        _facts(self.config)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the policy, inputs and outputs included."""
        facts = _facts(self.config)
        return (facts.observation_size, *self.config.hidden, facts.num_outputs)

    @property
    def num_params(self) -> int:
        """Weights and biases of the policy."""
        return policy.num_params(self.layer_sizes)

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """What is known of the axes; for functions of the user's, their attribute `descriptor_names`."""
        return _facts(self.config).descriptor_names

    @property
    def natural_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Shares of steps lie between 0 and 1; everything else must be given or measured."""
        if self.config.descriptor != "feet-contact":
            return None
        number = len(self.descriptor_names)
        return (0.0,) * number, (1.0,) * number

    @property
    def runs_own_code(self) -> bool:
        """Whether the descriptor is a function of the user's."""
        return ":" in self.config.descriptor

    @property
    def work(self) -> Work:
        """Episodes in lockstep."""
        config, bounds = self.config, self.given_bounds
        settings = {
            "name": config.name.removeprefix(PREFIX),
            "arguments": parse_arguments(config.arguments),
            "steps": config.steps,
            "seed": config.episode_seed,
            "sizes": self.layer_sizes,
            "activation": config.activation,
            "actions": dataclasses.asdict(_facts(config).actions),
            "descriptor": config.descriptor,
            "feet": config.feet,
            "num_descriptors": None if bounds is None else len(bounds[0]),
        }
        return Work("jedax.tasks.gym.episodes:Episodes", settings, config.chunk)

    def sample_seed(self, sample: int) -> int:
        """Return the seed with which a sample's episode starts."""
        return (self.config.episode_seed + sample) % 2**31

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype: kernels LeCun-uniform, biases zero."""
        return policy.init(key, self.layer_sizes)

    def record(self, genotypes: Float[np.ndarray, "batch params"]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return one episode of each genotype step by step, in this process.

        Returns:
            Rewards `(steps,)`, and after each step whether each foot touches the ground, `(steps, feet)`, where the
            robot is, `(steps, 2)`, or nothing, `(steps, 0)`, as the descriptor is feet-contact, final-xy or another.
        """
        rewards: list[list[float]] = [[] for _ in genotypes]
        seen: list[list[np.ndarray]] = [[] for _ in genotypes]

        def see(row: int, step: Step) -> None:
            rewards[row].append(step.reward)
            seen[row].append(step.seen)

        self._watch(genotypes, see)
        return [(np.array(earned), np.array(places)) for earned, places in zip(rewards, seen, strict=True)]

    def replay(self, genotype: Float[np.ndarray, " params"], shown: Callable[[int], Iterable[int]]) -> Motion:
        """Return one episode of ONE genotype with what it takes to draw it, simulated in this process.

        Args:
            genotype: The policy.
            shown: Returns after which of so many steps an environment that is none of MuJoCo's is asked for a picture.
        """
        steps: list[Step] = []
        bodies: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

        def see(row: int, step: Step) -> None:
            steps.append(step)
            if _is_mujoco(step.environment):
                data = step.environment.unwrapped.data
                bodies.append((data.qpos.copy(), data.xpos[1:].copy(), data.xquat[1:].copy()))

        self._watch(genotype[None], see)
        environment = steps[0].environment
        recorded: dict[str, Any] = {
            "rewards": np.array([step.reward for step in steps]),
            "seen": np.array([step.seen for step in steps]),
            "observations": np.array([step.observation for step in steps]),
            "actions": np.array([step.action for step in steps]),
        }
        if bodies:
            postures = Postures(environment.unwrapped.model, *map(np.array, zip(*bodies, strict=True)))
            return Motion(**recorded, dt=float(environment.unwrapped.dt), postures=postures)
        frames, lacking = self._frames(genotype, set(shown(len(steps))))
        dt = 1 / environment.metadata.get("render_fps", 30)
        return Motion(**recorded, dt=dt, frames=frames, lacking=lacking)

    def _frames(self, genotype: np.ndarray, shown: set[int]) -> tuple[list[np.ndarray], str]:
        """Return what the environment draws after some steps of an episode, and why it does not."""
        frames: list[np.ndarray] = []
        number = itertools.count()

        def see(row: int, step: Step) -> None:
            if next(number) in shown:
                frames.append(np.asarray(step.environment.render(), np.uint8))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._watch(genotype[None], see, render_mode="rgb_array")
        except Exception as error:  # whatever an environment of others raises, its numbers are there
            return [], f"{type(error).__name__}: {error}"
        return frames, ""

    def _watch(self, genotypes: Float[np.ndarray, "batch params"], see: Callable, **arguments: Any) -> None:
        """Let policies act in this process, in environments that `arguments` are given to besides; nothing is kept."""
        work = self.work
        settings = {**work.settings, "arguments": {**work.settings["arguments"], **arguments}}
        episodes: Any = load_object(work.factory, "worker")(**settings)
        episodes(np.asarray(genotypes, np.float32), see=see)

    def act(self, genotype: Float[Array, " params"], observation: Any) -> Any:
        """Return what a policy does, as the environment takes it.

        Raises:
            JedaxError: Another number of readings.
        """
        readings = np.ravel(np.asarray(observation, np.float32))
        if len(readings) != self.layer_sizes[0]:
            raise fail(
                "observation",
                expected=f"{self.layer_sizes[0]} numbers",
                received=len(readings),
                remedy="give what the environment returns",
            )
        outputs = policy.apply_batch(
            jnp.asarray(genotype), jnp.asarray(readings)[None], self.layer_sizes, self.config.activation
        )
        return _facts(self.config).actions(np.asarray(outputs))[0]


def _is_mujoco(environment: Any) -> bool:
    return hasattr(getattr(environment.unwrapped, "model", None), "ngeom")


def _look(config: GymConfig) -> _Facts:
    """Look at an environment.

    Raises:
        JedaxError: It cannot be made, or is none that policies of ours can act in.
    """
    environment = _make(config)
    try:
        limit = getattr(environment.spec, "max_episode_steps", None)
        if limit is None and config.steps is None:
            raise fail(
                "steps",
                expected=f"the longest episode of {config.name}, which has no limit of its own",
                received="none",
                remedy="give steps (--steps 1000)",
            )
        size = _observation_size(config, environment.observation_space)
        actions, num_outputs = _actions(config, environment.action_space)
        names = _descriptor_names(config, environment.unwrapped)
        return _Facts(size, num_outputs, actions, names)
    finally:
        environment.close()


_cached_look = functools.lru_cache(maxsize=8)(_look)


def _facts(config: GymConfig) -> _Facts:
    return _cached_look(config)  # type: ignore[arg-type]  # frozen settings do have a hash


def _make(config: GymConfig) -> Any:
    gymnasium = require("gymnasium", "gym", config.name)
    name = config.name.removeprefix(PREFIX)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_environment(name, parse_arguments(config.arguments), config.steps)
    except (gymnasium.error.NameNotFound, gymnasium.error.VersionNotFound):
        raise unknown("task", config.name, [f"{PREFIX}{known}" for known in gymnasium.registry]) from None
    except Exception as error:
        raise fail(
            "task",
            expected="an environment that gymnasium.make makes",
            received=f"{config.name} ({type(error).__name__}: {error})",
            remedy="install what it needs, as with pip install 'gymnasium[mujoco]', or choose another",
        ) from None


def _observation_size(config: GymConfig, space: Any) -> int:
    if type(space).__name__ != "Box":
        raise fail(
            config.name,
            expected="observations of kind Box",
            received=space,
            remedy="wrap the environment, as in gymnasium.wrappers.FlattenObservation, and register that",
        )
    return math.prod(space.shape)


def _actions(config: GymConfig, space: Any) -> tuple[Actions, int]:
    """Return how actions are made, and the number of outputs of a policy."""
    kind = type(space).__name__
    if kind == "Discrete":
        return Actions(first=int(space.start)), int(space.n)
    if kind == "Box" and np.isfinite(space.low).all() and np.isfinite(space.high).all():
        lows, highs = (tuple(np.ravel(bound).astype(float).tolist()) for bound in (space.low, space.high))
        return Actions(lows, highs, space.shape, str(space.dtype)), len(lows)
    raise fail(
        config.name,
        expected="actions of kind Discrete, or Box with finite bounds",
        received=space,
        remedy="wrap the environment and register that",
    )


def _descriptor_names(config: GymConfig, environment: Any) -> tuple[str, ...]:
    """Return the labels of the descriptors' axes, having seen that the environment has what they need."""
    if config.descriptor == "feet-contact":
        model = getattr(environment, "model", None)
        return tuple(f"share of {model.geom(geom).name}" for geom in feet_of(environment, config.feet))  # type: ignore
    if config.descriptor == "final-xy":
        return _final_xy_names(environment)
    function = load_object(config.descriptor, "descriptor")
    if not callable(function):
        raise JedaxError(f"descriptor: expected a function, got {config.descriptor}, which is none; name another.")
    return tuple(getattr(function, "descriptor_names", ()))


def _final_xy_names(environment: Any) -> tuple[str, ...]:
    descriptor = FinalXY(environment)
    environment.reset(seed=0)
    if getattr(environment, "data", None) is None:
        info = environment.step(environment.action_space.sample())[-1]
        descriptor.step(None, None, 0.0, info)
        descriptor.end()
        return ("x", "y")
    descriptor.end()
    model = environment.model
    moves_freely = int(model.jnt_type[0]) == 0
    return ("x", "y") if moves_freely else (model.joint(0).name, model.joint(1).name)
