"""What a result needs to be made again: versions, machine, command line."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import threadpoolctl

from jedax.search.engines.local import num_cores

_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "evosax", "pydantic", "safetensors", "brax", "gymnasium",
             "mujoco", "playground", "ray")  # fmt: skip


def describe() -> dict[str, Any]:
    """Return versions, machine, command line and git revision; what cannot be found out is null."""
    import jax

    from jedax import native
    from jedax._version import __version__

    return {
        "jedax": __version__,
        "git_revision": _git_revision(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": num_cores(),
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.devices()],
        "native": {kernel: str(status) for kernel, status in native.status().items()},
    }


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles in the user's cache directory, apart for each kind of processor.

    A cache that the user has set, by `JAX_COMPILATION_CACHE_DIR` or in JAX's configuration, is left as it is.
    """
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kind = hashlib.sha256(f"{platform.machine()} {_processor(flags=True)}".encode()).hexdigest()[:12]
    jax.config.update("jax_compilation_cache_dir", str(home / "jedax" / "xla" / kind))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let the BLAS that JAX calls on the CPU use one thread meanwhile.

    Its threads spin while they wait for each other: alone on two cores they save a tenth of a GP fit, but with any
    other process beside it the fit takes ten to thirty times as long (see `benchmarks/README.md`).
    """
    import scipy.linalg  # noqa: F401, the limit holds for libraries that are loaded

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        yield


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """Return the revision of the checkout that jedax runs from; None for an installed package."""
    folder = Path(__file__).resolve().parents[3]
    if not (folder / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _processor(*, flags: bool = False) -> str:
    """Return the processor's name, with what it can do where `flags` asks for it."""
    wanted = ("model name", "flags", "Features") if flags else ("model name",)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return " ".join(found[name] for name in wanted if name in found) or platform.processor() or platform.machine()
