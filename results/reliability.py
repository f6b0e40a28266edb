"""The full form of all tests of what a search survives, and a log of each file of tests.

    python results/reliability.py [FILE ...]

That is `python -m pytest -m nightly -rA FILE` for each file below: 50 kills of a run, 50 of workers and 10 of a bench,
crafted files, 20,000 damaged directories, a million parameters, and memory under watch. Each log begins with the
command, the versions and the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from jedax.store import environment
from jedax.store.files import write_atomic

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "reliability"
FILES = (
    "tests/reliability/test_bench_kills.py",
    "tests/search/test_resume.py",
    "tests/reliability/test_fuzz.py",
    "tests/reliability/test_meaning.py",
    "tests/reliability/test_conditions.py",
    "tests/reliability/test_memory.py",
)


def run(file: str) -> int:
    """Run the full form of one file of tests, keep its log, and return its exit code."""
    command = ["python", "-m", "pytest", "-m", "nightly", "-rA", "--durations=0", file]
    facts = {**environment.describe(), "command": " ".join(command)}
    before, began = os.times(), time.monotonic()
    done = subprocess.run(
        [sys.executable, *command[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    after = os.times()
    used = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    facts |= {
        "exit_code": done.returncode,
        "seconds": round(time.monotonic() - began),
        "processor_seconds": round(used),
    }
    HERE.mkdir(exist_ok=True)
    write_atomic(HERE / f"{Path(file).stem}.txt", f"{json.dumps(facts, indent=2)}\n\n{done.stdout}")
    print(file, done.stdout.splitlines()[-1])
    return done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", default=FILES)
    sys.exit(max(map(run, parser.parse_args().files)))


if __name__ == "__main__":
    main()
