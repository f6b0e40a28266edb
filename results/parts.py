"""What each part of JEDi-X does: the method without it, on mazes, the frozen set, LunarLander and the paper's robots.

    python results/parts.py [--only lunar-lander ...] [--seeds 10] [--report]

Each problem with one part removed or changed is a row of results/parts/rows.csv, with the final best fitness of each of
ten seeds and the git revision. The next command makes the rows that are missing. The paper's mazes have the paper's
budgets, the frozen set (results/frozen.py) 250,000 evaluations, and LunarLander
(benchmarks/independent/lunar_lander.py) 3,000, where JEDi-X has its settings for few evaluations. On the paper's robots
the parts are those of the race; each seed, up to `--seeds`, is a row of results/parts/robots.csv, with 150,000
evaluations.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import frozen
import numpy as np
import pandas
from claims import GOAL, SIGNIFICANT
from keeping import HERE, add_rows, fill_in, of_revisions, rows_of

import jedax
from jedax.bench.grids import CONTROL, MAZES
from jedax.bench.statistics import holm, mann_whitney
from jedax.search.programs import forget_programs

PATH = HERE / "parts" / "rows.csv"
SEEDS, EVALUATIONS, LANDER_EVALUATIONS = 10, 250_000, 3000
WHOLE, LANDER = "nothing", "lunar-lander"
PARTS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "no variation": {"variation_share": 0.0},
    "variation alone": {"variation_share": 1.0},
    "no head start of variation": {"head_start": 0.0},
    "no scouts": {"scout_share": 0.0},
    "no recombination": {"line_share": 0.0},
    "recombination along lines only": {"intermediate_share": 0.0},
    "all ES from the best elite": {"elites": 1},
    "one first step for all ES": {"step_range": (0.15, 0.1501)},
    "one ES of 128": {"pool": 1, "population": 128},
    "restarts do not grow": {"growth": 1},
    "no exploration while the ES waits": {"exploration": 0.0},
}
ON_LANDER = tuple(part for part in PARTS if part != "one ES of 128")  # it has one ES
ELSEWHERE = tuple(part for part in PARTS if not {"growth", "exploration"} & set(PARTS[part]))  # 1 and all they need

ROBOTS = HERE / "parts" / "robots.csv"
ROBOT_EVALUATIONS = 150_000
RACE_PARTS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "no heats": {"starts": 1},
    "no policy gradients": {"gradient_steps": 0},
    "no bold ES": {"bold_step": 0.0},
    "no rivals while the leader goes on": {"scout_share": 0.0},
    "steps are not halved": {"refinements": 0},
    "means of any length": {"longest": 0.0},
    "no variation": {"exploration": 0.0},
}
MARKS = {0: "", 1: " >", -1: " <"}  # of a side of the whole method


def problems() -> dict[str, tuple[str, Any]]:
    """Return the group of each problem, and the problem itself, by its name."""
    found: dict[str, tuple[str, Any]] = {maze: (maze, maze) for maze in MAZES}
    for group, members in (("mazes", frozen.mazes()), ("arms", frozen.arms()), ("functions", frozen.functions())):
        found |= {f"{group}-{number}": (f"frozen {group}", member) for number, member in enumerate(members)}
    return found


def search(part: str, problem: str) -> dict[str, Any]:
    """Return the row of a problem with one part of JEDi-X removed or changed."""
    best = lander(PARTS[part]) if problem == LANDER else run(problem, PARTS[part])
    return {"median": float(np.median(best)), "best": " ".join(f"{value:.6g}" for value in best)}


def run(problem: str, settings: dict[str, Any]) -> list[float]:
    """Return the best fitness of each seed."""
    _, task = problems()[problem]
    budget = None if problem in MAZES else EVALUATIONS
    found = jedax.run("jedi-x", task, evaluations=budget, replicas=SEEDS, seed=0, **settings)
    best = [float(found.best(replica).fitness) for replica in range(SEEDS)]
    forget_programs()
    return best


def lander(settings: dict[str, Any]) -> list[float]:
    """Return the best reward of each seed on LunarLander."""
    sys.path.insert(0, str(HERE.parent / "benchmarks" / "independent"))
    import jedax_side
    import shared
    from lunar_lander import HIGHS, LOWS, evaluate

    best = []
    for seed in range(SEEDS):
        recorder = shared.Recorder(evaluate, LANDER_EVALUATIONS)
        jedax_side.search(recorder, 32, (LOWS, HIGHS), LANDER_EVALUATIONS, seed, **settings)
        best.append(float(recorder.results()["best"]))
    return best


def race(part: str, task: str, seed: int) -> dict[str, Any]:
    """Return the row of a robot with one part of the race removed."""
    robot = jedax.tasks.make(task, normalise=True)
    found = jedax.run("jedi-x", robot, evaluations=ROBOT_EVALUATIONS, seed=seed, **RACE_PARTS[part])
    forget_programs()
    last = found.rows[-1]
    return {
        "best": round(last["max_fitness"], 2), "level": round(last["leader_level"], 2),
        "seconds": round(found.summary["wall_seconds"]),
    }  # fmt: skip


def race_table(rows: pandas.DataFrame) -> str:
    """Return median levels of the leader and medians of the best fitness on each robot, with the number of seeds."""
    groups = dict(list(rows.groupby(["part", "task"])))
    levels = {key: list(group.level) for key, group in groups.items()}
    tasks = [task for task in CONTROL if task in set(rows.task)]
    lines = [f"| without | {' | '.join(tasks)} |", "|---|" + "---:|" * len(tasks)]
    for part in RACE_PARTS:
        marks = sides(part, tasks, levels)
        cells = [_race_cell(groups[part, task], marks[task]) if task in marks else "" for task in tasks]
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _race_cell(rows: pandas.DataFrame, side: int) -> str:
    return f"{rows.level.median():,.0f}, {rows.best.median():,.0f} ({len(rows)}){MARKS[side]}"


def sides(part: str, names: Iterable[str], values: dict[tuple[str, str], list[float]]) -> dict[str, int]:
    """Return whether a changed method ends significantly below (-1) or above (1) the whole one, or neither (0)."""
    known = [name for name in names if {(part, name), (WHOLE, name)} <= set(values)]
    tests = [mann_whitney(values[part, name], values[WHOLE, name]) for name in known]
    found = {}
    for name, test, p in zip(known, tests, holm([test and test.p for test in tests]), strict=True):
        differs = test is not None and p is not None and p < SIGNIFICANT
        found[name] = 0 if not differs else 1 if test.effect > 0.5 else -1
    return found


def table(rows: pandas.DataFrame) -> str:
    """Return medians on the paper's mazes and on LunarLander, and on how many of the frozen problems a part counts."""
    best = {(row.part, row.problem): [float(value) for value in row.best.split()] for row in rows.itertuples()}
    groups = dict.fromkeys(group for group, _ in problems().values())
    lines = [f"| without | {' | '.join([*groups, LANDER])} |", "|---|" + "---:|" * (len(groups) + 1)]
    for part in PARTS:
        found = sides(part, [*problems(), LANDER], best)
        cells = []
        for group in [*groups, LANDER]:
            members = [problem for problem in found if problem == group or problems().get(problem, "")[:1] == (group,)]
            cells.append(_cell(group, part, best, {problem: found[problem] for problem in members}))
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", of_revisions(rows)]) + "\n"


