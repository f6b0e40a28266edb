"""The maze simulator as native code for the CPU, several times as fast as the one in JAX.

The library is compiled when jedax is installed (`CMakeLists.txt`); where that was not possible, `status` says why and
mazes are simulated in JAX. One library holds kernels for several instruction sets and takes the best one that the
processor has; the environment variable `JEDAX_MAZE_ISA` asks for another one by name, or for `none`.

The C++ beside this file: `kernel.cc` is compiled once for each instruction set and holds the episodes (`evaluate.h`,
`record.h`), in vectors with one robot to a lane (`group.h`, `robot.h`, `maths.h`, `pack.h`, `simd.h`); `batch.cc`
shares a call between threads, `ffi.cc` is what XLA calls.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import os
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import fail
from jedax.tasks.maze.settings import MazeConfig
from jedax.types import Array, Evaluation, Float, Int, PRNGKeyArray

LIBRARY = "libjedax_maze.so"
VARIABLE = "JEDAX_MAZE_ISA"
# Numbered as in maze.h.
_ACTIVATIONS = ("relu", "tanh", "sigmoid", "elu", "gelu", "silu")
# The noise of a whole batch is drawn before it starts; more numbers than this (256 MB) are left to JAX.
_MOST_NOISE = 2**26


class Status(NamedTuple):
    """Whether there is a native simulator.

    Attributes:
        instruction_set: The one in use; None: mazes are simulated in JAX.
        reason: Why there is none; empty where there is one.
    """

    instruction_set: str | None
    reason: str

    def __str__(self) -> str:
        return self.instruction_set or f"none: {self.reason}"


@functools.cache
def status() -> Status:
    """Load the library if it is there, and tell; says once in the log if it is missing.

    Raises:
        JedaxError: `JEDAX_MAZE_ISA` names no instruction set that the library and this processor have.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted == "none":
        return Status(None, f"{VARIABLE} asks for none")
    try:
        names = _load(find_library())
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        logging.getLogger(__name__).warning("Mazes are simulated in JAX, not natively: %s", reason)
        return Status(None, reason)
    if wanted and wanted not in names:
        raise fail(VARIABLE, expected="one of " + ", ".join([*names, "none"]), received=wanted, remedy="choose another")
    return Status(wanted or names[0], "")


def find_library() -> Path:
    """Return where the library is.

    Raises:
        FileNotFoundError: It was not built when jedax was installed.
    """
    for folder in __path__:  # an editable installation keeps it apart from the sources
        if (path := Path(folder) / LIBRARY).exists():
            return path
    raise FileNotFoundError(
        "it was not built when jedax was installed, which takes a C++17 compiler (GCC or Clang); "
        "install jedax again from its sources once there is one (pip install --no-binary jedax jedax)"
    )


def fits(config: MazeConfig, count: int) -> bool:
    """Return whether there is a native simulator and the noise of `count` episodes is not too much to hold."""
    per_step = len(config.laser_angles) * (config.laser_noise > 0) + 2 * (config.wheel_noise > 0)
    return status().instruction_set is not None and count * (config.steps + 1) * per_step <= _MOST_NOISE


def evaluate(
    config: MazeConfig, layers: tuple[int, ...], keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]
) -> Evaluation:
    """Evaluate a batch, each member with its own key, as `Maze.evaluate` does one."""
    count = genotypes.shape[0]
    outputs = jax.ShapeDtypeStruct((count,), jnp.float32), jax.ShapeDtypeStruct((count, 2), jnp.float32)
    fitness, descriptor = _call("jedax_maze_evaluate", outputs, config, layers, keys, genotypes)
    return Evaluation(fitness, descriptor)


def record(
    config: MazeConfig, layers: tuple[int, ...], keys: PRNGKeyArray, genotypes: Float[Array, "batch params"]
) -> tuple[
    Float[Array, "batch steps observation"],
    Float[Array, "batch steps 2"],
    Float[Array, "batch steps 2"],
    Int[Array, " batch"],
]:
    """Return the fields of a `Trajectory` of each member of a batch, batch first."""
    rows = (genotypes.shape[0], config.steps)
    outputs = [jax.ShapeDtypeStruct((*rows, width), jnp.float32) for width in (layers[0], 2, 2)]
    outputs.append(jax.ShapeDtypeStruct(rows[:1], jnp.int32))
    observations, actions, positions, length = _call("jedax_maze_record", outputs, config, layers, keys, genotypes)
    return observations, actions, positions, length


def settings(config: MazeConfig, layers: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what the kernels are told about a maze: numbers and sizes as in `maze.h`, and walls `(walls, 4)`."""
    x, y, heading = (float(np.float32(value)) for value in config.start)
    angles = np.asarray(config.laser_angles, np.float32).astype(float)
    numbers = [x, y, math.cos(heading), math.sin(heading)]
    numbers += [*config.target, config.target_radius**2, config.distance_weight]
    numbers += [config.robot_radius**2, config.wheel_speed, 1 / (4 * config.robot_radius)]
    numbers += [config.laser_range, config.laser_range if config.laser_out_of_range == "range" else -1]
    numbers += [config.laser_noise, config.wheel_noise, *np.cos(angles), *np.sin(angles)]
    sizes = [config.steps, _ACTIVATIONS.index(config.activation), *layers]
    walls = np.array(config.all_walls, np.float32).reshape(-1, 4)
    return np.array(numbers, np.float32), np.array(sizes, np.int32), walls


def _load(path: Path) -> list[str]:
    """Register the library's handlers with JAX and return the instruction sets it can use here, the best first."""
    library = ctypes.CDLL(str(path))
    for name in ("jedax_maze_evaluate", "jedax_maze_record"):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
    library.jedax_maze_instruction_sets.restype = ctypes.c_char_p
    return library.jedax_maze_instruction_sets().decode().split(",")


def _call(name, outputs, config: MazeConfig, layers: tuple[int, ...], keys: PRNGKeyArray, genotypes) -> list[Array]:
    numbers, sizes, walls = settings(config, layers)
    call = jax.ffi.ffi_call(name, outputs, vmap_method="broadcast_all")
    noise = _draw_noise(config, keys)
    return call(genotypes.astype(jnp.float32), jnp.asarray(walls), *noise, numbers=numbers, sizes=sizes)


def _draw_noise(config: MazeConfig, keys: PRNGKeyArray) -> tuple[Array, Array]:
    """Draw the standard normal numbers that `Maze.evaluate` draws step by step from the same keys.

    Returns:
        For the lasers `(batch, steps + 1, lasers)`, before the first step and after each, and for the wheels
        `(batch, steps, 2)`; `(0,)` where there is no noise.
    """
    lasers = len(config.laser_angles)
    none = jnp.zeros(0)

    def draw(key: PRNGKeyArray) -> tuple[Array, Array]:
        step_keys = jax.vmap(lambda step: jax.random.split(jax.random.fold_in(key, step)))(
            jnp.arange(1, config.steps + 1)
        )
        normal = jax.vmap(jax.random.normal, in_axes=(0, None))
        first = jax.random.normal(jax.random.fold_in(key, 0), (1, lasers))
        of_lasers = jnp.concatenate([first, normal(step_keys[:, 0], (lasers,))])
        return of_lasers, normal(step_keys[:, 1], (2,))

    if config.laser_noise == 0 and config.wheel_noise == 0:
        return none, none
    of_lasers, of_wheels = jax.vmap(draw)(keys)
    return of_lasers if config.laser_noise > 0 else none, of_wheels if config.wheel_noise > 0 else none
