"""How much of a control run is not simulation: a run's generations beside the evaluation of as many policies.

Run: python benchmarks/control.py [--tasks halfcheetah walker2d ant-maze] [--methods jedi jedi-x] [--generations 20]

"Simulation" evaluates the policies that the run's next generation would evaluate, by `evaluate_batch`; "run" is a
generation of the run's own compiled program: ask, evaluate, tell. Both take turns; the median of several rounds counts.
The first generations of a loop are left out: LM-MA-ES then uses few of its directions.
"""

import argparse
import time

import jax
import numpy as np

from jedax.methods.registry import method_named
from jedax.search.compiled import replica_roots
from jedax.search.programs import programs_for
from jedax.store.config import defaults_for
from jedax.tasks import make


def timed(function, *arguments):
    began = time.perf_counter()
    result = jax.block_until_ready(function(*arguments))
    return time.perf_counter() - began, result


def measure(name, kind, preset, generations, rounds):
    task = make(name)
    method = method_named(kind).method(defaults_for(kind, name, preset)[0], task)
    programs, roots = programs_for(method, task, 1), replica_roots(0, 1)
    state, _ = programs.begin(roots, np.zeros((0, task.num_params), np.float32))
    state, _ = programs.begin_loop(roots, state, 0.0)
    evaluate, ask = jax.jit(task.evaluate_batch), jax.jit(method.ask)
    times: dict[str, list[float]] = {"simulation": [], "run": []}
    programs.advance(roots, jax.tree.map(jax.numpy.copy, state), 1)
    _, (state, *_) = timed(programs.advance, roots, state, 40)
    for number in range(rounds):
        one = jax.tree.map(lambda leaf: leaf[0], state)
        genotypes = jax.block_until_ready(ask(jax.random.key(number), one))[0]
        simulation, _ = timed(evaluate, jax.random.key(0), genotypes)
        took, (state, *_) = timed(programs.advance, roots, state, generations)
        if number:
            times["simulation"].append(simulation)
            times["run"].append(took / generations)
    median = {what: float(np.median(values)) for what, values in times.items()}
    print(
        f"| {name} | {kind} | {method.batch} | {method.batch / median['simulation']:,.0f} "
        f"| {method.batch / median['run']:,.0f} | {1 - median['simulation'] / median['run']:.0%} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", nargs="+", default=["halfcheetah", "walker2d", "ant-maze"])
    parser.add_argument("--methods", nargs="+", default=["jedi", "jedi-x"])
    parser.add_argument("--preset", help="default: the method's, with the paper's population")
    parser.add_argument("--generations", type=int, default=4, help="between two measurements")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}; evaluations per second")
    print("| task | method | batch | simulation | run | around simulation |")
    print("|---|---|---:|---:|---:|---:|")
    for name in arguments.tasks:
        for kind in arguments.methods:
            measure(name, kind, arguments.preset, arguments.generations, arguments.rounds)


if __name__ == "__main__":
    main()
