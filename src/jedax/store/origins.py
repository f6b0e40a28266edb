"""Where the code of a module lies, and whether it is installed; nothing is imported."""

from __future__ import annotations

import importlib.metadata
import os
import re
import site
import sys
import sysconfig
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from jedax.imports import import_path


def files_of(module: str) -> list[Path]:
    """Return the files that an import of a module would run, those of its packages first; empty: it is not found."""
    files: list[Path] = []
    path: list[str] | None = None
    parts = module.split(".")
    for number in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:number]), path)
        if spec is None:
            break
        if spec.has_location and spec.origin:
            files.append(Path(spec.origin).resolve())
        path = list(spec.submodule_search_locations or ())
    return files


def is_found(module: str) -> bool:
    """Return whether an import of a module would run anything."""
    return _spec(module.partition(".")[0], None) is not None


def _spec(name: str, path: list[str] | None) -> ModuleSpec | None:
    """Return how a module would be imported, whose parent package lies at `path`; None: it is not found."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None or path == [] or not name.rpartition(".")[2]:
        return loaded
    for finder in sys.meta_path:
        try:
            found = finder.find_spec(name, import_path() if path is None else path)
        except Exception:  # names that no file can have, and finders of other packages
            continue
        if found is not None:
            return found
    return None


def is_installed(module: str) -> bool:
    """Return whether an import of a module would run an installed package, or one that is installed as editable.

    Files in the current directory, beside a script, and in folders of `PYTHONPATH` are not installed. A module
    is not installed either where such a file takes its place or extends it.
    """
    top = module.partition(".")[0]
    if top == "jedax":
        return True
    folders = _site_folders()
    editable = [path for folder in folders for path in _path_files(folder)]
    ours = _find(top, folders)
    if ours is None and (found := _editable(top, editable)) and top in _claimed(folders):  # which reads all metadata
        ours = found
    if ours is None:
        return False
    known = {os.path.realpath(folder) for folder in (*folders, *editable)}
    elsewhere = [entry for entry in import_path() if os.path.realpath(entry or os.curdir) not in known]
    others = [
        getattr(sys.modules.get(top), "__spec__", None),
        *(_find(top, [entry or os.curdir]) for entry in elsewhere),
    ]
    return all(other is None or _places(other) == _places(ours) for other in others)


def _find(name: str, path: list[str]) -> ModuleSpec | None:
    try:
        return PathFinder.find_spec(name, path)
    except (ValueError, OSError):
        return None


def _places(spec: ModuleSpec) -> tuple[str, list[str]]:
    folders = sorted(map(os.path.realpath, spec.submodule_search_locations or ()))
    return os.path.realpath(spec.origin or ""), folders


def _site_folders() -> list[str]:
    """Return the folders that packages are installed to."""
    found = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    found = [folder for folder in dict.fromkeys(found) if os.path.isdir(folder)]
    # One environment can extend another one with a .pth file.
    more = (path for folder in found for path in _path_files(folder))
    return [*found, *(path for path in more if os.path.basename(path) in ("site-packages", "dist-packages"))]


def _path_files(folder: str) -> list[str]:
    """Return the folders that the .pth files of a folder name, as those of editable packages do."""
    lines: list[str] = []
    for file in sorted(Path(folder).glob("*.pth")):
        try:
            lines += file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            continue
    named = (os.path.join(folder, line.strip()) for line in lines if line.strip() and not re.match(r"#|import\s", line))
    return [path for path in named if os.path.isdir(path)]


def _editable(name: str, folders: list[str]) -> ModuleSpec | None:
    """Return how a module of an editable package is found: in a folder of a .pth file, or by the package's finder."""
    found = _find(name, folders)
    for finder in sys.meta_path:
        kind = finder if isinstance(finder, type) else type(finder)
        if found is None and "editable" in kind.__module__:
            try:
                found = finder.find_spec(name, None)
            except Exception:  # a finder of another package
                continue
    return found


def _claimed(folders: list[str]) -> set[str]:
    """Return the top-level modules that the packages in some folders say they have."""
    names: set[str] = set()
    for package in importlib.metadata.distributions(path=folders):
        try:
            names.add(re.sub(r"[-.]+", "_", package.metadata["Name"] or ""))
            names.update((package.read_text("top_level.txt") or "").split())
            names.update(point.value.partition(":")[0].partition(".")[0] for point in package.entry_points)
        except Exception:  # metadata that cannot be read
            continue
    return {*names, *map(str.lower, names)}
