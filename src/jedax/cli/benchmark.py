"""The command `jedax benchmark`."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

from jedax.cli.options import Option, parse
from jedax.cli.run import nothing_to_save
from jedax.errors import JedaxError, check_choice

_PARTS = ("simulator", "repertoire", "es", "gp", "run")
_OPTIONS = {
    "only": Option("Parts to measure: " + ", ".join(_PARTS) + ".", tuple[str, ...], ()),
    "growth": Option("Show how times grow with cells, batch and parameters instead.", bool, False),
    "seconds": Option("Time to spend on each number; the fastest call counts.", float, 0.5),
    "json": Option("Also write all figures to this file.", str | None),
}
_COLUMNS = "{:<11}{:<58}{:>13} {:<14}{}"


def benchmark(arguments: list[str]) -> None:
    """Measure this machine."""
    values = parse(
        arguments, _OPTIONS, prog="jedax benchmark",
        description="Measure how fast the parts of a search are on this machine, beside NumPy and other packages where "
        "they are installed (pip install 'jedax[compare]'). Takes about two minutes.",
    )  # fmt: skip
    parts = [check_choice("only", part, _PARTS) for part in values["only"] or _PARTS]
    seconds = values["seconds"]
    with nothing_to_save():
        from jedax.bench import speed as measure
        from jedax.search.compile_cache import keep_compiled_programs
        from jedax.store.environment import describe

        keep_compiled_programs()
        began, machine = time.perf_counter(), describe()
        print(f"{machine['processor']}, {machine['cores']} cores, load {os.getloadavg()[0]:.1f}; "
              f"{', '.join(machine['devices'])}; jax {machine['packages']['jax']}, "
              f"native code: {', '.join(map(' '.join, machine['native'].items()))}")  # fmt: skip
        print(_COLUMNS.format("part", "what", "per second", "", "times as fast as"), flush=True)
        found = []
        sources = [measure.growth] if values["growth"] else [measure.PARTS[part] for part in parts]
        for figure in (figure for source in sources for figure in source(seconds)):
            found.append(figure)
            ratios = ", ".join(f"{name} {ratio:,.3g}" for name, ratio in figure.ratios.items())
            row = _COLUMNS.format(figure.part, figure.what, f"{figure.per_second:,.4g}", figure.unit, ratios)
            print(row.rstrip(), flush=True)
        if values["json"]:
            _write(Path(values["json"]), machine, found)
        print(f"{time.perf_counter() - began:.0f} s; other work on the machine makes all of it slower.")


def _write(path: Path, machine: dict[str, Any], figures: list[Any]) -> None:
    rows = [{**dataclasses.asdict(figure), "ratios": figure.ratios} for figure in figures]
    try:
        path.write_text(json.dumps({"machine": machine, "figures": rows}, indent=2) + "\n")
    except OSError as error:
        raise JedaxError(f"json: {error}; choose another file.") from None
