"""A cart-pole with six gains and a short track: jedax beside pycma with bounds.

    python benchmarks/independent/cartpole.py [--evaluations 2000 6400 20000] [--seeds 10] [--workers 2]

A cart with a pole (Barto, Sutton and Anderson 1983: masses of 1 and 0.1 kg, half a pole of 0.5 m, no friction) starts
0.8 m right of the middle of a track that ends at 1 m, with the pole 0.05 rad to the right, and is to come to rest in
the middle within 10 s. The force is the sum of six gains times position, its integral and derivative, angle, its
integral and derivative, at most 20 N. Gains lie between 0.1 and 400.

Fitness is minus the integral of position^2 + angle^2 + 0.001 force^2; after the end of the track, or an angle of 0.5
rad, the integrand is 2. Descriptors, which only jedax uses: furthest position right of the middle, and mean absolute
force. pycma: `fmin2` with bounds, from the middle of the box with a step size of a quarter of its width, with BIPOP
restarts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cma
import jedax_side
import numpy as np
import shared

LOW, HIGH = 0.1, 400.0
GRAVITY, CART, POLE, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5
TRACK, MOST_ANGLE, MOST_FORCE = 1.0, 0.5, 20.0
STEP, STEPS = 0.02, 500
DESCRIPTOR_BOUNDS = ((0.0, 0.0), (TRACK, MOST_FORCE))
ALGORITHMS = ("jedax", "pycma")


class Job(NamedTuple):
    """One search."""

    budget: int
    algorithm: str
    seed: int


def evaluate(gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return fitness and descriptors of controllers `(n, 6)`."""
    n = len(gains)
    x, v, angle, turn = np.full(n, 0.8), np.zeros(n), np.full(n, 0.05), np.zeros(n)
    sum_x, sum_angle, cost, effort = np.zeros((4, n))
    furthest, stands = x.copy(), np.ones(n, bool)
    for _ in range(STEPS):
        force = (gains * np.stack([x, sum_x, v, angle, sum_angle, turn], axis=1)).sum(axis=1)
        force = np.where(stands, np.clip(force, -MOST_FORCE, MOST_FORCE), 0)
        cost += STEP * np.where(stands, x**2 + angle**2 + 0.001 * force**2, 2)
        effort += np.abs(force) / STEPS
        sine, cosine, mass = np.sin(angle), np.cos(angle), CART + POLE
        push = (force + POLE * HALF_LENGTH * turn**2 * sine) / mass
        bend = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / mass))
        slide = push - POLE * HALF_LENGTH * bend * cosine / mass
        step = np.where(stands, STEP, 0)  # what has failed stays where it is
        v, turn = v + step * slide, turn + step * bend
        x, angle = x + step * v, angle + step * turn
        sum_x, sum_angle = sum_x + step * x, sum_angle + step * angle
        furthest = np.maximum(furthest, x)
        stands &= (np.abs(x) <= TRACK) & (np.abs(angle) <= MOST_ANGLE)
    return -cost, np.stack([furthest, effort], axis=1)


def with_pycma(recorder: shared.Recorder, job: Job) -> None:
    options = {"verbose": -9, "maxfevals": job.budget, "seed": job.seed + 1, "bounds": [LOW, HIGH]}
    middle = np.full(6, (LOW + HIGH) / 2)

    def objective(genotypes: list[np.ndarray]) -> list[float]:
        return list(-recorder(np.array(genotypes))[0])

    one = lambda x: objective([x])[0]  # noqa: E731
    cma.fmin2(one, middle, (HIGH - LOW) / 4, options, restarts=9, bipop=True, parallel_objective=objective)


def run(job: Job) -> dict[str, Any]:
    """Return the row of one search."""
    recorder = shared.Recorder(evaluate, job.budget)
    if job.algorithm == "jedax":
        jedax_side.search(recorder, 6, DESCRIPTOR_BOUNDS, job.budget, job.seed, bounds=(LOW, HIGH))
    else:
        with_pycma(recorder, job)
    return job._asdict() | recorder.results()


def main() -> None:
    parser = shared.parser(__doc__, "cartpole", ALGORITHMS)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[2000, 6400, 20_000], help="default: %(default)s")
    shared.add_seeds(parser)
    options = parser.parse_args()
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        jobs = [
            Job(budget, name, seed)
            for budget in options.evaluations
            for seed in range(options.seeds)
            for name in options.algorithms
        ]
        shared.fill(table, jobs, run, options)
    print("\n".join(shared.report(table.rows, ("budget",), 4)))
    print(f"Revisions: {table.revisions()}")


if __name__ == "__main__":
    main()
