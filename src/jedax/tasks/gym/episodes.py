"""Episodes of gymnasium environments, stepped side by side; one matrix product per layer serves all policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jedax.networks import Policies
from jedax.tasks.gym.descriptors import Descriptor, FeetContact, FinalXY, Own
from jedax.tasks.mujoco import quiet_mujoco


def make_environment(name: str, arguments: Mapping[str, Any], steps: int | None) -> Any:
    """Return a gymnasium environment.

    Args:
        name: Its id.
        arguments: Further arguments of `gymnasium.make`.
        steps: Longest episode; None: the environment's own.
    """
    import gymnasium

    limit = {} if steps is None else {"max_episode_steps": steps}
    with quiet_mujoco():
        return gymnasium.make(name, disable_env_checker=True, **limit, **arguments)


@dataclass(frozen=True)
class Actions:
    """The map from outputs of a policy, each in [-1, 1], to actions.

    Attributes:
        lows: Lower bounds of an action; empty: actions are discrete, and the largest output chooses.
        highs: Upper bounds of an action.
        shape: Shape of an action.
        dtype: Type of an action.
        first: The lowest discrete action.
    """

    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    first: int = 0

    def __call__(self, outputs: np.ndarray) -> list[Any]:
        """Return the actions for outputs `(n, o)`."""
        if not self.lows:
            return (outputs.argmax(axis=1) + self.first).tolist()
        lows, highs = np.asarray(self.lows), np.asarray(self.highs)
        actions = lows + (outputs.astype(np.float64) + 1) / 2 * (highs - lows)
        return list(actions.astype(self.dtype).reshape(-1, *self.shape))


class Step(NamedTuple):
    """One step of an episode.

    Attributes:
        observation: The observation before the step, flat.
        action: The action, as the environment got it.
        reward: The reward.
        seen: What the descriptor sees after the step.
        environment: The environment after the step.
    """

    observation: np.ndarray
    action: Any
    reward: float
    seen: np.ndarray
    environment: Any


class Evaluator:
    """Evaluates policies, one episode each.

    Args:
        name: Id of the environment.
        arguments: Further arguments of `gymnasium.make`.
        steps: Longest episode; None: the environment's own.
        seed: Seed of episodes for which no seed is given.
        sizes: Neurons of each layer of the policies.
        activation: Activation of their hidden layers.
        actions: Arguments of `Actions`.
        descriptor: `feet-contact`, `final-xy` or `module:function`.
        feet: Names of geoms; see `jedax.tasks.mujoco.feet_of`.
        num_descriptors: Length of a descriptor; None: any.
    """

    def __init__(self, *, name: str, arguments: Mapping[str, Any], steps: int | None, seed: int,
                 sizes: Sequence[int], activation: str, actions: Mapping[str, Any], descriptor: str,
                 feet: Sequence[str], num_descriptors: int | None):  # fmt: skip
        self._make = lambda: make_environment(name, arguments, steps)
        self._seed, self._sizes, self._activation = seed, sizes, activation
        self._actions = Actions(**actions)
        self._num_descriptors = num_descriptors
        self._describe = _descriptor(descriptor, feet, num_descriptors)
        self._pairs: list[tuple[Any, Descriptor]] = []

    def __call__(
        self, genotypes: np.ndarray, seeds: np.ndarray | None = None, see: Callable[[int, Step], None] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of rewards `(n,)` and the descriptor `(n, d)` of each policy `(n, params)`.

        Policies with weights that are not finite get NaN.

        Args:
            genotypes: The policies.
            seeds: `(n,)`, the seed of each policy's episode; None: the seed of the settings for all.
            see: Called after every step with the row of its policy.
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
            actions = self._actions(policies(observations))
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
                observations[place] = np.ravel(observation)
                if terminated or truncated:
                    going_on[place] = False
                    found[int(rows[slot])] = descriptor.end()
            if not going_on.all():
                slots, observations, policies = slots[going_on], observations[going_on], policies.keep(going_on)
        number = self._num_descriptors or max((len(value) for value in found.values()), default=1)
        descriptors = np.full((len(genotypes), number), np.nan)
        for row, value in found.items():
            descriptors[row] = value
        return fitness.astype(np.float32), descriptors.astype(np.float32)

    def _reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Begin an episode for each seed and return the first observations."""
        number = len(seeds)
        while len(self._pairs) < number:
            environment = self._make()
            self._pairs.append((environment, self._describe(environment.unwrapped)))
        observations = np.empty((number, self._sizes[0]), np.float32)
        for slot, (environment, descriptor) in enumerate(self._pairs[:number]):
            observation, _ = environment.reset(seed=seeds[slot])
            observations[slot] = np.ravel(observation)
            descriptor.begin(observation)
        return observations


def _descriptor(name: str, feet: Sequence[str], number: int | None) -> Callable[[Any], Descriptor]:
    """Return a function from an environment to its descriptor."""
    if name == "feet-contact":
        return lambda environment: FeetContact(environment, feet)
    if name == "final-xy":
        return FinalXY
    return lambda environment: Own(environment, name, number)
