"""COCO's suites bbob, bbob-constrained and bbob-mixint: jedax beside pycma.

    python benchmarks/independent/bbob.py [--dims 2 5 20] [--functions 1 2 ...] [--instances 1 2 ...] [--workers 2]
    python benchmarks/independent/bbob.py --suite bbob-constrained --dims 5 --functions 1 2 3 --instances 1 2 3
    python benchmarks/independent/bbob.py --report [--dims 5] [--instances 1 2 3] [--at 200 2000] [--ecdf ecdf.png]

Each row is one search on one (function, dimension, instance). `reached` lists the evaluation at which each of 51
targets, f_opt + 10**t with t from 2 to -8, was first reached; targets that were not reached are left out. A search ends
with its budget or with the last target. With constraints, one evaluation is that of the function and of all
constraints, and only feasible points reach targets.

Descriptors, which only jedax uses: a fixed random projection of x on two dimensions, in which the suite's box lies
within -1 to 1.
Both: on bbob they begin at a uniform random point in [-4, 4] with a step size of 2 and no bounds.
pycma: `fmin2` with BIPOP restarts, each from another such point.
On the other suites its bounds are the box, and it starts from COCO's initial solution with a step size of 0.2 box
widths, by `fmin_con2` with constraints and with `integer_variables` where some parameters are integers.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cma
import cocoex
import jedax_side
import numpy as np
import shared
from scipy.stats import wilcoxon

TARGETS = 10 ** np.linspace(2, -8, 51)
ALGORITHMS = {
    "bbob": ("jedax", "pycma-bipop"),
    "bbob-constrained": ("jedax", "pycma"),
    "bbob-mixint": ("jedax", "pycma"),
}
GROUPS = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multimodal": range(15, 20),
    "weak structure": range(20, 25),
}


class Job(NamedTuple):
    """One search."""

    suite: str
    function: int
    dim: int
    instance: int
    budget: int
    algorithm: str
    seed: int


class Finished(Exception):
    """The budget is spent or the last target is reached."""


class Problem:
    """One problem of a suite, which records when targets are reached and ends the search."""

    def __init__(self, job: Job):
        self._problem, self._budget = _problem(job), job.budget
        self.lows, self.highs = self._problem.lower_bounds, self._problem.upper_bounds
        self.start = self._problem.initial_solution
        self.num_integers = self._problem.number_of_integer_variables
        self.num_constraints = self._problem.number_of_constraints
        self.optimum = optimum(job)
        self.evaluations, self.gap, self.reached, self.seconds = 0, np.inf, [], 0.0

    def __call__(self, x: np.ndarray) -> float:
        """Return f(x), one evaluation."""
        return self.with_constraints(x)[0]

    def with_constraints(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f(x) and the constraints, feasible where at most 0, one evaluation."""
        if self.evaluations >= self._budget:
            raise Finished
        began = time.perf_counter()
        value = float(self._problem(x))
        constraints = self._problem.constraint(x) if self.num_constraints else np.empty(0)
        self.seconds += time.perf_counter() - began
        self.evaluations += 1
        if value - self.optimum < self.gap and (constraints <= 0).all():
            self.gap = value - self.optimum
            count = int((self.gap <= TARGETS).sum())
            self.reached += [self.evaluations] * (count - len(self.reached))
            if count == len(TARGETS):
                raise Finished
        return value, constraints


def optimum(job: Job) -> float:
    """Return the lowest feasible value of a problem.

    COCO writes the best x of a problem into a file of the current directory, and marks the problem as one that must not
    be benchmarked any more; so a second copy of it is asked.
    """
    problem = _problem(job)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        return float(problem(np.loadtxt(Path(folder) / "._bbob_problem_best_parameter.txt")))


def _problem(job: Job) -> cocoex.Problem:
    options = f"dimensions: {job.dim} function_indices: {job.function}"
    return cocoex.Suite(job.suite, f"instances: {job.instance}", options)[0]


