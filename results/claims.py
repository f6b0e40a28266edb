"""The paper's claims, one by one, judged by the results beside this file.

    python results/claims.py

writes the tables of claims into results/README.md, two lines into README.md, tables into docs/guides/when.md and
docs/explanation/jedi-x.md, and every test into results/claims.csv. Nothing is run: the numbers come from `seeds.csv`,
`reached.csv` and `curves.csv` of the folders that results/paper_mazes.py fills. Claims about control tasks are in
results/robot_claims.py.

A claim "A is above B" holds on a maze if a two-sided Mann-Whitney U test has p < 0.05 after Holm's correction for all
tests of A in results/claims.csv, and A has the higher ranks. The test is of the final best fitness, or of what the
claim names in `column`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas
from keeping import HERE, fill_in
from scipy.stats import fisher_exact

from jedax.bench.grids import MAZES
from jedax.bench.statistics import holm, mann_whitney
from jedax.store.files import write_atomic

JUDGED = ("jedi decay", "jedi tuned", "jedi-uniform", "jedi-x")
SHORT: dict[str, str] = dict(zip(MAZES, ("A", "B", "C", "Quad B"), strict=True))
LABELS = (
    *("jedi-x", "jedi-uniform", "jedi decay", "jedi tuned", "es", "es-restart"),
    *("map-elites", "cma-me imp", "cma-me opt", "cma-mae", "pga-me"),
)
WHEN = HERE.parent / "docs" / "guides" / "when.md"
JEDI_X = HERE.parent / "docs" / "explanation" / "jedi-x.md"
SIGNIFICANT = 0.05
GOAL = -250
ABOVE, ALIKE, BELOW, UNKNOWN = ">", "≈", "<", "–"
OPPOSITE = {ABOVE: {BELOW}, ALIKE: {ABOVE, BELOW}, BELOW: {ABOVE}}
# Median final best fitness in the paper: Table 1, and the table of additional baselines for CMA-ME Opt.
PAPER = {
    "jedi tuned": (-120, -177, -180, -194),
    "jedi decay": (-117, -176, -186, -189),
    "es": (-281, -319, -262, -319),
    "es-restart": (-280, -320, -262, -319),
    "map-elites": (-136, -202, -206, -210),
    "cma-me imp": (-138, -190, -236, -219),
    "cma-me opt": (-132, -197, -262, None),
    "cma-mae": (-125, -182, -167, -196),
    "pga-me": (-150, -207, -211, -213),
}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: what JEDi is compared with, where, and what is to come out."""

    text: str
    others: tuple[str, ...]
    tasks: tuple[str, ...] = MAZES
    expected: str = ABOVE
    column: str = "final_fitness"  # of `rows`


SIMPLE = (MAZES[0], MAZES[1], MAZES[3])
CLAIMS = (
    Claim("ends above the ES, restarted or not", ("es", "es-restart")),
    Claim("ends above MAP-Elites on A, B and Quad B", ("map-elites",), SIMPLE),
    Claim("ends above CMA-ME (imp and opt)", ("cma-me imp", "cma-me opt")),
    Claim("ends above CMA-MAE on A, B and Quad B", ("cma-mae",), SIMPLE),
    Claim("ends below CMA-MAE on C", ("cma-mae",), (MAZES[2],), BELOW),
    Claim("ends above PGA-ME on A, B and Quad B", ("pga-me",), SIMPLE),
    Claim("ends above MAP-Elites and PGA-ME on C, too", ("map-elites", "pga-me"), (MAZES[2],)),
    Claim("reaches the goal later than MAP-Elites", ("map-elites",), MAZES, ABOVE, "evaluations"),
    Claim("covers the descriptor space more slowly than MAP-Elites", ("map-elites",), MAZES, BELOW, "mean_coverage"),
)

_ON_FITNESS = {claim.text for claim in CLAIMS if claim.column == "final_fitness"}


