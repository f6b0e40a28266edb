"""Define a task: an arm of two links throws a ball at a hoop.

    python examples/throw.py

or from the command line: cd examples && jedax run throw:Throw --method jedi
"""

import jax
import jax.numpy as jnp

import jedax

PHASES = 4  # the two joints have constant speeds in each phase
STEPS = 10  # steps in a phase
DT = 0.02  # seconds in a step
HOOP = jnp.array([2.5, 1.2])
GRAVITY = 9.81


class Throw(jedax.tasks.Task):
    """Genotype: speeds of shoulder and elbow in each phase. Descriptor: where the ball lands and how high it flies."""

    name = "throw"
    num_params = 2 * PHASES
    descriptor_bounds = ((-5.0, 0.0), (5.0, 3.5))  # lows, highs
    descriptor_names = ("lands at (m)", "flies as high as (m)")
    qd_offset = -10.0  # about the lowest fitness; the QD score counts from here
    goal_fitness = -0.02  # a distance below 2 cm is a hit
    default_evaluations = 50_000

    def init(self, key):
        """Return one random genotype."""
        return jax.random.normal(key, (self.num_params,))

    def evaluate(self, key, genotype):
        """Return the evaluation of one genotype; jedax batches and compiles."""
        speeds = 4 * jnp.tanh(genotype.reshape(PHASES, 2))
        angles = jnp.array([-jnp.pi / 2, 0.0]) + DT * jnp.cumsum(jnp.repeat(speeds, STEPS, axis=0), axis=0)
        shoulder, elbow = angles[:, 0], angles.sum(axis=1)
        hand = jnp.stack([jnp.cos(shoulder) + jnp.cos(elbow), 2 + jnp.sin(shoulder) + jnp.sin(elbow)], axis=1) / 2
        position, velocity = hand[-1], (hand[-1] - hand[-2]) / DT
        rise = velocity[1] / GRAVITY
        lands_after = rise + jnp.sqrt(rise**2 + 2 * position[1] / GRAVITY)
        time = jnp.linspace(0, lands_after, 100)[:, None]
        path = position + time * velocity - GRAVITY / 2 * time**2 * jnp.array([0.0, 1.0])
        missed_by = jnp.linalg.norm(path - HOOP, axis=1).min()
        return jedax.Evaluation(fitness=-missed_by, descriptor=jnp.stack([path[-1, 0], path[:, 1].max()]))


def main(evaluations=50_000, out="runs/throw"):
    """Search and print the result; figures are in `out`."""
    run = jedax.run("jedi-x", Throw(), evaluations=evaluations, out=out, overwrite=True)
    best = run.best()
    print(f"The best throw misses the hoop by {-best.fitness:.3f} m and lands at {best.descriptor[0]:.2f} m.")
    print(f"{out} contains {jnp.isfinite(run.repertoire.fitness[run.best_replica]).sum()} different throws.")
    return run


if __name__ == "__main__":
    main()
