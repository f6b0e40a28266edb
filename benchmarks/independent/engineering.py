"""Two engineering designs that others defined: jedax beside pycma and the optimisers of the suites themselves.

    python benchmarks/independent/engineering.py [--problems beam mirror] [--evaluations 1000 5000] [--seeds 10]

beam: Beams2D (v1) of EngiBench, half of an MBB beam. The parameters are the densities, 0 to 1, of 20 x 10 elements; the
compliance is minimised. The suite wants a volume fraction within 0.01 of 0.35: two constraints. Its grids have at least
10 elements a side; the default has 100 x 50, too many for few evaluations without gradients. Descriptors: share of the
material in the half under the load, and greyness, the mean of 4 x density x (1 - density).

mirror: `Photonics("chirped", 80)` of nevergrad, a dielectric mirror for 500 to 800 nm. The parameters are the
thicknesses, 30 to 180 nm, of 80 layers of two materials in turn; the share of light that passes is minimised.
Descriptors: total thickness, and share of the material of high index in it.

Only jedax uses the descriptors. All begin at the suite's own start: 0.35 everywhere, 105 nm everywhere. An evaluation
is that of the function and of all constraints; `best` is the lowest value of a feasible design.
pycma: bounds, BIPOP restarts, a step size of 0.2 box widths; `fmin2`, on the beam `fmin_con2`. It evaluates the start.
engibench: `Beams2D.optimize`, which uses gradients, does not depend on the seed, and ends by itself within 100
iterations, each one evaluation here; with members of one element (`rmin` of 1) the same designs are open to it as to
the others. nevergrad: NGOpt with the suite's own parametrization.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cma
import jedax_side
import nevergrad
import numpy as np
import shared
from engibench.problems.beams2d.v1 import Beams2D
from nevergrad.functions.photonics import Photonics

ALGORITHMS = {"beam": ("jedax", "pycma", "engibench"), "mirror": ("jedax", "pycma", "nevergrad")}
COLUMNS, ROWS = 20, 10
TOLERANCE = 0.01
LAYERS, THINNEST, THICKEST = 80, 30.0, 180.0


class Job(NamedTuple):
    """One search."""

    problem: str
    budget: int
    algorithm: str
    seed: int


class Finished(Exception):
    """The budget is spent."""


class Problem:
    """A design problem, which keeps the best feasible value and ends the search with the budget."""

    low: float
    high: float
    start: np.ndarray
    descriptor_bounds: jedax_side.Box
    num_constraints = 0
    simulate: Callable[[np.ndarray], tuple[float, np.ndarray]]  # value and constraints of a design
    describe: Callable[[np.ndarray], np.ndarray]  # descriptors of designs

    def __init__(self, budget: int):
        self._budget = budget
        self.evaluations, self.best, self.seconds = 0, np.inf, 0.0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and constraints, feasible where at most 0, one evaluation."""
        if self.evaluations >= self._budget:
            raise Finished
        began = time.perf_counter()
        value, constraints = self.simulate(x)
        self.seconds += time.perf_counter() - began
        self.evaluations += 1
        if value < self.best and (constraints <= 0).all():
            self.best = value
        return value, constraints


