"""Writing that leaves either the old file or the whole new one, and trees of arrays as files without code.

A tree is one safetensors file and a JSON manifest with its checksum. Random keys are kept as their numbers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax.errors import JedaxError
from jedax.native import random as native_random

FORMAT = 1
_TENSORS, _MANIFEST = "state.safetensors", "manifest.json"


class CorruptError(JedaxError):
    """A file on disk is not what was written."""


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write a file under a temporary name, flush it to disk, and rename it into place."""
    data = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with open(temporary, "xb") as file:  # never through a link that somebody has put there
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()  # what is left of it would fill a full disk
        raise
    _sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; numbers that are not finite become null."""
    write_atomic(path, json.dumps(_finite(value), indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON.

    Raises:
        CorruptError: The file is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptError(f"{path}: expected JSON, got {repr(error)[:120]}; restore the file.") from None


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def other_format(path: str | Path, expected: object, received: str) -> CorruptError:
    """Return the error for what another version of jedax wrote."""
    return CorruptError(f"{path}: expected format {expected}, got {received}; use the version that wrote it.")


def _sync_folder(path: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Return a tree's arrays by the path of each, such as `.repertoire.fitness`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(jax.device_get(_raw(leaf)), order="C") for path, leaf in leaves}


def unflatten(arrays: Mapping[str, np.ndarray], like: Any, prefix: str = "") -> Any:
    """Return a tree like `like` whose arrays are those of that path.

    Raises:
        CorruptError: A path is missing, or its array has another shape or dtype.
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = prefix + jax.tree_util.keystr(path)
        expected = jax.eval_shape(_raw, leaf)
        array = arrays.get(name)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            got = "none" if array is None else f"{array.dtype}{array.shape}"
            raise CorruptError(f"state: expected {name} as {expected.dtype}{expected.shape}, got {got}; "
                               "it belongs to another run.")  # fmt: skip
        typed = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        wrap = native_random.wrap_keys if typed else jax.numpy.asarray
        leaves.append(wrap(array, leaf.dtype))
    return jax.tree_util.tree_unflatten(structure, leaves)


def _raw(leaf: Any) -> Any:
    """Return the numbers of a random key, those of 16 bits as 32, and anything else as it is."""
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    # safetensors cannot read bfloat16 back into NumPy.
    return leaf.astype(jax.numpy.float32) if leaf.dtype == jax.numpy.bfloat16 else leaf


def write_tensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays as safetensors, atomically."""
    from safetensors.numpy import save

    write_atomic(path, save(dict(arrays), dict(metadata or {})))


def read_tensors(path: Path, form: str | None = None) -> dict[str, np.ndarray]:
    """Read named arrays.

    Args:
        path: The file.
        form: What it should say of its format, where it says anything.

    Raises:
        CorruptError: The file is missing, not safetensors, or of another format.
    """
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load

    try:
        if form is not None:
            with safe_open(str(path), "np") as file:
                received = (file.metadata() or {}).get("format", form)
            if received != form:
                raise other_format(path, form, f"{str(received)[:60]!r}")
        return load(path.read_bytes())
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise CorruptError(f"{path}: expected arrays as safetensors, got {error}; restore the file.") from None


def save_tree(folder: Path, tree: Any, facts: Mapping[str, Any]) -> None:
    """Write a tree into a folder of its own that appears whole or not at all.

    Args:
        folder: Where to; must not exist.
        tree: A pytree of arrays.
        facts: JSON values kept in the manifest.
    """
    from safetensors.numpy import save

    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    data = save(flatten(tree))
    manifest = {"format": FORMAT, "sha256": hashlib.sha256(data).hexdigest(), "facts": dict(facts)}
    try:
        temporary.mkdir(parents=True)
        write_atomic(temporary / _TENSORS, data)
        write_atomic(temporary / _MANIFEST, json.dumps(manifest, indent=2))
        os.replace(temporary, folder)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(folder.parent)


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the facts in the manifest of a saved tree.

    Raises:
        CorruptError: There is no manifest, or not one of this format.
    """
    try:
        manifest = read_json(folder / _MANIFEST)
    except CorruptError as error:
        raise CorruptError(f"{folder}: expected a manifest; the checkpoint is unusable: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("facts", {}), dict):
        raise CorruptError(f"{folder}: expected a manifest, got other JSON; the checkpoint is unusable.")
    if manifest.get("format") != FORMAT:
        received = str(manifest.get("format"))[:20]
        raise other_format(folder, FORMAT, received)
    if missing := sorted({"sha256", "facts"} - set(manifest)):
        raise CorruptError(f"{folder}: expected a manifest, got one without {missing[0]}; the checkpoint is unusable.")
    return {**manifest["facts"], "sha256": str(manifest["sha256"])}


def load_tree(folder: Path, like: Any) -> Any:
    """Read a tree back.

    Args:
        folder: Where `save_tree` put it.
        like: A tree of arrays, or of shapes and dtypes, with the structure that is expected.

    Raises:
        CorruptError: A checksum, a name, a shape or a dtype is not what it should be.
    """
    sha256 = read_facts(folder)["sha256"]
    try:
        found = hashlib.sha256((folder / _TENSORS).read_bytes()).hexdigest()
    except OSError as error:
        raise CorruptError(
            f"{folder}: expected {_TENSORS}, got {error.strerror}; the checkpoint is unusable."
        ) from None
    if found != sha256:
        raise CorruptError(f"{folder}: expected checksum {sha256[:12]}, got {found[:12]}; the checkpoint is damaged.")
    arrays = read_tensors(folder / _TENSORS)
    known = {jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(like)[0]}
    if strange := sorted(set(arrays) ^ known):
        raise CorruptError(f"{folder}: expected the state of this method, got other parts ({', '.join(strange[:3])}); "
                           "it belongs to another run.")  # fmt: skip
    try:
        return unflatten(arrays, like)
    except CorruptError as error:
        raise CorruptError(f"{folder}: {error}") from None