def with_jedax(problem: Problem, job: Job) -> None:
    """Search with jedax and its defaults."""
    directions = np.random.default_rng(job.dim).normal(size=(job.dim, 2))
    directions /= np.abs(directions).sum(axis=0)
    middle, half = (problem.highs + problem.lows) / 2, (problem.highs - problem.lows) / 2

    def evaluate(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([problem(x) for x in genotypes]), (genotypes - middle) / half @ directions

    draw = np.random.default_rng([job.seed, job.function, job.dim, job.instance])
    start, seed = draw.uniform(-4, 4, job.dim), int(draw.integers(1, 2**31))  # searches do not share random numbers
    box, shape = (problem.lows, problem.highs), (((-1, -1), (1, 1)), job.budget, seed)
    if problem.num_constraints:

        def constrained(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            values, violations = zip(*map(problem.with_constraints, genotypes), strict=True)
            return np.array(values), (genotypes - middle) / half @ directions, np.array(violations)

        jedax_side.search_constrained(constrained, job.dim, *shape, bounds=box, x0=problem.start)
    elif problem.num_integers:
        space = jedax_side.mixed_space(*box, problem.num_integers)
        names = space.names
        rows = lambda solutions: np.array([[one[name] for name in names] for one in solutions], float)  # noqa: E731
        jedax_side.search(lambda asked: evaluate(rows(asked)), None, *shape, minimise=True, space=space)
    else:
        jedax_side.search(evaluate, job.dim, *shape, minimise=True, x0=start, sigma0=2)


def with_pycma(problem: Problem, job: Job) -> None:
    """Search with pycma."""
    draw = np.random.default_rng([job.seed, job.function, job.dim, job.instance])
    options: dict[str, Any] = {"verbose": -9, "maxfevals": job.budget, "seed": int(draw.integers(1, 2**31))}
    start: Callable[[], np.ndarray] = lambda: draw.uniform(-4, 4, job.dim)  # noqa: E731
    if problem.num_constraints or problem.num_integers:
        options |= {"bounds": [problem.lows, problem.highs], "CMA_stds": (problem.highs - problem.lows) / 5}
    if problem.num_constraints:
        at = shared.asked_in_turn(problem.with_constraints)
        kept = {"options": options, "restarts": 9, "bipop": True}
        cma.fmin_con2(lambda x: at(x)[0], problem.start, 1, constraints=lambda x: at(x)[1], **kept)
    elif problem.num_integers:
        options["integer_variables"] = list(range(problem.num_integers))
        cma.fmin2(problem, problem.start, 1, options, restarts=9, bipop=True)
    else:
        cma.fmin2(problem, start, 2, options, restarts=9, bipop=True)


def run(job: Job) -> dict[str, Any]:
    """Return the row of one search."""
    problem = Problem(job)
    search = with_jedax if job.algorithm == "jedax" else with_pycma
    began = time.perf_counter()
    with contextlib.suppress(Finished), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search(problem, job)
    return job._asdict() | {
        "evaluations": problem.evaluations,
        "gap": f"{problem.gap:.6g}",
        "reached": " ".join(map(str, problem.reached)),
        "seconds": round(time.perf_counter() - began, 3),
        "evaluation_seconds": round(problem.seconds, 3),
    }


def jobs(options: argparse.Namespace) -> list[Job]:
    """Return the searches that the options ask for; algorithms take turns on every problem."""
    suite = cocoex.Suite(options.suite, "", "")
    functions = options.functions or sorted({triple[0] for triple in map(_triple, suite.ids())})
    instances = options.instances or sorted({triple[2] for triple in map(_triple, suite.ids())})
    return [
        Job(options.suite, function, dim, instance, options.budget * dim, algorithm, options.seed)
        for dim in options.dims
        for function in functions
        for instance in instances
        for algorithm in options.algorithms
    ]


def _triple(name: str) -> tuple[int, int, int]:
    """Return function, dimension and instance of a problem by its name, such as bbob_f001_i01_d02."""
    function, instance, dim = (int(part[1:]) for part in name.rsplit("_", 3)[1:])
    return function, dim, instance


def hits(row: dict[str, str], most: float = np.inf) -> np.ndarray:
    """Return the evaluation at which each target was reached, infinite where it was not within `most` evaluations."""
    found = np.full(len(TARGETS), np.inf)
    reached = row["reached"].split()
    found[: len(reached)] = [int(one) for one in reached]
    return np.where(found <= most, found, np.inf)


def chosen(rows: list[dict[str, str]], options: argparse.Namespace) -> list[dict[str, str]]:
    """Return the rows of the functions, dimensions and instances that the options name."""
    names = {"function": options.functions, "dim": options.dims, "instance": options.instances}
    wanted = {name: set(map(str, values)) for name, values in names.items() if values}
    return [row for row in rows if all(row[name] in values for name, values in wanted.items())]


def report(rows: list[dict[str, str]], at: int | None = None) -> Iterator[str]:
    """Yield the lines of the tables: by suite and budget, dimension and group of functions.

    `at` is the number of evaluations that count; None: the whole budget. p is of Wilcoxon's signed ranks of the numbers
    of targets that two algorithms reach on each instance, summed over the functions.
    """
    names = sorted({row["algorithm"] for row in rows})
    # Shares compare algorithms on the same problems: those that every algorithm has finished.
    problem = lambda row: tuple(row[name] for name in Job._fields if name != "algorithm")  # noqa: E731
    done = [{problem(row) for row in rows if row["algorithm"] == name} for name in names]
    common = set.intersection(*done) if done else set()
    rows = [row for row in rows if problem(row) in common]
    if not rows:
        return
    head = " | ".join(f"{name}: solved, area, to 1e-2, to 1e-8" for name in names)
    yield f"| suite, dim, evaluations | functions | problems | {head} | ratio of solved | p |"
    yield "|---|---|---:|" + "---:|" * (len(names) + 2)
    sizes = sorted({(row["suite"], int(row["dim"]), int(row["budget"])) for row in rows})
    for suite, dim, budget in sizes:
        here = [row for row in rows if (row["suite"], int(row["dim"]), int(row["budget"])) == (suite, dim, budget)]
        groups = {"all": range(1, 1000)} if suite == "bbob-constrained" else GROUPS | {"all": range(1, 1000)}
        for group, functions in groups.items():
            cells, solved, sums, count, most = [], [], [], 0, at or budget
            for name in names:
                of = [row for row in here if row["algorithm"] == name and int(row["function"]) in functions]
                if not of:
                    break
                found, count = np.array([hits(row, most) for row in of]), len(of)
                area = np.clip(1 - np.log(found) / np.log(most), 0, 1).mean()
                on = np.array([int(row["instance"]) for row in of])
                sums.append(np.array([np.isfinite(found[on == one]).sum() for one in np.unique(on)]))
                ends = [np.isfinite(found[:, np.argmin(abs(TARGETS - end))]).sum() for end in (1e-2, 1e-8)]
                solved.append(np.isfinite(found).mean())
                cells.append(f"{solved[-1]:.3f}, {area:.3f}, {ends[0]}, {ends[1]}")
            if len(cells) == len(names):
                ratio = f"{solved[0] / solved[1]:.2f}" if len(solved) == 2 and solved[1] else ""
                p = f"{wilcoxon(*sums).pvalue:.2g}" if len(sums) == 2 and np.any(sums[0] != sums[1]) else ""
                yield f"| {suite}, {dim}, {most:,} | {group} | {count} | {' | '.join(cells)} | {ratio} | {p} |"
    yield ""
    for name in names:
        of = [row for row in rows if row["algorithm"] == name]
        yield f"{name}: {shared.overhead(of)} us of its own per evaluation, in the median search."


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draw the share of (function, instance, target) reached over evaluations per dimension."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    dims = sorted({int(row["dim"]) for row in rows})
    figure, axes = plt.subplots(1, len(dims), figsize=(4 * len(dims), 3.5), sharey=True, squeeze=False)
    for axis, dim in zip(axes[0], dims, strict=True):
        for name in sorted({row["algorithm"] for row in rows}):
            of = [hits(row) for row in rows if row["algorithm"] == name and int(row["dim"]) == dim]
            found = np.sort(np.concatenate(of)) / dim
            axis.step(found[np.isfinite(found)], np.flatnonzero(np.isfinite(found)) / len(found), label=name)
        axis.set(xscale="log", title=f"dimension {dim}", xlabel="evaluations / dimension", ylim=(0, 1))
    axes[0, 0].set_ylabel("share of targets reached")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    names = sorted({name for group in ALGORITHMS.values() for name in group})
    parser = shared.parser(__doc__, "bbob", names)
    parser.add_argument("--suite", choices=("bbob", "bbob-constrained", "bbob-mixint"), default="bbob")
    parser.add_argument("--dims", type=int, nargs="+", help="default: 2 5 20; other suites: 5")
    parser.add_argument("--functions", type=int, nargs="+", help="default: all of the suite")
    parser.add_argument("--instances", type=int, nargs="+", help="default: the 15 that COCO chooses")
    parser.add_argument("--budget", type=int, default=2000, help="evaluations per dimension (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all searches (default: %(default)s)")
    parser.add_argument("--at", type=int, nargs="+", help="with --report: only so many evaluations count")
    parser.add_argument("--ecdf", type=Path, help="with --report: also draw the ECDFs into this file")
    options = parser.parse_args()
    if options.out == parser.get_default("out"):
        options.out = options.out.with_name(f"{options.suite}.csv")
    options.algorithms = [name for name in ALGORITHMS[options.suite] if name in options.algorithms]
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        options.dims = options.dims or ([2, 5, 20] if options.suite == "bbob" else [5])
        shared.fill(table, jobs(options), run, options)
    rows = chosen(table.rows, options)
    for at in options.at or [None]:
        print("\n".join(report(rows, at)))
    print(f"Revisions: {table.revisions()}")
    if options.ecdf:
        draw(rows, options.ecdf)


if __name__ == "__main__":
    main()