class Beam(Problem):
    """EngiBench's beam; densities are ordered by columns, the first of which is under the load."""

    low, high = 0.0, 1.0
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))
    num_constraints = 2

    def __init__(self, budget: int):
        super().__init__(budget)
        self.suite = Beams2D(config={"nelx": COLUMNS, "nely": ROWS, "rmin": 1.0})
        self._volume = self.suite.config.volfrac
        self.start = np.full(COLUMNS * ROWS, self._volume)

    def simulate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        off = x.mean() - self._volume
        return float(self.suite.simulate(x)[0]), np.array([off - TOLERANCE, -off - TOLERANCE])

    def describe(self, designs: np.ndarray) -> np.ndarray:
        under = designs[:, : designs.shape[1] // 2].sum(axis=1) / np.maximum(designs.sum(axis=1), 1e-9)
        return np.stack([under, (4 * designs * (1 - designs)).mean(axis=1)], axis=1)


class Mirror(Problem):
    """nevergrad's chirped mirror; every other layer, from the first on, has the high index."""

    low, high = THINNEST, THICKEST
    descriptor_bounds = ((LAYERS * THINNEST, 0.0), (LAYERS * THICKEST, 1.0))

    def __init__(self, budget: int):
        super().__init__(budget)
        self.suite = Photonics("chirped", LAYERS)
        self.start = self.suite.parametrization.value.ravel()

    def simulate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(self.suite(x)), np.empty(0)

    def describe(self, designs: np.ndarray) -> np.ndarray:
        total = designs.sum(axis=1)
        return np.stack([total, designs[:, ::2].sum(axis=1) / total], axis=1)


def with_jedax(problem: Problem, job: Job) -> None:
    """Search with jedax and its defaults."""

    def evaluate(designs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values, constraints = zip(*map(problem, designs), strict=True)
        return np.array(values), problem.describe(designs), np.array(constraints)

    shape = (len(problem.start), problem.descriptor_bounds, job.budget, job.seed)
    given = {"bounds": (problem.low, problem.high), "x0": problem.start}
    if problem.num_constraints:
        jedax_side.search_constrained(evaluate, *shape, **given)
    else:
        jedax_side.search(lambda designs: evaluate(designs)[:2], *shape, minimise=True, **given)


def with_pycma(problem: Problem, job: Job) -> None:
    """Search with pycma."""
    stds = np.full(len(problem.start), (problem.high - problem.low) / 5)
    options = {"verbose": -9, "maxfevals": job.budget, "seed": job.seed + 1, "CMA_stds": stds}
    options["bounds"] = [problem.low, problem.high]
    kept: dict[str, Any] = {"options": options, "restarts": 9, "bipop": True, "eval_initial_x": True}
    if not problem.num_constraints:
        cma.fmin2(lambda x: problem(x)[0], problem.start, 1, **kept)
        return
    at = shared.asked_in_turn(problem)
    cma.fmin_con2(lambda x: at(x)[0], problem.start, 1, constraints=lambda x: at(x)[1], **kept)


def with_engibench(problem: Beam, job: Job) -> None:
    """Let the suite optimise the beam, and evaluate the design of each of its iterations."""
    for step in problem.suite.optimize()[1]:
        problem(step.design)


def with_nevergrad(problem: Mirror, job: Job) -> None:
    """Search with NGOpt, which chooses a solver by the number of parameters and the budget."""
    space = problem.suite.parametrization
    space.random_state.seed(job.seed)
    nevergrad.optimizers.NGOpt(space, budget=job.budget).minimize(lambda layers: problem(layers.ravel())[0])


SEARCHES = {"jedax": with_jedax, "pycma": with_pycma, "engibench": with_engibench, "nevergrad": with_nevergrad}


def run(job: Job) -> dict[str, Any]:
    """Return the row of one search."""
    np.random.seed(job.seed)  # noqa: NPY002 - some of nevergrad's solvers draw from here
    problem = {"beam": Beam, "mirror": Mirror}[job.problem](job.budget)
    began = time.perf_counter()
    with contextlib.suppress(Finished), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SEARCHES[job.algorithm](problem, job)
    return job._asdict() | {
        "best": problem.best,
        "evaluations": problem.evaluations,
        "seconds": round(time.perf_counter() - began, 3),
        "evaluation_seconds": round(problem.seconds, 3),
    }


def main() -> None:
    parser = shared.parser(__doc__, "engineering", tuple(SEARCHES))
    parser.add_argument("--problems", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), help="default: all")
    parser.add_argument("--evaluations", type=int, nargs="+", default=[1000, 5000], help="default: %(default)s")
    shared.add_seeds(parser)
    options = parser.parse_args()
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        jobs = [
            Job(problem, budget, name, seed)
            for budget in options.evaluations
            for seed in range(options.seeds)
            for problem in options.problems
            for name in ALGORITHMS[problem]
            if name in options.algorithms
        ]
        shared.fill(table, jobs, run, options)
    print("\n".join(shared.report(table.rows, ("problem", "budget"), 4)))
    print(f"Best: lower is better. Revisions: {table.revisions()}")


if __name__ == "__main__":
    main()
