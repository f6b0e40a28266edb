"""MuJoCo's models, as gymnasium and Playground have them. Importing this module does not import JAX."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from jedax.errors import fail


def feet_of(model: Any, feet: Sequence[str]) -> dict[int, int]:
    """Return the foot that each geom belongs to, both as numbers.

    Args:
        model: MuJoCo's model.
        feet: Names of geoms, one per foot; empty: those whose name contains "foot".

    Raises:
        JedaxError: The model has no such geoms.
    """
    names = [model.geom(number).name for number in range(model.ngeom)]
    lacking = next((name for name in feet if name not in names), None)
    chosen = list(feet) or [name for name in names if "foot" in name.lower()]
    if lacking is not None or not chosen:
        raise fail(
            "feet",
            expected="names of geoms" if feet else "geoms with 'foot' in their name",
            received=repr(lacking) if feet else "none",
            remedy="choose among " + ", ".join(name for name in names if name) + " (--feet), or another --descriptor",
        )
    return {names.index(name): foot for foot, name in enumerate(chosen)}


@contextlib.contextmanager
def quiet_mujoco() -> Iterator[None]:
    """Silence MuJoCo's warnings about model files, which each environment would repeat and log."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        yield
        return
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
