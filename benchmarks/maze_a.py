"""End to end: whole `jedax run` commands on maze A at the paper's setting, method after method, in turn.

    python benchmarks/maze_a.py [--repeats 3] [--evaluations 1000000] [--arguments=...]

Each command is a process of its own whose programs have been compiled before (the first, uncounted round does
that). Evaluations per second are those of the summary: the budget over all seconds from the first evaluation to the
last, GP, reports and checkpoints included, compilation, imports and figures not. `wall` is the whole command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = ("jedi-x", "map-elites", "jedi-uniform", "jedi")


def with_cache(cache: Path | str) -> dict[str, str]:
    """Return the environment of a command that keeps its compiled programs in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return kept | {"XDG_CACHE_HOME": str(cache)}


def run(
    method: str, evaluations: int, seed: int, arguments: list[str], *, python: str = sys.executable,
    environment: dict[str, str] | None = None,
) -> dict:  # fmt: skip
    """Return the summary of one command."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [python, "-m", "jedax", "run", "maze-a", "--method", method, "--seed", str(seed)]
        command += ["--evaluations", str(evaluations), "--out", str(out), *arguments]
        subprocess.run(command, check=True, capture_output=True, env=environment)
        return json.loads((out / "summary.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--arguments", default="", help="more of jedax run's, in one string")
    options = parser.parse_args()
    arguments = options.arguments.split()
    for method in METHODS:
        run(method, options.evaluations, 0, arguments)
    summaries: dict[str, list[dict]] = {method: [] for method in METHODS}
    for repeat in range(options.repeats):
        for method in METHODS:
            summaries[method].append(run(method, options.evaluations, repeat, arguments))
    print(f"{os.cpu_count()} cores, {options.evaluations:,} evaluations, seeds 0 to {options.repeats - 1}; medians")
    phases = ("compile", "simulate+es", "gp", "io", "import", "figures")
    print("| method | evaluations/s (min to max) | wall s | " + " | ".join(f"{phase} s" for phase in phases) + " |")
    print("|---|---|---:|" + "---:|" * len(phases))
    for method, found in summaries.items():
        rates = sorted(summary["evaluations_per_second"] for summary in found)
        wall = statistics.median(summary["wall_seconds"] for summary in found)
        spent = [statistics.median(summary["phase_seconds"].get(phase, 0) for summary in found) for phase in phases]
        cells = " | ".join(f"{seconds:.2f}" for seconds in spent)
        middle = statistics.median(rates)
        print(f"| {method} | {middle:,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f}) | {wall:.1f} | {cells} |")


if __name__ == "__main__":
    main()
