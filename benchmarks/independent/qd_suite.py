"""QD suite and planar arm of QDax: jedax beside QDax' MAP-Elites and CMA-ME.

    python benchmarks/independent/qd_suite.py [--tasks arm ssf-2] [--starts task box] [--seeds 10] [--workers 2]

Needs `pip install qdax`; written with QDax 0.5.0, whose `qdax.tasks` has the tasks. Their sources, by its docstrings:
Salehi et al. 2022, arXiv:2205.03162, of the spirals; Achkan Salehi and Stephane Doncieux of `ssf` and `deceptive`;
fast_map-elites, https://github.com/hucebot/fast_map-elites, of the arm. All fitness but the arm's is always 1: the QD
score is the number of cells found.

- `spiral-*`: one parameter, the angle or the arc length along an Archimedean spiral of 20 turns. The descriptor is the
  place in the plane (`euclidean`) or the arc length (`geodesic`). The spiral meets 0.40 of the cells of the plane.
- `ssf-1`, `ssf-2`: self-similar function of the norm of one or two parameters. The descriptor grows with the norm in
  some shells and is constant in those between them, which get wider; 0.58 of its cells exist. QDax bounds the
  descriptor, at 1000, but not the parameters; here they are within -1000 and 1000 for all algorithms.
- `deceptive`: two parameters. The descriptor is a weighted sum of two normal densities, a narrow and a wide one.
- `arm`: the angles of 8 joints, between 0 and 1. The fitness is minus their standard deviation, the descriptor the
  position of the end of the arm.

A search starts as the task says (`--starts task`: one point, of which the arm has none), or from anywhere in the box of
the parameters (`--starts box`). jedax is told the box, in the first case also x0. Its sigma0 has then its default, 0.3
of the width of the box; QDax' steps are smaller. QDax' algorithms, with their starts from the task and from the box:

- `qdax-me`: MAP-Elites with the settings of its example `mapelites.ipynb`: iso_sigma 0.005, line_sigma 0.05, batches of
  100, 1024 CVT cells of 50,000 points. It starts with the one point, or with 100 uniform ones.
- `qdax-me-grid`: the same with iso_sigma 0.05, line_sigma 0.1 and the cells of the archive that measures, as in QDax'
  tests of these tasks and in its README, whose example is the arm with 100 joints.
- `qdax-cma-me`: improvement emitters with the settings of its example `cmame.ipynb`: 15 emitters, batches of 36,
  sigma_g 0.5, min_count 1; the cells are those of the archive that measures. All emitters start at the one point, or in
  the middle of the box, which on the arm has the best fitness there is.

The examples' steps are made for their own parameters. So for QDax the box of every task is scaled: to 0 to 1 for
MAP-Elites, as in its examples with the arm, and to a width of 10.24 for CMA-ME, as in that example. What CMA-ME samples
outside is clipped. `random` samples the box uniformly.

QD score and coverage are those of one archive: 100 cells for one descriptor, 100 x 100 for two, as in QDax' tests. Of
the arm, a cell with the worst fitness, -0.5, adds 0. The budgets were chosen before any search: 20 evaluations per cell
for one descriptor, 2 for two, and 100,000 for the arm, a tenth of those of QDax' `me_example.py`. QDax runs with `ask`
and `tell`; its own time would be shorter with its `scan`, which needs evaluations in JAX.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jedax_side
import numpy as np
import shared
from qdax.core.containers.mapelites_repertoire import compute_cvt_centroids, compute_euclidean_centroids
from qdax.core.emitters.cma_improvement_emitter import CMAImprovementEmitter
from qdax.core.emitters.cma_pool_emitter import CMAPoolEmitter
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.map_elites import MAPElites
from qdax.tasks import qd_suite
from qdax.tasks.arm import arm_scoring_function

SUITE = {
    "spiral-angle-euclidean": qd_suite.archimedean_spiral_v0_angle_euclidean_task,
    "spiral-angle-geodesic": qd_suite.archimedean_spiral_v0_angle_geodesic_task,
    "spiral-length-euclidean": qd_suite.archimedean_spiral_v0_arc_length_euclidean_task,
    "spiral-length-geodesic": qd_suite.archimedean_spiral_v0_arc_length_geodesic_task,
    "ssf-1": qd_suite.ssf_v0_param_size_1_task,
    "ssf-2": qd_suite.ssf_v0_param_size_2_task,
    "deceptive": qd_suite.deceptive_evolvability_v0_task,
}
TASKS = (*SUITE, "arm")
JOINTS, WORST_ANGLES = 8, -0.5
SSF_LIMIT = 1000.0  # of the parameters, which have no bounds in QDax
EVALUATIONS, EVALUATIONS_OF_ARM = {1: 2_000, 2: 20_000}, 100_000
BATCH, CVT_CELLS, CVT_SAMPLES = 100, 1024, 50_000
EMITTERS, CMA_BATCH, CMA_STEP, CMA_WIDTH = 15, 36, 0.5, 10.24
SIGMAS = {"qdax-me": (0.005, 0.05), "qdax-me-grid": (0.05, 0.1)}
ALGORITHMS = ("jedax", *SIGMAS, "qdax-cma-me", "random")


class Job(NamedTuple):
    """One search."""

    task: str
    start: str
    budget: int
    algorithm: str
    seed: int


class Problem:
    """A task with the bounds of parameters and descriptors, the cells that measure, and the point to start from."""

    def __init__(self, name: str):
        self.start, low, high, reach, size, scoring = None, 0.0, 1.0, (0.0, 1.0), 2, arm_scoring_function
        self.dim, self.offset, self.evaluations = JOINTS, WORST_ANGLES, EVALUATIONS_OF_ARM
        if name in SUITE:
            task = SUITE[name]
            low, high = np.nan_to_num(task.get_min_max_params(), posinf=SSF_LIMIT, neginf=-SSF_LIMIT)
            reach, size = task.get_bounded_min_max_descriptor(), task.get_descriptor_size()
            self.start = np.asarray(task.get_initial_parameters(1), float)[0]
            self.dim, self.offset, self.evaluations = len(self.start), 0.0, EVALUATIONS[size]
            scoring = task.scoring_function
        self.starts = ("box",) if self.start is None else ("task", "box")
        self.lows, self.highs = np.full(self.dim, float(low)), np.full(self.dim, float(high))
        self.ranges, self.dims = size * [(float(reach[0]), float(reach[1]))], size * (100,)
        self._scoring = jax.jit(scoring)

    def evaluate(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        fitness, descriptors, _ = self._scoring(jnp.asarray(parameters, jnp.float32), jax.random.key(0))
        return np.asarray(fitness, float), np.asarray(descriptors, float)


problem_named = functools.cache(Problem)


@functools.cache
def cvt(size: int) -> Any:
    """Return the CVT cells of a unit box, the same for all seeds."""
    return compute_cvt_centroids(size, CVT_SAMPLES, CVT_CELLS, 0.0, 1.0, jax.random.key(0))


@functools.cache
def qdax_search(name: str, algorithm: str) -> tuple[MAPElites, Any, Any, Any]:
    """Return a search of QDax, its compiled `ask` and `tell`, and its cells."""
    problem = problem_named(name)
    lows, highs = (jnp.array(ends) for ends in zip(*problem.ranges, strict=True))
    if algorithm == "qdax-me":
        centroids = lows + cvt(len(problem.dims)) * (highs - lows)
    else:
        centroids = compute_euclidean_centroids(problem.dims, lows, highs)
    if algorithm in SIGMAS:
        iso, line = SIGMAS[algorithm]
        vary = functools.partial(isoline_variation, iso_sigma=iso, line_sigma=line, minval=0.0, maxval=1.0)
        emitter = MixingEmitter(mutation_fn=None, variation_fn=vary, variation_percentage=1.0, batch_size=BATCH)
    else:
        one = CMAImprovementEmitter(CMA_BATCH, problem.dim, centroids, sigma_g=CMA_STEP, min_count=1)
        emitter = CMAPoolEmitter(EMITTERS, one)
    search = MAPElites(None, emitter, metrics_function=lambda _: {})
    return search, jax.jit(search.ask), jax.jit(search.tell), centroids


def with_qdax(recorder: shared.Recorder, problem: Problem, job: Job) -> None:
    search, ask, tell, centroids = qdax_search(job.task, job.algorithm)
    width, start = problem.highs - problem.lows, problem.start if job.start == "task" else None
    origin, unit = problem.lows, width
    first_key, start_key, key = jax.random.split(jax.random.key(job.seed), 3)
    if job.algorithm not in SIGMAS:  # CMA-ME starts at 0
        origin, unit = (problem.lows + problem.highs) / 2 if start is None else start, width / CMA_WIDTH
        genotypes = jnp.zeros((1, problem.dim))
    elif start is not None:
        genotypes = jnp.asarray((start - origin) / unit)[None]
    else:
        genotypes = jax.random.uniform(first_key, (BATCH, problem.dim))

    def evaluate(genotypes: Any) -> tuple[Any, Any]:
        parameters = np.clip(origin + unit * np.asarray(genotypes), problem.lows, problem.highs)
        fitness, descriptors = recorder(parameters)
        return jnp.asarray(fitness), jnp.asarray(descriptors)

    repertoire, state, _ = search.init_ask_tell(genotypes, *evaluate(genotypes), centroids, start_key)
    while recorder.evaluations < recorder.budget:
        key, ask_key = jax.random.split(key)
        genotypes, extra = ask(repertoire, state, ask_key)
        repertoire, state, _ = tell(genotypes, *evaluate(genotypes), repertoire, state, extra_info=extra)


def run(job: Job) -> dict[str, Any]:
    """Return the row of one search."""
    problem = problem_named(job.task)
    recorder = shared.Recorder(problem.evaluate, job.budget)
    if job.algorithm == "jedax":
        reach, told = tuple(zip(*problem.ranges, strict=True)), {"x0": problem.start} if job.start == "task" else {}
        box = (problem.lows, problem.highs)
        jedax_side.search(recorder, problem.dim, reach, job.budget, job.seed, bounds=box, **told)
    elif job.algorithm == "random":
        generator = np.random.default_rng(job.seed)
        while recorder.evaluations < recorder.budget:
            recorder(generator.uniform(problem.lows, problem.highs, (BATCH, problem.dim)))
    else:
        with_qdax(recorder, problem, job)
    return job._asdict() | recorder.results() | recorder.on_grid(problem.dims, problem.ranges, problem.offset)


def main() -> None:
    parser = shared.parser(__doc__, "qd-suite", ALGORITHMS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--starts", nargs="+", choices=("task", "box"), default=["task", "box"], help="default: both")
    parser.add_argument("--evaluations", type=int, help="default: 2,000; 20,000 in the plane; 100,000 of the arm")
    shared.add_seeds(parser)
    options = parser.parse_args()
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        jobs = [
            Job(name, start, options.evaluations or problem_named(name).evaluations, algorithm, seed)
            for name in options.tasks
            for start in options.starts
            for seed in range(options.seeds)
            for algorithm in options.algorithms
            if start in problem_named(name).starts and (algorithm, start) != ("random", "task")
        ]
        shared.fill(table, jobs, run, options)
    print("\n".join(shared.report(table.rows, ("task", "start", "budget"), 3)))
    print(f"Revisions: {table.revisions()}")


if __name__ == "__main__":
    main()