@dataclass(frozen=True)
class Test:
    """One test: a judged method against another one on a maze."""

    claim: str
    judged: str
    other: str
    task: str
    expected: str
    p: float
    effect: float  # probability that a seed of the judged method has the higher value
    p_holm: float = 1.0

    @property
    def outcome(self) -> str:
        """Whether the values of the judged method lie above, below or not distinguishably."""
        if self.p_holm >= SIGNIFICANT:
            return ALIKE
        return ABOVE if self.effect > 0.5 else BELOW


def mean_of_curve(values: pandas.Series, evaluations: Sequence[float] | np.ndarray) -> float:
    """Return the mean over the evaluations that a curve spans."""
    return float(np.trapezoid(values, evaluations) / np.ptp(evaluations))


@cache
def rows(folder: str) -> pandas.DataFrame:
    """Return the seeds of a folder of results; empty if there are none.

    `evaluations` are those until the goal is reached, `mean_coverage` is the mean of the coverage over the budget.
    """
    path, key = HERE / folder / "seeds.csv", ["task", "label", "seed"]
    if not path.exists():
        return pandas.DataFrame(columns=[*key, "final_fitness", "mean_coverage", "evaluations"])
    reached = pandas.read_csv(HERE / folder / "reached.csv")
    reached = reached[reached.fitness == GOAL].drop(columns="fitness")
    curves = pandas.read_csv(HERE / folder / "curves.csv").rename(columns={"method": "label"})
    means = curves.groupby(key)[["evaluations", "coverage"]].apply(
        lambda curve: mean_of_curve(curve.coverage, curve.evaluations.to_numpy())
    )
    return (
        pandas.read_csv(path)
        .merge(reached, on=key, how="left")
        .merge(means.rename("mean_coverage"), on=key, how="left")
    )


def values(task: str, label: str, column: str = "final_fitness", folder: str = "paper-mazes") -> np.ndarray:
    """Return the values of all seeds of a method on a maze."""
    found = rows(folder)
    return np.asarray(found[(found.task == task) & (found.label == label)][column], float)


def tests(judged: str) -> list[Test]:
    """Return all tests of a method, corrected together by Holm's method."""
    found = []
    for claim in CLAIMS:
        for other in claim.others:
            for task in claim.tasks:
                ours, theirs = (values(task, label, claim.column) for label in (judged, other))
                test = mann_whitney(list(ours), list(theirs))
                if test is not None:
                    found.append(Test(claim.text, judged, other, task, claim.expected, test.p, test.effect))
    return holm_corrected(found)


def holm_corrected(found: Sequence[Test]) -> list[Test]:
    """Return tests, corrected together by Holm's method."""
    return [replace(test, p_holm=p) for test, p in zip(found, holm([test.p for test in found]), strict=True)]


def verdict(found: Sequence[Test]) -> str:
    """Return a verdict on the tests of a claim, and the outcome on each maze unless all are alike."""
    return judged_by([(SHORT[test.task], test.outcome) for test in found], found[0].expected if found else "")


def judged_by(outcomes: Sequence[tuple[str, str]], expected: str) -> str:
    """Return a verdict on a claim, and the outcomes on each task unless all are as expected.

    Args:
        outcomes: The name of the task and the outcome of each test.
        expected: The outcome that the claim expects.
    """
    if all(outcome == UNKNOWN for _, outcome in outcomes):
        return "not tested"
    by_task: dict[str, list[str]] = {}
    for task, outcome in outcomes:
        by_task.setdefault(task, []).append(outcome)
    where = ", ".join(f"{task} {'/'.join(dict.fromkeys(each))}" for task, each in by_task.items())
    marks = {outcome for _, outcome in outcomes}
    if marks == {expected}:
        return "not contradicted" if expected == ALIKE else "**holds**"
    if OPPOSITE[expected] & marks:
        return f"**fails** ({where})"
    return f"{'holds in part' if expected in marks else '**not shown**'} ({where})"


def arrivals(label: str, folder: str = "paper-mazes") -> str:
    """Return how many seeds of a method reach the goal on each maze."""
    counts = []
    for task in MAZES:
        final = values(task, label, folder=folder)
        if not len(final):
            return "not tested"
        counts.append(f"{int((final >= GOAL).sum())} of {len(final)}")
    return ", ".join(counts)


