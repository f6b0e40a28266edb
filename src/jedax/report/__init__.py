"""Pictures of a run, made from what it left; nothing here runs a search."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("comparisons", "plots"):  # the modules of figures, imported on first use
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
