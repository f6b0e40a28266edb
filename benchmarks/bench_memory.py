"""Peak memory of a bench's trials, one after another in one process: the 20th should need what the 2nd needed.

Run: python benchmarks/bench_memory.py [--trials 20] [--evaluations 20000]
"""

import argparse
import tempfile
from pathlib import Path

from jedax.bench.bench import BenchProgress, bench
from jedax.bench.grids import Entry, Grid


class Watch(BenchProgress):
    """Notes the peak of the process's memory in each run."""

    def __init__(self):
        super().__init__(None)
        self.peaks: list[float] = []

    def run(self, name, config):
        if self._begun:
            self.note_peak()
        Path("/proc/self/clear_refs").write_text("5")  # lets the kernel measure the peak anew
        self.name = name
        return super().run(name, config)

    def note_peak(self):
        self.peaks.append(peak())
        print(f"{len(self.peaks):3d} {self.name:25s} {self.peaks[-1]:7.0f} MB", flush=True)


def peak() -> float:
    """Return the highest resident memory since the last reset, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=20_000)
    arguments = parser.parse_args()
    watch = Watch()
    entries = tuple(
        Entry(f"{method} {number}", method, None, {"step_size": 0.05 + 0.001 * number})
        for number in range(-(-arguments.trials // 2))
        for method in ("jedi", "cma-me")
    )[: arguments.trials]
    with tempfile.TemporaryDirectory() as out:
        bench(Grid("", ("maze-a",), entries, 4, arguments.evaluations), out, progress=watch)
    watch.note_peak()
    print(f"last over second: {watch.peaks[-1] / watch.peaks[1]:.3f}")


if __name__ == "__main__":
    main()
