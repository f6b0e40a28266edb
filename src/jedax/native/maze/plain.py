"""The native simulator called without JAX, with threads of its own: for tests, and to measure what JAX's call costs."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from jedax.errors import fail
from jedax.native import maze as native
from jedax.tasks.maze.settings import MazeConfig


def instruction_sets() -> list[str]:
    """Return those that the library has kernels for and this processor can run, the best first."""
    return _library().jedax_maze_instruction_sets().decode().split(",")


def evaluate(
    config: MazeConfig,
    layers: tuple[int, ...],
    genotypes: np.ndarray,
    *,
    threads: int = 1,
    instruction_set: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate a batch without noise.

    Args:
        config: The maze.
        layers: Neurons of each layer of the controllers.
        genotypes: `(batch, params)`.
        threads: How many may work at once.
        instruction_set: By default the best one.

    Returns:
        Fitness `(batch,)` and descriptors `(batch, 2)`.

    Raises:
        JedaxError: Noise is on, or what was given does not fit together.
    """
    return prepare(config, layers, genotypes, threads=threads, instruction_set=instruction_set)()


def prepare(
    config: MazeConfig,
    layers: tuple[int, ...],
    genotypes: np.ndarray,
    *,
    threads: int = 1,
    instruction_set: str | None = None,
) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return `evaluate` of the same arguments with all that Python does done before; it fills the same two arrays.

    Raises:
        JedaxError: Noise is on.
    """
    if config.laser_noise > 0 or config.wheel_noise > 0:
        raise fail("config", expected="no noise", received=config.name, remedy="use jedax.native.maze.evaluate")
    genotypes = np.ascontiguousarray(genotypes, np.float32)
    count, params = genotypes.shape
    fitness, descriptor = np.empty(count, np.float32), np.empty((count, 2), np.float32)
    call = _library().jedax_maze_plain
    settings = native.settings(config, layers)
    told = [part for array in settings for part in (array.ctypes.data, len(array))]
    arguments = (
        instruction_set.encode() if instruction_set else None, threads, *told,
        genotypes.ctypes.data, count, params, fitness.ctypes.data, descriptor.ctypes.data,
    )  # fmt: skip
    arrays = (settings, genotypes)  # must live as long as the pointers to them

    def run(_: object = arrays) -> tuple[np.ndarray, np.ndarray]:
        wrong = call(*arguments)
        if wrong is not None:
            raise fail("call", expected="arguments that fit together", received=wrong.decode(), remedy="check them")
        return fitness, descriptor

    return run


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(native.find_library()))
    library.jedax_maze_instruction_sets.restype = ctypes.c_char_p
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    arrays = [pointer, number] * 3  # settings: numbers, sizes, walls
    library.jedax_maze_plain.argtypes = [
        ctypes.c_char_p, number, *arrays, pointer, number, number, pointer, pointer
    ]  # fmt: skip
    library.jedax_maze_plain.restype = ctypes.c_char_p
    return library
