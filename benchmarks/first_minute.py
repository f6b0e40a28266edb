"""How long a newcomer waits: a bare environment, empty caches, `pip install .`, and the first figure of a first run.

    python benchmarks/first_minute.py

The network, and how many packages pip must fetch, count as they do for a newcomer.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
OF_THIS_PROCESS = ("JAX_COMPILATION_CACHE_DIR", "MPLCONFIGDIR", "PYTHONPATH", "VIRTUAL_ENV")


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--python", default=sys.executable, help="the interpreter of the environment")
    options.add_argument("--task", default="maze-a", help="what the first run searches on")
    options.add_argument("--evaluations", type=int, help="its budget; default: the task's own, a million for a maze")
    given = options.parse_args()
    print(f"load before: {load()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="first-minute-") as folder:
        measure(Path(folder), given)
    print(f"load after: {load()}")


def measure(folder, given):
    environment = {name: value for name, value in os.environ.items() if name not in OF_THIS_PROCESS}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "PIP_CACHE_DIR": str(folder / "pip")}
    programs, out = folder / "venv" / ("Scripts" if os.name == "nt" else "bin"), folder / "run"

    made = seconds(lambda: subprocess.run([given.python, "-m", "venv", folder / "venv"], check=True, env=environment))
    step("python -m venv", made)
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", HERE]
    installed = seconds(lambda: subprocess.run(install, check=True, env=environment))
    step("pip install .", installed)

    search = [programs / "jedax", "run", given.task, "--out", out]
    search += [] if given.evaluations is None else ["--evaluations", str(given.evaluations)]
    began = time.perf_counter()
    with subprocess.Popen(search, env=environment, stdout=subprocess.DEVNULL) as process:
        drawn = None
        while process.poll() is None:
            if drawn is None and any(file.stat().st_size for file in (out / "figures").glob("*.png")):
                drawn = time.perf_counter() - began
            time.sleep(0.02)
    whole = time.perf_counter() - began
    if process.returncode != 0:
        sys.exit(f"jedax run ended with code {process.returncode}")
    drawn = whole if drawn is None else drawn
    step(f"jedax run {given.task}, to the first figure", drawn)
    step("jedax run, to the end", whole)
    summary = json.loads((out / "summary.json").read_text())
    for phase, duration in summary["phase_seconds"].items():
        step(f"  of which {phase}", duration)
    step("from pip install . to the first figure", installed + drawn)


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def step(name, duration):
    print(f"{name:<45}{duration:8.1f} s", flush=True)


def load():
    return " ".join(f"{value:.2f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    main()
