"""Objects given by name, optional packages, and names that are imported on first use."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import operator
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Mapping
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from jedax.errors import JedaxError, NotImportableError, fail, nearest

CUSTOM = "custom:"
"""Prefix of the name of a Python object that cannot be imported by name."""


def import_path() -> list[str]:
    """Return where modules of the user are looked for: in the current directory first, then as `sys.path` says."""
    return sys.path if "" in sys.path or os.getcwd() in sys.path else [os.getcwd(), *sys.path]


def look_here_for(module: str) -> None:
    """Let modules in the current directory be imported, too, if it has this one.

    Otherwise files there could take the place of packages that an installed module imports.
    """
    if PathFinder.find_spec(module.partition(".")[0], [os.getcwd()]) is not None:
        sys.path[:] = import_path()


def load_object(name: str, argument: str) -> Any:
    """Return the object named `module:attribute`; modules in the current directory can be imported, too.

    Raises:
        JedaxError: The module cannot be imported (`NotImportableError`), or has no such attribute.
    """
    module_name, _, attribute = name.partition(":")
    if re.search(r"\s", module_name):  # `jedax.settings.object_names` passes over such names
        raise fail(argument, expected="a module's name without spaces", received=repr(name), remedy="rename the module")
    if module_name.partition(".")[0] != __package__:
        look_here_for(module_name)
    try:
        found: Any = importlib.import_module(module_name)
    except JedaxError:
        raise
    except (Exception, SystemExit) as error:
        remedy = "correct the module"
        if isinstance(error, SystemExit):
            remedy = "put what it runs as a script below: if __name__ == '__main__':"
        elif isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            remedy = "check its name, and run from its directory or install it"
        raise fail(
            argument,
            expected=f"a module {module_name} that can be imported",
            received=f"{type(error).__name__}: {error}",
            remedy=remedy,
            kind=NotImportableError,
        ) from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = [name for name in dir(found) if not name.startswith("_") and not _is_module(found, name)]
            raise JedaxError(f"{argument}: expected {part!r} in {module_name}, got none; {nearest(part, known)}")
        found = getattr(found, part)
    return found


def _is_module(owner: Any, name: str) -> bool:
    return isinstance(getattr(owner, name, None), ModuleType)


def object_name(found: Any) -> str:
    """Return the name `module:attribute` under which an object can be imported; `custom:NAME` if there is none."""
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    loaded = sys.modules.get(module or "")
    if loaded is not None and module != "__main__":
        with contextlib.suppress(AttributeError):
            if name is not None and operator.attrgetter(name)(loaded) is found:
                return f"{module}:{name}"
        for known, value in vars(loaded).items():
            if value is found:
                return f"{module}:{known}"
    return CUSTOM + (name or type(found).__name__)


def is_custom(name: object) -> bool:
    """Return whether `object_name` gave this name to an object that only the user's program can give again."""
    return isinstance(name, str) and name.startswith(CUSTOM)


def subclasses_in(package: str, base: type) -> dict[str, type]:
    """Return the classes in a package's modules that derive from `base`, by their class attribute `name`."""
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        for value in vars(importlib.import_module(f"{package}.{module.name}")).values():
            name = vars(value).get("name") if isinstance(value, type) and issubclass(value, base) else None
            if isinstance(name, str) and name:
                found.setdefault(name, value)
    return found


@functools.cache
def entry_points(group: str) -> dict[str, importlib.metadata.EntryPoint]:
    """Return the entry points of a group that installed packages have registered, by name."""
    return {entry.name: entry for entry in importlib.metadata.entry_points(group=group)}


def require(module: str, extra: str, argument: str) -> ModuleType:
    """Import and return a module of an optional dependency, which `extra` of jedax installs.

    Raises:
        NotImportableError: It is not installed, or fails to import.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise fail(
            argument,
            expected=f"the package {module}",
            received=str(error),
            remedy=f"install it with: pip install 'jedax[{extra}]'",
            kind=NotImportableError,
        ) from None


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose names are imported from `homes` on first use (PEP 562).

    So are those of its own `modules`.
    """

    def getattribute(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return getattribute, lambda: sorted(sys.modules[package].__all__)
