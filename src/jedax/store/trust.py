"""Whether the code that a run directory names may be imported: is it installed, or did this user make the run here?

A run that names code outside jedax is signed when it is made: `environment.json` keeps an HMAC of its settings, of the
path and content of the code, and of user and machine. The key lies in the user's state directory and nowhere else. A
directory from elsewhere, other settings, and other code have no valid signature.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import platform
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from jedax.errors import JedaxError, printable
from jedax.store.origins import files_of, is_found, is_installed

Code = Literal["never", "ask", "any"]
"""Whether code that a run names is imported. "never": it is not. "ask": if this user made the run on this machine, or
the code is installed; otherwise an error asks for trust. "any": always."""

SIGNATURES = "signatures"
"""The entry of environment.json."""

_KEPT = 8  # signatures of machines that a run was continued on
_LONGEST = 120  # characters of a name in a message
_MOST = 100  # modules that a run may name; looking for thousands would take minutes
_SIZE = 32  # bytes of the key


def sign(environment: dict[str, Any], digest: str, names: Iterable[str]) -> str:
    """Add the signature of a run with some settings and code; return why it cannot be signed, empty: it is."""
    names = list(names)
    try:
        made = _signature(_key(create=True), digest, names)
    except OSError as error:
        if len(names) <= _MOST and all(is_installed(module_of(name)) for name in names):
            return ""
        return (
            f"There is no record that this run was made here ({error.strerror or error}): jedax run --resume, replay "
            "and reevaluate will need --trust."
        )
    earlier = [known for known in _signatures(environment) if known != made]
    environment[SIGNATURES] = [*earlier[1 - _KEPT :], made]
    return ""


def is_own(paths: Iterable[Path], environment: dict[str, Any], digest: str, names: Iterable[str]) -> bool:
    """Return whether this user made a run on this machine, with these settings and with the code as it is now.

    `paths` are files and folders that must belong to the user.
    """
    signatures = _signatures(environment)
    try:
        if not signatures or not all(_is_mine(path.stat()) for path in paths):
            return False
        ours = _signature(_key(create=False), digest, names)
    except OSError:
        return False
    return any(hmac.compare_digest(ours.encode(), known.encode()) for known in signatures)


def check(where: str | Path, names: Iterable[str]) -> None:
    """Raise a `JedaxError` for the first code in some settings that is not installed.

    A module that is not found passes: its import says what is missing, and runs nothing.
    """
    modules = {module_of(name): name for name in names}
    for number, (module, name) in enumerate(modules.items()):
        is_plain = all(part.isidentifier() for part in module.split("."))
        if number == _MOST or ((is_found(module) or not is_plain) and not is_installed(module)):
            place = f"in {files[-1]}" if (files := files_of(module)) else "which has no file"
            raise JedaxError(
                f"{where}: expected installed code, or a run that you made on this machine with the same code, "
                f"got {shown(name)}, {place}; if you trust it, add --trust (Python: trust=True), or install it as a "
                "package."
            )


def shown(name: str) -> str:
    """Return the name of an object, from settings that anybody may have written, for messages."""
    return printable(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}...")


def module_of(name: str) -> str:
    """Return the module of `module:object`."""
    return name.partition(":")[0]


def _signature(key: bytes, digest: str, names: Iterable[str]) -> str:
    named = sorted({module_of(name) for name in names})
    if len(named) > _MOST:
        raise OSError(f"the settings name more than {_MOST} modules")
    modules = {module: _content(module) for module in named}
    made = {"settings": digest, "code": modules, "machine": _machine(), "user": _user()}
    return hmac.new(key, json.dumps(made, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _content(module: str) -> Any:
    """Return path and checksum of each file that an import of a module runs."""
    if is_installed(module):
        return "installed"
    return [[str(file), hashlib.sha256(file.read_bytes()).hexdigest()] for file in files_of(module)]


def _signatures(environment: dict[str, Any]) -> list[str]:
    found = environment.get(SIGNATURES)
    known = found[-_KEPT:] if isinstance(found, list) else []
    return [text for text in known if isinstance(text, str) and text.isascii()]


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else -1


def _is_mine(about: os.stat_result) -> bool:
    return _user() in (-1, about.st_uid)


def _machine() -> str:
    with contextlib.suppress(OSError):
        if known := Path("/etc/machine-id").read_text(encoding="ascii", errors="replace").strip():
            return known
    return platform.node()


def _key(*, create: bool) -> bytes:
    """Return the user's key; an `OSError` if there is none, or if others can read it."""
    path = _state_folder() / "key"
    if create and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(_SIZE))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, path)  # of several processes, the first one makes the key
            except FileExistsError:
                pass
            except OSError:  # the file system has no hard links
                os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        about = os.fstat(file.fileno())
        is_private = os.name == "nt" or (_is_mine(about) and not about.st_mode & 0o077)
        key = file.read(_SIZE + 1) if is_private and stat.S_ISREG(about.st_mode) else b""
    if len(key) != _SIZE:
        raise OSError(f"{path} is no key that you alone can read; remove it")
    return key


def _state_folder() -> Path:
    """Return the folder for the user's state (XDG base directory specification)."""
    given, home = os.environ.get("XDG_STATE_HOME", ""), os.path.expanduser("~")
    if not os.path.isabs(given) and not os.path.isabs(home):
        raise OSError("the user has no home directory")
    return (Path(given) if os.path.isabs(given) else Path(home) / ".local" / "state") / "jedax"
