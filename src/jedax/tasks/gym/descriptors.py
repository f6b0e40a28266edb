"""Descriptors of episodes of gymnasium environments: `feet-contact`, `final-xy`, or a function of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.mujoco import feet_of
from jedax.tasks.work import checked


@dataclass
class Episode:
    """A whole episode, for descriptors of the user's own.

    Attributes:
        environment: The environment as the last step left it, without wrappers.
        observations: Before each step and after the last, `(steps + 1)` of them.
        actions: As the environment got them.
        rewards: Of each step.
        infos: The `info` of each step.
    """

    environment: Any
    observations: list[np.ndarray] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)


class Descriptor:
    """The descriptor of one episode after another in one environment.

    Attributes:
        seen: What it saw after each step of the present episode.
    """

    def __init__(self, environment: Any):
        self.environment = environment
        self.seen: list[np.ndarray] = []

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
        """Return the position.

        Raises:
            JedaxError: The environment does not give it.
        """
        data = getattr(self.environment, "data", None)
        if data is not None and len(getattr(data, "qpos", ())) >= 2:
            return np.array(data.qpos[:2])
        if "x_position" in info and "y_position" in info:
            return np.array([info["x_position"], info["y_position"]])
        raise fail(
            "descriptor",
            expected="an environment with two coordinates in qpos, or x_position and y_position, for 'final-xy'",
            received="one without",
            remedy="give a function of your own as --descriptor module:function",
        )


class Own(Descriptor):
    """The result of a function of the user's for a whole `Episode`."""

    def __init__(self, environment: Any, function: str, num_descriptors: int | None):
        super().__init__(environment)
        self._name, self._number = function, num_descriptors
        self._function = load_object(function, "descriptor")

    def begin(self, observation: Any) -> None:
        """Begin the record of an episode."""
        super().begin(observation)
        self._episode = Episode(self.environment, [observation])

    def step(self, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> None:
        """Record a step."""
        super().step(observation, action, reward, info)
        self._episode.observations.append(observation)
        self._episode.actions.append(action)
        self._episode.rewards.append(reward)
        self._episode.infos.append(info)

    def end(self) -> np.ndarray:
        """Return the result of the function; a `JedaxError` says if it is not as many numbers as the descriptor has."""
        return checked(f"{self._name}: descriptor", self._function(self._episode), (self._number,))