def _cell(group: str, part: str, best: dict[tuple[str, str], list[float]], sides: dict[str, int]) -> str:
    if not sides:
        return ""
    if group.startswith("frozen"):
        below, above = (sum(side == wanted for side in sides.values()) for wanted in (-1, 1))
        return f"{len(sides)} problems" if part == WHOLE else f"{below} below, {above} above"
    values, mark = best[part, group], MARKS[sides[group]]
    if group == LANDER:
        return f"{np.median(values):.0f} ({min(values):.0f} to {max(values):.0f}){mark}"
    arrived = sum(value >= GOAL for value in values)
    return f"{np.median(values):.1f}{'' if arrived == len(values) else f' ({arrived} of {len(values)})'}{mark}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", choices=[*problems(), LANDER, *CONTROL], metavar="PROBLEM", help="default: all"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--report", action="store_true", help="only write the table anew")
    options = parser.parse_args()
    if not options.report:
        keys = [{"part": part, "problem": problem} for problem in problems() for part in ELSEWHERE]
        keys += [{"part": part, "problem": LANDER} for part in ON_LANDER]
        keys = [key for key in keys if options.only is None or key["problem"] in options.only]
        add_rows(PATH, keys, search)
        robots = [task for task in CONTROL if options.only is None or task in options.only]
        every = itertools.product(range(options.seeds), robots, RACE_PARTS)
        add_rows(ROBOTS, [{"part": part, "task": task, "seed": seed} for seed, task, part in every], race)
    if rows := rows_of(PATH):
        fill_in(HERE.parent / "docs" / "explanation" / "jedi-x.md", "parts", table(pandas.DataFrame(rows)))
    if rows := rows_of(ROBOTS):
        print(race_table(pandas.DataFrame(rows)))


if __name__ == "__main__":
    main()
