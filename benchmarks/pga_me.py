"""What a generation of PGA-ME costs in maze A, with the default settings, and where the time goes.

    python benchmarks/pga_me.py [--replicas 1 10] [--repeats 12]

Times are minima over the repeats, per replica. The parts are compiled and timed alone, so they add up to a little
more or less than the whole.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

GENERATIONS = 10  # in one call of the whole, so that the call itself does not count


def fastest(program, repeats: int, *arguments) -> float:
    """Return the shortest of some calls, in seconds, compilation apart."""
    import jax

    jax.block_until_ready(program(*arguments))
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(program(*arguments))
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def measure(replicas: int, repeats: int) -> None:
    """Print the whole and its parts for a number of replicas."""
    import jax

    from jedax.methods.pga_me import PGAME, PGAMEConfig
    from jedax.tasks import make

    task = make("maze-a")
    algorithm = PGAME(PGAMEConfig(), task)
    td3, steps = algorithm.td3, algorithm.config.critic_steps

    def begin(key):
        genotypes = jax.vmap(task.init)(jax.random.split(key, algorithm.num_initial))
        return algorithm.init(key, genotypes, task.evaluate_with_transitions(key, genotypes))

    def advance(key, state):
        def generation(state, key):
            ask_key, evaluate_key, tell_key = jax.random.split(key, 3)
            genotypes, state = algorithm.ask(ask_key, state)
            evaluation = task.evaluate_with_transitions(evaluate_key, genotypes)
            return algorithm.tell(tell_key, state, genotypes, evaluation)[0], None

        return jax.lax.scan(generation, state, jax.random.split(key, GENERATIONS))[0]

    keys = jax.random.split(jax.random.key(0), replicas)
    state = jax.jit(jax.vmap(begin))(keys)
    whole = jax.jit(jax.vmap(advance), donate_argnums=1)
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        state = jax.block_until_ready(whole(keys, state))
        seconds.append(time.perf_counter() - began)
    total = min(seconds[1:]) / GENERATIONS / replicas
    print(f"{replicas} replicas: {1e3 * total:.2f} ms per generation of {algorithm.config.batch}")

    genotypes = jax.jit(jax.vmap(lambda key, state: algorithm.ask(key, state)[0]))(keys, state)
    parts = {
        "critic": (lambda key, state, _: td3.train(key, state.learner, state.buffer, steps), keys, state, genotypes),
        "variation": (lambda key, state, _: algorithm.ask(key, state)[0], keys, state, genotypes),
        "simulation": (lambda key, _, g: task.evaluate_with_transitions(key, g), keys, state, genotypes),
    }
    for name, (part, *arguments) in parts.items():
        took = fastest(jax.jit(jax.vmap(part)), repeats, *arguments) / replicas
        note = f", {1e6 * took / steps:.1f} us per update" if name == "critic" else ""
        print(f"  {name}: {1e3 * took:.2f} ms, {took / total:.0%}{note}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--repeats", type=int, default=12)
    options = parser.parse_args()
    for replicas in options.replicas:
        measure(replicas, options.repeats)
