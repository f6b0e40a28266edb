"""Files of `Optimizer.save`: tensors, and the settings and counts beside them, with checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.store import files

_KIND = "jedax optimizer "
FORMAT = f"{_KIND}4"


def settings_digest(method: str, config: Any) -> str:
    """Return a checksum of a method's name and settings."""
    return hashlib.sha256(json.dumps([method, config], sort_keys=True).encode()).hexdigest()


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and arrays of a saved optimizer."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise fail(str(path), expected="a file that Optimizer.save wrote", received="no file", remedy="check the path")
    try:
        files.check_is_file(path)
        with safe_open(str(path), "np") as file:
            metadata = file.metadata() or {}
        received = str(metadata.get("format"))
        if received != FORMAT and received.startswith(_KIND):
            raise files.other_format(path, repr(FORMAT), repr(received[:60]))
        if received != FORMAT:
            raise files.CorruptError(f"{path}: expected a saved optimizer, got another file; check the path.")
        facts = dict(json.loads(metadata["facts"]))
        checksum = facts.pop("facts_sha256", None)  # files of earlier versions have none
        if checksum not in (None, files.digest(facts)):
            raise files.CorruptError(f"{path}: expected settings with their checksum; the file is damaged, restore it.")
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, JedaxError):
            raise
        raise files.CorruptError(f"{path}: expected a saved optimizer, got {error}; restore it.") from None
    arrays = files.read_tensors(path)
    if digest(arrays) != facts.pop("sha256", None):
        raise files.CorruptError(f"{path}: expected another checksum; the file is damaged, restore it.")
    return facts, arrays


def digest(arrays: dict[str, np.ndarray]) -> str:
    """Return a checksum of arrays and their names."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
