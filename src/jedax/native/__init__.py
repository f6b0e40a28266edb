"""Native code for the CPU: kernels in C++ that XLA calls, each several times as fast as the same in JAX.

The kernels `random` and `repertoire` return the bits that JAX would, but for denormal numbers. The others, `control`,
`es` and `maze`, agree with JAX up to rounding. One shared library holds all of them. It is built when jedax is
installed, for several instruction sets, of which the best one is used. Each kernel is available or not on its own
(`status`); where it is not, and on accelerators, JAX does the work. Environment variables:

- `JEDAX_ISA`: the instruction set, "avx512", "avx2" or "baseline"; by default the best one of the processor.
- `JEDAX_NATIVE_OFF`: kernels to leave out, such as "maze,random", or "all". Without `random`, `es` is left out, too.

A kernel is a folder beside this file, named in `FOLDERS` of CMakeLists.txt:

- `__init__.py` has `KERNEL`, a `jedax.native.core.Kernel` with the names of its functions, and Python that calls them.
- `vectors.cc`, if there is one, is compiled once for each instruction set (`core/isa.h`). It may include nothing of
  C++'s standard library: an inline function compiled for AVX-512 could replace its namesake in the whole program.
- Any other `*.cc` is compiled once. It defines each function that XLA calls by `JEDAX_HANDLER` (`core/ffi.h`), as
  `jedax_<folder>_<function>`; settings arrive as named attributes (`Attributes`).

`core` has what kernels share: the choice of the instruction set (`isa.h`), threads (`threads.h`), vectors of one
instruction set (`simd.h`), packs of vectors (`pack.h`), functions of packs (`maths.h`), memory for packs (`lanes.h`).
"""

from __future__ import annotations

import importlib

from jedax.native.core import KERNELS, Status, choose

__all__ = ["choose", "status"]


def status() -> dict[str, Status]:
    """Return the status of each kernel by its name."""
    return {name: importlib.import_module(f"{__name__}.{name}").KERNEL.status for name in KERNELS}
