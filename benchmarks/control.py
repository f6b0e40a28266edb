"""How much of a control run is physics: evaluations per second of a run against a bare loop of rollouts.

Run: python benchmarks/control.py [--task halfcheetah walker2d ant-maze] [--preset cpu] [--steps 100] [--generations 6]

The bare loop is `jax.vmap` of policy and Brax's own `step` over the same genotypes, as many as the run evaluates at
once, without counting contacts or ends. It takes turns with the run's own programs (ask, evaluate, tell) on whatever
device there is; the best of several rounds counts.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from jedax import networks
from jedax.methods.jedi import JEDi
from jedax.search.compiled import replica_roots
from jedax.search.programs import programs_for
from jedax.store.config import defaults_for
from jedax.tasks import make


def bare(task, genotypes):
    """Roll out every genotype for all steps, and sum up Brax's rewards."""
    env, start = task.environment, jax.tree.map(jnp.asarray, task.start_state())

    def rollout(genotype):
        layers = networks.layers(genotype, task.layer_sizes)

        def step(state, _):
            action = networks.forward(layers, state.obs[None], task.config.activation)[0]
            after = env.step(state.replace(metrics=dict(state.metrics)), action)
            return after, after.reward

        return jax.lax.scan(step, start, length=task.config.steps)[1].sum()

    return jax.vmap(rollout)(genotypes)


def timed(function, *arguments):
    began = time.perf_counter()
    result = jax.block_until_ready(function(*arguments))
    return time.perf_counter() - began, result


def measure(name, preset, steps, generations, rounds):
    task = make(name) if steps is None else make(name, steps=steps)
    method = JEDi(defaults_for("jedi-uniform", name, preset)[0], task)
    programs, roots = programs_for(method, task, 1), replica_roots(0, 1)
    state, _ = programs.begin(roots, np.zeros((0, task.num_params), np.float32))
    state, _ = programs.begin_loop(roots, state, 0.0)
    batch = method.config.batch
    evaluate, simple = jax.jit(task.evaluate_batch), jax.jit(lambda genotypes: bare(task, genotypes))
    times: dict[str, list[float]] = {"run": [], "evaluate": [], "bare": []}
    for number in range(rounds + 1):  # the first round compiles
        # The population that the run is about to evaluate, so that all three see the same robots.
        genotypes = jax.jit(method.ask)(jax.random.key(number), jax.tree.map(lambda leaf: leaf[0], state))[0]
        seconds = {
            "bare": timed(simple, genotypes)[0],
            "evaluate": timed(evaluate, jax.random.key(0), genotypes)[0],
        }
        took, (state, *_) = timed(programs.advance, roots, state, generations)
        seconds["run"] = took / generations
        if number:
            for what, value in seconds.items():
                times[what].append(value)
    best = {what: batch / min(values) for what, values in times.items()}
    rates = " | ".join(f"{best[what]:,.1f}" for what in ("bare", "evaluate", "run"))
    print(
        f"| {name} | {batch} | {task.config.steps} | {rates} | {best['run'] / best['bare']:.0%} "
        f"| {best['bare'] * task.config.steps:,.0f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", nargs="+", default=["halfcheetah", "walker2d", "ant-maze"])
    parser.add_argument("--preset", default="cpu", help="cpu, or decay for the paper's population")
    parser.add_argument("--steps", type=int, help="of an episode; default: the task's")
    parser.add_argument("--generations", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}; evaluations per second")
    print("| task | batch | steps | bare loop | evaluate_batch | run | run/bare | bare steps/s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in arguments.task:
        measure(name, arguments.preset, arguments.steps, arguments.generations, arguments.rounds)


if __name__ == "__main__":
    main()
