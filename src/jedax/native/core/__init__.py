"""The library of native code: loads it, chooses the instruction set, and calls kernels through XLA."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jedax.errors import check_choice, fail
from jedax.types import Array

LIBRARY = "libjedax_native.so"
ISA = "JEDAX_ISA"
OFF = "JEDAX_NATIVE_OFF"
KERNELS = tuple(sorted(
    folder.name for folder in Path(__file__).parents[1].iterdir()
    if folder.name != "core" and (folder / "__init__.py").exists()
))  # fmt: skip


class Status(NamedTuple):
    """The instruction set in use, or the reason why there is none and JAX does the work instead."""

    instruction_set: str | None
    reason: str = ""

    def __str__(self) -> str:
        return self.instruction_set or f"none: {self.reason}"


@functools.cache
def load() -> tuple[ctypes.CDLL | None, Status]:
    """Load the library and choose its instruction set; logs a warning if there is no library."""
    try:
        library = ctypes.CDLL(str(_find_library()))
        library.jedax_sources.restype = library.jedax_instruction_sets.restype = ctypes.c_char_p
        if _sources() not in (None, library.jedax_sources().decode()):
            raise OSError("it was built from other sources; build it again (pip install -e .)")
        names = library.jedax_instruction_sets().decode().split(",")
    except (OSError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        logging.getLogger(__name__).warning("Native code is not in use, which makes mazes slow: %s", reason)
        return None, Status(None, reason)
    chosen = os.environ.get(ISA) or names[0]
    if chosen not in names:
        raise fail(ISA, expected="one of " + ", ".join(names), received=chosen, remedy="choose another")
    library.jedax_use_instruction_set(chosen.encode())
    return library, Status(chosen)


def _sources() -> str | None:
    """Return the digest of the sources, as in CMakeLists.txt; None where they are not installed."""
    paths = sorted(str(path) for path in Path(__file__).parents[1].glob("*/*") if path.suffix in (".cc", ".h"))
    digests = "".join(hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256(digests.encode()).hexdigest() if paths else None


def _find_library() -> Path:
    for folder in __path__:  # an editable installation keeps it apart from the sources
        if (path := Path(folder) / LIBRARY).exists():
            return path
    raise FileNotFoundError(
        "it was not built when jedax was installed, which takes a C++17 compiler (GCC or Clang); "
        "install jedax again from its sources once there is one (pip install --no-binary jedax jedax)"
    )


class Kernel:
    """One kernel of the library: the functions `jedax_<name>_<function>`."""

    def __init__(self, name: str, *functions: str):
        self.name, self.functions = name, functions

    @functools.cached_property
    def status(self) -> Status:
        """Whether the kernel is in use. Finding out registers its functions with XLA."""
        off = [name.strip() for name in os.environ.get(OFF, "").split(",") if name.strip()]
        for name in off:
            check_choice(OFF, name, ("all", *KERNELS))
        if {"all", self.name} & set(off):
            return Status(None, f"{OFF} names {self.name if self.name in off else 'all'}")
        library, status = load()
        if library is None:
            return status
        for symbol in map(self._symbol, self.functions):
            jax.ffi.register_ffi_target(symbol, jax.ffi.pycapsule(getattr(library, symbol)), platform="cpu")
        return status

    @property
    def available(self) -> bool:
        """Whether the kernel may be called."""
        return self.status.instruction_set is not None

    def call(
        self, function: str, outputs: Any, *arrays: Array, vmap_method: str = "broadcast_all", aliases: Any = None,
        **settings: Any,
    ) -> Any:  # fmt: skip
        """Call a function of an available kernel, on a CPU; arguments as of `jax.ffi.ffi_call`.

        C++ reads the settings by their names: strings, numbers, or arrays of numbers row by row, as 32 bits.
        """
        call = jax.ffi.ffi_call(self._symbol(function), outputs, vmap_method=vmap_method, input_output_aliases=aliases)
        return call(*arrays, **{name: _attribute(value) for name, value in settings.items()})

    def _symbol(self, function: str) -> str:
        return f"jedax_{self.name}_{function}"


def _attribute(value: str | float | Sequence[float] | np.ndarray) -> Any:
    if isinstance(value, str):
        return value
    numbers = np.asarray(value)
    kind = np.int32 if numbers.dtype.kind in "bi" else np.float32
    return numbers.ravel().astype(kind) if numbers.ndim else numbers.astype(kind)[()]


def choose(*args: Any, on_cpu: Callable, elsewhere: Callable) -> Any:
    """Return `on_cpu(*args)` on a CPU and `elsewhere(*args)` on accelerators.

    Where JAX has no accelerator, `elsewhere` is not traced: tracing a simulator takes most of a second.
    """
    if jax.default_backend() == "cpu":
        return on_cpu(*args)
    return jax.lax.platform_dependent(*args, cpu=on_cpu, default=elsewhere)
