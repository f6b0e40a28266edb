"""JAX's cache of compiled programs."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

from jedax.store.environment import processor


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache directory, in a folder for each type of processor.

    A cache directory that the user has set, by `JAX_COMPILATION_CACHE_DIR` or in JAX's configuration, is not changed.
    """
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kind = hashlib.sha256(f"{platform.machine()} {processor(flags=True)}".encode()).hexdigest()[:12]
    jax.config.update("jax_compilation_cache_dir", str(home / "jedax" / "xla" / kind))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
