"""Over which devices a run is spread: its replicas first, then the population of each.

The devices form a grid with the axes `replicas` and `population`. Each device holds its own replicas and searches for
them as if it were alone; devices along `population` hold the same replicas, evaluate a part of each generation apiece
and tell each other what came of it. All else of a generation, cheap beside a simulation, each of them does for itself:
so the only thing that travels is evaluations.

Several processes (`jax.distributed`, one per host) all run the same program. Their devices share the population alone,
so that each process has the whole state; the first of them decides what depends on clocks, and writes files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jedax.errors import fail
from jedax.types import Array, Evaluation, Float, PRNGKeyArray

REPLICAS, POPULATION = "replicas", "population"


def mesh_for(devices: int | Literal["all"], replicas: int) -> Mesh | None:
    """Return the grid of devices for a run; None: one device, and programs that know nothing of others.

    The replicas are cut into as many equal parts as divide both them and the devices; the rest of the devices shares
    the population of each part. Devices of several processes share the population alone.

    Args:
        devices: How many of JAX's devices; "all": every one.
        replicas: Of the run.

    Raises:
        JedaxError: JAX has not as many devices, or several processes are to share some of theirs.
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
    several = jax.process_count() > 1
    if several and number < len(known):
        raise fail(
            "devices",
            expected=f"all, or 1 for a search of its own in each of the {jax.process_count()} processes",
            received=number,
            remedy="give all",
        )
    parts = 1 if several else math.gcd(replicas, number)
    return Mesh(np.array(known[:number]).reshape(parts, number // parts), (REPLICAS, POPULATION))


def describe(mesh: Mesh | None) -> dict[str, int]:
    """Return how many devices share the replicas, and how many the population of each."""
    return {REPLICAS: 1, POPULATION: 1} if mesh is None else dict(mesh.shape)


def leads(mesh: Mesh | None) -> bool:
    """Return whether this process decides and writes: it alone searches here, or it is the first of those that do."""
    return not _several_processes(mesh) or jax.process_index() == 0


def as_leader_says(mesh: Mesh | None, number: int) -> int:
    """Return what the process that leads passes here; all of them must ask."""
    if not _several_processes(mesh):
        return number
    return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


def wait_for_all(mesh: Mesh | None, what: str) -> None:
    """Return once all processes have got here."""
    if _several_processes(mesh):
        multihost_utils.sync_global_devices(what)


def own_copy(tree: Any, mesh: Mesh | None) -> Any:
    """Return a state as arrays that are this process's own: any work may be done on them, by this process alone."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree) if _several_processes(mesh) else tree


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
    shardings = [NamedSharding(mesh, spec) for spec in _specs(len(args), shared)]
    return tuple(
        jax.tree.map(lambda leaf, sharding=sharding: _placed(leaf, sharding), arg)
        for arg, sharding in zip(args, shardings, strict=True)
    )


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


def _several_processes(mesh: Mesh | None) -> bool:
    return mesh is not None and jax.process_count() > 1


def _placed(leaf: Any, sharding: NamedSharding) -> Array:
    """Return an array, in a program of several processes one that all of them have, on the devices of a sharding."""
    if sharding.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if getattr(leaf, "sharding", None) == sharding:
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # JAX sends these nowhere but to devices of the process
        words = jax.device_put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
    return jax.device_put(leaf, sharding)


def _specs(num_args: int, shared: tuple[int, ...]) -> tuple[P, ...]:
    return tuple(P() if place in shared else P(REPLICAS) for place in range(num_args))
