"""Files of `Optimizer.save`: tensors, and the settings and counts beside them, with checksums."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import code_of, method_named
from jedax.store import files
from jedax.store.trust import SIGNATURES, check, is_own, sign

_KIND = "jedax optimizer "
FORMAT = f"{_KIND}4"


def write(path: Path, facts: dict[str, Any], arrays: dict[str, np.ndarray], argument: str) -> None:
    """Write a file atomically; `facts` has the method's name and settings, and gets the checksums.

    `argument` is what an error names: "path", or "out" when results were taken before.
    """
    if not path.name:
        raise fail(argument, expected="the name of a file", received=repr(str(path)), remedy="write one")
    facts["sha256"] = digest(arrays)
    if names := code_of(facts["method"], facts["config"]):
        sign(facts, _settings_digest(facts["method"], facts["config"]), names)  # else `method_of` asks for trust
    facts["facts_sha256"] = files.digest(facts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_tensors(path, arrays, {"format": FORMAT, "facts": json.dumps(facts)})
    except OSError as error:
        remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
        remedy += ", then call save(); the results were taken" if argument == "out" else ", or choose another"
        received = f"{path} ({error.strerror})"
        raise fail(argument, expected="a file that can be written", received=received, remedy=remedy) from None


def method_of(
    path: Path, facts: dict[str, Any], method: type[Method] | None, *, trust: bool
) -> tuple[str, type[Method], MethodConfig]:
    """Take the method from the facts of a file; return its name, its class and its settings.

    Args:
        path: The file.
        facts: Its facts, which lose those of the method.
        method: The class, where it cannot be imported.
        trust: Whether to import all code that the file names; else see `Optimizer.load`.
    """
    name, settings = str(facts.pop("method")), dict(facts.pop("config"))
    signed, names = {SIGNATURES: facts.pop(SIGNATURES, None)}, code_of(name, settings)
    if not trust and not is_own([path], signed, _settings_digest(name, settings), names):
        check(path, [known for known in names if method is None or known != name])
    kind = method or method_named(name).method
    return name, kind, kind.Config.build(settings, where=str(path))


def tree_of(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays by the names of their parts, those of a part with entries as a dict."""
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        part, _, entry = name.removeprefix("['").removesuffix("']").partition("']['")
        if entry and part in ("open", "kept", "known", "penalty", "generation"):
            tree.setdefault(part, {})[entry] = array
        else:
            tree[part] = array
    return tree


def _settings_digest(method: str, config: Any) -> str:
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
