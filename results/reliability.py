"""The full form of all tests of what a search survives; the log, and the machine and versions beside it.

    python results/reliability.py

That is `python -m pytest -m nightly -rA` on the files below: 50 kills of a run, 50 of workers and 10 of a bench,
crafted files, and memory under watch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from jedax.runs import environment
from jedax.runs.files import write_atomic, write_json

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "reliability"
TESTS = ("tests/runs/test_resume.py", "tests/reliability")


def main() -> int:
    command = ["python", "-m", "pytest", "-m", "nightly", "-rA", "--durations=0", *TESTS]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    HERE.mkdir(exist_ok=True)
    output = done.stdout.replace(f"{ROOT}{os.sep}", "").replace(str(Path.home()), "~")
    write_atomic(HERE / "log.txt", f"$ {' '.join(command)}\n{output}")
    times = os.times()
    facts = {
        **environment.describe(),
        "command": " ".join(command),
        "exit_code": done.returncode,
        "seconds": round(time.monotonic() - began),
        "processor_seconds": round(times.children_user + times.children_system),
    }
    write_json(HERE / "environment.json", facts)
    print(done.stdout[-2000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
