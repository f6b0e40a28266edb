"""Distribution of a run over devices: first its replicas, then the population of each replica.

The devices form a mesh with the axes `replicas` and `population`. Devices at different places along `replicas` hold
different replicas and exchange nothing. Devices along `population` hold the same replicas: each of them evaluates a
part of every generation and receives the evaluations of the others. The rest of a generation is cheap compared with a
simulation, and every device computes all of it, so that only evaluations are exchanged.

Several processes (`jax.distributed`, one per host) run the same program. Their devices share the population only, so
that each process has the whole state. The first process makes all decisions that depend on clocks, and writes files.
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
    """Return the mesh of devices for a run; None for one device.

    The size of the axis `replicas` is the greatest common divisor of the numbers of replicas and devices, or 1 with
    several processes.

    Raises:
        JedaxError: JAX has fewer devices, or several processes would use some of them only.
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
    """Return the numbers of devices along the axes `replicas` and `population`."""
    return {REPLICAS: 1, POPULATION: 1} if mesh is None else dict(mesh.shape)


def summary(mesh: Mesh | None) -> str:
    """Return words for a log, such as " on 8 devices, 4 for replicas by 2 for the population"; empty for one device."""
    if mesh is None:
        return ""
    replicas, population = mesh.devices.shape
    return f" on {mesh.size} devices, {replicas} for replicas by {population} for the population"


def leads(mesh: Mesh | None) -> bool:
    """Return whether this process decides and writes: it searches alone, or it is the first of several processes."""
    return not _several_processes(mesh) or jax.process_index() == 0


def from_leader(mesh: Mesh | None, number: int) -> int:
    """Return the number that the first process passes; all processes must call this function."""
    if not _several_processes(mesh):
        return number
    return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


def wait_for_all(mesh: Mesh | None, what: str) -> None:
    """Return when all processes have called this function."""
    if _several_processes(mesh):
        multihost_utils.sync_global_devices(what)


def local_copy(tree: Any, mesh: Mesh | None) -> Any:
    """Return a state as arrays of this process, which it can use without the other processes."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree) if _several_processes(mesh) else tree


def spread(function: Callable, mesh: Mesh | None, num_args: int, shared: tuple[int, ...] = ()) -> Callable:
    """Return `function`, of pytrees with a leading replica axis, such that each device calls it with its own replicas.

    The arguments at the positions `shared` have no replica axis.
    """
    if mesh is None:
        return function
    specs = _specs(num_args, shared)
    # JAX cannot check that results are equal along the population, because of calls of native code.
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=P(REPLICAS), check_vma=False)


def place(args: tuple, mesh: Mesh | None, shared: tuple[int, ...] = ()) -> tuple:
    """Return the arguments of a function from `spread`, placed on the devices that use them."""
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
    """Return the evaluation of a whole batch, of which each device along the population evaluates an equal share.

    If the number of devices does not divide the batch, the last member is evaluated several times. `key` is split into
    keys of the members as in `Task.evaluate_batch`.
    """
    batch = genotypes.shape[0]
    size = -(-batch // num_shares)
    mine = jnp.minimum(jax.lax.axis_index(POPULATION) * size + jnp.arange(size), batch - 1)
    share = evaluate(jax.random.split(key, batch)[mine], genotypes[mine])
    return jax.tree.map(lambda part: jax.lax.all_gather(part, POPULATION, tiled=True)[:batch], share)


def _several_processes(mesh: Mesh | None) -> bool:
    return mesh is not None and jax.process_count() > 1


def _placed(leaf: Any, sharding: NamedSharding) -> Array:
    """Return an array, which all processes have, on the devices of a sharding."""
    if sharding.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if getattr(leaf, "sharding", None) == sharding:
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # JAX places typed keys on devices of its own process only
        words = jax.device_put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
    return jax.device_put(leaf, sharding)


def _specs(num_args: int, shared: tuple[int, ...]) -> tuple[P, ...]:
    return tuple(P() if place in shared else P(REPLICAS) for place in range(num_args))
