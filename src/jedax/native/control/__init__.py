"""Robots that policies control, simulated many at once (`jedax.tasks.control`).

The physics is that of Brax's spring engine. `model` reads what is simulated from a `brax.System`; nothing here knows a
robot by its name.

References:
    [1] C. D. Freeman et al. Brax: a differentiable physics engine for large scale rigid body simulation. 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.native.control.system import Unsupported as Unsupported
from jedax.native.control.system import model as model
from jedax.native.core import Kernel
from jedax.types import Array, Bool, Float, Int

Numbers = np.ndarray | Sequence[float]
KERNEL = Kernel("control", "evaluate", "record")
_WHOLE = ("observed", "bounded", "foot_links", "averaged")


@dataclass(frozen=True, eq=False)
class Episode:
    """What a policy sees, what it earns, and when an episode ends; C++ reads it by these names (`control.h`).

    Values of a state go by their numbers, those of `values`. Lengths are in metres.
    """

    steps: int
    layers: tuple[int, ...]  # neurons of each layer of the policy, observation and action included
    activation: str  # of the hidden layers; the output is tanh
    observed: Numbers  # `(observation,)`, the number of each value that a policy sees
    action_scale: Numbers  # `(motors,)`: the input of a motor is action * scale + shift
    action_shift: Numbers
    observed_least: Numbers  # a value is clipped to this range,
    observed_most: Numbers
    observed_from: Numbers  # then shifted and scaled: (value - from) * scale
    observed_scale: Numbers
    half_weights: bool = False  # whether the weights of policies are rounded to bfloat16
    sees_inertia: bool = False  # whether values include inertia, momentum and forces, as Brax's humanoid sees them
    speed_reward: float = 0.0  # for each m/s along x
    whole_body: bool = False  # whether this is the speed of the centre of mass of all links, not of the first link
    step_reward: float = 0.0
    input_cost: float = 0.0  # for the sum of the squares of the motors' inputs
    has_target: bool = False  # then the reward is minus the distance to the target, and nothing else
    target_x: float = 0.0
    target_y: float = 0.0
    charges_death: bool = False  # whether the last reward of an episode that ends early counts for all steps left
    bounded: Numbers = ()  # numbers of values; the episode ends when one leaves its range
    bounded_least: Numbers = ()
    bounded_most: Numbers = ()
    nan_ends: bool = False  # whether a value that is not a number ends the episode as well
    # The descriptor: how often each foot touches, then means of values over the steps; neither: the last x and y
    foot_links: Numbers = ()
    foot_ends: Numbers = ()  # `(feet, 2, 3)`, centres of the two spheres from the origin of the link
    foot_radii: Numbers = ()
    foot_margin: float = 0.0  # height below which a foot touches the floor
    averaged: Numbers = ()  # numbers of values

    def normalised(self, mean: np.ndarray, std: np.ndarray) -> Episode:
        """Return the episode whose policy sees (observation - mean) / std."""
        start, scale = np.asarray(self.observed_from), np.asarray(self.observed_scale)
        return replace(self, observed_from=start + mean / scale, observed_scale=scale / std)


class Outcome(NamedTuple):
    """What came of the episodes of a batch."""

    fitness: Float[Array, " batch"]  # NaN for policies with weights that are not finite
    descriptor: Float[Array, "batch descriptor"]
    length: Int[Array, " batch"]  # steps that count


class Record(NamedTuple):
    """Every step of the episodes of a batch; zero after the end of an episode, and empty where it is not wanted."""

    observations: Float[Array, "batch steps+1 observation"]  # before the first step and after each
    actions: Float[Array, "batch steps action"]
    rewards: Float[Array, "batch steps"]
    ends: Bool[Array, "batch steps"]  # whether the step left the range of a value
    q: Float[Array, "batch steps q"]  # joint coordinates after each step
    positions: Float[Array, "batch steps links 3"]  # of the links' origins
    rotations: Float[Array, "batch steps links 4"]  # quaternions, real part first


def evaluate(
    model: dict[str, Any], episode: Episode, genotypes: Float[Array, "batch params"],
    starts: Float[Array, "episodes start"], group: int = 0
) -> Outcome:  # fmt: skip
    """Run one episode of each policy.

    Each row of `starts` is a state in which an episode begins, one for all policies or one for each: 13 numbers for
    each link (position, quaternion, velocity, angular velocity of its origin), then the first observation. `group` is
    the number of episodes that a thread runs at once; 0: as many as fit a register, fewer where their weights
    would not stay in a cache.
    """
    return Outcome(*_call("evaluate", (), model, episode, genotypes, starts, group))


def record(
    model: dict[str, Any], episode: Episode, genotypes: Float[Array, "batch params"],
    starts: Float[Array, "episodes start"], postures: bool = True
) -> tuple[Outcome, Record]:  # fmt: skip
    """Run one episode of each policy and record its steps; without `postures` no q, positions and rotations."""
    steps, links = episode.steps, len(model["parents"])
    observation, action = episode.layers[0], episode.layers[-1]
    shown = steps if postures else 0
    rows = [((steps + 1, observation), jnp.float32), ((steps, action), jnp.float32), ((steps,), jnp.float32),
            ((steps,), jnp.bool_), ((shown, int(model["coordinates"])), jnp.float32), ((shown, links, 3), jnp.float32),
            ((shown, links, 4), jnp.float32)]  # fmt: skip
    found = _call("record", rows, model, episode, genotypes, starts, 0)
    return Outcome(*found[:3]), Record(*found[3:])


def _call(function: str, rows: Any, model: dict[str, Any], episode: Episode, genotypes, starts, group: int) -> Any:
    batch = genotypes.shape[0]
    descriptors = len(episode.foot_links) + len(episode.averaged) or 2
    outputs = [((), jnp.float32), ((descriptors,), jnp.float32), ((), jnp.int32), *rows]
    shapes = [jax.ShapeDtypeStruct((batch, *shape), kind) for shape, kind in outputs]
    arrays = genotypes.astype(jnp.float32), starts.astype(jnp.float32)
    return KERNEL.call(function, shapes, *arrays, group=group, **_settings(model, episode))


def _settings(model: dict[str, Any], episode: Episode) -> dict[str, Any]:
    whole = {name: np.asarray(getattr(episode, name), np.int32) for name in _WHOLE}  # also where there are none
    return vars(episode) | whole | model
