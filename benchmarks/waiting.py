"""What a user waits for beside the search: figures, imports, compilation, the first result of an `Optimizer`.

    python benchmarks/waiting.py [--repeats 5] [--other PYTHON]

Each figure is of processes of their own. `--other` is the interpreter of an environment with another version of jedax,
which takes turns with this one. Cold processes have an empty cache of compiled programs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import maze_a

os.environ.setdefault("JAX_PLATFORMS", "cpu")
METHODS = ("jedi-x", "map-elites", "jedi")

OPTIMIZER = """
import time; began = time.perf_counter()
import numpy as np, jedax
optimizer = jedax.Optimizer(num_params=10, descriptor_bounds=([-1, -1], [1, 1]), evaluations=50_000)
genotypes = optimizer.ask()
optimizer.tell(genotypes, -(genotypes**2).sum(axis=1), np.clip(genotypes[:, :2], -1, 1))
optimizer.ask()
print(time.perf_counter() - began)
"""


def first_result(python: str, cache: Path) -> float:
    """Return the seconds of a new process until its optimizer has asked a second time."""
    command, env = [python, "-c", OPTIMIZER], maze_a.with_cache(cache)
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)


def measure(python: str, warm: Path) -> dict[str, float]:
    """Return one measurement of everything, in seconds."""
    summary = maze_a.run("jedi-x", 1_000_000, 0, [], python=python, environment=maze_a.with_cache(warm))
    spent = summary["phase_seconds"]
    found = {
        "jedi-x, maze A, a million evaluations: whole run": summary["wall_seconds"],
        "its search": spent["simulate+es"],
        "everything else": summary["wall_seconds"] - spent["simulate+es"],
        "its figures": spent["figures"],
    }
    found["Optimizer, new process: import to second ask, warm"] = first_result(python, warm)
    with tempfile.TemporaryDirectory() as folder:
        found["the same, cold"] = first_result(python, Path(folder))
    for method in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            summary = maze_a.run(method, 20_000, 0, [], python=python, environment=maze_a.with_cache(folder))
            found[f"compilation of {method}, cold"] = summary["phase_seconds"]["compile"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--other", help="interpreter with another version of jedax")
    options = parser.parse_args()
    pythons = [sys.executable, *([options.other] if options.other else [])]
    seconds: dict[str, dict[str, list[float]]] = {python: defaultdict(list) for python in pythons}
    with tempfile.TemporaryDirectory() as folder:
        caches = {python: Path(folder) / str(number) for number, python in enumerate(pythons)}
        for python, cache in caches.items():  # fills the warm caches
            measure(python, cache)
        for _ in range(options.repeats):
            for python, cache in caches.items():
                for what, took in measure(python, cache).items():
                    seconds[python][what].append(took)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians of {options.repeats} (least to greatest), s")
    print("| what |" + "".join(f" {name} |" for name in ("this version", "the other")[: len(pythons)]))
    print("|---|" + "---|" * len(pythons))
    for what in seconds[pythons[0]]:
        columns = [seconds[python][what] for python in pythons]
        cells = [f" {statistics.median(c):.2f} ({min(c):.2f} to {max(c):.2f}) |" for c in columns]
        print(f"| {what} |" + "".join(cells))


if __name__ == "__main__":
    main()