def medians(label: str) -> str:
    """Return the medians of a method and how far they are from the paper's."""
    paper, parts = PAPER.get(label), []
    for number, task in enumerate(MAZES):
        found = values(task, label)
        if not len(found):
            return "not tested"
        median = np.median(found)
        parts.append(f"{median:.0f}" + ("" if paper is None else f" ({round(median - paper[number]):+d})"))
    return ", ".join(parts)


def table() -> str:
    """Return the table of claims as Markdown."""
    found = {label: tests(label) for label in JUDGED}
    lines = [f"| JEDi, on the mazes | {' | '.join(JUDGED)} |", "|---|" + "---|" * len(JUDGED)]
    for claim in CLAIMS:
        cells = [verdict([test for test in found[label] if test.claim == claim.text]) for label in JUDGED]
        lines.append(f"| {claim.text} | {' | '.join(cells)} |")
    lines.append(f"| seeds that reach the goal on A, B, C, Quad B | {' | '.join(map(arrivals, JUDGED))} |")
    lines.append(f"| median on A, B, C, Quad B (difference from the paper's) | {' | '.join(map(medians, JUDGED))} |")
    return "\n".join(lines) + "\n"


def about_parts() -> str:
    """Return the table of claims about the parts of JEDi and about other methods as Markdown."""
    lines = ["| claim of the paper | verdict | by |", "|---|---|---|"]
    for text, (outcome, evidence) in {
        "The ES cannot solve the mazes, not even with restarts": _es(),
        "The decaying alpha ends above a tuned one on A, B and Quad B": _decay(),
        "The weighted GP chooses better targets than the standard one": _weighted(),
        "Uniform targets do well on C": _uniform(),
        "Every alpha reaches the goal on B": _alpha_b(),
        "Low alphas get stuck on Quad B": _alpha_quad_b(),
        "Several ES side by side reach more than one": _pool(),
        "A learning rate of 0.1 is best for CMA-MAE": _learning_rate(),
    }.items():
        lines.append(f"| {text} | {outcome} | {evidence} |")
    return "\n".join(lines) + "\n"


def _between(folder: str, one: str, other: str, tasks: Sequence[str]) -> tuple[str, str]:
    """Return whether one method ends above another one on some mazes, corrected for these tests."""
    found = []
    for task in tasks:
        test = mann_whitney(list(values(task, one, folder=folder)), list(values(task, other, folder=folder)))
        if test is None:
            return "not tested", ""
        found.append(Test("", one, other, task, ABOVE, test.p, test.effect))
    found = holm_corrected(found)
    ps = ", ".join(f"{SHORT[t.task]}: A = {t.effect:.2f}, p = {t.p_holm:.2g}" for t in found)
    return verdict(found), ps


def _es() -> tuple[str, str]:
    counts = {label: arrivals(label) for label in ("es", "es-restart")}
    mostly = all(
        (values(task, label) >= GOAL).mean() < 0.5 for task in MAZES for label in counts if len(values(task, label))
    )
    evidence = "; ".join(f"{label} reaches the goal in {text}" for label, text in counts.items())
    return ("**holds**" if mostly else "**fails**") + " for the median seed", evidence


def _decay() -> tuple[str, str]:
    return _between("paper-mazes", "jedi decay", "jedi tuned", SIMPLE)


def _weighted() -> tuple[str, str]:
    return _between("ablations/targets", "targets=weighted-gp", "targets=gp", MAZES)


def _uniform() -> tuple[str, str]:
    return _between("ablations/targets", "targets=uniform", "targets=weighted-gp", (MAZES[2],))


def _arrived(folder: str, task: str) -> dict[str, tuple[int, int]]:
    """Return how many seeds of how many reach the goal, by label."""
    found = rows(folder)
    labels = found[found.task == task].label.unique()
    final = {label: values(task, label, folder=folder) for label in labels}
    return {label: _count(each) for label, each in final.items()}


