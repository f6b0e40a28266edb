"""The maze simulator alone: evaluations per second of random controllers in maze A, by size of the batch.

    python benchmarks/maze_simulator.py [--batches 64 640] [--repeats 3] [--peer PYTHON]

`--peer` names the interpreter of an environment with Kheperax (`pip install kheperax`, 0.2.0): its scoring function
then takes turns with jedax's on the same controllers, and the ratio is printed. Kheperax always simulates 250 steps
and keeps every transition; jedax ends a batch when every robot has arrived or is stuck. Controllers are "uniform",
the task's own initial distribution, or "standing", all weights zero, so that nobody arrives or gets stuck and all 250
steps are simulated: the worst case for jedax.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")


MAZE_A = [(0.0, 0.25, 0.75, 0.25), (0.25, 0.6, 1.0, 0.6), (0.0, 0.25, 0.0, 1.0)]


def clock(evaluate, batch: int) -> None:
    """Print evaluations per second of three seconds, one per line, then the mean fitness."""
    import jax

    key = jax.random.PRNGKey(0)
    fitness = jax.block_until_ready(evaluate(key))
    for _ in range(3):
        began, calls = time.perf_counter(), 0
        while time.perf_counter() - began < 1.0:
            jax.block_until_ready(evaluate(key))
            calls += 1
        print(calls * batch / (time.perf_counter() - began))
    print(fitness.mean())


def layers(batch: int, kind: str):
    """Return hidden kernel and bias, output kernel and bias, batch first: the task's own random ones, or all zero."""
    import numpy as np

    random = np.random.default_rng(0)
    hidden = random.uniform(-1, 1, (batch, 5, 8)) * (3 / 5) ** 0.5  # LeCun
    output = random.uniform(-1, 1, (batch, 8, 2)) * (3 / 8) ** 0.5
    parts = [hidden, np.zeros((batch, 8)), output, np.zeros((batch, 2))]
    return [part.astype(np.float32) * (kind == "uniform") for part in parts]


def ours(batch: int, kind: str):
    """Return the compiled function of a key that evaluates the batch."""
    import jax

    from jedax.tasks import make

    genotypes = jax.numpy.concatenate([part.reshape(batch, -1) for part in layers(batch, kind)], axis=1)
    evaluate = jax.jit(make("maze-a").evaluate_batch)
    return lambda key: evaluate(key, genotypes).fitness


def theirs(batch: int, kind: str):
    """Return the same of Kheperax."""
    import jax

    jax.tree_leaves = jax.tree.leaves  # Kheperax 0.2.0 uses a name that JAX has since removed
    from kheperax.simu.geoms import Pos, Segment
    from kheperax.simu.maze import Maze
    from kheperax.tasks.final_distance import FinalDistKheperaxTask
    from kheperax.tasks.target import TargetKheperaxConfig

    walls = [Segment(Pos(x1, y1), Pos(x2, y2)) for x1, y1, x2, y2 in MAZE_A]
    config = dataclasses.replace(
        TargetKheperaxConfig.get_default_for_map("standard"),
        maze=Maze.create(segments_list=walls),
        episode_length=250,
        target_pos=(0.9, 0.9),
        target_radius=0.05,
    )
    _, _, score = FinalDistKheperaxTask.create_default_task(config, jax.random.PRNGKey(0))
    names = ("Dense_0", "kernel"), ("Dense_0", "bias"), ("Dense_1", "kernel"), ("Dense_1", "bias")
    parameters: dict = {"params": {"Dense_0": {}, "Dense_1": {}}}
    for (layer, name), part in zip(names, layers(batch, kind), strict=True):
        parameters["params"][layer][name] = jax.numpy.asarray(part)
    scoring = jax.jit(score)
    return lambda key: scoring(parameters, key)[0]


def measure(python: str, who: str, batch: int, kind: str) -> tuple[float, float]:
    """Return the median rate of one process, and the mean fitness of the batch."""
    command = [python, __file__, "--measure", who, kind, str(batch)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    *rates, fitness = (float(line) for line in output.split())
    return statistics.median(rates), fitness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 640])
    parser.add_argument("--repeats", type=int, default=3, help="processes for each number, in turn")
    parser.add_argument("--peer", help="interpreter of an environment with Kheperax")
    parser.add_argument("--measure", nargs=3, metavar=("WHO", "KIND", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        who, kind, batch = options.measure
        make = {"jedax": ours, "kheperax": theirs}[who]
        clock(make(int(batch), kind), int(batch))
        return
    print(f"{os.cpu_count()} cores; evaluations per second, median of {options.repeats} processes")
    print("| batch | controllers | jedax | Kheperax | ratio |")
    print("|---:|---|---:|---:|---:|")
    for batch in options.batches:
        for kind in ("uniform", "standing"):
            mine, peer = [], []
            for _ in range(options.repeats):
                rate, fitness = measure(sys.executable, "jedax", batch, kind)
                mine.append(rate)
                if options.peer:
                    rate, expected = measure(options.peer, "kheperax", batch, kind)
                    assert abs(fitness - expected) < 1, "both must simulate the same"
                    peer.append(rate)
            row = [f"{statistics.median(mine):,.0f}"]
            row += [f"{statistics.median(peer):,.0f}" if peer else "-"]
            ratios = [a / b for a, b in zip(mine, peer, strict=False)]
            row += [f"{statistics.median(ratios):.1f}" if ratios else "-"]
            print(f"| {batch} | {kind} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
