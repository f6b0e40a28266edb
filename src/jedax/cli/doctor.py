"""The command `jedax doctor`: versions and devices, the state of directories, and the speed of the machine."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jedax.cli.options import Option, nothing_to_save, parse
from jedax.errors import JedaxError, check_choice, fail, printable

_PARTS = ("simulator", "repertoire", "es", "gp", "run")
_OPTIONS = {
    "directories": Option("Directories whose runs are checked.", tuple[str, ...], (), words="[DIR...]"),
    "speed": Option("Measure how fast the parts of a search are, beside NumPy and other packages if they are installed "
                    "(pip install 'jedax[compare]'). Takes about two minutes.", bool, False),
    "only": Option("With --speed: parts to measure: " + ", ".join(_PARTS) + ".", tuple[str, ...], ()),
    "growth": Option("With --speed: show how times grow with cells, batch and parameters instead.", bool, False),
    "seconds": Option("With --speed: seconds to spend on each number; the fastest call counts.", float, 0.5),
    "json": Option("With --speed: also write all numbers to this file.", str | None),
}  # fmt: skip
_COLUMNS = "{:<11}{:<58}{:>13} {:<14}{}"


def doctor(arguments: list[str]) -> None:
    """Show versions and devices, check directories, or measure speeds."""
    values = parse(arguments, _OPTIONS, prog="jedax doctor",
                   description="Show versions, devices, and which native code is in use; with directories of runs "
                   "(jedax doctor DIR...): which of their files are intact, and what can be rebuilt.")  # fmt: skip
    directories = values.pop("directories")
    given = [name for name, value in values.items() if value != _OPTIONS[name].default]
    if directories and given:
        received = " ".join(directories)
        raise fail(given[0], expected="no directories beside it", received=received, remedy="leave one of them out")
    if directories:
        check_directories(directories)
    elif values["speed"]:
        _measure(values)
    elif given:
        raise fail(given[0], expected="--speed beside it", received="none", remedy="add --speed")
    else:
        _show_machine()


def check_directories(directories: Sequence[str]) -> None:
    """Show the state of each file of the runs at and below some directories."""
    with nothing_to_save():
        from jedax.store.checkup import check_directory
        from jedax.store.directory import runs_below

        found, missing = [], []
        for path in directories:
            runs = runs_below(Path(path))
            found += [check_directory(run) for run in runs]
            missing += [] if runs else [path]
    for checkup in found:
        lines = [f"{checkup.path}:"]
        lines += [f"  {f.state:<9}{f.name}{f.reason and f': {f.reason}'}" for f in checkup.findings]
        for line in [*lines, *(f"  {sentence}" for sentence in checkup.advice)]:
            print(printable(line))
    for path in missing:
        check_directory(Path(path))  # an error that says what is there instead
    if damaged := [str(checkup.path) for checkup in found if not checkup.is_sound]:
        raise JedaxError(f"doctor: files are damaged or missing in {', '.join(damaged)}.")


def _show_machine() -> None:
    from jedax.store.environment import describe

    facts = describe()
    facts |= {f"{name} version": version or "not installed" for name, version in facts.pop("packages").items()}
    facts |= {f"native {kernel}": status for kernel, status in facts.pop("native").items()}
    facts["devices"] = ", ".join(facts["devices"])
    for name, value in facts.items():
        if name not in ("command", "started"):
            print(f"{name.replace('_', ' '):<20}{'unknown' if value is None else value}")


def _measure(values: dict[str, Any]) -> None:
    parts = [check_choice("only", part, _PARTS) for part in values["only"] or _PARTS]
    if values["growth"] and values["only"]:
        raise fail("only", expected="none beside --growth", received=", ".join(values["only"]), remedy="leave it out")
    if not 0 <= values["seconds"] <= 3600:
        raise fail("seconds", expected="0 to 3600", received=values["seconds"], remedy="change it")
    with nothing_to_save(compiles=True):
        from jedax.bench import speed
        from jedax.store.environment import describe

        began, machine = time.perf_counter(), describe()
        print(f"{machine['processor']}, {machine['cores']} cores, load {os.getloadavg()[0]:.1f}; "
              f"{', '.join(machine['devices'])}; jax {machine['packages']['jax']}, "
              f"native code: {', '.join(map(' '.join, machine['native'].items()))}")  # fmt: skip
        print(_COLUMNS.format("part", "what", "per second", "", "times as fast as"), flush=True)
        found = []
        for source in [speed.growth] if values["growth"] else [speed.PARTS[part] for part in parts]:
            for one in source(values["seconds"]):
                found.append({**dataclasses.asdict(one), "ratios": one.ratios})
                ratios = ", ".join(f"{name} {ratio:,.3g}" for name, ratio in one.ratios.items())
                row = _COLUMNS.format(one.part, one.what, f"{one.per_second:,.4g}", one.unit, ratios)
                print(row.rstrip(), flush=True)
        if values["json"]:
            try:
                text = json.dumps({"machine": machine, "figures": found}, indent=2)
                Path(values["json"]).write_text(text + "\n")
            except OSError as error:
                raise JedaxError(f"json: {error}; choose another file.") from None
        print(f"{time.perf_counter() - began:.0f} s; other work on the machine makes all of it slower.")