def _count(final: np.ndarray) -> tuple[int, int]:
    """Return how many seeds of how many reach the goal."""
    return int((final >= GOAL).sum()), len(final)


def _alpha_b() -> tuple[str, str]:
    counts = _arrived("ablations/alpha", MAZES[1])
    if not counts:
        return "not tested", ""
    holds = all(arrived > number / 2 for arrived, number in counts.values())
    return ("**holds**" if holds else "**fails**") + " for the median seed", _counted(counts)


def _alpha_quad_b() -> tuple[str, str]:
    counts = _arrived("ablations/alpha", MAZES[3])
    if not counts:
        return "not tested", ""
    arrived = [
        np.sum([counts[label] for label in labels], axis=0)
        for labels in (("alpha=0.0", "alpha=0.1"), ("alpha=0.5", "alpha=0.7", "alpha=0.9"))
    ]
    p = _fisher(*arrived)
    outcome = "**holds**" if _is_below(*arrived, p) else "**not shown**"
    return outcome, f"{_counted(counts)}; 0 and 0.1 against 0.5 to 0.9, Fisher's exact test: p = {p:.2g}"


def _fisher(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return p of Fisher's exact test of two counts, each with the number of which it is a part."""
    return float(np.asarray(fisher_exact([[part, whole - part] for part, whole in (one, other)]))[1])


def _is_below(one: tuple[int, int], other: tuple[int, int], p: float) -> bool:
    """Return whether the first of two counts is the smaller share and the test between them is significant."""
    return p < SIGNIFICANT and one[0] / one[1] < other[0] / other[1]


def _counted(counts: dict[str, tuple[int, int]]) -> str:
    texts = (f"{label.partition('=')[2] or label}: {arrived}/{number}" for label, (arrived, number) in counts.items())
    return "seeds that reach the goal: " + ", ".join(texts)


def _in_all(holds: Sequence[bool], in_none: str) -> str:
    """Return the verdict on a claim that was tested several times."""
    return "**holds**" if all(holds) else "holds in part" if any(holds) else in_none


def _pool() -> tuple[str, str]:
    found = rows("ablations/pool")
    if found.empty:
        return "not tested", ""
    pools = found.label.str.partition("=")[2].astype(int)
    counts = {size: _count(np.asarray(each)) for size, each in found.final_fitness.groupby(pools)}
    several = [size for size in counts if size > 1]
    corrected = dict(zip(several, holm([_fisher(counts[1], counts[size]) for size in several]), strict=True))
    holds = [_is_below(counts[1], counts[size], p) for size, p in corrected.items()]
    outcome = _in_all(holds, "**not shown**")
    evidence = _counted({str(size): count for size, count in counts.items()}) + ", on all mazes with both alphas"
    ps = ", ".join(f"{size}: p = {p:.2g}" for size, p in corrected.items())
    return outcome, f"{evidence}; against 1, Fisher's exact test: {ps}"


def _learning_rate() -> tuple[str, str]:
    found = rows("ablations/learning-rate")
    if found.empty:
        return "not tested", ""
    best = {}
    for task in MAZES:
        each = found[found.task == task].groupby("label", sort=False).final_fitness.median()
        best[SHORT[task]] = ", ".join(label.partition("=")[2] for label in each[each == each.max()].index)
    holds = [("0.1" in text.split(", ")) for text in best.values()]
    evidence = "highest median: " + "; ".join(f"{maze}: {rates}" for maze, rates in best.items())
    return _in_all(holds, "**fails**"), evidence


def with_arrivals(final: Sequence[float] | np.ndarray) -> str:
    """Return the median of the final best fitness, and how many of the seeds reach the goal."""
    return "{:.0f} ({} of {})".format(np.median(final), *_count(np.asarray(final)))


def known(task: str, label: str, column: str) -> str:
    """Return the median of a column on a maze as text; empty without seeds."""
    found = values(task, label, column)
    if not len(found):
        return ""
    median = np.median(found)
    if column == "evaluations":
        return f"{median:,.0f}" if np.isfinite(median) else "most never"
    return with_arrivals(found)


def medians_of_all(column: str, labels: Sequence[str]) -> str:
    """Return a table of methods and mazes."""
    lines = [f"| method | {' | '.join(SHORT.values())} |", "|---|" + "---:|" * len(MAZES)]
    lines += [f"| {label} | {' | '.join(known(task, label, column) for task in MAZES)} |" for label in labels]
    return "\n".join(lines) + "\n"


def beside_the_paper() -> str:
    """Return the medians of a few methods, and the best of the paper's."""
    best = [max(row[number] for row in PAPER.values() if row[number] is not None) for number in range(len(MAZES))]
    few = medians_of_all("final_fitness", ("jedi-x", "jedi-uniform", "map-elites", "cma-mae"))
    return f"{few}| paper | {' | '.join(map(str, best))} |\n"


def arrivals_compared(judged: str) -> list[Test]:
    """Return Fisher's exact tests of how many seeds reach the goal, corrected together by Holm's method."""
    found = []
    for test in tests(judged):
        if test.claim in _ON_FITNESS:
            ours, theirs = (_count(values(test.task, label)) for label in (judged, test.other))
            effect = 0.5 + (ours[0] / ours[1] - theirs[0] / theirs[1]) / 2
            found.append(replace(test, p=_fisher(ours, theirs), effect=effect))
    return holm_corrected(found)


def compared() -> str:
    """Return two tables: where the judged methods end above other methods, and where more of their seeds arrive."""
    fitness = {judged: [test for test in tests(judged) if test.claim in _ON_FITNESS] for judged in JUDGED}
    arrivals = {judged: arrivals_compared(judged) for judged in JUDGED}
    return f"{_outcomes('final fitness', fitness)}\n{_outcomes('seeds that reach the goal', arrivals)}"


def _outcomes(head: str, found: dict[str, list[Test]]) -> str:
    """Return a table of the outcomes on the four mazes, one row for each other method."""
    lines = [f"| {head}, against | {' | '.join(found)} |", "|---|" + "---|" * len(found)]
    for other in sorted({test.other for each in found.values() for test in each}):
        marks = [{test.task: test.outcome for test in each if test.other == other} for each in found.values()]
        lines.append(f"| {other} | {' | '.join(' '.join(of[task] for task in MAZES if task in of) for of in marks)} |")
    return "\n".join(lines) + "\n"


def in_short() -> str:
    """Return two lines for the README."""
    ours, best = tests("jedi decay"), tests("jedi-x")
    texts = []
    for label, found in (("The paper's JEDi (`jedi`)", ours), ("`jedi-x`", best)):
        fitness = [test for test in found if test.claim in _ON_FITNESS]
        of = f"{len(fitness)} tests against the paper's baselines on its mazes"
        words = {ABOVE: "above", BELOW: "below", ALIKE: "not distinguishable"}
        counts = {mark: sum(test.outcome == mark for test in fitness) for mark in words}
        texts.append(f"{label}: " + ", ".join(f"{words[m]} in {n}" for m, n in counts.items() if n) + f" of {of}.")
    return "\n".join(f"- {text}" for text in texts) + "\n"


def parts() -> dict[tuple[Path, str], str]:
    """Return what stands on which page, by the name of its place."""
    return {
        (HERE / "README.md", "claims"): table(),
        (HERE / "README.md", "claims-parts"): about_parts(),
        (HERE.parent / "README.md", "claims"): in_short(),
        (JEDI_X, "mazes"): beside_the_paper(),
        (WHEN, "mazes"): medians_of_all("final_fitness", LABELS),
        (WHEN, "mazes-tests"): compared(),
        (WHEN, "mazes-soon"): medians_of_all("evaluations", LABELS),
    }


def main() -> None:
    for (page, name), text in parts().items():
        fill_in(page, name, text)
    found = pandas.DataFrame([vars(test) | {"outcome": test.outcome} for label in JUDGED for test in tests(label)])
    write_atomic(HERE / "claims.csv", found.to_csv(index=False, float_format="%.4g"))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
