"""The scripts in results/ as modules."""

import importlib
import sys
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


def script(name):
    """Return a script of results/ by its name."""
    sys.path.insert(0, str(RESULTS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(RESULTS))
