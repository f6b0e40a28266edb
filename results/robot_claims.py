"""The paper's claims about control tasks, one by one, judged by the searches of results/robots.py.

    python results/robots.py --report

writes the table into results/README.md. The searches have 5 % of the paper's budgets (`BUDGETS`). With three seeds of
each method no test is significant, so "A ends above B" holds where every seed of A ends above every seed of B. Of two
equal methods with three seeds each, one ends above the other in one of ten cases. Methods with fewer than three seeds
are not judged.
"""

from __future__ import annotations

import numpy as np
import pandas
from claims import ABOVE, ALIKE, BELOW, JUDGED, UNKNOWN, Claim, judged_by

from jedax.bench.grids import CONTROL
from jedax.tasks import make

SEEDS = 3
HALFCHEETAH, WALKER2D, ANT_MAZE = CONTROL
BUDGETS = {HALFCHEETAH: 250_000, WALKER2D: 500_000, ANT_MAZE: 500_000}
# Median final best fitness in the paper's Table 1.
PAPER = {"jedi tuned": (3186, 4353, -2886), "jedi decay": (3248, 3916, -2958)}
CLAIMS = (
    Claim("ends above MAP-Elites", ("map-elites",), CONTROL, column="best"),
    Claim("ends above CMA-ME (imp and opt)", ("cma-me imp", "cma-me opt"), CONTROL, column="best"),
    Claim("ends above CMA-MAE", ("cma-mae",), CONTROL, column="best"),
    Claim("ends above the ES, restarted or not, on HalfCheetah", ("es", "es-restart"), (HALFCHEETAH,), column="best"),
    Claim("ends level with the ES on Walker2D and AntMaze", ("es", "es-restart"), (WALKER2D, ANT_MAZE), ALIKE, "best"),
    Claim("ends level with PGA-ME on HalfCheetah", ("pga-me",), (HALFCHEETAH,), ALIKE, "best"),
    Claim("ends above PGA-ME on Walker2D and AntMaze", ("pga-me",), (WALKER2D, ANT_MAZE), column="best"),
    Claim("covers more than the ES on HalfCheetah and Walker2D", ("es",), (HALFCHEETAH, WALKER2D), ABOVE, "coverage"),
)


def table(searches: dict[int, pandas.DataFrame]) -> str:
    """Return the table of claims as Markdown.

    Args:
        searches: A row for each search, with its task, method, seed, best fitness and coverage, by the evaluations.
    """
    rows = pandas.concat(
        each[each.task == task] for task in CONTROL if (each := searches.get(BUDGETS[task])) is not None
    )
    shares = ", ".join(f"{task} {BUDGETS[task] / make(task).default_evaluations:.0%}" for task in CONTROL)
    lines = [f"| JEDi on the control tasks, with a share of the paper's budgets ({shares}) | {' | '.join(JUDGED)} |"]
    lines.append("|---|" + "---|" * len(JUDGED))
    for claim in CLAIMS:
        tests = [(task, other) for task in claim.tasks for other in claim.others]
        found = (
            [(task, outcome(rows, task, judged, other, claim.column)) for task, other in tests] for judged in JUDGED
        )
        lines.append(f"| {claim.text} | {' | '.join(judged_by(each, claim.expected) for each in found)} |")
    lines.append(f"| median on {', '.join(CONTROL)} (seeds) | {' | '.join(medians(rows, label) for label in JUDGED)} |")
    paper = ("; ".join(f"{median:,}" for median in PAPER.get(label, ())) for label in JUDGED)
    lines.append(f"| the paper's median, with its whole budget | {' | '.join(paper)} |")
    return "\n".join(lines) + "\n"


def outcome(rows: pandas.DataFrame, task: str, judged: str, other: str, column: str) -> str:
    """Return whether all seeds of a method lie above, or all below, those of another one; unknown with few seeds."""
    ours, theirs = (values(rows, task, method, column) for method in (judged, other))
    if min(len(ours), len(theirs)) < SEEDS:
        return UNKNOWN
    if ours.min() > theirs.max():
        return ABOVE
    return BELOW if ours.max() < theirs.min() else ALIKE


def values(rows: pandas.DataFrame, task: str, method: str, column: str) -> np.ndarray:
    """Return a column of all seeds of a method on a task."""
    return np.asarray(rows[(rows.task == task) & (rows.method == method)][column].dropna(), float)


def medians(rows: pandas.DataFrame, method: str) -> str:
    """Return the median of a method on each task, with the number of seeds."""
    found = [values(rows, task, method, "best") for task in CONTROL]
    return "; ".join(f"{np.median(each):,.0f} ({len(each)})" if len(each) else UNKNOWN for each in found)
