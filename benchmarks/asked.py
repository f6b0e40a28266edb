"""What was asked of jedax' speed on two cores without an accelerator, and what it reaches on this machine.

    python benchmarks/asked.py [--peer PYTHON] [--repeats 2] [--seeds 3] [--kind stored]

`--peer` is the interpreter of an environment with Kheperax; pyribs must be installed beside jedax. Each part stands
alone, with more of it, in `maze_native.py`, `maze_a.py` and `jedax doctor --speed`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import maze_a
import maze_native

os.environ.setdefault("JAX_PLATFORMS", "cpu")

Row = tuple[str, str, str]


def simulators(kind: str, repeats: int, peer: str | None) -> Iterator[Row]:
    """Yield rows on the simulator: beside Kheperax and beside its own C++ without JAX, in turns."""
    for batch, asked in ((64, "60 %"), (4096, "85 %")):
        for maze in maze_native.MAZES:
            who = ["loop", "c++", *(["kheperax"] if peer and batch == 64 else [])]
            best = dict.fromkeys(who, 0.0)
            for _ in range(repeats):
                for one in who:
                    python = peer if peer and one == "kheperax" else sys.executable
                    best[one] = max(best[one], maze_native.measure(python, one, maze, batch, kind, 1.0)[0])
            reached = f"{best['loop'] / best['c++']:.0%} ({best['loop']:,.0f} of {best['c++']:,.0f} evaluations/s)"
            yield f"{maze}, batch {batch:,}: rollouts, share of C++ without JAX", asked, reached
            if "kheperax" in best:
                reached = f"{best['loop'] / best['kheperax']:.0f} x ({best['kheperax']:,.0f} evaluations/s)"
                yield f"{maze}, batch {batch:,}: rollouts / Kheperax", "80 x", reached


def whole_runs(seeds: int) -> Iterator[Row]:
    """Yield rows on a million evaluations of maze A by `jedax run`, cold and with its programs compiled before."""
    for method, asked in (("jedi-uniform", 100_000), ("jedi", 40_000)):
        with tempfile.TemporaryDirectory() as cache:
            environment = maze_a.with_cache(cache)
            began = time.perf_counter()
            cold = maze_a.run(method, 1_000_000, 0, [], environment=environment)
            wall = time.perf_counter() - began
            found = [maze_a.run(method, 1_000_000, seed, [], environment=environment) for seed in range(seeds)]
        rates = sorted(summary["evaluations_per_second"] for summary in found)
        spread = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
        yield f"{method}, maze A, 1e6: evaluations/s after compilation", f"{asked:,}", spread
        yield f"{method}: the same with compilation, cold cache: whole command", "20 s", f"{wall:.1f} s"
        compiling = statistics.median(summary["phase_seconds"]["compile"] for summary in found)
        reached = f"{cold['phase_seconds']['compile']:.1f} s and {compiling:.2f} s"
        yield f"{method}: compilation, cold and warm", "6 s and 1.5 s", reached
        if method == "jedi":
            searching = {"gp", "simulate+es", "io"}
            for of, phases in (("run", set(found[0]["phase_seconds"])), ("run's search alone", searching)):
                times = [summary["phase_seconds"] for summary in found]
                shares = sorted(each["gp"] / sum(each[phase] for phase in phases) for each in times)
                reached = f"{statistics.median(shares):.0%} ({shares[0]:.0%} to {shares[-1]:.0%})"
                yield f"GP and target choice, share of the jedi {of}", "under 50 %", reached


def insertions(seconds: float) -> Iterator[Row]:
    """Yield rows on adding 1,024 solutions to a repertoire, beside pyribs."""
    from jedax.bench.speed import repertoire

    for figure in (repertoire(cells, seconds) for cells in (1024, 10_000)):
        ratio = figure.ratios.get("pyribs")
        reached = (
            "pyribs is not installed" if ratio is None else f"{ratio:.0f} x ({figure.per_second:,.0f} solutions/s)"
        )
        yield f"{figure.what} / pyribs' CVTArchive.add", "20 x", reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="interpreter of an environment with Kheperax")
    parser.add_argument("--repeats", type=int, default=2, help="processes for each rate of a simulator, in turn")
    parser.add_argument("--seeds", type=int, default=3, help="of each method")
    parser.add_argument("--kind", choices=maze_native.KINDS, default="stored", help="controllers, see maze_native.py")
    parser.add_argument("--only", nargs="+", choices=("runs", "insertion", "simulator"))
    options = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "runs": lambda: whole_runs(options.seeds),
        "insertion": lambda: insertions(2.0),
        "simulator": lambda: simulators(options.kind, options.repeats, options.peer),
    }
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the beginning")
    print("| what | asked | reached |\n|---|---|---|")
    for name, part in parts.items():
        if options.only is None or name in options.only:
            for row in part():
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
