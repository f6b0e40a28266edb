"""Over which devices a run is spread: its replicas first, then the population of each.

The devices form a grid with the axes `replicas` and `population`. Each device holds its own replicas and searches for
them as if it were alone; devices along `population` hold the same replicas, evaluate a part of each generation apiece
and tell each other what came of it. All else of a generation, cheap beside a simulation, each of them does for itself:
so the only thing that travels is evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jedax._checks import fail
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

REPLICAS, POPULATION = "replicas", "population"


def mesh_for(devices: int | Literal["all"], replicas: int) -> Mesh | None:
    """Return the grid of devices for a run; None: one device, and programs that know nothing of others.

    The replicas are cut into as many equal parts as divide both them and the devices; the rest of the devices shares
    the population of each part.

    Args:
        devices: How many of JAX's devices; "all": every one.
        replicas: Of the run.

    Raises:
        JedaxError: JAX has not as many devices.
    """
    known = jax.devices()
    number = len(known) if devices == "all" else devices
    if number > len(known):
        cpu = " (for several on one CPU: XLA_FLAGS=--xla_force_host_platform_device_count=N)"
        raise fail(
            "devices",
            expected=f"at most {len(known)}, the {known[0].platform} devices that JAX has",
            received=number,
            remedy=f"give fewer, or all{cpu if known[0].platform == 'cpu' else ''}",
        )
    if number == 1:
        return None
    parts = math.gcd(replicas, number)
    return Mesh(np.array(known[:number]).reshape(parts, number // parts), (REPLICAS, POPULATION))


def describe(mesh: Mesh | None) -> dict[str, int]:
    """Return how many devices share the replicas, and how many the population of each."""
    return {REPLICAS: 1, POPULATION: 1} if mesh is None else dict(mesh.shape)


def spread(function: Callable, mesh: Mesh | None, num_args: int, shared: tuple[int, ...] = ()) -> Callable:
    """Return `function` such that each device calls it with its own replicas.

    Args:
        function: Arguments and results are trees of arrays with a leading replica axis.
        mesh: The grid of devices; None: `function` is returned as it is.
        num_args: How many arguments it takes.
        shared: Places of the arguments that have no replica axis, but are the same for all.
    """
    if mesh is None:
        return function
    specs = _specs(num_args, shared)
    # What is the same along the population is so by construction; JAX cannot tell from calls into native code.
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=P(REPLICAS), check_vma=False)


def place(args: tuple, mesh: Mesh | None, shared: tuple[int, ...] = ()) -> tuple:
    """Return the arguments of a function that was spread, on the devices where it wants them."""
    if mesh is None:
        return args
    specs = _specs(len(args), shared)
    return tuple(jax.device_put(arg, NamedSharding(mesh, spec)) for arg, spec in zip(args, specs, strict=True))


def evaluate_in_shares(
    evaluate: Callable[[PRNGKeyArray, Array], Evaluation],
    num_shares: int,
    key: PRNGKeyArray,
    genotypes: Float[Array, "batch params"],
) -> Evaluation:
    """Evaluate a batch that is the same on all devices along the population, each of them an equal share.

    Where they do not divide the batch, the last ones evaluate its last member again, to no effect.

    Args:
        evaluate: Takes keys, one per member, and genotypes.
        num_shares: Devices along the population.
        key: Split for the members as `Task.evaluate_batch` does.
        genotypes: The whole batch.

    Returns:
        The evaluation of the whole batch, on every device.
    """
    batch = genotypes.shape[0]
    size = -(-batch // num_shares)
    mine = jnp.minimum(jax.lax.axis_index(POPULATION) * size + jnp.arange(size), batch - 1)
    share = evaluate(jax.random.split(key, batch)[mine], genotypes[mine])
    return jax.tree.map(lambda part: jax.lax.all_gather(part, POPULATION, tiled=True)[:batch], share)


def _specs(num_args: int, shared: tuple[int, ...]) -> tuple[P, ...]:
    return tuple(P() if place in shared else P(REPLICAS) for place in range(num_args))
