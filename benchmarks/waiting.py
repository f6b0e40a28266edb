"""What a user waits for beside the search: figures, imports, compilation, the first result of an `Optimizer`.

    python benchmarks/waiting.py [--repeats 5] [--other PYTHON]

Each figure is of processes of their own. `--other` is the interpreter of an environment with another version of jedax,
which takes turns with this one. Cold processes have an empty cache of compiled programs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
METHODS = ("jedi-x", "map-elites", "jedi")

OPTIMIZER = """
import time; began = time.perf_counter()
import numpy as np, jedax
optimizer = jedax.Optimizer(num_params=10, descriptor_bounds=([-1, -1], [1, 1]), evaluations=50_000)
genotypes = optimizer.ask()
optimizer.tell(-(genotypes**2).sum(axis=1), np.clip(genotypes[:, :2], -1, 1))
optimizer.ask()
print(time.perf_counter() - began)
"""


def environment(cache: Path) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"} | {
        "XDG_CACHE_HOME": str(cache)
    }


def run(python: str, cache: Path, method: str, evaluations: int) -> dict:
    """Return the summary of one `jedax run maze-a`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "jedax", "run", "maze-a", "--method", method, "--evaluations", str(evaluations)]
        subprocess.run([*command, "--out", f"{folder}/run"], check=True, capture_output=True, env=environment(cache))
        return json.loads((Path(folder) / "run" / "summary.json").read_text())


def measure(python: str, warm: Path) -> dict[str, float]:
    """Return one measurement of everything, in seconds."""
    summary = run(python, warm, "jedi-x", 1_000_000)
    spent = summary["phase_seconds"]
    found = {
        "jedi-x, maze A, a million evaluations: whole run": summary["wall_seconds"],
        "its search": spent["simulate+es"],
        "everything else": summary["wall_seconds"] - spent["simulate+es"],
        "its figures": spent["figures"],
    }
    said = subprocess.run([python, "-c", OPTIMIZER], check=True, capture_output=True, text=True, env=environment(warm))
    found["Optimizer, new process: import to second ask, warm"] = float(said.stdout)
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(
            [python, "-c", OPTIMIZER], check=True, capture_output=True, text=True, env=environment(Path(folder))
        )
        found["the same, cold"] = float(said.stdout)
    for method in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            found[f"compilation of {method}, cold"] = run(python, Path(folder), method, 20_000)["phase_seconds"][
                "compile"
            ]
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
