"""Robots simulated natively: control steps per second beside Brax, beside C++ alone and beside a stated limit.

    python benchmarks/control_native.py [--tasks halfcheetah walker2d ant-maze] [--batches 64 1024]
        [--growth | --at-a-time 16 8 6 4]

Columns: "Brax", `jax.vmap` of policy and Brax's own step; "native", `evaluate_batch` of the task; "C++", the same code
without JAX, on threads of its own (`control_alone.cc`); "policy", the decisions alone, 16 members a thread in turn;
"physics", whole episodes with a policy of 8 neurons; "limit", the speed at which policy and physics would run one after
the other. Every policy has weights of its own. The columns take turns, one process for each number, `--repeats` times;
the best of each counts, since other work on the machine can only lower it. Steps after the end of an episode do not
count. `--at-a-time` compares numbers of policies that a thread simulates at a time; "by itself": as many as it chooses.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")

HERE = Path(__file__).parent
NATIVE = HERE.parent / "src" / "jedax" / "native"
WIDTHS, BATCHES = (32, 128, 256, 512, 1024), (16, 64, 256, 1024, 4096)


def draw(task, batch: int):
    """Return random genotypes."""
    import jax

    return jax.jit(jax.vmap(task.init))(jax.random.split(jax.random.key(0), batch))


def bare(task):
    """Return the function that rolls out every genotype by Brax, for all steps, and sums up the rewards."""
    import jax
    import jax.numpy as jnp

    from jedax import networks

    env, start = task.environment, jax.tree.map(jnp.asarray, task.start_state())

    def rollout(genotype):
        layers = networks.layers(genotype, task.layer_sizes)

        def step(state, _):
            action = networks.forward(layers, state.obs[None], task.config.activation)[0]
            after = env.step(state.replace(metrics=dict(state.metrics)), action)
            return after, after.reward

        return jax.lax.scan(step, start, length=task.config.steps)[1].sum()

    return jax.jit(jax.vmap(rollout))


def in_jax(who: str, task, batch: int, seconds: float) -> float:
    """Return the control steps per second of Brax, or of native code called from JAX."""
    import jax

    genotypes = draw(task, batch)
    if who == "brax":
        evaluate, steps = bare(task), batch * task.config.steps
    else:
        compiled = jax.jit(task.evaluate_batch)
        evaluate = lambda genotypes: compiled(jax.random.key(0), genotypes)  # noqa: E731
        steps = int(at_a_time(task, 0)(genotypes).sum())
    jax.block_until_ready(evaluate(genotypes))
    best, until = 0.0, time.perf_counter() + seconds
    while best == 0 or time.perf_counter() < until:
        began = time.perf_counter()
        jax.block_until_ready(evaluate(genotypes))
        best = max(best, steps / (time.perf_counter() - began))
    return best


def alone(who: str, task, batch: int, seconds: float) -> float:
    """Return the control steps per second of C++ without JAX, or the decisions per second of its policies."""
    import jax

    from jedax.tasks.control.task import _find_native

    model, episode = _find_native(task)
    with tempfile.TemporaryDirectory() as folder:
        program, settings, genotypes, starts = (
            Path(folder) / name for name in ("alone", "settings", "genotypes", "starts")
        )
        flags = "-std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing"
        command = ["c++", *flags.split(), "-DJEDAX_ISA=kBaseline", f"-I{NATIVE}",
                   f"-I{jax.ffi.include_dir()}", f"-I{HERE}",
                   str(HERE / "control_alone.cc"), "-o", str(program), "-pthread"]  # fmt: skip
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        names = ("relu", "tanh", "sigmoid", "elu", "gelu", "silu")
        rows = []
        for name, value in (vars(episode) | model).items():
            numbers = [names.index(value)] if isinstance(value, str) else np.ravel(np.asarray(value, float))
            rows.append(f"{name} {len(numbers)} " + " ".join(f"{number:.9g}" for number in numbers))
        settings.write_text("\n".join(rows))
        np.asarray(draw(task, batch)).tofile(genotypes)
        np.asarray(task._starts(None)).astype(np.float32).tofile(starts)
        threads = len(os.sched_getaffinity(0))
        what = "policy" if who == "policy" else "episodes"
        command = [str(program), str(settings), str(genotypes), str(starts), str(threads), str(seconds), what]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0])


def clock(who: str, name: str, batch: int, width: int, seconds: float) -> float:
    """Return control steps per second."""
    from jedax.tasks import make

    hidden = (8,) if who == "physics" else (width, width)
    # Brax's steps take the same time from the first to the last, so fewer are enough.
    task = make(name, hidden=hidden, steps=100) if who == "brax" else make(name, hidden=hidden)
    return (in_jax if who in ("brax", "native") else alone)(who, task, batch, seconds)


def measure(who: str, name: str, batch: int, width: int, seconds: float) -> float:
    """Do that in a process of its own."""
    command = [sys.executable, __file__, "--measure", who, name, str(batch), str(width), "--seconds", str(seconds)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def compare(options: argparse.Namespace) -> None:
    who = ("brax", "native", "c++", "policy", "physics")
    print("| task | batch | Brax | native | C++ | policy | physics | limit | native/Brax | native/C++ | native/limit |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in options.tasks:
        for batch in options.batches:
            best = dict.fromkeys(who, 0.0)
            for _ in range(options.repeats):
                for one in who:
                    best[one] = max(best[one], measure(one, name, batch, 256, options.seconds))
            limit = 1 / (1 / best["policy"] + 1 / best["physics"])
            rates = " | ".join(f"{best[one]:,.0f}" for one in who)
            print(f"| {name} | {batch} | {rates} | {limit:,.0f} | {best['native'] / best['brax']:.1f} x "
                  f"| {best['native'] / best['c++']:.0%} | {best['native'] / limit:.0%} |", flush=True)  # fmt: skip


def grow(options: argparse.Namespace) -> None:
    print("| neurons in each of two layers | weights | " + " | ".join(f"batch {batch}" for batch in BATCHES) + " |")
    print("|---:|---:" + "|---:" * len(BATCHES) + "|")
    for width in WIDTHS:
        weights = 17 * width + width + width * width + width + 6 * width + 6
        rates = [measure("native", "halfcheetah", batch, width, options.seconds)
                 for batch in BATCHES if batch * weights * 4 < 6e9]  # fmt: skip
        print(f"| {width} | {weights:,} | " + " | ".join(f"{rate:,.0f}" for rate in rates) + " |", flush=True)


def at_a_time(task, number: int):
    """Return a compiled function from genotypes to their steps, so many policies at a time; 0: its own choice."""
    import jax

    from jedax.native import control

    def evaluate(*arguments):
        return control.evaluate(*arguments, group=number)

    return jax.jit(lambda genotypes: task._natively(evaluate, None, jax.random.key(0), genotypes).length)


def together(options: argparse.Namespace) -> None:
    from jedax.tasks import make

    print("| task | batch | by itself | " + " | ".join(str(number) for number in options.at_a_time) + " |")
    print("|---|---:|---:" + "|---:" * len(options.at_a_time) + "|")
    for name in options.tasks:
        task = make(name)
        calls = {number: at_a_time(task, number) for number in (0, *options.at_a_time)}
        for batch in options.batches:
            genotypes = draw(task, batch)
            steps, best = int(calls[0](genotypes).sum()), dict.fromkeys(calls, 0.0)
            for turn in range(1 + 3 * options.repeats):
                for number, call in calls.items():
                    began = time.perf_counter()
                    call(genotypes).block_until_ready()
                    if turn:  # after compilation
                        best[number] = max(best[number], steps / (time.perf_counter() - began))
            print(f"| {name} | {batch} | " + " | ".join(f"{rate:,.0f}" for rate in best.values()) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["halfcheetah", "walker2d", "ant-maze"])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--repeats", type=int, default=3, help="processes for each number, in turn")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each process")
    parser.add_argument("--growth", action="store_true", help="how the speed changes with policies and batches")
    parser.add_argument("--at-a-time", type=int, nargs="+", help="policies that a thread simulates at a time")
    parser.add_argument("--measure", nargs=4, metavar=("WHO", "TASK", "BATCH", "WIDTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        who, name, batch, width = options.measure
        print(clock(who, name, int(batch), int(width), options.seconds))
        return
    how = "one process" if options.growth or options.at_a_time else f"best of {options.repeats} processes"
    print(f"{len(os.sched_getaffinity(0))} cores; control steps per second, {how}")
    (grow if options.growth else together if options.at_a_time else compare)(options)


if __name__ == "__main__":
    main()
