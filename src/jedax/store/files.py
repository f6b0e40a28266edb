"""Files that appear whole or not at all, and trees of arrays on disk.

A tree of arrays is saved as a folder with one safetensors file and a JSON manifest, which holds facts and the checksums
of both. Random keys are saved as their key data. Nothing that is read can run code. Whatever reads raises a
`CorruptError` if a file is missing, damaged, or of another format.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jedax.errors import JedaxError
from jedax.native import random as native_random

FORMAT = 1
_TENSORS, _MANIFEST = "state.safetensors", "manifest.json"


class CorruptError(JedaxError):
    """A file does not hold what was written to it."""


def other_format(path: str | Path, expected: object, received: str) -> CorruptError:
    """Return the error for a file of another format."""
    return CorruptError(f"{path}: expected format {expected}, got {received}; use the version that wrote it.")


def write_atomic(path: Path, data: str | bytes) -> None:
    r"""Write a file under a temporary name, another for each process, flush it to disk, and rename it.

    Bytes of a file's name that are no UTF-8 become "\udce9" and the like in a text.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with open(temporary, "xb") as file:  # "x" does not follow a link of that name
            file.write(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # such as Ctrl-C
        with contextlib.suppress(OSError):
            temporary.unlink()  # a full disk stays full otherwise
        raise
    _sync_folder(path.parent)


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give the path of a directory to be made, which takes the place of another: as a whole, or after an error not."""
    arriving, leaving = (folder.with_name(f".{folder.name}.{state}") for state in ("arriving", "leaving"))
    put_back(folder.parent)
    for rest in (arriving, leaving):  # of a process that was killed
        shutil.rmtree(rest, ignore_errors=True)
    try:
        yield arriving
        if folder.exists():
            folder.rename(leaving)
        arriving.rename(folder)
    except BaseException:
        put_back(folder.parent)
        shutil.rmtree(arriving, ignore_errors=True)
        raise
    shutil.rmtree(leaving, ignore_errors=True)


def put_back(parent: Path) -> None:
    """Put directories back that were to be replaced by a process that was killed before the others took their place."""
    for leaving in parent.glob(".*.leaving"):
        folder = leaving.with_name(leaving.name.removeprefix(".").removesuffix(".leaving"))
        if not folder.exists():
            leaving.rename(folder)


def _sync_folder(path: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; numbers that are not finite become null, bytes that are no text "?"."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode(errors="replace"))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def read_array(path: Path) -> np.ndarray:
    """Return the array in a .npy file; a `ValueError` says why there is none."""
    try:
        array = np.load(path, allow_pickle=False)
    except Exception as error:  # what reads the header of a damaged file may raise anything
        raise ValueError("no array in numpy's format" if path.is_file() else "no file") from error
    if not isinstance(array, np.ndarray):
        raise ValueError("several arrays")
    return array


def check_is_file(path: Path) -> None:
    """Raise a `ValueError` for a path that is no file: a pipe would never end."""
    if not path.is_file():
        raise ValueError("no file" if not path.exists() else "a folder or a device")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        check_is_file(path)
        value = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(value, ensure_ascii=False).encode()  # "\ud800" is JSON, but no text
        return value
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptError(f"{path}: expected JSON, got {repr(error)[:120]}; restore the file.") from None


def digest(value: Any) -> str:
    """Return the checksum of a JSON value, whatever the order and layout of its text."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by their path, such as `.repertoire.fitness`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(jax.device_get(_raw(leaf)), order="C") for path, leaf in leaves}


def unflatten(arrays: Mapping[str, np.ndarray], like: Any, where: str | Path, prefix: str = "") -> Any:
    """Return a tree like `like` (arrays, or shapes and dtypes) with the arrays of `flatten`, named `prefix` + path.

    `where` is the file or folder that they come from, for errors.
    """
    with jax.enable_x64(True):  # else float64 would become float32
        return _unflatten(arrays, like, where, prefix)


def _unflatten(arrays: Mapping[str, np.ndarray], like: Any, where: str | Path, prefix: str) -> Any:
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = prefix + jax.tree_util.keystr(path)
        expected = jax.eval_shape(_raw, leaf)
        array = arrays.get(name)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            got = "none" if array is None else f"{array.dtype}{array.shape}"
            wanted = f"{name} as {expected.dtype}{expected.shape}"
            raise CorruptError(f"{where}: expected {wanted}, got {got}; it is from another run or version of jedax.")
        is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        leaves.append((native_random.wrap_keys if is_key else jax.numpy.asarray)(array, leaf.dtype))
    return jax.tree_util.tree_unflatten(structure, leaves)


def _raw(leaf: Any) -> Any:
    """Return an array as it is saved: random keys as key data, bfloat16 as float32 (NumPy has no bfloat16)."""
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    return leaf.astype(jax.numpy.float32) if leaf.dtype == jax.numpy.bfloat16 else leaf


def write_tensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays as safetensors, atomically."""
    from safetensors.numpy import save

    _check_memory(arrays)
    write_atomic(path, save(dict(arrays), dict(metadata or {})))


def _check_memory(arrays: Mapping[str, np.ndarray]) -> None:
    """Raise a `MemoryError` if safetensors, which would end the process, cannot allocate what it needs for arrays."""
    np.empty(3 * sum(array.nbytes for array in arrays.values()) + 2**20, np.uint8)


def read_tensors(path: Path, form: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name; if the file names its format, that must be `form`."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load

    try:
        check_is_file(path)
        if form is not None:
            with safe_open(str(path), "np") as file:
                received = (file.metadata() or {}).get("format", form)
            if received != form:
                raise other_format(path, form, f"{str(received)[:60]!r}")
        return load(path.read_bytes())
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, CorruptError):
            raise
        raise CorruptError(f"{path}: expected arrays as safetensors, got {error}; restore the file.") from None


def save_tree(folder: Path, tree: Any, facts: Mapping[str, Any]) -> None:
    """Write a pytree of arrays, and JSON values as facts, into a new folder, which appears whole or not at all."""
    from safetensors.numpy import save

    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    arrays = flatten(tree)
    _check_memory(arrays)
    data = save(arrays)
    facts = dict(facts)
    checksums = {"sha256": hashlib.sha256(data).hexdigest(), "facts_sha256": digest(facts)}
    manifest = {"format": FORMAT, **checksums, "facts": facts}
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
    """Return the facts in the manifest of a saved tree, and the checksum as "sha256"."""
    try:
        manifest = read_json(folder / _MANIFEST)
    except CorruptError as error:
        raise CorruptError(f"{folder}: expected a manifest; the checkpoint is unusable: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("facts", {}), dict):
        raise CorruptError(f"{folder}: expected a manifest, got other JSON; the checkpoint is unusable.")
    if manifest.get("format") != FORMAT:
        raise other_format(folder, FORMAT, str(manifest.get("format"))[:20])
    if missing := sorted({"sha256", "facts"} - set(manifest)):
        raise CorruptError(f"{folder}: expected a manifest, got one without {missing[0]}; the checkpoint is unusable.")
    # Manifests of earlier versions have no checksum of the facts.
    strange = set(manifest) - {"format", "sha256", "facts", "facts_sha256"}
    if strange or manifest.get("facts_sha256", digest(manifest["facts"])) != digest(manifest["facts"]):
        raise CorruptError(f"{folder}: expected facts with their checksum, got others; the checkpoint is damaged.")
    return {**manifest["facts"], "sha256": str(manifest["sha256"])}


def read_tree(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a saved tree by their path, after a check of the checksum."""
    sha256 = read_facts(folder)["sha256"]
    try:
        found = hashlib.sha256((folder / _TENSORS).read_bytes()).hexdigest()
    except OSError as error:
        raise CorruptError(
            f"{folder}: expected {_TENSORS}, got {error.strerror}; the checkpoint is unusable."
        ) from None
    if found != sha256:
        raise CorruptError(f"{folder}: expected checksum {sha256[:12]}, got {found[:12]}; the checkpoint is damaged.")
    return read_tensors(folder / _TENSORS)


def load_tree(folder: Path, like: Any) -> Any:
    """Return a saved tree, with the structure, shapes and dtypes of `like`."""
    arrays = read_tree(folder)
    known = {jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(like)[0]}
    if strange := sorted(set(arrays) ^ known):
        raise CorruptError(f"{folder}: expected the state of this method, got other parts ({', '.join(strange[:3])}); "
                           "it is from another run or version of jedax.")  # fmt: skip
    return unflatten(arrays, like, folder)
