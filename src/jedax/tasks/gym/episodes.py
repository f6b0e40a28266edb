"""Episodes of gymnasium environments, stepped side by side, and their descriptors. Workers import it, without JAX."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jedax.arrays import as_floats
from jedax.errors import fail
from jedax.imports import load_object, look_here_for
from jedax.networks import Policies
from jedax.tasks.mujoco import feet_of, quiet_mujoco, unsuitable


@dataclass
class Episode:
    """A whole episode, for descriptors of the user's own."""

    environment: Any  # as the last step left it, without wrappers
    observations: list[np.ndarray] = field(default_factory=list)  # before each step and after the last
    actions: list[Any] = field(default_factory=list)  # as the environment got them
    rewards: list[float] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)


class Descriptor:
    """The descriptor of one episode after another in one environment."""

    def __init__(self, environment: Any):
        self.environment = environment
        self.seen: list[np.ndarray] = []  # after each step of the present episode

    def begin(self, observation: Any) -> None:
        """Begin an episode."""
        self.seen = []

    def step(self, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> None:
        """Look at the environment after a step."""
        self.seen.append(self.look(info))

    def look(self, info: dict[str, Any]) -> np.ndarray:
        """Return what is seen after a step; by default nothing."""
        return np.zeros(0)

    def end(self) -> np.ndarray:
        """Return the descriptor of the episode; by default what was seen last."""
        return self.seen[-1]


class FeetContact(Descriptor):
    """The share of an episode's steps, 0 to 1, in which each foot touched the ground.

    A foot touches the ground if MuJoCo lists a contact of its geom with a geom of the world, such as the floor, at the
    end of the step.
    """

    def __init__(self, environment: Any, feet: Sequence[str]):
        super().__init__(environment)
        self._feet = feet_of(environment.model, feet)
        self._ground = set(np.flatnonzero(environment.model.geom_bodyid == 0).tolist())

    def look(self, info: dict[str, Any]) -> np.ndarray:
        """Return whether each foot touches the ground."""
        touching = np.zeros(len(set(self._feet.values())), bool)
        for one, other in self.environment.data.contact.geom.tolist():
            if one in self._ground and other in self._feet:
                touching[self._feet[other]] = True
            elif other in self._ground and one in self._feet:
                touching[self._feet[one]] = True
        return touching

    def end(self) -> np.ndarray:
        """Return the shares."""
        return np.mean(self.seen, axis=0)


class FinalXY(Descriptor):
    """The position of the robot after the last step: the first two of MuJoCo's `qpos`.

    They are x and y where the root body moves freely, and x and the height of planar robots. Environments without
    MuJoCo must give `x_position` and `y_position` in their `info`.
    """

    def look(self, info: dict[str, Any]) -> np.ndarray:
        """Return the position; a `JedaxError` if the environment does not give it."""
        data = getattr(self.environment, "data", None)
        if data is not None and len(getattr(data, "qpos", ())) >= 2:
            return np.array(data.qpos[:2])
        if "x_position" in info and "y_position" in info:
            return np.array([info["x_position"], info["y_position"]])
        needed = "two coordinates in qpos, or x_position and y_position"
        raise unsuitable(f"an environment with {needed}, for 'final-xy'", "one without")


class Own(Descriptor):
    """The result of a function of the user's for a whole `Episode`."""

    def __init__(self, environment: Any, function: str, num_descriptors: int | None):
        super().__init__(environment)
        self._name, self._number = function, num_descriptors
        self._function = load_object(function, "descriptor")

    def begin(self, observation: Any) -> None:
        """Begin an episode and its record."""
        super().begin(observation)
        self._episode = Episode(self.environment, [copy.deepcopy(observation)])

    def step(self, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> None:
        """Record a step."""
        super().step(observation, action, reward, info)
        # Environments may change what they returned in place.
        self._episode.observations.append(copy.deepcopy(observation))
        self._episode.actions.append(copy.copy(action))
        self._episode.rewards.append(reward)
        self._episode.infos.append(copy.copy(info))

    def end(self) -> np.ndarray:
        """Return the result of the function; a `JedaxError` says if it is not as many numbers as the descriptor has."""
        remedy = "return a list with a number for each descriptor"
        return as_floats(f"{self._name}: descriptor", self._function(self._episode), (self._number,), remedy)


def make_environment(name: str, arguments: Mapping[str, Any], steps: int | None) -> Any:
    """Return a gymnasium environment whose observations are arrays; its own limit holds where `steps` is None."""
    import gymnasium

    limit = {} if steps is None else {"max_episode_steps": steps}
    if ":" in name:
        look_here_for(name.partition(":")[0])
    with quiet_mujoco():
        environment = gymnasium.make(name, disable_env_checker=True, **limit, **arguments)
    space = environment.observation_space
    if isinstance(space, gymnasium.spaces.Box) or not space.is_np_flattenable:
        return environment
    return gymnasium.wrappers.FlattenObservation(environment)


@dataclass(frozen=True)
class Actions:
    """The map from outputs of a policy, each in [-1, 1], to actions."""

    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()  # empty: one whole number
    dtype: str = "float32"
    options: tuple[int, ...] = ()  # numbers of discrete actions, of whose outputs the largest chooses
    first: tuple[int, ...] = ()  # the lowest ones

    def __call__(self, outputs: np.ndarray) -> list[Any]:
        """Return the actions for outputs `(n, o)`."""
        if self.options:
            parts = np.split(outputs, np.cumsum(self.options)[:-1], axis=1)
            chosen = np.stack([part.argmax(axis=1) for part in parts], axis=1) + self.first
            return list(chosen.astype(self.dtype)) if self.shape else chosen[:, 0].tolist()
        lows, highs = np.asarray(self.lows), np.asarray(self.highs)
        actions = lows + (outputs.astype(np.float64) + 1) / 2 * (highs - lows)
        actions = actions if np.dtype(self.dtype).kind == "f" else np.rint(actions)
        return list(actions.astype(self.dtype).reshape(-1, *self.shape))


class Step(NamedTuple):
    """One step of an episode."""

    observation: np.ndarray  # before the step, flat
    action: Any  # as the environment got it
    reward: float
    seen: np.ndarray  # by the descriptor, after the step
    environment: Any  # after the step


class Evaluator:
    """Evaluates policies, one episode each; one matrix product per layer serves all of them.

    `name`, `arguments` and `steps` are those of `make_environment`, `seed` is of episodes for which no seed is given,
    `actions` are the arguments of `Actions`, `num_descriptors` is None for a descriptor of any length, and `mean` and
    `std` are of the observations, which policies see normalised; empty: as they are.
    """

    def __init__(self, *, name: str, arguments: Mapping[str, Any], steps: int | None, seed: int,
                 sizes: Sequence[int], activation: str, actions: Mapping[str, Any], descriptor: str,
                 feet: Sequence[str], num_descriptors: int | None, mean: Sequence[float] = (),
                 std: Sequence[float] = ()):  # fmt: skip
        self._make = lambda: make_environment(name, arguments, steps)
        self._seed, self._sizes, self._activation = seed, sizes, activation
        self._actions = Actions(**actions)
        self._num_descriptors = num_descriptors
        kinds: dict[str, Callable[[Any], Descriptor]] = {
            "feet-contact": lambda environment: FeetContact(environment, feet), "final-xy": FinalXY
        }  # fmt: skip
        self._describe = kinds.get(descriptor, lambda environment: Own(environment, descriptor, num_descriptors))
        self._mean, self._std = np.asarray(mean or [0], np.float32), np.asarray(std or [1], np.float32)
        self._pairs: list[tuple[Any, Descriptor]] = []

    def __call__(
        self, genotypes: np.ndarray, seeds: np.ndarray | None = None, see: Callable[[int, Step], None] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of rewards `(n,)` and the descriptor `(n, d)` of each policy `(n, params)`.

        Policies with weights that are not finite get NaN. `seeds` has the seed of each policy's episode; `see` is
        called after every step with the row of its policy.
        """
        starts = [self._seed] * len(genotypes) if seeds is None else [int(seed) for seed in seeds]
        fitness = np.full(len(genotypes), np.nan)
        found: dict[int, np.ndarray] = {}
        rows = np.flatnonzero(np.isfinite(genotypes).all(axis=1))
        fitness[rows] = 0
        observations = self._reset([starts[row] for row in rows])
        slots = np.arange(len(rows))
        policies = Policies(genotypes[rows], self._sizes, self._activation)
        while len(slots):
            actions = self._actions(policies((observations - self._mean) / self._std))
            going_on = np.ones(len(slots), bool)
            for place, slot in enumerate(slots):
                environment, descriptor = self._pairs[slot]
                action = actions[place]
                observation, reward, terminated, truncated, info = environment.step(action)
                fitness[rows[slot]] += float(reward)
                descriptor.step(observation, action, float(reward), info)
                if see is not None:
                    before = observations[place].copy()
                    see(int(rows[slot]), Step(before, action, float(reward), descriptor.seen[-1], environment))
                observations[place] = self._flat(observation)
                if terminated or truncated:
                    going_on[place] = False
                    found[int(rows[slot])] = descriptor.end()
            if not going_on.all():
                slots, observations, policies = slots[going_on], observations[going_on], policies.keep(going_on)
        number = self._num_descriptors or max((len(value) for value in found.values()), default=1)
        descriptors = np.full((len(genotypes), number), np.nan)
        for row, value in found.items():
            descriptors[row] = value.reshape(number)  # an error, not a repeated number, where lengths differ
        return fitness, descriptors

    def close(self) -> None:
        """Close the environments."""
        for environment, _ in self._pairs:
            environment.close()

    def _reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Begin an episode for each seed and return the first observations."""
        number = len(seeds)
        while len(self._pairs) < number:
            environment = self._make()
            self._pairs.append((environment, self._describe(environment.unwrapped)))
        observations = np.empty((number, self._sizes[0]), np.float32)
        for slot, (environment, descriptor) in enumerate(self._pairs[:number]):
            observation, _ = environment.reset(seed=seeds[slot])
            observations[slot] = self._flat(observation)
            descriptor.begin(observation)
        return observations

    def _flat(self, observation: Any) -> np.ndarray:
        """Return an observation as one row; a `JedaxError` if it is not as long as the space of observations says."""
        row = np.ravel(observation)
        if len(row) != self._sizes[0]:
            remedy = "return observations as the environment's observation_space says"
            raise fail("observation", expected=f"{self._sizes[0]} numbers", received=len(row), remedy=remedy)
        return row
