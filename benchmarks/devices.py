"""What it costs to spread a search: evaluations per second on 1, 2, 4 and 8 virtual devices of one CPU.

Run: python benchmarks/devices.py [--devices 1 2 4 8] [--rounds 3] [--only maze-a halfcheetah]

Each number of devices is a process of its own. Virtual devices share the cores: nothing can get faster than on one
device, which uses all cores already; what shows is what sharing costs. The best of several rounds counts.
"""

import argparse
import os
import subprocess
import sys
import time

# task, its settings, the method's, replicas, generations of a round
CASES = {
    "maze-a": ("maze-a", {}, {"population": 16, "pool": 4}, 1, 500),
    "maze-a, 8 replicas": ("maze-a", {}, {"population": 16, "pool": 4}, 8, 100),
    "halfcheetah": ("halfcheetah", {"steps": 25, "hidden": (16,)}, {"population": 128, "pool": 4}, 1, 2),
}


def measure(name, rounds):
    """Print the rate of one case in this process, and how its devices are arranged."""
    import jax
    import numpy as np

    import jedax
    from jedax.search import devices
    from jedax.search.compiled import replica_roots
    from jedax.search.programs import programs_for
    from jedax.tasks import make

    task_name, task_settings, settings, replicas, generations = CASES[name]
    task = make(task_name, **task_settings)
    algorithm = jedax.JEDi(jedax.JediConfig(**settings), task)
    programs, roots = programs_for(algorithm, task, replicas, "all"), replica_roots(0, replicas)
    state, _ = programs.begin(roots, np.zeros((0, task.num_params), np.float32))
    state, _ = programs.begin_loop(roots, state, 0.0)
    best = np.inf
    for number in range(rounds + 1):  # the first round compiles
        began = time.perf_counter()
        state, *_ = jax.block_until_ready(programs.advance(roots, state, generations))
        if number:
            best = min(best, time.perf_counter() - began)
    grid = " x ".join(map(str, devices.describe(programs.mesh).values()))
    print(f"{generations * replicas * algorithm.config.batch / best:.1f};{grid};{programs.compile_seconds:.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--here", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        measure(arguments.here, arguments.rounds)
        return
    print("| search | devices | replicas x population | evaluations/s | of one device | compile s |")
    print("|---|---:|---|---:|---:|---:|")
    for name in arguments.only:
        first = None
        for number in arguments.devices:
            flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}"
            command = [sys.executable, "-W", "ignore", __file__, "--here", name, "--rounds", str(arguments.rounds)]
            done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, stdout=subprocess.PIPE, text=True)
            done.check_returncode()
            rate, grid, compiling = done.stdout.strip().split(";")
            first = first or float(rate)
            print(f"| {name} | {number} | {grid} | {float(rate):,.0f} | {float(rate) / first:.0%} | {compiling} |",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
