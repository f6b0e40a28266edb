"""The native maze simulator: evaluations per second on the four mazes, beside the one in JAX and beside C++ alone.

    python benchmarks/maze_native.py [--batches 64 4096] [--repeats 3] [--peer PYTHON]

Columns: "JAX", the simulator written in JAX; "call", the native one, called from Python in one jitted call after the
other; "loop", the native one inside a compiled loop, as in a search; "C++", the same code without JAX, on threads of
its own (`maze_alone.cc`); "Kheperax" with `--peer`, the interpreter of an environment with Kheperax 0.2.0 (`pip install
kheperax`). The columns take turns, one process for each number, `--repeats` times; rates are the best of all, since
other work on the machine can only lower them.

Controllers: "random", the task's own initial ones; "stored", those of the tests (a search's, of which many
arrive); "standing", all weights zero, so that every episode takes all its steps.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")

MAZES = ("maze-a", "maze-b", "maze-c", "maze-quad-b")
KINDS = ("random", "stored", "standing")
TESTS = Path(__file__).parents[1] / "tests"
NATIVE = Path(__file__).parents[1] / "src" / "jedax" / "native"
LAYERS = ("hidden_kernel", "hidden_bias", "output_kernel", "output_bias")
SHAPES = ((5, 8), (8,), (8, 2), (2,))
IN_LOOP = 32


def data(maze: str) -> dict[str, np.ndarray]:
    """Return the stored controllers, walls, start and target of a maze."""
    return dict(np.load(next(TESTS.rglob(f"{maze.replace('-', '_')}.npz"))))


def controllers(maze: str, batch: int, kind: str) -> list[np.ndarray]:
    """Return the four arrays of the layers, batch first."""
    random = np.random.default_rng(0)
    if kind == "stored":
        stored = data(maze)
        return [np.resize(stored[name], (batch, *shape)) for name, shape in zip(LAYERS, SHAPES, strict=True)]
    hidden = random.uniform(-1, 1, (batch, 5, 8)) * (3 / 5) ** 0.5  # LeCun
    output = random.uniform(-1, 1, (batch, 8, 2)) * (3 / 8) ** 0.5
    parts = [hidden, np.zeros((batch, 8)), output, np.zeros((batch, 2))]
    return [part.astype(np.float32) * (kind == "random") for part in parts]


def prepare(who: str, maze: str, batch: int, kind: str):
    """Return a function that evaluates once, how many evaluations that is, and the mean fitness."""
    parts = controllers(maze, batch, kind)
    if who == "kheperax":
        return kheperax(maze, parts)
    import jax

    from jedax.tasks import make

    task = make(maze)
    genotypes = np.concatenate([part.reshape(batch, -1) for part in parts], axis=1)
    key, rows = jax.random.key(0), jax.numpy.asarray(genotypes)
    compiled = {
        "jax": jax.jit(lambda key, rows: task.evaluate_in_jax(jax.random.split(key, batch), rows).fitness),
        "call": jax.jit(lambda key, rows: task.evaluate_batch(key, rows).fitness),
        "loop": jax.jit(
            lambda key, rows: jax.lax.scan(
                # What goes in depends on what came out, so that nothing is done once for all.
                lambda rows, _: (rows + 0 * task.evaluate_batch(key, rows).fitness[0], None), rows, length=IN_LOOP
            )[0]
        ),
    }  # fmt: skip
    evaluate = lambda: jax.block_until_ready(compiled[who](key, rows))  # noqa: E731
    mean = jax.jit(task.evaluate_batch)(key, rows).fitness.mean() if who == "loop" else evaluate().mean()
    return evaluate, batch * (IN_LOOP if who == "loop" else 1), mean


def kheperax(maze: str, parts: list[np.ndarray]):
    """Return the same of Kheperax."""
    import jax

    jax.tree_leaves = jax.tree.leaves  # Kheperax 0.2.0 uses a name that JAX has since removed
    from kheperax.simu.geoms import Pos, Segment
    from kheperax.simu.maze import Maze
    from kheperax.tasks.final_distance import FinalDistKheperaxTask
    from kheperax.tasks.target import TargetKheperaxConfig

    stored = data(maze)
    corners = {tuple(corner) for corner in itertools.product(*stored["limits"].T.tolist())}
    inner = [wall for wall in stored["walls"].tolist() if not {tuple(wall[:2]), tuple(wall[2:])} <= corners]
    assert len(inner) == len(stored["walls"]) - 4, "the four sides come on top"
    walls = [Segment(Pos(x1, y1), Pos(x2, y2)) for x1, y1, x2, y2 in inner]
    limits = tuple(tuple(corner) for corner in stored["limits"].tolist())
    default = TargetKheperaxConfig.get_default_for_map("standard")
    x, y, heading = stored["start"].tolist()
    config = dataclasses.replace(
        default,
        maze=Maze.create(segments_list=walls, limits=limits),
        episode_length=250,
        target_pos=tuple(stored["target"].tolist()),
        target_radius=float(stored["target_radius"]),
        robot=default.robot.replace(posture=default.robot.posture.__class__(x, y, heading)),
    )
    _, _, score = FinalDistKheperaxTask.create_default_task(config, jax.random.PRNGKey(0))
    names = ("Dense_0", "kernel"), ("Dense_0", "bias"), ("Dense_1", "kernel"), ("Dense_1", "bias")
    parameters: dict = {"params": {"Dense_0": {}, "Dense_1": {}}}
    for (layer, name), part in zip(names, parts, strict=True):
        parameters["params"][layer][name] = jax.numpy.asarray(part)
    scoring, key = jax.jit(score), jax.random.PRNGKey(0)
    evaluate = lambda: jax.block_until_ready(scoring(parameters, key)[0])  # noqa: E731
    return evaluate, len(parts[0]), evaluate().mean()


def measure_alone(maze: str, batch: int, kind: str, seconds: float) -> tuple[float, float]:
    """Return the best rate and the mean fitness of C++ without JAX."""
    import jax

    from jedax.tasks import make

    with tempfile.TemporaryDirectory() as folder:
        program, settings, genotypes = (Path(folder) / name for name in ("alone", "settings", "genotypes"))
        flags = "-std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing"
        source = Path(__file__).with_name("maze_alone.cc")
        command = [
            "c++",
            *flags.split(),
            "-DJEDAX_ISA=kBaseline",
            f"-I{NATIVE}",
            f"-I{jax.ffi.include_dir()}",
            str(source),
            "-o",
            str(program),
            "-pthread",
        ]
        subprocess.run(command, check=True)
        np.concatenate([part.reshape(batch, -1) for part in controllers(maze, batch, kind)], axis=1).tofile(genotypes)
        rows = [
            f"{name} {np.size(value)} " + " ".join(f"{number:.9g}" for number in np.ravel(value))
            for name, value in vars(make(maze).native_settings()).items() if name != "activation"
        ]  # fmt: skip
        settings.write_text("\n".join(rows))
        threads = len(os.sched_getaffinity(0))
        command = [str(program), str(settings), str(genotypes), str(threads), str(seconds)]
        rate, mean = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(rate), float(mean)


def clock(who: str, maze: str, batch: int, kind: str, seconds: float) -> tuple[float, float]:
    """Return the best rate of stretches of some milliseconds, and the mean fitness."""
    if who == "c++":
        return measure_alone(maze, batch, kind, seconds)
    evaluate, count, mean = prepare(who, maze, batch, kind)
    evaluate()
    best, until = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        began, calls = time.perf_counter(), 0
        while time.perf_counter() - began < 0.02:
            evaluate()
            calls += 1
        best = max(best, calls * count / (time.perf_counter() - began))
    return best, float(mean)


def measure(python: str, who: str, maze: str, batch: int, kind: str, seconds: float) -> tuple[float, float]:
    """Do that in a process of its own."""
    command = [python, __file__, "--measure", who, maze, str(batch), kind, "--seconds", str(seconds)]
    rate, mean = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(rate), float(mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 4096])
    parser.add_argument("--mazes", nargs="+", default=MAZES)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--repeats", type=int, default=3, help="processes for each number, in turn")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each process")
    parser.add_argument("--peer", help="interpreter of an environment with Kheperax")
    parser.add_argument("--measure", nargs=4, metavar=("WHO", "MAZE", "BATCH", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        who, maze, batch, kind = options.measure
        print(*clock(who, maze, int(batch), kind, options.seconds))
        return
    who = ["jax", "call", "loop", "c++", *(["kheperax"] if options.peer else [])]
    print(f"{len(os.sched_getaffinity(0))} cores; evaluations per second, best of {options.repeats} processes")
    print("| maze | batch | controllers | JAX | call | loop | C++ | Kheperax | call/C++ | loop/C++ | loop/Kheperax |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for maze in options.mazes:
        for batch in options.batches:
            for kind in options.kinds:
                best, means = dict.fromkeys(who, 0.0), {}
                for _ in range(options.repeats):
                    for one in who:
                        python = options.peer if one == "kheperax" else sys.executable
                        rate, means[one] = measure(python, one, maze, batch, kind, options.seconds)
                        best[one] = max(best[one], rate)
                spread = max(means.values()) - min(means.values())
                assert spread < 5, f"all must simulate the same: {means}"
                peer = best.get("kheperax")
                row = [maze, f"{batch:,}", kind, *(f"{best[one]:,.0f}" for one in who[:4])]
                row += [f"{peer:,.0f}" if peer else "-"]
                row += [f"{best['call'] / best['c++']:.0%}", f"{best['loop'] / best['c++']:.0%}"]
                row += [f"{best['loop'] / peer:.0f}" if peer else "-"]
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
