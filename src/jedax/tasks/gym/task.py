"""Environments of gymnasium as tasks; worker processes step them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import numpy as np

from jedax.errors import JedaxError, fail, unknown
from jedax.imports import load_object, require
from jedax.settings import Config as AnyConfig
from jedax.tasks.base import computed
from jedax.tasks.gym.episodes import Actions, Evaluator, FinalXY, Step, make_environment
from jedax.tasks.gym.settings import PREFIX, GymConfig, parse_arguments
from jedax.tasks.measured import HostTask
from jedax.tasks.motion import MOST_FRAMES, Act, Motion, Postures, every
from jedax.tasks.mujoco import unsuitable
from jedax.tasks.policy import EnvironmentTask, NormalisingTask, axis_names
from jedax.tasks.work import Work
from jedax.types import Array, Float


class _Facts(NamedTuple):
    observation_size: int
    num_outputs: int
    actions: Actions
    descriptor_names: tuple[str, ...]
    observations: Any  # the space of observations that are flattened; None: they are arrays


class Gym(NormalisingTask, EnvironmentTask, HostTask):
    """A gymnasium environment whose observations are numbers, and whose actions are Box, Discrete or MultiDiscrete.

    A genotype holds the weights of a multilayer perceptron from the observation, flattened (other spaces than Box as by
    `gymnasium.spaces.flatten`), to the action: for a Box its tanh outputs, scaled to the bounds; for Discrete its
    largest output chooses, for MultiDiscrete the largest of those of each number. Fitness is the sum of rewards of
    one episode, which always starts from the seed `episode_seed`. With several samples per evaluation, sample k of
    every solution starts from `episode_seed + k`.

    Example:
        `Gym(name="gym:HalfCheetah-v5", descriptor="feet-contact", hidden=(256, 256))`
    """

    config: GymConfig
    Config = GymConfig
    descriptor_names = computed(lambda self: _facts(self.config).descriptor_names)
    runs_own_code = computed(lambda self: ":" in self.config.descriptor or ":" in self.config.name.removeprefix(PREFIX))

    def __init__(self, config: AnyConfig | None = None, /, **settings: Any):
        super().__init__(config, **settings)
        names = self.descriptor_names
        if ":" not in self.config.descriptor and self.num_given not in (None, len(names)):
            raise fail(
                "descriptor_lows",
                expected=f"{len(names)} numbers, for {', '.join(names)}",
                received=self.num_given,
                remedy="change descriptor_lows and descriptor_highs, or leave both out",
            )
        if self.config.observation_mean:
            _ = self.observation_statistics  # an error where they do not fit

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the policy, observation and action included."""
        facts = _facts(self.config)
        return (facts.observation_size, *self.config.hidden, facts.num_outputs)

    @property
    def work(self) -> Work:
        """Episodes, stepped side by side."""
        config = self.config
        settings = {
            "name": config.name.removeprefix(PREFIX),
            "arguments": parse_arguments(config.arguments),
            "steps": config.steps,
            "seed": config.episode_seed,
            "sizes": self.layer_sizes,
            "activation": config.activation,
            "actions": asdict(_facts(config).actions),
            "descriptor": config.descriptor,
            "feet": config.feet,
            "num_descriptors": self.num_given,
            "mean": config.observation_mean if config.normalise else (),
            "std": config.observation_std if config.normalise else (),
        }
        return Work("jedax.tasks.gym.episodes:Evaluator", settings, config.chunk)

    def prepared(self) -> Self:
        """Return the task with the statistics that `normalise` needs, measured on random policies if not given."""

        def observed(raw: Self, genotypes: Any) -> np.ndarray:
            seen: list[np.ndarray] = []
            for chunk in np.split(np.asarray(genotypes), range(self.config.chunk, len(genotypes), self.config.chunk)):
                raw._watch(chunk, lambda row, step: seen.append(step.observation))
            return np.array(seen)

        return self.with_statistics(observed)

    def sample_seed(self, sample: int) -> int:
        """Return the seed of a sample's episode."""
        return (self.config.episode_seed + sample) % 2**31

    def actor(self) -> tuple[int, Act]:
        """Return how many policies a worker steps side by side, and a function that does it in this process."""
        return self.config.chunk, self._record

    def _record(self, genotypes: Float[np.ndarray, "batch params"]) -> list[tuple[np.ndarray, np.ndarray]]:
        episodes: list[list[Step]] = [[] for _ in genotypes]
        self._watch(genotypes, lambda row, step: episodes[row].append(step))
        return [
            (np.array([step.reward for step in steps]), np.array([step.seen for step in steps])) for steps in episodes
        ]

    def replay(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of ONE genotype, for drawing, simulated in this process."""
        steps: list[Step] = []
        bodies: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

        def see(row: int, step: Step) -> None:
            steps.append(step)
            if _is_mujoco(step.environment):
                data = step.environment.unwrapped.data
                bodies.append((data.qpos.copy(), data.xpos[1:].copy(), data.xquat[1:].copy()))

        self._watch(genotype[None], see)
        if not steps:
            remedy = "replay another solution"
            raise fail("genotype", expected="finite numbers", received="others, or no step", remedy=remedy)
        environment = steps[0].environment
        observations, actions, rewards, seen, _ = zip(*steps, strict=True)
        recorded: dict[str, Any] = {"rewards": rewards, "seen": seen, "observations": observations, "actions": actions}
        recorded = {name: np.array(values) for name, values in recorded.items()}
        if bodies:
            postures = Postures(environment.unwrapped.model, *map(np.array, zip(*bodies, strict=True)))
            return Motion(**recorded, dt=float(environment.unwrapped.dt), postures=postures)
        frames, lacking = self._frames(genotype, set(every(len(steps), MOST_FRAMES).tolist()))
        dt = 1 / environment.metadata.get("render_fps", 30)
        return Motion(**recorded, dt=dt, frames=frames, lacking=lacking)

    def _frames(self, genotype: np.ndarray, shown: set[int]) -> tuple[list[np.ndarray], str]:
        """Return pictures by the environment after some steps of an episode, or why there are none."""
        frames: list[np.ndarray] = []
        number = itertools.count()

        def see(row: int, step: Step) -> None:
            if next(number) in shown:
                frames.append(np.asarray(step.environment.render(), np.uint8))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._watch(genotype[None], see, render_mode="rgb_array")
        except Exception as error:  # of any kind: the numbers of the episode are there without pictures
            return [], f"{type(error).__name__}: {error}"
        return frames, ""

    def _watch(self, genotypes: Float[np.ndarray, "batch params"], see: Callable, **arguments: Any) -> None:
        """Simulate policies in this process, with further `arguments` for the environments."""
        work = self.work
        settings = {**work.settings, "arguments": {**work.settings["arguments"], **arguments}}
        with contextlib.closing(Evaluator(**settings)) as evaluate:
            evaluate(np.asarray(genotypes, np.float32), see=see)

    def act(self, genotype: Float[Array, " params"], observation: Any) -> Any:
        """Return the action of a policy, as the environment takes it, for an observation as it gives it."""
        facts = _facts(self.config)
        if facts.observations is not None:
            from gymnasium.spaces.utils import flatten

            observation = flatten(facts.observations, observation)
        return facts.actions(np.asarray(super().act(genotype, observation))[None])[0]


def _is_mujoco(environment: Any) -> bool:
    return hasattr(getattr(environment.unwrapped, "model", None), "ngeom")


def _look(config: GymConfig) -> _Facts:
    """Return the properties of an environment; a `JedaxError` if policies cannot act in it."""
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
        is_flattened = type(environment).__name__ == "FlattenObservation"
        return _Facts(size, num_outputs, actions, names, environment.env.observation_space if is_flattened else None)
    finally:
        environment.close()


_facts: Callable[[GymConfig], _Facts] = functools.lru_cache(maxsize=8)(_look)  # type: ignore[assignment]  # hashable


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
        remedy = "install what it needs, as with pip install 'gymnasium[mujoco]', or choose another"
        if config.arguments and isinstance(error, TypeError):
            remedy = "correct the arguments"
        raise fail(
            "task",
            expected="an environment that gymnasium.make makes",
            received=f"{config.name} with {type(error).__name__}: {error}",
            remedy=remedy,
        ) from None


def _observation_size(config: GymConfig, space: Any) -> int:
    if type(space).__name__ != "Box":
        raise fail(
            config.name,
            expected="observations that gymnasium can flatten to a fixed length",
            received=space,
            remedy="wrap the environment and register that",
        )
    return math.prod(space.shape)


def _actions(config: GymConfig, space: Any) -> tuple[Actions, int]:
    """Return the map to actions, and the number of outputs of a policy."""
    kind = type(space).__name__
    if kind == "Discrete":
        return Actions(first=(int(space.start),), options=(int(space.n),)), int(space.n)
    if kind == "MultiDiscrete" and space.nvec.ndim == 1:
        options, starts = (tuple(map(int, values)) for values in (space.nvec, space.start))
        return Actions(first=starts, options=options, shape=space.shape, dtype=str(space.dtype)), sum(options)
    if kind == "Box" and np.isfinite(space.low).all() and np.isfinite(space.high).all():
        lows, highs = (tuple(np.ravel(bound).astype(float).tolist()) for bound in (space.low, space.high))
        return Actions(lows, highs, space.shape, str(space.dtype)), len(lows)
    raise fail(
        config.name,
        expected="actions of kind Discrete or MultiDiscrete, or Box with finite bounds",
        received=space,
        remedy="wrap the environment and register that",
    )


def _descriptor_names(config: GymConfig, environment: Any) -> tuple[str, ...]:
    """Return the axis labels of the descriptor; a `JedaxError` if the environment lacks what it needs."""
    model = environment.model if _is_mujoco(environment) else None
    if config.descriptor == "feet-contact" and model is None:
        raise unsuitable("a MuJoCo environment for 'feet-contact'", type(environment).__name__)
    if config.descriptor == "final-xy":
        _check_position(environment)
    if ":" in config.descriptor and not callable(load_object(config.descriptor, "descriptor")):
        raise JedaxError(f"descriptor: expected a function, got {config.descriptor}, which is none; name another.")
    return axis_names(config.descriptor, config.feet, model)


def _check_position(environment: Any) -> None:
    """Raise a `JedaxError` unless the environment gives the position of its robot."""
    _, info = environment.reset(seed=0)
    if getattr(environment, "data", None) is None:
        info = environment.step(environment.action_space.sample())[-1]
    FinalXY(environment).look(info)
