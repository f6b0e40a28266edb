"""Measure how much of the best fitness was luck when evaluations are noisy.

python examples/noisy.py
"""

import jedax

MAZE = jedax.tasks.make("maze-a", wheel_noise=0.002)


def main(evaluations=100_000, out="runs/example-noisy"):
    """Search with one and with four samples per solution and the same budget, and re-evaluate both results."""
    for samples in (1, 4):
        folder = f"{out}/{samples}"
        jedax.run("jedi-x", MAZE, evaluations=evaluations, samples_per_evaluation=samples, out=folder, overwrite=True)
        (solutions,) = jedax.reevaluate(folder, samples=32).replicas
        reported, corrected = solutions.reported[solutions.best], solutions.fitness[solutions.best]
        print(f"{samples} per solution: best fitness {reported:.0f}, re-evaluated {corrected:.0f};", end=" ")
        print(f"{solutions.num_kept} of {solutions.num_elites} elites behave as reported")


if __name__ == "__main__":
    main()
