"""MAP-Elites, CMA-ME and CMA-MAE tuned on the problems that JEDi-X was developed on, 100 settings each.

    python results/tuning.py [--methods map-elites cma-me cma-mae "variation of jedi-x"] [--settings 100] [--report]

Settings are drawn at random from the ranges below, the method's defaults come first. Each is run on the development
problems of problems.py, three seeds from 100 on side by side, 250,000 evaluations. Each finished setting is a row of
results/beyond/tuning/METHOD.csv with the median fitness on each problem. The next command makes the rows that are
missing. The best setting has the lowest mean rank over the problems.

`variation of jedi-x` is MAP-Elites with the variation operator of JEDi-X.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import pandas
import problems
from keeping import HERE, add_rows, fill_in, rows_of

import jedax
from jedax.bench.grids import Entry
from jedax.search.programs import forget_programs

EVALUATIONS, REPLICAS, FIRST_SEED, DRAWN_FROM, SETTINGS = 250_000, 3, 100, 20261124, 100
FOLDER = HERE / "beyond" / "tuning"


def _log(chance: random.Random, low: float, high: float) -> float:
    return float(f"{low * (high / low) ** chance.random():.3g}")


def _map_elites(chance: random.Random) -> dict[str, Any]:
    return {
        "offspring": chance.choice((16, 32, 64, 128, 256)),
        "iso_sigma": _log(chance, 0.005, 1.0),
        "line_sigma": chance.choice((0.0, _log(chance, 0.05, 1.0))),
    }


def _emitters(chance: random.Random) -> dict[str, Any]:
    return {
        "pool": chance.choice((1, 2, 4, 8, 15)),
        "population": chance.choice((8, 16, 32, 64)),
        "step_size": _log(chance, 0.02, 1.0),
        "elite_ratio": chance.choice((0.25, 0.5)),
        "es": chance.choice(("sep-cma-es", "cma-es")),
        "ranker": chance.choice(("2imp", "imp", "obj", "rd")),
        "restart_tolerance": chance.choice((1e-9, 1e-3, 1.0)),
    }


def _with_thresholds(chance: random.Random) -> dict[str, Any]:
    return {**_emitters(chance), "ranker": "imp", "learning_rate": _log(chance, 0.001, 1.0)}


def _variation(chance: random.Random) -> dict[str, Any]:
    low = _log(chance, 0.02, 0.5)
    return {
        "variation_share": 1.0,
        "population": chance.choice((16, 32, 64, 128)),
        "line_share": chance.choice((0.25, 0.5, 0.75, 0.9)),
        "intermediate_share": chance.choice((0.0, 0.5, 1.0)),
        "line": (_log(chance, 0.001, 0.1), _log(chance, 0.1, 1.5)),
        "variation": (low, float(f"{low * _log(chance, 2, 50):.3g}")),
    }


DRAWS = {"map-elites": _map_elites, "cma-me": _emitters, "cma-mae": _with_thresholds, "variation of jedi-x": _variation}
METHODS = {name: "jedi-x" if name == "variation of jedi-x" else name for name in DRAWS}
FIRST: dict[str, dict[str, Any]] = {name: {} for name in DRAWS} | {"variation of jedi-x": {"variation_share": 1.0}}


def drawn(name: str, number: int) -> list[dict[str, Any]]:
    """Return the settings of a method that are tried, the defaults first."""
    chance = random.Random(f"{DRAWN_FROM} {name}")
    return [FIRST[name], *(DRAWS[name](chance) for _ in range(number - 1))]


def tuned(name: str, rows: pandas.DataFrame | None = None) -> Entry:
    """Return the best setting of a method: that with the lowest mean rank over the problems."""
    best = best_number(pandas.DataFrame(rows_of(_path(name))) if rows is None else rows)
    return Entry(f"{name} tuned", METHODS[name], None, drawn(name, best + 1)[best])


def all_tuned() -> tuple[Entry, ...]:
    """Return the best setting of each method of which all settings were tried."""
    return tuple(tuned(name) for name in METHODS if len(rows_of(_path(name))) >= SETTINGS)


def best_number(rows: pandas.DataFrame) -> int:
    """Return the number of the best setting."""
    return int(rows.number[rows[_titles()].rank(ascending=False).mean(axis=1).idxmin()])


def table() -> str:
    """Return the medians of each method with its defaults and with the best of its settings, and that setting."""
    lines = [
        f"| method | settings | {' | '.join(_titles())} | setting |",
        "|---|" + "---:|" * (len(_titles()) + 1) + "---|",
    ]
    for name in DRAWS:
        rows = pandas.DataFrame(rows_of(_path(name)))
        if rows.empty:
            continue
        best = best_number(rows)
        for tried, number in ((1, 0), (len(rows), best)):
            row, changes = rows[rows.number == number].iloc[0], drawn(name, number + 1)[number]
            values = " | ".join(f"{row[title]:.4g}" for title in _titles())
            shown = ", ".join(f"{key} {value}" for key, value in changes.items()) or "defaults"
            lines.append(f"| {name} | {tried} | {values} | {shown} |")
    return "\n".join(lines) + "\n"


def _titles() -> list[str]:
    return [problem.rpartition("/")[2].rpartition(":")[2].removesuffix(".yaml") for problem in problems.DEVELOPMENT]


def _path(name: str) -> Path:
    return FOLDER / f"{name.replace(' ', '-')}.csv"


def search(number: int, name: str) -> dict[str, Any]:
    """Return the row of one setting of a method."""
    changes, found = drawn(name, number + 1)[number], {}
    for title, problem in zip(_titles(), problems.DEVELOPMENT, strict=True):
        task = jedax.tasks.make(problem)
        config = Entry(name, METHODS[name], None, changes).config(problem)
        run = jedax.run(config, task, evaluations=EVALUATIONS, replicas=REPLICAS, seed=FIRST_SEED)
        best = sorted(run.best(replica).fitness for replica in range(REPLICAS))
        found[title] = float(f"{best[REPLICAS // 2]:.6g}")
        forget_programs()
    return {**found, "settings": str(changes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=tuple(DRAWS), default=list(DRAWS))
    parser.add_argument("--settings", type=int, default=SETTINGS)
    parser.add_argument("--report", action="store_true", help="only write the table anew")
    options = parser.parse_args()
    for name in () if options.report else options.methods:
        keys = ({"number": number} for number in range(options.settings))
        add_rows(_path(name), keys, functools.partial(search, name=name))
    fill_in(HERE / "beyond" / "README.md", "tuning", table())


if __name__ == "__main__":
    main()
