"""Records of native robots that hold every value of every state."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jedax.native import control


class Seen(NamedTuple):
    """States after each step, batch first."""

    positions: np.ndarray  # of the links' origins
    rotations: np.ndarray
    velocities: np.ndarray
    spins: np.ndarray
    q: np.ndarray
    qd: np.ndarray


def watch(model, episode, genotypes, links):
    """Run one episode of each policy, as `control.record`, and return outcome, record, and every state.

    The policy also sees every value of the state, with weights of zero. `links` are the rows of `control.evaluate`.
    """
    number, dofs, coordinates = len(model["parents"]), len(model["turns"]), model["coordinates"]
    own, hidden = episode.layers[:2]
    moving = coordinates + dofs + 3 + 10 * number  # the first number of momenta
    count = moving + 6 * number + dofs
    every = {"observed_least": -np.inf, "observed_most": np.inf, "observed_from": 0, "observed_scale": 1}
    episode = dataclasses.replace(
        episode, layers=(own + count, *episode.layers[1:]), sees_inertia=True,
        observed=np.concatenate([episode.observed, np.arange(count)]),
        **{name: np.concatenate([getattr(episode, name), np.full(count, value)]) for name, value in every.items()}
    )  # fmt: skip
    zeros = jnp.zeros((len(genotypes), count * hidden), jnp.float32)
    genotypes = jnp.concatenate([genotypes[:, : own * hidden], zeros, genotypes[:, own * hidden :]], axis=1)
    links = jnp.concatenate([links, jnp.zeros((len(links), count))], axis=1)
    outcome, record = control.record(model, episode, genotypes, links)
    observations, values = jnp.split(record.observations, [own], axis=-1)
    values = values[:, 1:]
    momenta = values[..., moving : moving + 6 * number].reshape(*values.shape[:2], number, 6)
    mass, spins = model["mass"], momenta[..., 3:]
    arms = rotated(record.rotations, jnp.asarray(model["center"], jnp.float32))
    velocities = momenta[..., :3] * (mass.sum() / mass)[:, None] - jnp.cross(spins, arms)
    seen = Seen(
        record.positions, record.rotations, velocities, spins, record.q, values[..., coordinates:][..., :dofs]
    )  # fmt: skip
    return outcome, record._replace(observations=observations), seen


def rotated(quaternions, vectors):
    """Return vectors turned by quaternions, real part first."""
    w, v = quaternions[..., :1], quaternions[..., 1:]
    vectors = jnp.broadcast_to(vectors, v.shape)
    return vectors + 2 * jnp.cross(v, jnp.cross(v, vectors) + w * vectors)
