"""Brax's environments as native code simulates them: what their policies see, what they earn, when they end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jedax.native import control
from jedax.native.control import Episode, Unsupported

_ENDLESS = (-math.inf, math.inf)


@dataclass(frozen=True)
class _Values:
    """Numbers of the values of a state, as `Episode` counts them."""

    q: int
    dofs: int
    links: int

    def speed(self, number: int) -> int:
        return self.q + number

    @property
    def place(self) -> int:
        """The number of x of the first link; y and z follow."""
        return self.q + self.dofs

    @property
    def height(self) -> int:
        return self.place + 2

    def inertia(self) -> list[int]:
        first = self.place + 3
        return list(range(first, first + 16 * self.links + self.dofs))


def model(environment: Any) -> dict[str, Any]:
    """Return what native code reads of an environment's system; raises `Unsupported`."""
    return control.model(getattr(environment, "maze", environment.sys), environment._n_frames)


def episode(robot: str, environment: Any, **settings: Any) -> Episode:
    """Return the episodes of a robot as Brax's environment has them; `settings` are those it does not know.

    Raises `Unsupported` if the environment lacks what native code needs to know.
    """
    try:
        return _EPISODES[robot](environment, settings)
    except AttributeError as error:
        raise Unsupported(f"an environment of another version of Brax ({error})") from None


def speed_and_height(environment: Any) -> np.ndarray:
    """Return the numbers of two values: the speed forward and the height of the first link."""
    values = _values(environment)
    return np.array([values.speed(0), values.height])


def _common(environment: Any, settings: dict[str, Any], seen: list[tuple[int, float, float]], **more: Any) -> Episode:
    """Return an episode in which each value in `seen` is clipped to its two numbers."""
    numbers, least, most = zip(*seen, strict=True)
    motors = environment.sys.act_size()
    plain: dict[str, Any] = {
        "observed_from": np.zeros(len(seen)), "observed_scale": np.ones(len(seen)),
        "action_scale": np.ones(motors), "action_shift": np.zeros(motors)
    }  # fmt: skip
    return Episode(
        observed=np.array(numbers), observed_least=np.array(least), observed_most=np.array(most),
        **(plain | more | settings),
    )  # fmt: skip


def _values(environment: Any) -> _Values:
    system = environment.sys
    return _Values(system.q_size(), system.qd_size(), system.num_links())


def _seen(values: _Values, hidden: int, clip: tuple[float, float] = _ENDLESS) -> list[tuple[int, float, float]]:
    """Return joint coordinates without the first `hidden`, then all velocities, these clipped."""
    return [(i, *_ENDLESS) for i in range(hidden, values.q)] + [(values.speed(i), *clip) for i in range(values.dofs)]


def _bounds(*ranges: tuple[int, tuple[float, float]]) -> dict[str, Any]:
    numbers, limits = zip(*ranges, strict=True)
    return {
        "bounded": np.array(numbers),
        "bounded_least": np.array([low for low, _ in limits]),
        "bounded_most": np.array([high for _, high in limits]),
    }


def _running(environment: Any) -> dict[str, Any]:
    return {
        "speed_reward": environment._forward_reward_weight,
        "input_cost": environment._ctrl_cost_weight,
    }


def _half_cheetah(environment: Any, settings: dict[str, Any]) -> Episode:
    return _common(environment, settings, _seen(_values(environment), 1), **_running(environment))


def _upright(environment: Any, settings: dict[str, Any], *more: tuple[int, tuple[float, float]]) -> Episode:
    """Walker and hopper: they see the height of the torso for the second coordinate, and velocities up to 10."""
    values = _values(environment)
    seen = _seen(values, 1, (-10.0, 10.0))
    seen[0] = (values.height, *_ENDLESS)
    bounds = _bounds(
        (values.height, environment._healthy_z_range), (2, environment._healthy_angle_range), *more
    )  # fmt: skip
    return _common(
        environment, settings, seen, **_running(environment), **bounds,
        step_reward=environment._healthy_reward, nan_ends=True
    )  # fmt: skip


def _hopper(environment: Any, settings: dict[str, Any]) -> Episode:
    values = _values(environment)
    numbers = [*range(2, values.q), *(values.speed(i) for i in range(values.dofs))]
    return _upright(environment, settings, *((number, environment._healthy_state_range) for number in numbers))


def _ant(environment: Any, settings: dict[str, Any]) -> Episode:
    values = _values(environment)
    return _common(
        environment, settings, _seen(values, 2), **_bounds((values.height, environment._healthy_z_range)),
        speed_reward=1.0, step_reward=environment._healthy_reward, input_cost=environment._ctrl_cost_weight
    )  # fmt: skip


def _humanoid(environment: Any, settings: dict[str, Any]) -> Episode:
    values = _values(environment)
    seen = _seen(values, 2) + [(number, *_ENDLESS) for number in values.inertia()]
    low, high = np.asarray(environment.sys.actuator.ctrl_range, np.float64).T
    return _common(
        environment, settings, seen, **_running(environment),
        **_bounds((values.height, environment._healthy_z_range)),
        step_reward=environment._healthy_reward, sees_inertia=True, whole_body=True,
        action_scale=(high - low) / 2, action_shift=(high - low) / 2 + low
    )  # fmt: skip


def _ant_maze(environment: Any, settings: dict[str, Any]) -> Episode:
    values = _values(environment)
    seen = [(values.place, *_ENDLESS), (values.place + 1, *_ENDLESS), *_seen(values, 2)]
    shift, scale = np.zeros(len(seen)), np.ones(len(seen))
    shift[:2], scale[:2] = environment.middle, 1 / environment.half_width
    return _common(
        environment, settings, seen, **_bounds((values.height, environment._healthy_z_range)),
        has_target=True, observed_from=shift, observed_scale=scale
    )  # fmt: skip


_EPISODES = {
    "halfcheetah": _half_cheetah,
    "walker2d": _upright,
    "hopper": _hopper,
    "ant": _ant,
    "humanoid": _humanoid,
    "ant-maze": _ant_maze,
}
