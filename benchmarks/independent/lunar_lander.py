"""LunarLander of pyribs' tutorial: a linear policy of 32 parameters, jedax beside the tutorial's CMA-ME.

    python benchmarks/independent/lunar_lander.py [--evaluations 3000] [--seeds 10] [--workers 2]
    python benchmarks/independent/lunar_lander.py --evaluations 45000

Problem and CMA-ME are those of https://docs.pyribs.org/en/stable/tutorials/lunar_lander.html (best after 45,000
evaluations there: 315.3). The episode of a policy always starts with the environment's seed 52. Descriptors: horizontal
position and vertical speed at the first contact with the ground. QD score and coverage are those of the tutorial's
archive, to which all evaluated policies are added, for both sides.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import gymnasium
import jedax_side
import numpy as np
import shared
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter

EPISODE_SEED = 52
LOWS, HIGHS = (-1.0, -3.0), (1.0, 0.0)
ARCHIVE: dict[str, Any] = {"dims": (50, 50), "ranges": tuple(zip(LOWS, HIGHS, strict=True))}
OFFSET = -600
EMITTERS, BATCH, STEP_SIZE = 5, 30, 1.0
ALGORITHMS = ("jedax", "ribs-cma-me")


class Job(NamedTuple):
    """One search."""

    budget: int
    algorithm: str
    seed: int


@functools.cache
def environment() -> gymnasium.Env:
    return gymnasium.make("LunarLander-v3")


def simulate(policy: np.ndarray) -> tuple[float, float, float]:
    """Return reward, horizontal position and vertical speed of one episode.

    Without contact with the ground these are the last position and the greatest speed downwards.
    """
    weights, total, contact, speeds = policy.reshape(4, 8), 0.0, None, []
    observation, _ = environment().reset(seed=EPISODE_SEED)
    ended = False
    while not ended:
        observation, reward, terminated, truncated, _ = environment().step(int(np.argmax(weights @ observation)))
        ended, total = terminated or truncated, total + float(reward)
        speeds.append(observation[3])
        if contact is None and observation[6:8].any():
            contact = observation[0], observation[3]
    position, speed = contact or (observation[0], min(speeds))
    return total, float(position), float(speed)


def evaluate(policies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = np.array([simulate(policy) for policy in policies])
    return found[:, 0], found[:, 1:]


def with_ribs(recorder: shared.Recorder, seed: int) -> None:
    archive = GridArchive(solution_dim=32, seed=seed, qd_score_offset=OFFSET, **ARCHIVE)
    emitters = [
        EvolutionStrategyEmitter(
            archive,
            x0=np.zeros(32),
            sigma0=STEP_SIZE,
            ranker="2imp",
            batch_size=BATCH,
            seed=EMITTERS * seed + number,
        )
        for number in range(EMITTERS)
    ]
    shared.search_with_ribs(archive, emitters, recorder)


def run(job: Job) -> dict[str, Any]:
    """Return the row of one search."""
    simulate(np.zeros(32))  # the first episode of a process loads the simulator
    recorder = shared.Recorder(evaluate, job.budget)
    if job.algorithm == "jedax":
        jedax_side.search(recorder, 32, (LOWS, HIGHS), job.budget, job.seed)
    else:
        with_ribs(recorder, job.seed)
    return job._asdict() | recorder.results() | recorder.on_grid(offset=OFFSET, **ARCHIVE)


def main() -> None:
    parser = shared.parser(__doc__, "lunar-lander", ALGORITHMS)
    parser.add_argument("--evaluations", type=int, default=3000, help="of each search (default: %(default)s)")
    shared.add_seeds(parser)
    options = parser.parse_args()
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        jobs = [Job(options.evaluations, name, seed) for seed in range(options.seeds) for name in options.algorithms]
        shared.fill(table, jobs, run, options)
    print("\n".join(shared.report(table.rows, ("budget",), 1)))
    print(f"Revisions: {table.revisions()}")


if __name__ == "__main__":
    main()
