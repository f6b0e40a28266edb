"""Versions, machine and command line, which a repetition of a run needs, for environment.json."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "evosax", "pydantic", "safetensors", "brax", "gymnasium",
             "mujoco", "playground", "ray")  # fmt: skip


def describe() -> dict[str, Any]:
    """Return versions, machine, command line and git revision; unknown values are None."""
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
        "processor": processor(),
        "cores": num_cores(),
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.devices()],
        "native": {kernel: str(status) for kernel, status in native.status().items()},
    }


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor(*, flags: bool = False) -> str:
    """Return the name of the processor, with its instruction sets if `flags` is on."""
    wanted = ("model name", "flags", "Features") if flags else ("model name",)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return " ".join(found[name] for name in wanted if name in found) or platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache  # the code that is imported stays what it is when the checkout changes
def _git_revision() -> str | None:
    """Return the revision of the git checkout that holds this file; None for an installed package."""
    folder = Path(__file__).resolve().parents[3]
    if not (folder / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
