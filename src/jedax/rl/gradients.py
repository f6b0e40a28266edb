"""What TD3 and PPO share: policies that can be differentiated, scaled observations, and the optimiser Adam."""

from __future__ import annotations

from typing import Any, Protocol

import jax.numpy as jnp

from jedax.imports import require
from jedax.types import Array, Float


class Policy(Protocol):
    """The policy network of a genotype, such as a task has; hashable."""

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return the actions of ONE policy for many observations, each number in [-1, 1]; differentiable."""
        ...


def scaled(
    observations: Float[Array, "*batch observation"], mean: tuple[float, ...], std: tuple[float, ...]
) -> Float[Array, "*batch observation"]:
    """Return observations less a mean, divided by a standard deviation; as they are where these are empty."""
    if not mean:
        return observations
    return (observations - jnp.array(mean, jnp.float32)) / jnp.array(std, jnp.float32)


def descend(
    learning_rate: float | Float[Array, ""],
    slope: Float[Array, "*shape"],
    point: Float[Array, "*shape"],
    moments: Any,
) -> tuple[Float[Array, "*shape"], Any]:
    """Return the point after one descent step of Adam, and the new moments."""
    step, moments = adam(learning_rate).update(slope, moments)
    return point + jnp.asarray(step), moments


def adam(learning_rate: float | Float[Array, ""]) -> Any:
    """Return the optimiser Adam; an error where optax is not installed."""
    return require("optax", "pga-me", "policy gradients").adam(learning_rate)
