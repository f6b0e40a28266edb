"""How an episode of a gymnasium environment behaved: `feet-contact`, `final-xy`, or a function of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.python.calls import checked


@dataclass
class Episode:
    """One whole episode, for descriptors of the user's own.

    Attributes:
        environment: The environment as the last step left it, without wrappers.
        observations: Before each step and after the last, `(steps + 1)` of them.
        actions: As the environment got them.
        rewards: Of each step.
        infos: What each step told beside it.
    """

    environment: Any
    observations: list[np.ndarray] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)


def feet_of(environment: Any, feet: Sequence[str]) -> dict[int, int]:
    """Return the foot that each geom belongs to, both as numbers, for MuJoCo's geoms.

    Args:
        environment: A MuJoCo environment without wrappers.
        feet: Names of geoms, one per foot; empty: those whose name contains "foot".

    Raises:
        JedaxError: No MuJoCo environment, or one without such geoms.
    """
    model = getattr(environment, "model", None)
    if model is None or not hasattr(model, "ngeom"):
        raise fail(
            "descriptor",
            expected="a MuJoCo environment for 'feet-contact'",
            received=type(environment).__name__,
            remedy="give a function of your own as --descriptor module:function",
        )
    names = [model.geom(number).name for number in range(model.ngeom)]
    lacking = next((name for name in feet if name not in names), None)
    chosen = list(feet) or [name for name in names if "foot" in name.lower()]
    if lacking is not None or not chosen:
        raise fail(
            "feet",
            expected="names of geoms" if feet else "geoms with 'foot' in their name",
            received=repr(lacking) if feet else "none",
            remedy="choose among " + ", ".join(name for name in names if name) + " (--feet), or another --descriptor",
        )
    return {names.index(name): foot for foot, name in enumerate(chosen)}


class FeetContact:
    """The share of an episode's steps in which each foot touched the ground, each from 0 to 1.

    It does where MuJoCo lists a contact of its geom with one of the world itself, such as the floor, at the end of
    the step.
    """

    def __init__(self, environment: Any, feet: Sequence[str]):
        self._data = environment.data
        self._feet = feet_of(environment, feet)
        self._ground = set(np.flatnonzero(environment.model.geom_bodyid == 0).tolist())
        self._counts = np.zeros(len(set(self._feet.values())))
        self._touching = np.zeros(len(self._counts), bool)
        self._steps = 0

    def begin(self, observation: Any) -> None:
        """Forget the last episode."""
        self._counts[:] = self._steps = 0

    def step(self, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> None:
        """Look at the contacts after a step."""
        self._steps += 1
        self._touching[:] = False
        for one, other in self._data.contact.geom.tolist():
            if one in self._ground and other in self._feet:
                self._touching[self._feet[other]] = True
            elif other in self._ground and one in self._feet:
                self._touching[self._feet[one]] = True
        self._counts += self._touching

    def now(self) -> np.ndarray:
        """Return whether each foot touched the ground at the end of the last step."""
        return self._touching.copy()

    def end(self) -> np.ndarray:
        """Return the shares."""
        return self._counts / max(1, self._steps)


class FinalXY:
    """Where the robot is after the last step: the first two coordinates of its root body.

    They are x and y where the root moves freely, and x and the height of planar robots. Environments without
    MuJoCo's `qpos` must tell `x_position` and `y_position`.
    """

    def __init__(self, environment: Any):
        self._data = getattr(environment, "data", None)
        self._info: dict[str, Any] = {}

    def begin(self, observation: Any) -> None:
        """Forget the last episode."""
        self._info = {}

    def step(self, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> None:
        """Keep what the environment tells."""
        self._info = info

    def now(self) -> np.ndarray:
        """Return the position after the last step; errors as in `end`."""
        return self.end()

    def end(self) -> np.ndarray:
        """Return the position.

        Raises:
            JedaxError: The environment does not tell it.
        """
        if self._data is not None and len(getattr(self._data, "qpos", ())) >= 2:
            return np.array(self._data.qpos[:2])
        if "x_position" in self._info and "y_position" in self._info:
            return np.array([self._info["x_position"], self._info["y_position"]])
        raise fail(
            "descriptor",
            expected="an environment with two coordinates in qpos, or x_position and y_position, for 'final-xy'",
            received="one without",
            remedy="give a function of your own as --descriptor module:function",
        )


class Own:
    """What a function of the user's says of a whole `Episode`."""

    def __init__(self, environment: Any, function: str, num_descriptors: int | None):
        self._environment, self._name, self._number = environment, function, num_descriptors
        self._function = load_object(function, "descriptor")
        self._episode = Episode(environment)

    def begin(self, observation: Any) -> None:
        """Forget the last episode."""
        self._episode = Episode(self._environment, [observation])

    def step(self, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> None:
        """Record a step."""
        self._episode.observations.append(observation)
        self._episode.actions.append(action)
        self._episode.rewards.append(reward)
        self._episode.infos.append(info)

    def now(self) -> np.ndarray:
        """Return nothing: the function speaks of whole episodes."""
        return np.zeros(0)

    def end(self) -> np.ndarray:
        """Return what the function returns.

        Raises:
            JedaxError: It is not a list of numbers of the right length.
        """
        return checked(f"{self._name}: descriptor", self._function(self._episode), (self._number,))
